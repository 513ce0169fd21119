//! How long a process was held up, and by what, by the kernel's delay accounting (`taskstats` over generic netlink).
//!
//! Needs `CAP_NET_ADMIN`. Delays other than the wait for a CPU are counted only while `kernel.task_delayacct` is 1; it
//! is 0 unless the machine was booted with `delayacct` or somebody switched it on.

use std::io;

use rustix::net::netlink;

use crate::netlink::{Netlink, REQUEST, attribute, attributes, u16_at, u64_at};
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

/// What delayed a process, from which version on `struct taskstats` has the nanoseconds, and where: a version only ever
/// adds at the end.
const FIELDS: [(&str, u16, usize); 6] = [
    // Block devices, but for swap.
    ("block_io", 1, 40),
    // Pages that come back from swap.
    ("swap_in", 1, 56),
    // Memory that has to be freed first (direct reclaim).
    ("reclaim", 7, 320),
    // Pages that were evicted a moment ago.
    ("thrashing", 9, 336),
    // Pages that are moved to make a large one.
    ("compaction", 11, 360),
    // Pages that are copied since they were shared until written.
    ("copy_on_write", 13, 408),
];

/// Seconds by what they were waited for, summed over the threads of a process since each began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays([f64; FIELDS.len()]);

impl Delays {
    /// What came to be since an earlier reading, by name; never negative.
    pub fn since(&self, earlier: &Delays) -> impl Iterator<Item = (&'static str, f64)> {
        let seconds =
            std::array::from_fn::<_, { FIELDS.len() }, _>(|i| (self.0[i] - earlier.0[i]).max(0.0));
        FIELDS
            .iter()
            .zip(seconds)
            .map(|((name, ..), seconds)| (*name, seconds))
    }
}

/// Whether the kernel counts delays at this moment.
pub fn is_counting(paths: &Paths) -> bool {
    paths
        .read("proc/sys/kernel/task_delayacct")
        .is_ok_and(|text| text.trim() == "1")
}

/// An open connection to the kernel's account of tasks.
pub struct Taskstats {
    netlink: Netlink,
    family: u16,
}

impl Taskstats {
    /// Opens it. Fails where the kernel has no such account; without `CAP_NET_ADMIN` only the first question fails.
    pub fn open() -> io::Result<Taskstats> {
        let mut netlink = Netlink::open(Some(netlink::GENERIC), 16 << 10)?;
        let mut family = None;
        let question = question(CONTROL_GET_FAMILY, CONTROL_FAMILY_NAME, b"TASKSTATS\0");
        netlink.ask(GENERIC_CONTROL, REQUEST, &question, &mut |body| {
            family = body
                .get(4..)
                .and_then(|body| u16_at(named(body, CONTROL_FAMILY_ID)?, 0));
        })?;
        let family = family.ok_or_else(|| {
            io::Error::other(
                "the kernel does not say which netlink family its account of tasks has",
            )
        })?;
        Ok(Taskstats { netlink, family })
    }

    /// The delays of a process. Fails with `ESRCH` when there is none, with `EPERM` without the right to ask.
    pub fn delays(&mut self, pid: i32) -> io::Result<Delays> {
        let mut found = None;
        let question = question(TASKSTATS_GET, ATTRIBUTE_TGID, &pid.to_ne_bytes());
        self.netlink
            .ask(self.family, REQUEST, &question, &mut |body| {
                found = body
                    .get(4..)
                    .and_then(|body| parse(named(named(body, TYPE_AGGREGATE_TGID)?, TYPE_STATS)?));
            })?;
        found.ok_or_else(|| io::Error::other("the kernel's answer holds no account of the process"))
    }
}

/// The content of the attribute of this kind.
fn named(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, data)| (kind == wanted).then_some(data))
}

/// A generic netlink request with one attribute.
fn question(command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    [vec![command, 1, 0, 0], attribute(kind, value)].concat()
}

/// `struct taskstats`, of whatever version.
fn parse(data: &[u8]) -> Option<Delays> {
    let version = u16_at(data, 0)?;
    let ns = |since, at| {
        if version >= since {
            u64_at(data, at).unwrap_or(0)
        } else {
            0
        }
    };
    Some(Delays(
        FIELDS.map(|(_, since, at)| ns(since, at) as f64 * 1e-9),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_up_to_the_structures_version() {
        let mut data = vec![0; 416];
        data[..2].copy_from_slice(&13u16.to_ne_bytes());
        for (at, seconds) in [(40, 1u64), (56, 2), (320, 3), (336, 4), (360, 5), (408, 6)] {
            data[at..at + 8].copy_from_slice(&(seconds * 1_000_000_000).to_ne_bytes());
        }
        let all = parse(&data).unwrap();
        let names = [
            "block_io",
            "swap_in",
            "reclaim",
            "thrashing",
            "compaction",
            "copy_on_write",
        ];
        assert!(
            all.since(&Delays::default())
                .eq(names.into_iter().zip([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        );
        data[..2].copy_from_slice(&8u16.to_ne_bytes());
        assert_eq!(parse(&data), Some(Delays([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])));
        assert_eq!(parse(&data[..1]), None);
        assert!(all.since(&all).all(|(_, seconds)| seconds == 0.0));
    }

    #[test]
    fn the_kernel_tells_of_this_process_and_of_none_that_is_not() {
        let root = crate::system::is_root();
        let mut stats = match Taskstats::open() {
            Ok(stats) => stats,
            Err(e) => {
                return fingerpost_testing::skipped(format_args!("no account of tasks: {e}"));
            }
        };
        match stats.delays(std::process::id() as i32) {
            Ok(d) => assert!(
                d.0.iter().all(|seconds| (0.0..1e6).contains(seconds)),
                "{d:?}"
            ),
            Err(e) => {
                assert!(!root, "root may ask: {e}");
                return fingerpost_testing::skipped(format_args!("may not ask: {e}"));
            }
        }
        assert_eq!(
            stats.delays(i32::MAX).unwrap_err().raw_os_error(),
            Some(libc::ESRCH)
        );
    }
}
