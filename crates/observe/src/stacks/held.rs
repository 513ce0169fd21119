//! When which thread had a request, of all requests and of the slowest: what tells whose a sample of a thread is.

use std::collections::HashMap;

/// A stretch of time, in nanoseconds on the monotonic clock.
pub type Span = (u64, u64);

/// A thread that had a request from its reading to the end of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub tid: i32,
    /// From when it read the request to when the answer was given.
    pub from: u64,
    pub to: u64,
    /// The request's whole latency in nanoseconds, which says whether it is one of the slow ones.
    pub latency: u64,
}

/// The times in which each thread had any request of a class, without overlap and in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holds {
    by_thread: HashMap<i32, Vec<Span>>,
}

impl Holds {
    /// Those of the requests that took so long at least.
    pub fn of(held: &[Held], least: u64) -> Holds {
        let mut by_thread: HashMap<i32, Vec<Span>> = HashMap::new();
        for h in held.iter().filter(|h| h.latency >= least && h.from < h.to) {
            by_thread.entry(h.tid).or_default().push((h.from, h.to));
        }
        by_thread.values_mut().for_each(merge);
        Holds { by_thread }
    }

    /// Whether a thread had one at this moment.
    pub fn has(&self, tid: i32, at: u64) -> bool {
        self.within(tid, (at, at + 1)) > 0
    }

    /// Nanoseconds of a stretch of a thread's time in which it had one.
    pub fn within(&self, tid: i32, (from, to): Span) -> u64 {
        let Some(spans) = self.by_thread.get(&tid) else {
            return 0;
        };
        let first = spans.partition_point(|s| s.1 <= from);
        spans[first..]
            .iter()
            .take_while(|s| s.0 < to)
            .map(|s| s.1.min(to) - s.0.max(from))
            .sum()
    }
}

fn merge(spans: &mut Vec<Span>) {
    spans.sort_unstable();
    spans.dedup_by(|later, earlier| {
        let touches = later.0 <= earlier.1;
        if touches {
            earlier.1 = earlier.1.max(later.1);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_several_requests_of_one_thread_are_counted_once() {
        let held = |tid, from, to, latency| Held {
            tid,
            from,
            to,
            latency,
        };
        let all = [
            held(7, 10, 20, 10),
            held(7, 15, 30, 20),
            held(7, 40, 50, 100),
            held(8, 0, 5, 5),
            held(9, 9, 9, 1),
        ];
        let holds = Holds::of(&all, 0);
        assert_eq!(
            (
                holds.within(7, (0, 100)),
                holds.within(7, (18, 45)),
                holds.within(8, (0, 3)),
                holds.within(6, (0, 9))
            ),
            (30, 17, 3, 0)
        );
        assert!(holds.has(7, 29) && !holds.has(7, 30) && holds.has(8, 0) && !holds.has(9, 9));
        let slow = Holds::of(&all, 20);
        assert_eq!(
            (slow.within(7, (0, 100)), slow.within(8, (0, 100))),
            (25, 0)
        );
    }
}
