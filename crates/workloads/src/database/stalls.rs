//! Stalls of the database's clients, found from counts of completions in short slots, and what the watcher saw
//! meanwhile.

use std::collections::BTreeMap;

use crate::stalls::{Finder, Notes, Reason, Stall, Threads};

/// What the watcher saw at one moment at which nothing completed. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// After the step's start.
    pub at: u64,
    /// How much later than asked for the watcher itself was woken: it got no CPU.
    pub late: u64,
    /// CPU time that the host took away since the watcher looked before.
    pub stolen: u64,
    /// The server's threads by state (`R`, `S`, `D` …); empty when they cannot be seen.
    pub server: BTreeMap<char, usize>,
}

/// The stalls in counts of completions per slot.
///
/// `slots` covers the step from its start, each `slot` nanoseconds; `median` is the median latency in nanoseconds.
pub fn find(
    slots: &[u32],
    slot: u64,
    median: u64,
    clients: usize,
    samples: &[Sample],
) -> Vec<Stall> {
    let mut finder = Finder::new(0, Seen { clients, samples });
    finder.set_median(median);
    for at in (0..slots.len()).filter(|at| slots[*at] > 0) {
        finder.completed(at as u64 * slot);
        finder.restart((at + 1) as u64 * slot);
    }
    finder.end(slots.len() as u64 * slot)
}

/// What the watcher saw over the whole step.
struct Seen<'a> {
    clients: usize,
    samples: &'a [Sample],
}

impl Notes for Seen<'_> {
    /// The most likely reason of those that can be told from here.
    fn reason(&mut self, from: u64, to: u64) -> Reason {
        let meanwhile = |g: &&Sample| g.at >= from && g.at.saturating_sub(g.late) <= to;
        let meanwhile: Vec<&Sample> = self.samples.iter().filter(meanwhile).collect();
        let sum = |of: fn(&Sample) -> u64| meanwhile.iter().map(|g| of(g)).sum::<u64>();
        let (stolen, late) = (sum(|g| g.stolen), sum(|g| g.late));
        if stolen > (to - from) / 2 {
            return Reason::Stolen(stolen);
        }
        if late > (to - from) / 2 {
            return Reason::GotNoCpu(late);
        }
        let seen = meanwhile.iter().rev().find(|g| !g.server.is_empty());
        let threads = seen.map_or(Threads::Unseen, |seen| {
            let threads = |state: char| seen.server.get(&state).copied().unwrap_or(0);
            match (threads('D'), threads('R')) {
                (0, 0) => Threads::Asleep,
                (0, running) => Threads::Runnable(running),
                (disk, _) => Threads::AtDisk(disk),
            }
        });
        Reason::Server(self.clients, threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_gap_is_a_stall_when_it_is_long_for_this_server() {
        let mut slots = vec![5; 1000];
        slots[100..150].fill(0);
        slots[300..310].fill(0);
        let stalls = find(&slots, MS, MS / 5, 4, &[]);
        assert_eq!(stalls.len(), 1);
        assert!((stalls[0].at_s - 0.1).abs() < 1e-9 && (stalls[0].length_s - 0.05).abs() < 1e-9);
        assert_eq!(
            stalls[0].why.to_string(),
            "all 4 clients were waiting for the server"
        );
        // The same gap is nothing remarkable when the median is 10 ms.
        assert_eq!(find(&slots, MS, 10 * MS, 4, &[]), []);
    }

    #[test]
    fn gaps_at_either_end_count() {
        let mut slots = vec![1; 100];
        slots[..30].fill(0);
        slots[60..].fill(0);
        let at: Vec<(f64, f64)> = find(&slots, MS, 0, 1, &[])
            .iter()
            .map(|s| (s.at_s, s.length_s))
            .collect();
        assert_eq!(at.len(), 2);
        assert_eq!(at[0].0, 0.0);
        assert!((at[1].1 - 0.04).abs() < 1e-9);
        assert_eq!(find(&[], MS, 0, 1, &[]), []);
    }

    #[test]
    fn the_reason_is_what_was_seen_meanwhile() {
        let slots = vec![0; 100];
        let sample = |at| Sample {
            at: at * MS,
            ..Sample::default()
        };
        let why = |g: Sample| find(&slots, MS, 0, 2, &[g])[0].why.to_string();
        assert!(
            why(Sample {
                stolen: 80 * MS,
                ..sample(50)
            })
            .contains("host took 80 ms")
        );
        assert!(
            why(Sample {
                late: 90 * MS,
                ..sample(100)
            })
            .contains("got no CPU for 90 ms")
        );
        assert!(
            why(Sample {
                server: [('D', 1), ('S', 3)].into(),
                ..sample(50)
            })
            .contains("1 thread waiting for a disk")
        );
        assert!(
            why(Sample {
                server: [('R', 2)].into(),
                ..sample(50)
            })
            .contains("2 threads running")
        );
        assert!(
            why(Sample {
                server: [('S', 9)].into(),
                ..sample(50)
            })
            .contains("asleep")
        );
        // What was seen at another time says nothing.
        assert_eq!(
            why(Sample {
                stolen: 1000 * MS,
                ..sample(7000)
            }),
            "all 2 clients were waiting for the server"
        );
    }
}
