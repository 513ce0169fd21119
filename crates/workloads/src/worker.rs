//! Worker processes: this same binary, started again with an internal first argument.
//!
//! A load generator or a server of our own is always a process of its own, so that its CPU time, its memory and its descriptors are
//! told apart from those of the process that conducts the run. [`dispatch`] stands at the beginning of `main`, before arguments are
//! parsed.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_sys::child;

/// The first argument of a worker process. No user writes it.
const MARK: &str = "--fingerpost-worker";

/// A worker's name, and what it does with the arguments that follow the name.
type Worker = (&'static str, fn(Vec<OsString>) -> ExitCode);

/// Every worker.
static WORKERS: &[Worker] = &[
    (crate::database::worker::NAME, crate::database::worker::main),
    (crate::database::guard::NAME, crate::database::guard::main),
    (crate::desktop::worker::NAME, crate::desktop::worker::main),
    (crate::planted::client::NAME, crate::planted::client::main),
    (crate::planted::backend::NAME, crate::planted::backend::main),
    (crate::rehearsal::server::NAME, crate::rehearsal::server::main),
    (crate::rehearsal::client::NAME, crate::rehearsal::client::main),
    (crate::rehearsal::truth::server::NAME, crate::rehearsal::truth::server::main),
    (crate::rehearsal::truth::peer::NAME, crate::rehearsal::truth::peer::main),
    (crate::rehearsal::neighbour::NAME, crate::rehearsal::neighbour::main),
    (crate::web::generator::NAME, crate::web::generator::main),
    (crate::web::static_server::NAME, crate::web::static_server::main),
    (crate::site::making::NAME, crate::site::making::main),
    (crate::site::reader::NAME, crate::site::reader::main),
    (crate::site::served::NAME, crate::site::served::main),
];

/// Runs a worker when this process was started as one; `None` when it is an ordinary invocation.
pub fn dispatch() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != MARK {
        return None;
    }
    let name = args.next().unwrap_or_default();
    let Some((_, run)) = WORKERS.iter().find(|(known, _)| name == *known) else {
        eprintln!("{} is not a worker of this program", name.display());
        return Some(ExitCode::from(2));
    };
    offer_to_kernel();
    Some(run(args.collect()))
}

/// Where memory runs out, a worker costs one row and the conducting process all of them; other programs of the host nothing of ours is
/// worth. So the kernel is to kill a worker first.
fn offer_to_kernel() {
    // Without /proc the kernel chooses by size, as ever.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}

/// How a process of ours that is gone ended, as the end of a sentence.
pub fn end_of(child: &mut Child) -> String {
    match child::wait_deadline(child, Instant::now() + Duration::from_secs(2)) {
        Ok(Some(status)) if status.signal() == Some(libc::SIGKILL) => {
            "was killed (SIGKILL), which the kernel does where memory runs out: give it more, or raise the control group's limit".to_owned()
        }
        Ok(Some(status)) => format!("ended unexpectedly ({status})"),
        _ => "said no more".to_owned(),
    }
}

/// The command that starts a worker. It is this very program (`/proc/self/exe`, so that it is found even when the file was replaced).
pub fn command(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    mark(&mut command, name);
    command
}

/// Adds what makes a worker of a command that runs this program.
pub fn mark<'a>(command: &'a mut Command, name: &str) -> &'a mut Command {
    command.arg(MARK).arg(name)
}

/// Lines that a process writes, read by a thread so that waiting for one can have a deadline.
pub(crate) fn lines_of(output: impl Read + Send + 'static) -> Receiver<io::Result<String>> {
    let (sender, receiver) = channel();
    // Where the system refuses a thread, the channel is closed, as when the process says nothing.
    let _ = thread::Builder::new().spawn(move || {
        for line in BufReader::new(output).lines() {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
