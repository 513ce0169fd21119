//! Worker processes: this same binary, started again with an internal first argument.
//!
//! A load generator or a server of our own is always a process of its own, so that its CPU time, its memory and its
//! descriptors are told apart from those of the process that conducts the run. [`crate::workers`] lists them.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use fingerpost_sys::scratch::{Scratch, Server};
use serde::Serialize;

/// The first argument of a worker process. No user writes it.
pub(crate) const MARK: &str = "--fingerpost-worker";

/// How a process of ours that is gone ended, as the end of a sentence.
pub fn end_of(child: &mut Child) -> String {
    match child::wait_deadline(child, Instant::now() + Duration::from_secs(2)) {
        Ok(Some(status)) if status.signal() == Some(libc::SIGKILL) => {
            "was killed (SIGKILL), which the kernel does where memory runs out: give it more, or raise the control \
             group's limit"
                .to_owned()
        }
        Ok(Some(status)) => format!("ended unexpectedly ({status})"),
        _ => "said no more".to_owned(),
    }
}

/// The command that starts a worker. It is this very program (`/proc/self/exe`, so that it is found even when the file
/// was replaced).
pub fn command(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    mark(&mut command, name);
    command
}

/// Adds what makes a worker of a command that runs this program.
pub fn mark<'a>(command: &'a mut Command, name: &str) -> &'a mut Command {
    command.arg(MARK).arg(name)
}

/// A command with words before it (`taskset -c 0`).
pub fn prefixed(prefix: &[String], command: Command) -> Command {
    let Some((first, rest)) = prefix.split_first() else { return command };
    let mut whole = Command::new(first);
    whole.args(rest).arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(key, value),
            None => whole.env_remove(key),
        };
    }
    whole
}

/// The end of a worker of this name.
pub(crate) fn ended(name: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{name}: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Says a line to the process that gives the orders. Whether that is still there its input tells, too.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// The pipes of a process that is told things in lines and answers in lines.
#[derive(Debug)]
pub(crate) struct Pipes {
    input: Option<ChildStdin>,
    /// What it says, read by a thread so that waiting for a line can have a deadline.
    pub(crate) answers: Receiver<io::Result<String>>,
}

impl Pipes {
    /// Starts a process with pipes.
    pub(crate) fn start(command: &mut Command, scratch: &mut Scratch) -> io::Result<(Server, Pipes)> {
        let mut server = scratch.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let pipes = Pipes::of(&mut server.child)?;
        Ok((server, pipes))
    }

    /// Those of a process that was started with pipes.
    pub(crate) fn of(child: &mut Child) -> io::Result<Pipes> {
        let output = child.stdout.take().ok_or_else(|| io::Error::other("it has no pipes"))?;
        let (sender, answers) = channel();
        // Where the system refuses a thread, the channel is closed, as when the process says nothing.
        let _ = thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Pipes { input: child.stdin.take(), answers })
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("it was stopped"))?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// Gives an order, an object of JSON.
    pub(crate) fn order(&mut self, order: &impl Serialize) -> io::Result<()> {
        self.say(&serde_json::to_string(order)?)
    }

    /// Gives no more orders.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }
}
