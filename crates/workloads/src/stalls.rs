//! Stalls: times in which no transaction completed, found by one rule whatever is loaded, and why.
//!
//! A load generator tells a [`Finder`] of its completions, as they come or afterwards. Why nothing completed only it
//! can know, for afterwards there is nothing left to see: what it notes meanwhile is [`Notes`], which are asked for the
//! [`Reason`].

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::web::errors::NO_PORT;

/// No completion for so many median latencies is a stall …
const MEDIANS: u64 = 10;
/// … of this length at least: what is shorter is the ordinary turn of a scheduler.
const SHORTEST_NS: u64 = 20_000_000;
/// The most stalls that are kept one by one; a client that stalls more often is told so by their number.
const MOST: usize = 1000;

/// A time in which no transaction completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// When it began, in seconds after the step's start.
    pub at_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
    /// What the client knew about the cause.
    pub why: Reason,
}

/// Why nothing completed, as far as the load generator can tell; as text, the sentence that is printed. Times are in
/// nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The load generator was ready to run, and waited so long for a CPU by the kernel's account.
    #[error("the load generator itself waited {:.0} ms for a CPU", ms(.0))]
    WaitedForCpu(u64),
    /// The load generator did not run for so long, and by the kernel's account it did not wait for a CPU.
    #[error(
        "the load generator did not run for {:.0} ms: it was stopped, or the host gave this guest no CPU",
        ms(.0)
    )]
    DidNotRun(u64),
    /// The load generator's watcher was woken so much later than it asked for.
    #[error("the load generator itself got no CPU for {:.0} ms", ms(.0))]
    GotNoCpu(u64),
    /// The host took so much CPU time away from this machine.
    #[error("the host took {:.0} ms of CPU time away from this machine", ms(.0))]
    Stolen(u64),
    /// Nobody looked before it was over.
    #[error("it was over before the connections were looked at")]
    Unseen,
    /// Most connections could not be made, the last one for want of a local port: sockets in TIME_WAIT, each of which
    /// holds one, and ports that there are.
    #[error(
        "{} of {} connections could not be made: {NO_PORT}; {} sockets are in TIME_WAIT and there are {} local ports \
         for one address", .0.pausing, .0.busy(), .1, .2
    )]
    NoPort(Doing, u64, u64),
    /// Most connections could not be made.
    #[error(
        "{} of {} connections could not be made: {}",
        .0.pausing, .0.busy(), .0.last_error.as_deref().unwrap_or("unknown")
    )]
    NotConnected(Doing),
    /// Most connections waited to be established; connections that a full accept queue turned away.
    #[error("{} of {} connections waited to be established{}", .0.connecting, .0.busy(), overflowed(.1))]
    Connecting(Doing, u64),
    /// Most answers had begun and did not go on.
    #[error("the server stopped in the middle of {} of {} answers", .0.receiving, .0.busy())]
    WithinAnswers(Doing),
    /// Most requests were sent and no answer to them had begun; connections that a full accept queue turned away.
    #[error("{} of {} requests were sent and the server answered none{}", .0.waiting, .0.busy(), overflowed(.1))]
    Unanswered(Doing, u64),
    /// No state was that of most connections; connections that a full accept queue turned away.
    #[error(
        "{} connections were being established, {} waited for an answer, {} were within one, {} paused after an \
         error{}",
        .0.connecting, .0.waiting, .0.receiving, .0.pausing, overflowed(.1)
    )]
    Mixed(Doing, u64),
    /// So many clients, which is all, waited for the server; what its threads did.
    #[error("{} waiting for the server{}", clients(.0), .1)]
    Server(usize, Threads),
}

impl Reason {
    /// Whether the load generator itself did not run, so that the stall is none of the server's.
    pub fn is_generators_own(&self) -> bool {
        matches!(
            self,
            Reason::WaitedForCpu(_) | Reason::DidNotRun(_) | Reason::GotNoCpu(_)
        )
    }
}

/// What a server's threads did while its clients waited; as text, the end of the sentence about that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// They could not be seen.
    #[error("")]
    Unseen,
    /// All slept.
    #[error(", and all of its threads were asleep: locks, timers or the network")]
    Asleep,
    /// So many were running or ready to run, and none waited for a disk.
    #[error(", which had {} running or ready to run", threads(.0))]
    Runnable(usize),
    /// So many waited for a disk.
    #[error(", which had {} waiting for a disk", threads(.0))]
    AtDisk(usize),
}

/// What the connections of a load generator were doing at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    /// Waiting for the connection to be established.
    pub connecting: usize,
    /// The request is sent or being sent, and no byte of an answer has come.
    pub waiting: usize,
    /// A part of an answer has come.
    pub receiving: usize,
    /// Pausing after an error.
    pub pausing: usize,
    /// With no request to make.
    pub idle: usize,
    /// The error that came last.
    pub last_error: Option<String>,
}

impl Doing {
    /// Connections that had something to do.
    pub fn busy(&self) -> usize {
        self.connecting + self.waiting + self.receiving + self.pausing
    }
}

fn ms(ns: &u64) -> f64 {
    *ns as f64 / 1e6
}

fn overflowed(times: &u64) -> String {
    match times {
        0 => String::new(),
        n => format!(
            "; the server's accept queue overflowed {n} times, and a connection turned away is tried again after 1 s"
        ),
    }
}

fn clients(n: &usize) -> String {
    if *n == 1 {
        "the client was".to_owned()
    } else {
        format!("all {n} clients were")
    }
}

fn threads(n: &usize) -> String {
    if *n == 1 {
        "1 thread".to_owned()
    } else {
        format!("{n} threads")
    }
}

/// How long nothing must have completed for a stall, where half of the transactions take no longer than the median. A
/// load generator notes why nothing completes from half of that on.
pub(crate) fn shortest_ns(median_ns: u64) -> u64 {
    SHORTEST_NS.max(median_ns.saturating_mul(MEDIANS))
}

/// What a load generator notes while nothing completes.
pub(crate) trait Notes {
    /// Why nothing completed from one time to the other.
    fn reason(&mut self, from: u64, to: u64) -> Reason;

    /// Something completed, or there is nothing to wait for: what was noted belongs to no stall.
    fn forget(&mut self) {}
}

/// Finds stalls in completions that are told in the order of their times: nanoseconds of any clock.
#[derive(Debug)]
pub(crate) struct Finder<N> {
    /// What is noted while nothing completes.
    pub(crate) notes: N,
    shortest_ns: u64,
    start_ns: u64,
    last_ns: u64,
    found: Vec<Stall>,
}

impl<N: Notes> Finder<N> {
    /// Begins to look, at the step's start. No median is known yet.
    pub(crate) fn new(now: u64, notes: N) -> Self {
        Finder {
            notes,
            shortest_ns: shortest_ns(0),
            start_ns: now,
            last_ns: now,
            found: Vec::new(),
        }
    }

    /// Sets the median latency.
    pub(crate) fn set_median(&mut self, median_ns: u64) {
        self.shortest_ns = shortest_ns(median_ns);
    }

    /// A completion.
    #[inline]
    pub(crate) fn completed(&mut self, now: u64) {
        let length = now.saturating_sub(self.last_ns);
        if length >= self.shortest_ns && self.found.len() < MOST {
            let why = self.notes.reason(self.last_ns, now);
            let at_s = self.last_ns.saturating_sub(self.start_ns) as f64 / 1e9;
            self.found.push(Stall {
                at_s,
                length_s: length as f64 / 1e9,
                why,
            });
        }
        self.restart(now);
    }

    /// There is nothing to wait for: no gap counts from before now.
    #[inline]
    pub(crate) fn restart(&mut self, now: u64) {
        self.last_ns = now;
        self.notes.forget();
    }

    /// Forgets what was found: the step starts now.
    pub(crate) fn begin(&mut self, now: u64) {
        self.found.clear();
        self.start_ns = now;
        self.restart(now);
    }

    /// Whether there has been no completion for so long that it may become a stall.
    pub(crate) fn may_stall(&self, now: u64) -> bool {
        now.saturating_sub(self.last_ns) > self.shortest_ns / 2
    }

    /// The step ends: a stall that is going on counts until now.
    pub(crate) fn end(&mut self, now: u64) -> Vec<Stall> {
        self.completed(now);
        std::mem::take(&mut self.found)
    }
}

/// The times in which every one of several generators stalled: with one, its own stalls.
pub(crate) fn common<'a>(mut generators: impl Iterator<Item = &'a [Stall]>) -> Vec<Stall> {
    let mut common = generators.next().unwrap_or_default().to_vec();
    for other in generators {
        let both = |a: &Stall, b: &Stall| {
            let at_s = a.at_s.max(b.at_s);
            let length_s = (a.at_s + a.length_s).min(b.at_s + b.length_s) - at_s;
            (length_s * 1e9 >= SHORTEST_NS as f64).then(|| Stall {
                at_s,
                length_s,
                why: a.why.clone(),
            })
        };
        common = common
            .iter()
            .flat_map(|a| other.iter().filter_map(move |b| both(a, b)))
            .collect();
    }
    common
}

#[cfg(test)]
mod tests;
