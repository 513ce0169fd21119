//! What somebody at the machine notices while a server is loaded: three periodic tasks, each timed from when its turn
//! was due.
//!
//! ```text
//! Desktop (the conducting process)   an order: how long to wait, for how long to measure;
//!   │                                the answer: each task's turns
//!   └─ desktop process               a thread each: a waker, a start of a program, a read of a file
//!                                    (task, worker)
//! ```
//!
//! The process has the priority, the CPUs and the timer slack (50 µs) that every program has which asks for nothing.

mod task;
pub mod worker;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fingerpost_undo::scratch::Scratch;
use task::{Answer, Order};
pub use task::{Task, Turns};

use crate::WorkloadError::{self, Failed};
use crate::worker::Link;

/// How long answers may take beyond the stretch itself: the turns that are made up for, and starting on a loaded
/// machine.
const GRACE: Duration = Duration::from_secs(60);

/// The process that has the tasks. It dies with the thread that started it.
#[derive(Debug)]
pub struct Desktop {
    link: Link,
    patience: Duration,
}

impl Desktop {
    /// Starts the process from this program. Its file is in the scratch directory.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, scratch: &mut Scratch) -> Result<Desktop, WorkloadError> {
        let mut command = Command::new(program);
        crate::worker::mark(&mut command, worker::NAME).arg(scratch.path().join("desktop-file"));
        let link = Link::within(&mut command, scratch).map_err(|e| gone(&e))?;
        Ok(Desktop {
            link,
            patience: GRACE,
        })
    }

    /// Has the tasks begin after a wait, for a while. [`Desktop::end`] follows.
    ///
    /// # Errors
    /// The process is gone.
    pub fn begin(&mut self, wait: Duration, length: Duration) -> Result<(), WorkloadError> {
        let order = Order {
            wait_ns: wait.as_nanos() as u64,
            length_ns: length.as_nanos() as u64,
        };
        self.patience = wait + 2 * length + GRACE;
        self.link.order(&order).map_err(|e| gone(&e))
    }

    /// Waits until the tasks have made all of their turns.
    ///
    /// # Errors
    /// The process is gone, hangs, or could not do its tasks.
    pub fn end(&mut self) -> Result<Vec<(Task, Turns)>, WorkloadError> {
        let answer: Answer = self.link.answer(self.patience).map_err(|why| gone(&why))?;
        answer.map_err(Failed)
    }

    /// Ends the process.
    ///
    /// # Errors
    /// It could not be ended: a sentence.
    pub fn stop(self, scratch: &mut Scratch) -> Result<(), String> {
        self.link.stop(scratch)
    }
}

fn gone(error: &dyn std::fmt::Display) -> WorkloadError {
    Failed(format!(
        "the process with a desktop's tasks is gone: {error}"
    ))
}
