//! Worker processes: this same binary, started again with an internal first argument.
//!
//! A load generator or a server of our own is always a process of its own, so that its CPU time, its memory and its descriptors are
//! told apart from those of the process that conducts the run. [`crate::workers`] lists them.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_sys::child;

/// The first argument of a worker process. No user writes it.
pub(crate) const MARK: &str = "--fingerpost-worker";

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
