//! How long a process was held up, and by what, by the kernel's delay accounting (`taskstats` over generic netlink).
//!
//! Needs `CAP_NET_ADMIN`. Delays other than the wait for a CPU are counted only while `kernel.task_delayacct` is 1; it is 0 unless
//! the machine was booted with `delayacct` or somebody switched it on.

use std::io;

use crate::netlink::{Netlink, REQUEST, each_attribute, u16_at, u64_at};
use crate::procfs::Paths;

/// The family that answers for names of families.
const GENERIC_CONTROL: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const TASKSTATS_GET: u8 = 1;
/// Asks for a process with all its threads, those that ended included.
const ATTRIBUTE_TGID: u16 = 2;
const TYPE_STATS: u16 = 3;
const TYPE_AGGREGATE_TGID: u16 = 5;

/// Where `struct taskstats` has what we read, by version of the structure: a version only ever adds at the end.
const BLOCK_IO: Field = Field { since: 1, at: 40 };
const SWAP_IN: Field = Field { since: 1, at: 56 };
const RECLAIM: Field = Field { since: 7, at: 320 };
const THRASHING: Field = Field { since: 9, at: 336 };
const COMPACTION: Field = Field { since: 11, at: 360 };
const COPY_ON_WRITE: Field = Field { since: 13, at: 408 };

struct Field {
    since: u16,
    at: usize,
}

/// Seconds, summed over the threads of a process since each began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// Waiting for block devices, but for swap.
    pub block_io: f64,
    /// Waiting for pages to come back from swap.
    pub swap_in: f64,
    /// Freeing memory before getting any (direct reclaim).
    pub reclaim: f64,
    /// Waiting for pages that were evicted a moment ago.
    pub thrashing: f64,
    /// Moving pages to make a large one.
    pub compaction: f64,
    /// Copying pages that were shared until written.
    pub copy_on_write: f64,
}

impl Delays {
    /// What came to be since an earlier reading; never negative.
    pub fn since(&self, earlier: &Delays) -> Delays {
        let d = |read: fn(&Delays) -> f64| (read(self) - read(earlier)).max(0.0);
        Delays {
            block_io: d(|x| x.block_io),
            swap_in: d(|x| x.swap_in),
            reclaim: d(|x| x.reclaim),
            thrashing: d(|x| x.thrashing),
            compaction: d(|x| x.compaction),
            copy_on_write: d(|x| x.copy_on_write),
        }
    }
}

/// Whether the kernel counts delays at this moment.
pub fn is_counting(paths: &Paths) -> bool {
    paths.read("proc/sys/kernel/task_delayacct").is_ok_and(|text| text.trim() == "1")
}

/// An open connection to the kernel's account of tasks.
pub struct Taskstats {
    netlink: Netlink,
    family: u16,
}

impl Taskstats {
    /// Opens it. Fails where the kernel has no such account; without `CAP_NET_ADMIN` only the first question fails.
    pub fn open() -> io::Result<Taskstats> {
        let mut netlink = Netlink::open(libc::NETLINK_GENERIC, 16 << 10)?;
        let mut family = None;
        netlink.ask(GENERIC_CONTROL, REQUEST, &question(CONTROL_GET_FAMILY, CONTROL_FAMILY_NAME, b"TASKSTATS\0"), &mut |body| {
            each_attribute(body.get(4..).unwrap_or(&[]), &mut |kind, data| {
                if kind == CONTROL_FAMILY_ID {
                    family = u16_at(data, 0);
                }
            });
        })?;
        let family = family.ok_or_else(|| io::Error::other("the kernel does not say which netlink family its account of tasks has"))?;
        Ok(Taskstats { netlink, family })
    }

    /// The delays of a process. Fails with `ESRCH` when there is none, with `EPERM` without the right to ask.
    pub fn delays(&mut self, pid: i32) -> io::Result<Delays> {
        let mut found = None;
        self.netlink.ask(self.family, REQUEST, &question(TASKSTATS_GET, ATTRIBUTE_TGID, &pid.to_ne_bytes()), &mut |body| {
            each_attribute(body.get(4..).unwrap_or(&[]), &mut |kind, data| {
                if kind == TYPE_AGGREGATE_TGID {
                    each_attribute(data, &mut |kind, data| {
                        if kind == TYPE_STATS {
                            found = parse(data);
                        }
                    });
                }
            });
        })?;
        found.ok_or_else(|| io::Error::other("the kernel's answer holds no account of the process"))
    }
}

/// A generic netlink request with one attribute.
fn question(command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let mut body = vec![command, 1, 0, 0];
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(attribute.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
    body
}

/// `struct taskstats`, of whatever version.
fn parse(data: &[u8]) -> Option<Delays> {
    let version = u16_at(data, 0)?;
    let seconds = |f: Field| if version >= f.since { u64_at(data, f.at).map_or(0.0, |ns| ns as f64 * 1e-9) } else { 0.0 };
    Some(Delays {
        block_io: seconds(BLOCK_IO),
        swap_in: seconds(SWAP_IN),
        reclaim: seconds(RECLAIM),
        thrashing: seconds(THRASHING),
        compaction: seconds(COMPACTION),
        copy_on_write: seconds(COPY_ON_WRITE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_where_the_structure_has_them_and_not_beyond_its_version() {
        let mut data = vec![0; 416];
        data[..2].copy_from_slice(&13u16.to_ne_bytes());
        for (at, seconds) in [(40, 1u64), (56, 2), (320, 3), (336, 4), (360, 5), (408, 6)] {
            data[at..at + 8].copy_from_slice(&(seconds * 1_000_000_000).to_ne_bytes());
        }
        let all = Delays { block_io: 1.0, swap_in: 2.0, reclaim: 3.0, thrashing: 4.0, compaction: 5.0, copy_on_write: 6.0 };
        assert_eq!(parse(&data), Some(all));
        data[..2].copy_from_slice(&8u16.to_ne_bytes());
        assert_eq!(parse(&data), Some(Delays { thrashing: 0.0, compaction: 0.0, copy_on_write: 0.0, ..all }));
        assert_eq!(parse(&data[..1]), None);
        assert_eq!(all.since(&all), Delays::default());
    }

    #[test]
    fn the_kernel_tells_of_this_process_and_of_none_that_is_not() {
        let root = crate::system::is_root();
        let mut stats = match Taskstats::open() {
            Ok(stats) => stats,
            Err(e) => {
                assert!(std::env::var_os("CI").is_none(), "no account of tasks: {e}");
                return eprintln!("skipped: no account of tasks: {e}");
            }
        };
        match stats.delays(std::process::id() as i32) {
            Ok(d) => assert!(d.swap_in >= 0.0 && d.block_io < 1e6, "{d:?}"),
            Err(e) => {
                assert!(!root || std::env::var_os("CI").is_none(), "root may ask: {e}");
                return eprintln!("skipped: may not ask: {e}");
            }
        }
        assert_eq!(stats.delays(i32::MAX).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
