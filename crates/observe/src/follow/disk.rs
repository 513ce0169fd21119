//! Requests to block devices: when each was held back, queued, and in the device, and whose were before it.

use std::collections::HashMap;

use super::event::{DiskStep, Event, Io, What};

/// The way of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// The thread that gave it to the block layer.
    pub by: i32,
    /// When it was given; where the kernel did not say, when it was queued or issued.
    pub submitted: u64,
    /// When the device got it.
    pub issued: Option<u64>,
    /// When the device had done it.
    pub completed: u64,
}

/// Requests of one window.
#[derive(Clone, Debug, Default)]
pub struct Disks {
    /// By device and first sector, in the order of completion.
    done: HashMap<(u32, u64), Vec<Way>>,
    /// All requests of a device with whose they were, for who was before: `(issued, completed, by)`, in the order of issue.
    busy: HashMap<u32, Vec<(u64, u64, i32)>>,
}

#[derive(Clone, Copy)]
struct Open {
    by: i32,
    submitted: u64,
    issued: Option<u64>,
}

impl Disks {
    /// Takes the requests of a window's events.
    pub fn of(events: &[Event]) -> Disks {
        let mut open: HashMap<(u32, u64), Open> = HashMap::new();
        let mut disks = Disks::default();
        for e in events {
            let What::Disk { step, io } = e.what else { continue };
            let key = (io.device, io.sector);
            match step {
                DiskStep::Submitted => _ = open.insert(key, Open { by: e.tid, submitted: e.time, issued: None }),
                DiskStep::Queued => _ = open.entry(key).or_insert(Open { by: e.tid, submitted: e.time, issued: None }),
                DiskStep::Issued => {
                    open.entry(key).or_insert(Open { by: e.tid, submitted: e.time, issued: None }).issued = Some(e.time);
                }
                DiskStep::Completed => {
                    let Some(o) = open.remove(&key) else { continue };
                    disks.done.entry(key).or_default().push(Way { by: o.by, submitted: o.submitted, issued: o.issued, completed: e.time });
                    if let Some(issued) = o.issued {
                        disks.busy.entry(io.device).or_default().push((issued, e.time, o.by));
                    }
                }
            }
        }
        disks.busy.values_mut().for_each(|b| b.sort_unstable());
        disks
    }

    /// The way of a request that was completed at a time.
    pub fn way(&self, io: Io, completed: u64) -> Option<Way> {
        let ways = self.done.get(&(io.device, io.sector))?;
        ways.partition_point(|w| w.completed <= completed).checked_sub(1).map(|i| ways[i])
    }

    /// The thread whose requests a device had for most of a stretch of time, but for one thread's own.
    pub fn before(&self, device: u32, from: u64, to: u64, but: i32) -> Option<i32> {
        let mut by: HashMap<i32, u64> = HashMap::new();
        for &(issued, completed, who) in self.busy.get(&device)? {
            if issued >= to {
                break;
            }
            if who != but {
                *by.entry(who).or_default() += completed.min(to).saturating_sub(issued.max(from));
            }
        }
        by.into_iter().filter(|&(_, ns)| ns > 0).max_by_key(|&(who, ns)| (ns, who)).map(|(who, _)| who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, tid: i32, step: DiskStep, sector: u64) -> Event {
        let io = Io { device: 7, sector, sectors: 8, write: true };
        Event { time, cpu: 0, interrupt: false, pid: tid, tid, what: What::Disk { step, io } }
    }

    #[test]
    fn a_request_is_followed_from_its_submission_and_others_are_told_by_whose_they_are() {
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
        let io = Io { device: 7, sector: 200, sectors: 8, write: true };
        assert_eq!(disks.way(io, 61), Some(Way { by: 2, submitted: 15, issued: Some(41), completed: 60 }));
        assert_eq!(disks.way(io, 59), None);
        assert_eq!(disks.way(Io { sector: 300, ..io }, 80), None, "its beginning was not seen");
        assert_eq!(disks.before(7, 16, 41, 2), Some(1));
        assert_eq!(disks.before(7, 41, 60, 2), None);
    }
}
