//! A neighbour that takes what the server needs: CPUs or the disk. It runs until it is killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::truth::basic::nameless;
use crate::closed_loop::{in_threads, work};
use crate::worker::Ended;

/// The worker's name.
pub const NAME: &str = "rehearsal-neighbour";

/// Threads for each CPU, so that a server with as many threads gets half of it.
const THREADS_A_CPU: usize = 2;
/// Bytes between two syncs of a neighbour on the disk.
const WRITTEN: usize = 4 << 20;
/// Bytes of the file that a reader reads, and of each of its reads.
const READ: (u64, usize) = (64 << 20, 256 << 10);
/// What reads past the page cache must be aligned to, whatever the disk.
const ALIGNED: usize = 4096;

/// `cpu [THREADS]`, `disk DIRECTORY [MICROSECONDS]` (a pause after each sync), `read DIRECTORY [THREADS]`, `memory`
/// (writes to memory alone) or `idle`; says "ready" to the first line on its standard input.
pub fn main(args: Vec<OsString>) -> Ended {
    let kind = args
        .first()
        .map(|w| w.to_string_lossy().into_owned())
        .unwrap_or_default();
    let number = |at: usize| {
        args.get(at)
            .and_then(|n| n.to_string_lossy().parse::<usize>().ok())
    };
    io::stdin().read_line(&mut String::new())?;
    match (kind.as_str(), args.get(1)) {
        ("cpu", _) => burn(number(1)),
        ("disk", Some(dir)) => write_and_sync(
            Path::new(dir),
            Duration::from_micros(number(2).unwrap_or(0) as u64),
        ),
        ("read", Some(dir)) => read_past_the_cache(Path::new(dir), number(2).unwrap_or(1)),
        ("memory", _) => write_to_memory(),
        ("idle", _) => {
            println!("ready");
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        _ => return Err("say cpu, disk DIRECTORY, read DIRECTORY, memory or idle".into()),
    }
    .map_err(Into::into)
}

fn burn(threads: Option<usize>) -> io::Result<()> {
    let usual = std::thread::available_parallelism()?.get() * THREADS_A_CPU;
    println!("ready");
    in_threads("the neighbour", threads.unwrap_or(usual), || {
        loop {
            work(1_000_000);
        }
    })
}

fn write_and_sync(dir: &Path, pause: Duration) -> io::Result<()> {
    let mut file = nameless(dir, "neighbour", OFlags::empty())?;
    let block = vec![b'x'; WRITTEN];
    println!("ready");
    loop {
        file.write_all(&block)?;
        file.sync_data()?;
        file.rewind()?;
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
}

fn read_past_the_cache(dir: &Path, threads: usize) -> io::Result<()> {
    let mut file = nameless(dir, "neighbour", OFlags::DIRECT)?;
    let mut space = vec![0u8; READ.1 + ALIGNED];
    let at = space.as_ptr().align_offset(ALIGNED);
    let block = &mut space[at..at + READ.1];
    for _ in 0..READ.0 / READ.1 as u64 {
        file.write_all(block)?;
    }
    println!("ready");
    // Each thread needs a place in the file of its own: one descriptor has one.
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    in_threads("the neighbour", threads.max(1), || {
        let mut space = vec![0u8; READ.1 + ALIGNED];
        let at = space.as_ptr().align_offset(ALIGNED);
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let Ok(own) = rustix::fs::open(path.as_str(), flags, Mode::empty()) else {
            return;
        };
        let mut own = File::from(own);
        loop {
            let place = fastrand::u64(..READ.0 / READ.1 as u64) * READ.1 as u64;
            let read = own
                .seek(SeekFrom::Start(place))
                .and_then(|_| own.read(&mut space[at..at + READ.1]));
            if read.is_err() {
                return;
            }
        }
    })
}

/// Writes a little at a time to a file that is in memory, with long pauses.
fn write_to_memory() -> io::Result<()> {
    let mut file = fingerpost_sys::memory::nameless_file()?;
    println!("ready");
    loop {
        file.write_all(&[b'x'; 4096])?;
        file.rewind()?;
        std::thread::sleep(Duration::from_millis(10));
    }
}
