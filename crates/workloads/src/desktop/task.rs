//! The periodic tasks, and what the process that has them is asked and answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// A thread that sleeps until its turn is due (`clock_nanosleep` to a time, every 10 ms); its turn is done when it
    /// runs.
    Waker,
    /// `/bin/true` is started every 50 ms (as the C library does: `vfork`, `exec`); its turn is done when it has ended
    /// and was waited for.
    Exec,
    /// A file of 4 KiB, which is in the page cache, is opened, read and closed every 10 ms; its turn is done when it is
    /// closed.
    Read,
}

impl Task {
    /// All.
    pub const ALL: [Task; 3] = [Task::Waker, Task::Exec, Task::Read];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        ["waker", "exec", "read"][self as usize]
    }

    /// From one turn to the next, and when the first is due, so that the tasks do not wake at the same times.
    pub(super) fn schedule(self) -> (Duration, Duration) {
        let (period, offset) = match self {
            Task::Waker => (10_000, 0),
            Task::Exec => (50_000, 2500),
            Task::Read => (10_000, 5000),
        };
        (Duration::from_micros(period), Duration::from_micros(offset))
    }
}

/// The turns of one task over one stretch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// From when a turn was due until it was done, in nanoseconds, counted, with an error of at most 1/256, ascending.
    /// Every turn that was due is here: one that waited for the turn before it is counted with that wait.
    pub latencies: Vec<(u64, u64)>,
    /// The longest of them, exactly.
    pub worst_ns: u64,
    /// Turns that were not done when the next one was due.
    pub missed: u64,
    /// Turns that were not done when the wait for them ended; their latency is at least what is counted.
    pub unfinished: u64,
    /// Turns that went wrong, which have no latency.
    pub failed: u64,
    /// Why the last of them did.
    pub why: Option<String>,
}

/// What is asked of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub wait_ns: u64,
    pub length_ns: u64,
}

/// The answer: each task's turns, or a sentence.
pub(super) type Answer = Result<Vec<(Task, Turns)>, String>;
