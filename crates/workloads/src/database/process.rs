//! The processes that the database workload starts besides servers: the load generator and the guard.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use fingerpost_sys::scratch::{Scratch, Server};
use fingerpost_sys::stamps::Stamps;

use crate::WorkloadError;
use crate::database::connection::Target;
use crate::database::guard;
use crate::database::messages::{Reply, Request};
use crate::database::worker;
use crate::worker::{Pipes, mark, prefixed};

/// Connecting to a user's server and making a database there.
const GUARD_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(5);

fn lost(error: &dyn std::fmt::Display) -> WorkloadError {
    WorkloadError::Failed(format!("the load generator is gone: {error}"))
}

/// The load generator.
#[derive(Debug)]
pub struct Worker {
    server: Server,
    pipes: Pipes,
}

impl Worker {
    /// Starts it, and has it stamp its round trips where there is something to stamp them into. It dies with the
    /// calling thread.
    pub fn start(
        program: &Path,
        prefix: &[String],
        stamps: Option<&Stamps>,
        scratch: &mut Scratch,
    ) -> Result<Worker, WorkloadError> {
        let failed =
            |e: &dyn std::fmt::Display| WorkloadError::Failed(format!("the load generator could not be started: {e}"));
        // Behind a prefix the path must mean us and not the prefix's own program.
        let program =
            if prefix.is_empty() { program.to_owned() } else { program.canonicalize().map_err(|e| failed(&e))? };
        let mut command = prefixed(prefix, Command::new(program));
        mark(&mut command, worker::NAME);
        stamps.iter().for_each(|stamps| stamps.give(&mut command));
        let (server, pipes) = Pipes::start(&mut command, scratch).map_err(|e| failed(&e))?;
        Ok(Worker { server, pipes })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.server.pid()
    }

    /// Sends an order and waits for the answer.
    pub fn ask(&mut self, order: &Request, patience: Duration) -> Result<Reply, WorkloadError> {
        self.pipes.order(order).map_err(|e| lost(&e))?;
        self.next(patience)
    }

    /// Waits for a further answer to the same order.
    pub fn next(&mut self, patience: Duration) -> Result<Reply, WorkloadError> {
        match self.pipes.answers.recv_timeout(patience) {
            Ok(Ok(line)) => serde_json::from_str(&line).map_err(|e| lost(&e)),
            Ok(Err(e)) => Err(lost(&e)),
            Err(RecvTimeoutError::Timeout) => Err(WorkloadError::Failed(format!(
                "the load generator did not answer within {:.0} s",
                patience.as_secs_f64()
            ))),
            Err(RecvTimeoutError::Disconnected) => match self.server.child.wait() {
                Ok(status) => Err(lost(&status)),
                Err(e) => Err(lost(&e)),
            },
        }
    }

    /// Ends it.
    pub fn stop(mut self, scratch: &mut Scratch) -> Result<(), String> {
        // The end of its orders is the end of its work; a signal is for one that hangs.
        self.pipes.close();
        let _ = child::wait_deadline(&mut self.server.child, Instant::now() + STOP_DEADLINE);
        scratch.stop(self.server)
    }
}

/// The guard of the database on a user's own server.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipes: Pipes,
}

impl Guard {
    /// Starts it and has it make the database.
    pub fn start(program: &Path, target: &Target) -> Result<Guard, WorkloadError> {
        let failed = |e: &dyn std::fmt::Display| {
            WorkloadError::Failed(format!("the process that makes the database could not be started: {e}"))
        };
        let mut command = Command::new(program);
        // A group of its own: an interrupt from the keyboard is not for it, it has to clean up afterwards.
        mark(&mut command, guard::NAME).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        let mut pipes = Pipes::of(&mut child).map_err(|e| failed(&e))?;
        pipes.order(target).map_err(|e| failed(&e))?;
        let guard = Guard { child, pipes };
        let why = match guard.pipes.answers.recv_timeout(GUARD_DEADLINE) {
            Ok(Ok(line)) if line == guard::MADE => return Ok(guard),
            Ok(Ok(sentence)) => sentence,
            _ => "the server of the url did not answer in time".to_owned(),
        };
        let _ = guard.stop();
        Err(WorkloadError::Failed(why))
    }

    /// Has it drop the database, and waits until it has.
    pub fn stop(mut self) -> Result<(), String> {
        self.pipes.close();
        let last = self.pipes.answers.recv_timeout(GUARD_DEADLINE);
        let _ = child::wait_deadline(&mut self.child, Instant::now() + STOP_DEADLINE);
        match last {
            Ok(Ok(line)) if line == guard::DROPPED => Ok(()),
            Ok(Ok(sentence)) => Err(sentence),
            _ => Err("the process that drops the database on the server did not say that it did".to_owned()),
        }
    }
}
