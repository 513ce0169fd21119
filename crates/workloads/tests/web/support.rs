//! What the tests share: a workload from settings, servers within this process, and the naming of tests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{UnwindSafe, catch_unwind};
use std::time::Duration;

use fingerpost_record::{Param, Params};
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::web::Web;
use fingerpost_workloads::web::settings::Settings;
use fingerpost_workloads::{Step, Workload, WorkloadError};
use libtest_mimic::{Failed, Trial};

/// A test from a function that panics when it fails.
pub fn test(name: &str, run: impl FnOnce() + UnwindSafe + Send + 'static) -> Trial {
    Trial::test(name.to_owned(), move || {
        catch_unwind(run).map_err(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(panic.downcast_ref::<&str>().copied());
            Failed::from(text.unwrap_or("panicked").to_owned())
        })
    })
}

/// Settings as a user writes them.
pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    let params = pairs
        .iter()
        .fold(Params::new(), |p, (k, v)| p.with(k, Param::parse(v)));
    Settings::from_params(&params).unwrap()
}

/// Starts the workload, hands it to a function, and stops it.
pub fn with_web<T>(
    pairs: &[(&str, &str)],
    work: impl FnOnce(&mut Web) -> T,
) -> Result<T, WorkloadError> {
    let base = tempfile::tempdir().unwrap();
    open_to_pass(base.path());
    let mut scratch = Scratch::create_in(&base.path().join("scratch")).unwrap();
    let mut web = Web::new(settings(pairs), &mut scratch, &[], 2);
    let result = web.start().map(|()| work(&mut web));
    web.stop();
    result
}

/// Lets a server that was dropped to another user pass through a temporary directory.
pub fn open_to_pass(dir: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o711)).unwrap();
}

/// The first step's result.
pub fn step(pairs: &[(&str, &str)], length_ms: u64) -> Result<Step, WorkloadError> {
    with_web(pairs, |web| {
        let params = web.steps().remove(0);
        web.step(&params, Duration::from_millis(length_ms))
    })?
}

/// How many values a counted list holds.
pub fn total(counted: &[(u64, u64)]) -> u64 {
    counted.iter().map(|(_, n)| n).sum()
}

/// A server within this process: each connection is handed to `talk` on a thread of its own, with its number.
pub fn serve(talk: impl Fn(TcpStream, usize) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let talk = talk.clone();
            std::thread::spawn(move || talk(stream, number));
        }
    });
    address
}

/// Reads requests and answers each with what `answer` makes of its number on this connection; ends when there is no
/// answer.
pub fn answer_each(mut stream: TcpStream, mut answer: impl FnMut(usize) -> Option<Vec<u8>>) {
    let mut unread = Vec::new();
    for number in 0.. {
        while !unread.windows(4).any(|w| w == b"\r\n\r\n") {
            let mut piece = [0; 4096];
            match stream.read(&mut piece) {
                Ok(n) if n > 0 => unread.extend_from_slice(&piece[..n]),
                _ => return,
            }
        }
        unread.clear();
        let Some(bytes) = answer(number) else { return };
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}
