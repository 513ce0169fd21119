//! A neighbour that takes what the server needs: CPUs or the disk. It runs until it is killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::ExitCode;

use super::work;

/// The worker's name.
pub const NAME: &str = "rehearsal-neighbour";

/// Threads for each CPU, so that a server with as many threads gets half of it.
const THREADS_A_CPU: usize = 2;
/// Bytes between two syncs of a neighbour on the disk.
const WRITTEN: usize = 4 << 20;

/// `cpu`, or `disk DIRECTORY`; says "ready" to the first line on its standard input.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let kind = args.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
    let result = io::stdin().read_line(&mut String::new()).and_then(|_| {
        println!("ready");
        match (kind.as_str(), args.get(1)) {
            ("cpu", _) => burn(),
            ("disk", Some(dir)) => write_and_sync(Path::new(dir)),
            _ => Err(io::Error::other("say cpu or disk DIRECTORY")),
        }
    });
    if let Err(e) = result {
        println!("error {e}");
    }
    ExitCode::FAILURE
}

fn burn() -> io::Result<()> {
    let cpus = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for _ in 0..cpus * THREADS_A_CPU {
            let burner = || {
                loop {
                    work(1_000_000);
                }
            };
            if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, burner) {
                // The others work without end, so that this scope would never be left.
                eprintln!("the neighbour: cannot start a thread: {e}");
                std::process::exit(1);
            }
        }
    });
    Ok(())
}

fn write_and_sync(dir: &Path) -> io::Result<()> {
    let path = dir.join(format!("neighbour-{}", std::process::id()));
    let mut file = File::create_new(&path)?;
    std::fs::remove_file(&path)?;
    let block = vec![b'x'; WRITTEN];
    loop {
        file.write_all(&block)?;
        file.sync_data()?;
        file.rewind()?;
    }
}
