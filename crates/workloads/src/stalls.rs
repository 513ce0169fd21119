//! Stalls: times in which no transaction completed, found by one rule whatever is loaded, and why.
//!
//! A load generator tells a [`Finder`] of its completions, as they come or afterwards. Why nothing completed only it
//! can know, for afterwards there is nothing left to see: what it notes meanwhile is [`Notes`], which are asked for the
//! [`Reason`].

mod reason;

use serde::{Deserialize, Serialize};

pub use reason::{Doing, Reason, Threads};

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
        Finder { notes, shortest_ns: shortest_ns(0), start_ns: now, last_ns: now, found: Vec::new() }
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
            self.found.push(Stall { at_s, length_s: length as f64 / 1e9, why });
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
            (length_s * 1e9 >= SHORTEST_NS as f64).then(|| Stall { at_s, length_s, why: a.why.clone() })
        };
        common = common.iter().flat_map(|a| other.iter().filter_map(move |b| both(a, b))).collect();
    }
    common
}

#[cfg(test)]
mod tests;
