//! The kernel's files of counters since boot: disks, interfaces, protocols.

use std::collections::{BTreeMap, BTreeSet};

/// One disk's counters since boot, from `/proc/diskstats`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disk {
    /// Completed reads, writes, flushes.
    pub operations: [u64; 3],
    /// Milliseconds that they took, summed over operations that overlap.
    pub milliseconds: [u64; 3],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Milliseconds in which at least one was under way.
    pub busy_ms: u64,
}

/// Parses `/proc/diskstats`: whole disks by name, partitions and what lives in memory left out.
pub fn parse_disks(text: &str, whole: &BTreeSet<String>) -> BTreeMap<String, Disk> {
    let mut disks = BTreeMap::new();
    for line in text.lines() {
        let f: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some(&name) = f.get(2) else { continue };
        let n = |i: usize| f.get(i).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
        // What lives in memory, and whose I/O ends on the device below it and would count twice.
        if !whole.contains(name)
            || ["ram", "zram", "loop", "dm-", "md"]
                .iter()
                .any(|kind| name.starts_with(kind))
        {
            continue;
        }
        disks.insert(
            name.to_owned(),
            Disk {
                operations: [n(3), n(7), n(18)],
                milliseconds: [n(6), n(10), n(19)],
                bytes: [n(5) * 512, n(9) * 512],
                busy_ms: n(12),
            },
        );
    }
    disks
}

/// Received and sent bytes, and drops, of all interfaces together, from `/proc/net/dev`.
pub fn parse_interfaces(text: &str) -> ([u64; 2], u64) {
    let mut bytes = [0; 2];
    let mut drops = 0;
    for (_, values) in text.lines().filter_map(|l| l.split_once(':')) {
        let v: Vec<u64> = values
            .split_ascii_whitespace()
            .map(|n| n.parse().unwrap_or(0))
            .collect();
        let at = |i: usize| v.get(i).copied().unwrap_or(0);
        bytes[0] += at(0);
        bytes[1] += at(8);
        drops += at(3) + at(11);
    }
    (bytes, drops)
}

/// Parses `/proc/net/netstat` or `/proc/net/snmp`: pairs of lines, names and values, as `TcpExt.ListenOverflows`.
pub fn parse_protocols(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = BTreeMap::new();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        for (name, value) in names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
        {
            if let Ok(n) = value.parse() {
                found.insert(format!("{group}.{name}"), n);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_counted_once() {
        let text = "   7 0 loop0 5 0 80 1 5 0 80 1 0 9 9\n 254 0 vda 100 0 800 30 50 0 1600 20 0 40 51 8 2 7 5 521 \
            388\n \
                    254 1 vda1 9 0 8 3 5 0 16 2 0 4 5\n 8 0 sda 1 0 8 3\n";
        let disks = parse_disks(
            text,
            &["vda".to_owned(), "loop0".to_owned(), "sda".to_owned()].into(),
        );
        assert_eq!(disks.keys().collect::<Vec<_>>(), ["sda", "vda"]);
        let vda = disks["vda"];
        assert_eq!(
            (vda.operations, vda.milliseconds, vda.bytes, vda.busy_ms),
            ([100, 50, 521], [30, 20, 388], [409_600, 819_200], 40)
        );
        assert_eq!(
            disks["sda"].operations,
            [1, 0, 0],
            "an old kernel writes fewer fields"
        );
    }

    #[test]
    fn interfaces_are_added_up() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 100 1 0 2 0 0 0 0 200 1 0 3 0 0 0 0\n  eth0: 10 1 0 0 0 0 \
            0 0 20 1 0 0 0 0 0 0\n";
        assert_eq!(parse_interfaces(text), ([110, 220], 5));
        assert_eq!(parse_interfaces(""), ([0, 0], 0));
    }

    #[test]
    fn protocol_counters_get_their_groups_name() {
        let text = "TcpExt: ListenOverflows ListenDrops\nTcpExt: 3 4\nIpExt: InOctets\nIpExt: x\n";
        let p = parse_protocols(text);
        assert_eq!(
            (
                p.get("TcpExt.ListenOverflows"),
                p.get("TcpExt.ListenDrops"),
                p.len()
            ),
            (Some(&3), Some(&4), 2)
        );
    }
}
