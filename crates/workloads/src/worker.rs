//! Worker processes: this same binary, started again with an internal first argument.
//!
//! A load generator or a server of our own is always a process of its own, so that its CPU time, its memory and its
//! descriptors are told apart from those of the process that conducts the run. [`crate::workers`] lists them.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use fingerpost_undo::scratch::{Scratch, Server};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The first argument of a worker process. No user writes it.
pub(crate) const MARK: &str = "--fingerpost-worker";

/// What a line begins with by which a worker says why it cannot do what it was asked for.
const REFUSED: &str = "error ";

/// How long a process may take to end that gets no more orders.
const CLOSED: Duration = Duration::from_secs(5);

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
    let Some((first, rest)) = prefix.split_first() else {
        return command;
    };
    let mut whole = Command::new(first);
    whole
        .args(rest)
        .arg(command.get_program())
        .args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(key, value),
            None => whole.env_remove(key),
        };
    }
    whole
}

/// How a worker ended: in good order, or why it could not go on.
pub type Ended = Result<(), Box<dyn std::error::Error>>;

/// Says a line to the process that gives the orders. Whether that is still there its input tells, too.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// The line by which a worker says why it cannot do what it was asked for: one, as a further line would be taken for
/// the next answer.
pub(crate) fn refusal(why: impl Display) -> String {
    format!("{REFUSED}{}", why.to_string().replace('\n', " "))
}

/// Why a worker gave no answer. As text, what is said where no sentence of its own is.
#[derive(Debug, Error)]
pub(crate) enum NoAnswer {
    /// It could not be asked, or what it said could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It closed its output, as it does when it ends.
    #[error("ended before it answered")]
    Ended,
    /// It said that it cannot, and why.
    #[error("{0}")]
    Refused(String),
    /// It said something else than what was asked for.
    #[error(transparent)]
    Other(#[from] serde_json::Error),
    /// It took longer than this.
    #[error("did not answer within {:.0} s", .0.as_secs_f64())]
    Late(Duration),
}

/// A process that was started, with what else is known of it.
pub(crate) trait Started {
    /// The process.
    fn child(&mut self) -> &mut Child;
}

impl Started for Child {
    fn child(&mut self) -> &mut Child {
        self
    }
}

impl Started for Server {
    fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

/// A process that is told things in lines and answers in lines.
#[derive(Debug)]
pub(crate) struct Link<P = Server> {
    /// The process.
    pub(crate) process: P,
    input: Option<ChildStdin>,
    /// What it says, read by a thread so that waiting for a line can have a deadline.
    answers: Receiver<io::Result<String>>,
}

impl<P: Started> Link<P> {
    /// Starts a process with pipes, in this way.
    pub(crate) fn start(
        command: &mut Command,
        spawn: impl FnOnce(&mut Command) -> io::Result<P>,
    ) -> io::Result<Link<P>> {
        let mut process = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let child = process.child();
        let output = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("it has no pipes"))?;
        let input = child.stdin.take();
        let (sender, answers) = channel();
        // Where the system refuses a thread, the channel is closed, as when the process says nothing.
        let _ = thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Link {
            process,
            input,
            answers,
        })
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) -> io::Result<()> {
        let input = self
            .input
            .as_mut()
            .ok_or_else(|| io::Error::other("it was stopped"))?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// Gives an order, an object of JSON.
    pub(crate) fn order(&mut self, order: &impl Serialize) -> io::Result<()> {
        self.say(&serde_json::to_string(order)?)
    }

    /// Waits for a line, no longer than this where that is bounded.
    pub(crate) fn line(
        &mut self,
        patience: impl Into<Option<Duration>>,
    ) -> Result<String, NoAnswer> {
        let line = match patience.into() {
            // No look now and then: what is timed may be on the CPU that this thread would wake on.
            None => self.answers.recv().map_err(|_| NoAnswer::Ended),
            Some(patience) => self.answers.recv_timeout(patience).map_err(|e| match e {
                RecvTimeoutError::Timeout => NoAnswer::Late(patience),
                RecvTimeoutError::Disconnected => NoAnswer::Ended,
            }),
        }??;
        match line.strip_prefix(REFUSED) {
            Some(why) => Err(NoAnswer::Refused(why.trim().to_owned())),
            None => Ok(line),
        }
    }

    /// Waits for an answer, an object of JSON.
    pub(crate) fn answer<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
    ) -> Result<T, NoAnswer> {
        Ok(serde_json::from_str(&self.line(patience)?)?)
    }

    /// How the process, which is gone, ended, as the end of a sentence.
    pub(crate) fn end(&mut self) -> String {
        match child::wait_deadline(self.process.child(), Instant::now() + Duration::from_secs(2)) {
            Ok(Some(status)) if status.signal() == Some(libc::SIGKILL) => {
                "was killed (SIGKILL), which the kernel does where memory runs out: give it more, or raise the control \
                 group's limit"
                    .to_owned()
            }
            Ok(Some(status)) => format!("ended unexpectedly ({status})"),
            _ => "said no more".to_owned(),
        }
    }

    /// Gives no more orders, which is the end of the process's work.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Gives the process a while to end.
    pub(crate) fn let_end(&mut self) {
        let _ = child::wait_deadline(self.process.child(), Instant::now() + CLOSED);
    }
}

impl Link {
    /// Starts a process that ends with the run.
    pub(crate) fn within(command: &mut Command, scratch: &mut Scratch) -> io::Result<Link> {
        Link::start(command, |command| scratch.spawn(command))
    }

    /// The port that a server says it has, as `ready 8080`; nothing when it ends instead.
    pub(crate) fn port(&mut self) -> Option<u16> {
        self.line(None).ok()?.strip_prefix("ready ")?.parse().ok()
    }

    /// Ends the process. The end of its orders is the end of its work; a signal is for one that hangs.
    pub(crate) fn stop(mut self, scratch: &mut Scratch) -> Result<(), String> {
        self.close();
        self.let_end();
        scratch.stop(self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(5);
    const LATE: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_is_told_from_refusal_silence_and_the_end() {
        let script =
            "for say in 7 word 'error no disk '; do read line; echo \"$say\"; done; read line";
        let mut link =
            Link::start(Command::new("sh").args(["-c", script]), Command::spawn).unwrap();
        assert!(matches!(link.line(SOON), Err(NoAnswer::Late(SOON))));
        link.order(&"first").unwrap();
        assert_eq!(link.answer::<u32>(LATE).unwrap(), 7);
        link.say("second").unwrap();
        assert!(matches!(link.answer::<u32>(LATE), Err(NoAnswer::Other(_))));
        link.say("third").unwrap();
        assert!(matches!(link.line(None), Err(NoAnswer::Refused(why)) if why == "no disk"));
        link.close();
        assert!(matches!(link.line(None), Err(NoAnswer::Ended)));
        assert!(link.say("fourth").is_err());
        link.let_end();
        assert_eq!(link.end(), "ended unexpectedly (exit status: 1)");
    }
}
