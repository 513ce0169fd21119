//! What a generator counts: completions by stretch, latencies, errors.

use std::collections::BTreeMap;

use super::protocol::STRETCH_NS;
use crate::histogram::Histogram;

/// The window that is measured, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its beginning.
    pub start: u64,
    /// Its end, exclusive.
    pub end: u64,
}

/// Counts of one window. Before there is a window everything is warm-up.
#[derive(Debug, Default)]
pub struct Tally {
    /// The window, once it is known.
    pub window: Option<Window>,
    /// Ends the window when so many have completed.
    limit: u64,
    /// Answers completed within the window.
    pub completed: u64,
    /// Answers completed per stretch.
    pub stretches: Vec<u64>,
    /// From the sending (with a connection of its own: from the connecting).
    pub latencies: Histogram,
    /// From the intended start.
    pub intended: Histogram,
    open_loop: bool,
    /// What went wrong within the window.
    pub errors: BTreeMap<String, u64>,
}

/// Times of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When it should have begun.
    pub intended: u64,
    /// When it began.
    pub started: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new(open_loop: bool, requests: Option<u64>) -> Self {
        Tally {
            limit: requests.unwrap_or(u64::MAX),
            open_loop,
            ..Tally::default()
        }
    }

    /// Sets the window. What was counted before its beginning does not count.
    pub fn open(&mut self, window: Window) {
        self.window = Some(window);
        let stretches = (window.end - window.start) / STRETCH_NS;
        self.stretches = vec![0; stretches as usize];
        self.latencies.clear();
        self.intended.clear();
    }

    /// Whether the window is over.
    #[inline]
    pub fn over(&self, now: u64) -> bool {
        self.window.is_some_and(|w| now >= w.end)
    }

    /// Whether the window has begun.
    #[inline]
    pub fn begun(&self, now: u64) -> bool {
        self.window.is_some_and(|w| now >= w.start)
    }

    /// An answer is complete. Those under way when the window ends count with their latency, for the slow ones are
    /// among them, and not as completed.
    #[inline]
    pub fn complete(&mut self, times: Times, now: u64) {
        let Some(window) = self.window else {
            self.latencies.record(now - times.started);
            return;
        };
        if now < window.start {
            return;
        }
        self.latency(times, now);
        if now < window.end {
            self.completed += 1;
            // A window that is not whole stretches has a rest, which is no sample.
            if let Some(n) = self
                .stretches
                .get_mut(((now - window.start) / STRETCH_NS) as usize)
            {
                *n += 1;
            }
            if self.completed >= self.limit {
                self.window = Some(Window { end: now, ..window });
                self.stretches
                    .truncate(((now - window.start) / STRETCH_NS) as usize);
            }
        }
    }

    /// A latency, of an answer or, as the least that it can be, of one that did not come.
    #[inline]
    pub fn latency(&mut self, times: Times, now: u64) {
        self.latencies.record(now.saturating_sub(times.started));
        if self.open_loop {
            self.intended.record(now.saturating_sub(times.intended));
        }
    }

    /// A request that was due and never sent waited at least this long.
    pub fn never_sent(&mut self, intended: u64, now: u64) {
        self.intended.record(now.saturating_sub(intended));
        self.error(super::errors::UNSENT, now);
    }

    /// Something went wrong. Before the window it does not count.
    pub fn error(&mut self, kind: &str, now: u64) {
        if self.begun(now) {
            *self.errors.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

/// When the requests of an open loop are due: at equal distances from a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    start: u64,
    interval_ns: f64,
    phase: f64,
    next: u64,
}

impl Pace {
    /// `rate` requests a second from `start` on, the first after `phase` (0 to 1) of an interval.
    pub fn new(start: u64, rate: f64, phase: f64) -> Self {
        Pace {
            start,
            interval_ns: 1e9 / rate,
            phase,
            next: 0,
        }
    }

    /// When the next request is due. Computed from the start each time, so that rounding does not add up.
    #[inline]
    pub fn due(&self) -> u64 {
        self.start + ((self.next as f64 + self.phase) * self.interval_ns) as u64
    }

    /// Takes the next request when it is due before `now`.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<u64> {
        let due = self.due();
        (due <= now).then(|| {
            self.next += 1;
            due
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(started: u64) -> Times {
        Times {
            intended: started,
            started,
        }
    }

    #[test]
    fn only_the_window_counts_and_late_answers_keep_latency() {
        let mut t = Tally::new(false, None);
        t.complete(at(0), 10 * MS);
        t.error("early", 10 * MS);
        t.open(Window {
            start: 100 * MS,
            end: 350 * MS,
        });
        t.complete(at(20 * MS), 99 * MS);
        t.complete(at(90 * MS), 100 * MS);
        t.complete(at(90 * MS), 299 * MS);
        t.complete(at(90 * MS), 349 * MS);
        t.complete(at(300 * MS), 900 * MS);
        t.error("late", 120 * MS);
        assert_eq!(t.completed, 3);
        assert_eq!(t.stretches, [1, 1]);
        assert_eq!(t.latencies.total(), 4);
        assert!(t.latencies.quantile(1.0).unwrap().abs_diff(600 * MS) < 3 * MS);
        assert_eq!(t.intended.total(), 0);
        assert_eq!(t.errors.keys().collect::<Vec<_>>(), ["late"]);
        assert!(t.over(350 * MS) && !t.over(349 * MS));
    }

    #[test]
    fn a_number_of_requests_ends_the_window_when_the_last_completes() {
        let mut t = Tally::new(false, Some(3));
        t.open(Window {
            start: 0,
            end: 1000 * MS,
        });
        (1..=3).for_each(|i| t.complete(at(0), i * 60 * MS));
        assert_eq!(
            t.window,
            Some(Window {
                start: 0,
                end: 180 * MS
            })
        );
        assert_eq!(t.stretches, [1]);
        t.complete(at(0), 181 * MS);
        assert_eq!((t.completed, t.latencies.total()), (3, 4));
    }

    #[test]
    fn an_open_loop_counts_from_the_intended_start() {
        let mut t = Tally::new(true, None);
        t.open(Window {
            start: 0,
            end: 100 * MS,
        });
        t.complete(
            Times {
                intended: 10 * MS,
                started: 30 * MS,
            },
            31 * MS,
        );
        t.never_sent(50 * MS, 100 * MS);
        assert_eq!(t.latencies.counted().len(), 1);
        assert_eq!(t.intended.total(), 2);
        assert!(t.intended.quantile(1.0).unwrap() > 49 * MS);
        assert_eq!(t.errors.values().sum::<u64>(), 1);
    }

    #[test]
    fn a_pace_neither_drifts_nor_loses_a_request() {
        let mut pace = Pace::new(1000, 3_000_000.0, 0.5);
        let mut taken = 0u64;
        for now in (0..1_000_001_000u64).step_by(997) {
            while pace.take(now).is_some() {
                taken += 1;
            }
        }
        assert!((2_999_990..=3_000_010).contains(&taken), "{taken}");
        assert_eq!(Pace::new(0, 1000.0, 0.5).take(499_999), None);
        assert_eq!(Pace::new(0, 1000.0, 0.5).take(500_000), Some(500_000));
    }
}
