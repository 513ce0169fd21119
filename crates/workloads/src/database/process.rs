//! The processes that the database workload starts besides servers: the load generator and the guard.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use fingerpost_sys::stamps::Stamps;
use fingerpost_undo::scratch::Scratch;

use crate::WorkloadError::{self, Failed};
use crate::database::connection::Target;
use crate::database::guard;
use crate::database::messages::{Reply, Request};
use crate::database::worker;
use crate::worker::{Link, NoAnswer, mark, prefixed};

/// Connecting to a user's server and making a database there.
const GUARD_DEADLINE: Duration = Duration::from_secs(60);

/// The load generator.
#[derive(Debug)]
pub struct Worker(Link);

impl Worker {
    /// Starts it, and has it stamp its round trips where there is something to stamp them into. It dies with the
    /// calling thread.
    pub fn start(
        program: &Path,
        prefix: &[String],
        stamps: Option<&Stamps>,
        scratch: &mut Scratch,
    ) -> Result<Worker, WorkloadError> {
        let failed = |e: &dyn std::fmt::Display| {
            Failed(format!("the load generator could not be started: {e}"))
        };
        // Behind a prefix the path must mean us and not the prefix's own program.
        let program = if prefix.is_empty() {
            program.to_owned()
        } else {
            program.canonicalize().map_err(|e| failed(&e))?
        };
        let mut command = prefixed(prefix, Command::new(program));
        mark(&mut command, worker::NAME);
        stamps.iter().for_each(|stamps| stamps.give(&mut command));
        Link::within(&mut command, scratch)
            .map(Worker)
            .map_err(|e| failed(&e))
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.0.process.pid()
    }

    /// Sends an order and waits for the answer.
    pub fn ask(&mut self, order: &Request, patience: Duration) -> Result<Reply, WorkloadError> {
        self.0.order(order).map_err(|e| self.lost(e.into()))?;
        self.next(patience)
    }

    /// Waits for a further answer to the same order.
    pub fn next(&mut self, patience: Duration) -> Result<Reply, WorkloadError> {
        self.0.answer(patience).map_err(|why| self.lost(why))
    }

    fn lost(&mut self, why: NoAnswer) -> WorkloadError {
        let gone = |why: &dyn std::fmt::Display| format!("the load generator is gone: {why}");
        Failed(match why {
            NoAnswer::Late(_) => format!("the load generator {why}"),
            NoAnswer::Ended => match self.0.process.child.wait() {
                Ok(status) => gone(&status),
                Err(e) => gone(&e),
            },
            _ => gone(&why),
        })
    }

    /// Ends it.
    pub fn stop(self, scratch: &mut Scratch) -> Result<(), String> {
        self.0.stop(scratch)
    }
}

/// The guard of the database on a user's own server.
#[derive(Debug)]
pub struct Guard(Link<Child>);

impl Guard {
    /// Starts it and has it make the database.
    pub fn start(program: &Path, target: &Target) -> Result<Guard, WorkloadError> {
        let failed = |e: &dyn std::fmt::Display| {
            Failed(format!(
                "the process that makes the database could not be started: {e}"
            ))
        };
        let mut command = Command::new(program);
        // A group of its own: an interrupt from the keyboard is not for it, it has to clean up afterwards.
        mark(&mut command, guard::NAME).process_group(0);
        let mut guard = Guard(Link::start(&mut command, Command::spawn).map_err(|e| failed(&e))?);
        guard.0.order(target).map_err(|e| failed(&e))?;
        let why = match guard.0.line(GUARD_DEADLINE) {
            Ok(line) if line == guard::MADE => return Ok(guard),
            Err(NoAnswer::Refused(sentence)) => sentence,
            _ => "the server of the url did not answer in time".to_owned(),
        };
        let _ = guard.stop();
        Err(Failed(why))
    }

    /// Has it drop the database, and waits until it has.
    pub fn stop(mut self) -> Result<(), String> {
        self.0.close();
        let last = self.0.line(GUARD_DEADLINE);
        self.0.let_end();
        match last {
            Ok(line) if line == guard::DROPPED => Ok(()),
            Err(NoAnswer::Refused(sentence)) => Err(sentence),
            _ => Err(
                "the process that drops the database on the server did not say that it did"
                    .to_owned(),
            ),
        }
    }
}
