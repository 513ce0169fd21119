//! The periodic tasks, what the process that has them is asked and answers, and how a task's turns are made: none is
//! left out because the one before it took long.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

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

/// A clock in nanoseconds that can be slept on.
pub trait Clock {
    /// Now.
    fn now(&mut self) -> u64;
    /// Returns at this time or later; at once when it has passed.
    fn sleep_until(&mut self, time: u64) -> io::Result<()>;
}

/// When turns are due, in nanoseconds on the clock.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first.
    pub from: u64,
    /// None is due from here on.
    pub until: u64,
    /// From one to the next; not zero.
    pub period: u64,
    /// No turn is begun from here on. Those that were due are told as unfinished.
    pub give_up: u64,
}

/// Makes every turn of a plan. One that comes late is made at once, and counted from when it was due, so that a wait of
/// ten periods is ten late turns and not one ("coordinated omission": Gil Tene, "How NOT to measure latency").
pub fn make(plan: Plan, clock: &mut dyn Clock, work: &mut dyn FnMut() -> io::Result<()>) -> Turns {
    let (mut turns, mut latencies, mut due) = (Turns::default(), Histogram::default(), plan.from);
    let mut count = |turns: &mut Turns, latency: u64| {
        latencies.record(latency);
        turns.worst_ns = turns.worst_ns.max(latency);
        turns.missed += u64::from(latency > plan.period);
    };
    while due < plan.until {
        let slept = clock.sleep_until(due);
        if clock.now() >= plan.give_up {
            break;
        }
        match slept.and_then(|()| work()) {
            Ok(()) => count(&mut turns, clock.now().saturating_sub(due)),
            Err(e) => {
                turns.failed += 1;
                turns.why = Some(e.to_string());
            }
        }
        due += plan.period;
    }
    let ended = clock.now();
    while due < plan.until {
        count(&mut turns, ended.saturating_sub(due));
        turns.unfinished += 1;
        due += plan.period;
    }
    turns.latencies = latencies.counted();
    turns
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that stands still but for sleeping and what work adds.
    struct Made<'a>(&'a Cell<u64>);

    impl Clock for Made<'_> {
        fn now(&mut self) -> u64 {
            self.0.get()
        }
        fn sleep_until(&mut self, time: u64) -> io::Result<()> {
            self.0.set(self.0.get().max(time));
            Ok(())
        }
    }

    /// Ten turns, the n-th of which takes as long as told.
    fn turns(give_up: u64, took: impl Fn(u64) -> u64) -> Turns {
        let (now, n) = (Cell::new(0), Cell::new(0));
        make(
            Plan {
                from: 1000,
                until: 2000,
                period: 100,
                give_up,
            },
            &mut Made(&now),
            &mut || {
                now.set(now.get() + took(n.get()));
                n.set(n.get() + 1);
                if n.get() == 10 && took(0) == 7 {
                    Err(io::Error::other("refused"))
                } else {
                    Ok(())
                }
            },
        )
    }

    #[test]
    fn turns_in_time_are_each_as_long_as_their_work() {
        let made = turns(10_000, |_| 5);
        assert_eq!(
            (
                made.latencies,
                made.worst_ns,
                made.missed,
                made.unfinished,
                made.failed
            ),
            (vec![(5, 10)], 5, 0, 0, 0)
        );
    }

    #[test]
    fn a_long_turn_makes_those_late_that_were_due_meanwhile() {
        // Due at 1000, done at 1250; due at 1100, done at 1251; due at 1200, done at 1252. From 1300 on all is in time.
        let made = turns(10_000, |n| if n == 0 { 250 } else { 1 });
        assert_eq!(made.latencies, [(1, 7), (52, 1), (151, 1), (250, 1)]);
        assert_eq!((made.worst_ns, made.missed), (250, 2));
    }

    #[test]
    fn turns_that_were_never_begun_are_counted_with_the_wait_so_far() {
        // The fifth is due at 1400 and done at 3400; the other five were due at 1500 … 1900.
        let made = turns(3000, |n| if n == 4 { 2000 } else { 0 });
        assert_eq!(made.latencies.iter().map(|(_, n)| n).sum::<u64>(), 10);
        assert_eq!((made.unfinished, made.missed, made.worst_ns), (5, 6, 2000));
    }

    #[test]
    fn a_turn_that_goes_wrong_has_no_latency_and_a_reason() {
        let made = turns(10_000, |_| 7);
        assert_eq!(
            (made.failed, made.why.as_deref(), made.latencies),
            (1, Some("refused"), vec![(7, 9)])
        );
    }
}
