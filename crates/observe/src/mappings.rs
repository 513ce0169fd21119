//! How soon programs touch the memory that they ask for: the time from a mapping's being made to the first fault in it,
//! from the same events that requests are followed by.
//!
//! Part III of the zero-filling articles proposes to map the first pages of an allocation at once, on the guess that
//! nearly every allocation's first page is accessed immediately afterwards. Counted are anonymous mappings that may be
//! accessed: by `mmap`, and by `brk` where the place of the break is known. What a C library has mapped before and
//! hands out again is not seen, nor what was mapped between windows.

use std::collections::BTreeMap;

use fingerpost_sys::system::page_bytes;
use foldhash::HashMap;

use crate::follow::event::{Event, What};
use crate::machine::Totals;

/// `mmap`'s flags and protections that tell what kind of mapping it is.
const ANONYMOUS: u64 = 0x20;
const POPULATE: u64 = 0x8000;
const LOCKED: u64 = 0x2000;
const NO_ACCESS: u64 = 0;
/// Touches within these many nanoseconds are counted, each with the shorter ones.
const WITHIN: [(&str, u64); 5] = [
    ("1us", 1_000),
    ("10us", 10_000),
    ("100us", 100_000),
    ("1ms", 1_000_000),
    ("10ms", 10_000_000),
];
/// A mapping that a window's end leaves untouched tells something only if it was there for so long before.
const OLD_ENOUGH: u64 = 1_000_000;
/// Delays that are kept for their median; after that the sums go on alone.
const MOST_DELAYS: usize = 1_000_000;

/// What one process did.
#[derive(Clone, Debug, Default)]
struct Counts {
    mapped: u64,
    first: u64,
    other: u64,
    freed: u64,
    never: u64,
    cut: u64,
    reserved: u64,
    populated: u64,
    files: u64,
    within: [u64; WITHIN.len()],
    delays: Vec<u64>,
}

/// Mappings of all processes that windows showed.
#[derive(Debug, Default)]
pub struct Mappings {
    /// The call that a thread is in.
    calls: HashMap<i32, (i32, [u64; 2])>,
    /// Mappings that nobody has touched yet, by process and first address: their length, and when they were made.
    untouched: HashMap<i32, BTreeMap<u64, (u64, u64)>>,
    /// Where each process' break is.
    breaks: HashMap<i32, u64>,
    counts: HashMap<i32, Counts>,
    faults: u64,
}

impl Mappings {
    pub fn window(&mut self, end: u64, events: &[Event]) {
        // What happened between windows is not known.
        self.calls.clear();
        self.untouched.clear();
        self.breaks.clear();
        events.iter().for_each(|e| self.event(e));
        for (pid, mappings) in std::mem::take(&mut self.untouched) {
            let counts = self.counts.entry(pid).or_default();
            for (_, made) in mappings.values() {
                if end.saturating_sub(*made) >= OLD_ENOUGH {
                    counts.never += 1
                } else {
                    counts.cut += 1
                }
            }
        }
    }

    fn event(&mut self, e: &Event) {
        match e.what {
            What::Enter { call, args } if wanted(call) => {
                _ = self.calls.insert(e.tid, (call, args))
            }
            What::Exit { call, result } => {
                if let Some((_, args)) = self
                    .calls
                    .remove(&e.tid)
                    .filter(|(entered, _)| *entered == call)
                {
                    self.called(e, call.into(), args, result);
                }
            }
            What::Fault { address } => {
                self.faults += 1;
                self.touched(e, address);
            }
            _ => {}
        }
    }

    fn called(&mut self, e: &Event, call: i64, [first, second]: [u64; 2], result: i64) {
        match call {
            libc::SYS_mmap if result > 0 => self.mapped(e, first, second, result as u64),
            libc::SYS_munmap if result == 0 => self.freed(e.pid, first, second),
            libc::SYS_brk => self.moved(e, result as u64),
            // Another program: nothing of what was mapped is there.
            libc::SYS_execve if result == 0 => {
                self.untouched.remove(&e.pid);
                self.breaks.remove(&e.pid);
            }
            _ => {}
        }
    }

    /// `how` has the flags in its lower half and the protection in its upper one.
    fn mapped(&mut self, e: &Event, how: u64, length: u64, at: u64) {
        let (flags, protection) = (how & 0xffff_ffff, how >> 32);
        // In the place of others (MAP_FIXED) or not: what was there is gone.
        self.forget(e.pid, at, length);
        let counts = self.counts.entry(e.pid).or_default();
        if flags & ANONYMOUS == 0 {
            counts.files += 1;
        } else if protection == NO_ACCESS {
            counts.reserved += 1;
        } else if flags & (POPULATE | LOCKED) != 0 {
            counts.populated += 1;
        } else {
            self.made(e, at, length);
        }
    }

    fn made(&mut self, e: &Event, at: u64, length: u64) {
        self.counts.entry(e.pid).or_default().mapped += 1;
        self.untouched
            .entry(e.pid)
            .or_default()
            .insert(at, (length, e.time));
    }

    fn moved(&mut self, e: &Event, to: u64) {
        let before = self.breaks.insert(e.pid, to);
        match before {
            Some(before) if to > before => self.made(e, before, to - before),
            Some(before) if to < before => self.freed(e.pid, to, before - to),
            _ => {}
        }
    }

    fn freed(&mut self, pid: i32, at: u64, length: u64) {
        let gone = self.forget(pid, at, length);
        self.counts.entry(pid).or_default().freed += gone;
    }

    /// Forgets untouched mappings that begin within this range; how many they were.
    fn forget(&mut self, pid: i32, at: u64, length: u64) -> u64 {
        let Some(of) = self.untouched.get_mut(&pid) else {
            return 0;
        };
        let within: Vec<u64> = of
            .range(at..at.saturating_add(length.max(1)))
            .map(|(&start, _)| start)
            .collect();
        within.iter().for_each(|start| _ = of.remove(start));
        within.len() as u64
    }

    fn touched(&mut self, e: &Event, address: u64) {
        let Some(of) = self.untouched.get_mut(&e.pid) else {
            return;
        };
        let Some((&start, &(length, made))) = of.range(..=address).next_back() else {
            return;
        };
        if address - start >= length {
            return;
        }
        of.remove(&start);
        let counts = self.counts.entry(e.pid).or_default();
        // The break need not lie at a page's edge, whose page may be there already.
        let first = address - start < page_bytes();
        if first {
            counts.first += 1
        } else {
            counts.other += 1
        }
        let delay = e.time.saturating_sub(made);
        for (n, (_, most)) in counts.within.iter_mut().zip(WITHIN) {
            *n += u64::from(delay <= most && first);
        }
        if counts.delays.len() < MOST_DELAYS {
            counts.delays.push(delay);
        }
    }

    /// The totals of the processes that are asked for; empty where no fault was seen, which some kernels do not tell.
    pub fn totals(&self, ours: impl Fn(i32) -> bool) -> Totals {
        let mut t = Totals::new();
        if self.faults == 0 {
            return t;
        }
        let of: Vec<&Counts> = self
            .counts
            .iter()
            .filter(|(pid, _)| ours(**pid))
            .map(|(_, counts)| counts)
            .collect();
        let sum = |what: fn(&Counts) -> u64| of.iter().map(|c| what(c)).sum::<u64>() as f64;
        t.insert("mappings.anonymous".into(), sum(|c| c.mapped));
        t.insert("mappings.touched.first_page".into(), sum(|c| c.first));
        t.insert("mappings.touched.other_page".into(), sum(|c| c.other));
        t.insert("mappings.freed_untouched".into(), sum(|c| c.freed));
        t.insert("mappings.never_touched".into(), sum(|c| c.never));
        t.insert("mappings.cut".into(), sum(|c| c.cut));
        t.insert("mappings.reserved".into(), sum(|c| c.reserved));
        t.insert("mappings.populated".into(), sum(|c| c.populated));
        t.insert("mappings.files".into(), sum(|c| c.files));
        for (i, (name, _)) in WITHIN.iter().enumerate() {
            t.insert(
                format!("mappings.touched.within.{name}"),
                of.iter().map(|c| c.within[i]).sum::<u64>() as f64,
            );
        }
        let mut delays: Vec<u64> = of.iter().flat_map(|c| &c.delays).copied().collect();
        delays.sort_unstable();
        if let Some(last) = delays.len().checked_sub(1) {
            let at = |q: f64| delays[(last as f64 * q).round() as usize] as f64 * 1e-9;
            t.insert("mappings.touched.after.median.seconds".into(), at(0.5));
            t.insert("mappings.touched.after.p90.seconds".into(), at(0.9));
        }
        t
    }
}

fn wanted(call: i32) -> bool {
    matches!(
        i64::from(call),
        libc::SYS_mmap | libc::SYS_munmap | libc::SYS_brk | libc::SYS_execve
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;
    const READ_WRITE: u64 = 3 << 32;

    /// Events of one process, a microsecond apart.
    #[derive(Default)]
    struct Made(Vec<Event>);

    impl Made {
        fn then(&mut self, what: What) -> &mut Made {
            let time = self.0.len() as u64 * 1000;
            self.0.push(Event {
                time,
                cpu: 0,
                interrupt: false,
                pid: 7,
                tid: 8,
                what,
            });
            self
        }

        fn call(&mut self, call: i64, args: [u64; 2], result: i64) -> &mut Made {
            self.then(What::Enter {
                call: call as i32,
                args,
            })
            .then(What::Exit {
                call: call as i32,
                result,
            })
        }

        fn totals(&self, end: u64) -> Totals {
            let mut mappings = Mappings::default();
            mappings.window(end, &self.0);
            mappings.totals(|pid| pid == 7)
        }
    }

    #[test]
    fn the_first_fault_within_a_mapping_ends_its_wait() {
        let mut made = Made::default();
        made.call(
            libc::SYS_mmap,
            [READ_WRITE | ANONYMOUS, 4 * PAGE],
            0x10_0000,
        );
        made.then(What::Fault { address: 0x10_0010 })
            .then(What::Fault {
                address: 0x10_0000 + 2 * PAGE,
            });
        made.call(
            libc::SYS_mmap,
            [READ_WRITE | ANONYMOUS, 4 * PAGE],
            0x20_0000,
        );
        made.then(What::Fault {
            address: 0x20_0000 + 3 * PAGE,
        });
        let t = made.totals(1 << 30);
        assert_eq!(
            (
                t["mappings.anonymous"],
                t["mappings.touched.first_page"],
                t["mappings.touched.other_page"]
            ),
            (2.0, 1.0, 1.0)
        );
        assert_eq!(
            (
                t["mappings.touched.within.1us"],
                t["mappings.touched.within.10ms"],
                t["mappings.never_touched"]
            ),
            (1.0, 1.0, 0.0)
        );
        assert!((t["mappings.touched.after.median.seconds"] - 1e-6).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_touched_or_is_there_already_is_not_waited_for() {
        let mut made = Made::default();
        made.call(libc::SYS_mmap, [ANONYMOUS, PAGE], 0x10_0000);
        made.call(
            libc::SYS_mmap,
            [READ_WRITE | ANONYMOUS | POPULATE, PAGE],
            0x20_0000,
        );
        made.call(libc::SYS_mmap, [READ_WRITE, PAGE], 0x30_0000);
        made.call(libc::SYS_mmap, [READ_WRITE | ANONYMOUS, PAGE], -12);
        made.then(What::Fault { address: 0x30_0000 });
        let t = made.totals(1 << 30);
        assert_eq!(
            [
                "anonymous",
                "reserved",
                "populated",
                "files",
                "touched.first_page"
            ]
            .map(|n| t[&format!("mappings.{n}")]),
            [0.0, 1.0, 1.0, 1.0, 0.0]
        );
        assert_eq!(t.get("mappings.touched.after.median.seconds"), None);
    }

    #[test]
    fn untouched_is_what_was_freed_so_or_old_at_the_windows_end() {
        let mut made = Made::default();
        made.call(libc::SYS_mmap, [READ_WRITE | ANONYMOUS, PAGE], 0x10_0000)
            .call(libc::SYS_munmap, [0x10_0000, PAGE], 0);
        made.call(libc::SYS_mmap, [READ_WRITE | ANONYMOUS, PAGE], 0x20_0000)
            .then(What::Fault { address: 1 });
        let of = |end| {
            let t = made.totals(end);
            (
                t["mappings.freed_untouched"],
                t["mappings.never_touched"],
                t["mappings.cut"],
            )
        };
        assert_eq!(of(2_000_000), (1.0, 1.0, 0.0));
        assert_eq!(of(10_000), (1.0, 0.0, 1.0));
    }

    #[test]
    fn the_heap_grows_from_where_the_break_was() {
        let mut made = Made::default();
        made.call(libc::SYS_brk, [0, 0], 0x50_0000)
            .then(What::Fault { address: 0x50_0000 });
        made.call(libc::SYS_brk, [0x52_1000, 0], 0x52_1000)
            .then(What::Fault { address: 0x50_0000 });
        made.call(libc::SYS_brk, [0x53_0000, 0], 0x53_0000).call(
            libc::SYS_brk,
            [0x52_1000, 0],
            0x52_1000,
        );
        let t = made.totals(1 << 30);
        assert_eq!(
            ["anonymous", "touched.first_page", "freed_untouched"]
                .map(|n| t[&format!("mappings.{n}")]),
            [2.0, 1.0, 1.0]
        );
    }

    #[test]
    fn others_are_left_out_and_without_faults_nothing_is_told() {
        let mut made = Made::default();
        made.call(libc::SYS_mmap, [READ_WRITE | ANONYMOUS, PAGE], 0x10_0000);
        assert!(made.totals(1 << 30).is_empty());
        made.then(What::Fault { address: 0x10_0000 });
        let mut mappings = Mappings::default();
        mappings.window(1 << 30, &made.0);
        assert_eq!(mappings.totals(|pid| pid == 9)["mappings.anonymous"], 0.0);
    }
}
