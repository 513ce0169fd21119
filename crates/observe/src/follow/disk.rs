//! Requests to block devices: when each was held back, queued, and in the device, and whose were before it.

use std::collections::HashMap;

use super::event::{DiskStep, Event, Io, What};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// The thread that gave it to the block layer.
    pub by: i32,
    /// When it was given; where the kernel did not say, when it was queued or issued.
    pub submitted: u64,
    /// When the device got it, and when it had done it.
    pub issued: Option<u64>,
    pub completed: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Disks {
    /// By device and first sector, in the order of completion.
    done: HashMap<(u32, u64), Vec<Way>>,
    /// All requests of a device with whose they were, for who was before and beside: in the order of issue.
    busy: HashMap<u32, Busy>,
    /// When each was completed, in order.
    ended: Vec<(u64, Io)>,
}

/// A worker is given the end of a request within so many nanoseconds.
const GIVEN: u64 = 100_000;

/// Requests that a device had.
#[derive(Clone, Debug, Default)]
struct Busy {
    /// `(issued, completed, by)`, in the order of issue.
    had: Vec<(u64, u64, i32)>,
    /// The longest of them, in nanoseconds: none that was issued longer before a time lasts until then.
    longest: u64,
}

impl Busy {
    /// Those that overlap a stretch of time.
    fn between(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64, i32)> + '_ {
        let first = self.had.partition_point(|b| b.0 + self.longest <= from);
        self.had[first..]
            .iter()
            .take_while(move |b| b.0 < to)
            .filter(move |b| b.1 > from)
            .copied()
    }
}

/// Flushes have no place on the device that would tell them apart, and the kernel does several that wait as one: those
/// that were submitted when it is issued.
const FLUSH: u64 = u64::MAX;

impl Disks {
    pub fn of(events: &[Event]) -> Disks {
        // Those that are not completed yet.
        let mut open: HashMap<(u32, u64), Vec<Way>> = HashMap::new();
        let mut disks = Disks::default();
        for e in events {
            let What::Disk { step, io } = e.what else {
                continue;
            };
            let key = (io.device, io.sector);
            let under_way = open.entry(key).or_default();
            let new = Way {
                by: e.tid,
                submitted: e.time,
                issued: None,
                completed: 0,
            };
            match step {
                DiskStep::Submitted if io.sector == FLUSH => under_way.push(new),
                DiskStep::Submitted => *under_way = vec![new],
                DiskStep::Queued | DiskStep::Issued => {
                    if under_way.is_empty() {
                        under_way.push(new);
                    }
                    if step == DiskStep::Issued {
                        under_way
                            .iter_mut()
                            .for_each(|o| _ = o.issued.get_or_insert(e.time));
                    }
                }
                DiskStep::Completed => {
                    // A flush that waits for the next one is not done with this one.
                    let waits = |o: &Way| io.sector == FLUSH && o.issued.is_none();
                    let (left, ended) = std::mem::take(under_way).into_iter().partition(waits);
                    *under_way = left;
                    disks.ended.push((e.time, io));
                    disks.end(key, ended, e.time);
                }
            }
        }
        disks.busy.values_mut().for_each(|b| b.had.sort_unstable());
        disks
    }

    fn end(&mut self, key: (u32, u64), ended: Vec<Way>, at: u64) {
        for o in ended {
            self.done
                .entry(key)
                .or_default()
                .push(Way { completed: at, ..o });
            if let Some(issued) = o.issued {
                let busy = self.busy.entry(key.0).or_default();
                busy.had.push((issued, at, o.by));
                busy.longest = busy.longest.max(at - issued);
            }
        }
    }

    /// The way of a request that was completed at a time; of several that were done as one, that of the thread that
    /// waited.
    pub fn way(&self, io: Io, completed: u64, waited: i32) -> Option<Way> {
        let ways = self.done.get(&(io.device, io.sector))?;
        let ways = &ways[..ways.partition_point(|w| w.completed <= completed)];
        let last = ways.last()?;
        let together = ways
            .iter()
            .rev()
            .take_while(|w| w.completed == last.completed);
        together
            .clone()
            .find(|w| w.by == waited)
            .or(Some(last))
            .copied()
    }

    /// The request that ended right before a time.
    pub fn ended_at(&self, at: u64) -> Option<Io> {
        let last = self.ended[..self.ended.partition_point(|e| e.0 <= at)].last()?;
        (at - last.0 <= GIVEN).then_some(last.1)
    }

    /// The thread whose requests a device had for most of a stretch of time, of those that count.
    pub fn before(
        &self,
        device: u32,
        from: u64,
        to: u64,
        counts: impl Fn(i32) -> bool,
    ) -> Option<i32> {
        let mut by: HashMap<i32, u64> = HashMap::new();
        for (issued, completed, who) in self
            .busy
            .get(&device)?
            .between(from, to)
            .filter(|b| counts(b.2))
        {
            *by.entry(who).or_default() += completed.min(to).saturating_sub(issued.max(from));
        }
        by.into_iter()
            .filter(|&(_, ns)| ns > 0)
            .max_by_key(|&(who, ns)| (ns, who))
            .map(|(who, _)| who)
    }

    /// The stretches of a time in which a device also had requests of threads that count, each with one of them: in
    /// order, without overlap.
    pub fn beside(
        &self,
        device: u32,
        from: u64,
        to: u64,
        counts: impl Fn(i32) -> bool,
    ) -> Vec<(u64, u64, i32)> {
        let mut found: Vec<(u64, u64, i32)> = Vec::new();
        let Some(busy) = self.busy.get(&device) else {
            return found;
        };
        let mut reached = from;
        for (issued, completed, who) in busy.between(from, to).filter(|b| counts(b.2)) {
            let (a, b) = (issued.max(reached), completed.min(to));
            if b > a {
                found.push((a, b, who));
                reached = b;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, tid: i32, step: DiskStep, sector: u64) -> Event {
        let io = Io {
            device: 7,
            sector,
            sectors: 8,
            write: true,
        };
        Event {
            time,
            cpu: 0,
            interrupt: false,
            pid: tid,
            tid,
            what: What::Disk { step, io },
        }
    }

    #[test]
    fn an_io_is_followed_from_its_submission_and_others_are_named() {
        let events = [
            event(10, 1, DiskStep::Submitted, 100),
            event(12, 1, DiskStep::Issued, 100),
            event(15, 2, DiskStep::Submitted, 200),
            event(16, 2, DiskStep::Queued, 200),
            event(40, 0, DiskStep::Completed, 100),
            event(41, 0, DiskStep::Issued, 200),
            event(60, 0, DiskStep::Completed, 200),
            event(70, 0, DiskStep::Completed, 300),
        ];
        let disks = Disks::of(&events);
        let io = Io {
            device: 7,
            sector: 200,
            sectors: 8,
            write: true,
        };
        assert_eq!(
            disks.way(io, 61, 2),
            Some(Way {
                by: 2,
                submitted: 15,
                issued: Some(41),
                completed: 60
            })
        );
        assert_eq!(disks.way(io, 59, 2), None);
        assert_eq!(
            disks.way(Io { sector: 300, ..io }, 80, 2),
            None,
            "its beginning was not seen"
        );
        assert_eq!(disks.before(7, 16, 41, |tid| tid != 2), Some(1));
        assert_eq!(disks.before(7, 41, 60, |tid| tid != 2), None);
    }

    #[test]
    fn flushes_that_the_kernel_joins_have_each_its_submission() {
        let events = [
            event(10, 1, DiskStep::Submitted, FLUSH),
            event(11, 9, DiskStep::Issued, FLUSH),
            event(12, 2, DiskStep::Submitted, FLUSH),
            event(13, 3, DiskStep::Submitted, FLUSH),
            event(30, 0, DiskStep::Completed, FLUSH),
            event(31, 9, DiskStep::Issued, FLUSH),
            event(50, 0, DiskStep::Completed, FLUSH),
            // The end of the request that asked for the flush.
            event(50, 0, DiskStep::Completed, FLUSH),
        ];
        let disks = Disks::of(&events);
        let io = Io {
            device: 7,
            sector: FLUSH,
            sectors: 0,
            write: true,
        };
        assert_eq!(
            disks.way(io, 30, 1),
            Some(Way {
                by: 1,
                submitted: 10,
                issued: Some(11),
                completed: 30
            })
        );
        let second = |by, submitted| {
            Some(Way {
                by,
                submitted,
                issued: Some(31),
                completed: 50,
            })
        };
        assert_eq!(
            (disks.way(io, 51, 2), disks.way(io, 51, 3)),
            (second(2, 12), second(3, 13))
        );
    }

    #[test]
    fn requests_of_others_beside_ones_own_are_told_with_owners() {
        let events = [
            event(10, 2, DiskStep::Issued, 200),
            event(12, 3, DiskStep::Issued, 300),
            event(15, 1, DiskStep::Issued, 100),
            event(20, 0, DiskStep::Completed, 200),
            event(26, 0, DiskStep::Completed, 300),
            event(30, 2, DiskStep::Issued, 200),
            event(40, 0, DiskStep::Completed, 100),
            event(90, 0, DiskStep::Completed, 200),
        ];
        let disks = Disks::of(&events);
        let but_own = |tid| tid != 1;
        assert_eq!(
            disks.beside(7, 15, 40, but_own),
            [(15, 20, 2), (20, 26, 3), (30, 40, 2)]
        );
        assert_eq!(disks.beside(7, 15, 40, |tid| tid == 3), [(15, 26, 3)]);
        assert_eq!(disks.beside(8, 15, 40, but_own), []);
    }
}
