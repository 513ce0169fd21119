//! Servers and programs under load.
//!
//! A [`Workload`] starts something, puts a number of clients on it for a while, and tells how many transactions were
//! done, how long each took, and how the client itself fared. It neither observes the server nor judges the figures.

mod closed_loop;
pub mod database;
pub mod desktop;
pub mod histogram;
pub mod planted;
pub mod programs;
pub mod rehearsal;
pub mod server_dir;
pub mod site;
mod stalls;
pub mod web;
pub mod worker;
pub mod workers;

use std::collections::BTreeMap;
use std::time::Duration;

use fingerpost_record::{Params, unstated};
pub use fingerpost_sys::stamps::{Drained, Stamp, Stamps};
pub use fingerpost_sys::subjects::Subjects;
use serde::{Deserialize, Serialize};
pub use stalls::{Doing, Reason, Stall, Threads};
use thiserror::Error;

/// Parameters of rows of a private server that was started behind other words (`taskset -c 0`, `strace`): they state
/// them, for it is not the same server. Without any they state nothing.
pub fn behind(params: Params, prefix: &[String]) -> Params {
    match unstated::prefix(&prefix.join(" ")) {
        Some(words) => params.with(unstated::SERVER_PREFIX, words),
        None => params,
    }
}

/// Why a workload could not be run.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// Something that it needs is not here: the row is skipped. The text says what to install or set.
    #[error("{0}")]
    Missing(String),
    /// It was tried and went wrong: the row is failed.
    #[error("{0}")]
    Failed(String),
    /// A setting that cannot be: a usage error.
    #[error("{0}")]
    Setting(String),
}

/// How the load generator fared during one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// CPU seconds of all client processes, user and system.
    pub cpu_seconds: f64,
    /// CPUs that they could use.
    pub cpus: usize,
    /// Client processes or threads that generated load.
    pub generators: usize,
    /// Times without any completion for a multiple of the median latency: start within the step, length, and why.
    pub stalls: Vec<Stall>,
    /// Failed connects, resets, timeouts, bad answers: how many of each.
    pub errors: BTreeMap<String, u64>,
    /// Why the client, not the server, was the limit; nothing when it was not.
    pub saturated: Option<String>,
    /// Sockets in TIME_WAIT on the host at the step's end, each of which holds a local port.
    pub time_wait: u64,
    /// Connections that a full accept queue of the host turned away within the step.
    pub listen_overflows: u64,
}

/// What one step (one setting of clients, for one stretch of time) gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Transactions completed within the step.
    pub transactions: u64,
    /// Round trips on connections that these took, the embedded database's statements included: as many as transactions
    /// where each is one. What is stamped ([`Workload::stamps`]) and what the kernel sees are round trips.
    pub turns: u64,
    /// The step's length.
    pub elapsed: Duration,
    /// Transactions a second in equal stretches of the step, in order: the samples of the throughput.
    pub throughput: Vec<f64>,
    /// Latency of every transaction as (nanoseconds, count) with at most 1 % error, ascending. None is dropped.
    pub latencies: Vec<(u64, u64)>,
    /// The same from the intended start, for an open loop; empty for a closed one.
    pub intended: Vec<(u64, u64)>,
    /// The client's own account.
    pub client: ClientReport,
}

impl Step {
    /// The latency in nanoseconds that a share `q` (0 to 1) of the transactions did not exceed.
    pub fn latency(&self, q: f64) -> Option<u64> {
        quantile(&self.latencies, q)
    }

    /// Transactions a second.
    pub fn rate(&self) -> f64 {
        self.transactions as f64 / self.elapsed.as_secs_f64()
    }
}

/// A list such as `1,2,5`, ascending and each number once; nothing where one is no whole number from 1 to the most.
pub(crate) fn numbers(list: &str, most: usize) -> Option<Vec<usize>> {
    let number = |word: &str| word.trim().parse().ok().filter(|n| (1..=most).contains(n));
    let mut numbers = list
        .split(',')
        .map(number)
        .collect::<Option<Vec<usize>>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// The value that a share `q` of a counted, ascending list does not exceed.
pub fn quantile(counted: &[(u64, u64)], q: f64) -> Option<u64> {
    let total: u64 = counted.iter().map(|(_, n)| n).sum();
    let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    counted.iter().find_map(|&(value, n)| {
        seen += n;
        (seen >= rank).then_some(value)
    })
}

/// A server or program that can be put under load, step by step.
pub trait Workload {
    /// The workload's name, which its probes begin with (`database`).
    fn name(&self) -> &'static str;

    /// Starts what is to be loaded and fills it with data. Ready when it returns.
    fn start(&mut self) -> Result<(), WorkloadError>;

    /// Starts server and load generators again, with the data that they have: one start of a server differs from the
    /// next (where its memory lies, what its hash tables look like), and repetitions over several starts tell by how
    /// much. Says whether it did: not where the server is not ours.
    fn renew(&mut self) -> Result<bool, WorkloadError> {
        Ok(false)
    }

    /// The steps to measure, in the order of a table; the caller shuffles them.
    fn steps(&self) -> Vec<Params>;

    /// The processes to observe. Valid after [`Workload::start`].
    fn subjects(&self) -> Subjects;

    /// Warms up, then loads the server as one step says for about this long. A workload has this or
    /// [`Workload::step_observed`].
    fn step(&mut self, params: &Params, length: Duration) -> Result<Step, WorkloadError> {
        self.step_observed(params, length, &mut || {})
    }

    /// As [`Workload::step`], and calls `begun` when every client is connected and the load begins, which observers
    /// wait for.
    fn step_observed(
        &mut self,
        params: &Params,
        length: Duration,
        begun: &mut dyn FnMut(),
    ) -> Result<Step, WorkloadError> {
        begun();
        self.step(params, length)
    }

    /// The load generators' account of each round trip, once they were started; nothing where they keep none. Whoever
    /// follows requests switches it on when a window opens, off when it closes, and drains it then; stamps that lie
    /// partly outside the window are to be left out by their times. The embedded database's are of whole transactions,
    /// because nothing of them is seen from outside but the thread.
    fn stamps(&self) -> Option<Stamps> {
        None
    }

    /// Ends everything that was started. Called once; also safe after a failed start.
    fn stop(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_smallest_value_that_covers_the_share() {
        let counted = [(10, 5), (20, 4), (30, 1)];
        assert_eq!(quantile(&counted, 0.5), Some(10));
        assert_eq!(quantile(&counted, 0.51), Some(20));
        assert_eq!(quantile(&counted, 0.9), Some(20));
        assert_eq!(quantile(&counted, 1.0), Some(30));
        assert_eq!(quantile(&counted, 0.0), Some(10));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
