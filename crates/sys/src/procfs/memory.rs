//! Memory: `/proc/meminfo`, `/proc/swaps`, `/proc/vmstat`.

use std::collections::BTreeMap;

/// `/proc/meminfo`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// Memory that the kernel manages.
    pub total: u64,
    /// Memory that nobody uses.
    pub free: Option<u64>,
    /// The kernel's estimate of what could be had without swapping.
    pub available: Option<u64>,
    /// All swap areas.
    pub swap_total: Option<u64>,
    /// Unused swap.
    pub swap_free: Option<u64>,
}

impl Meminfo {
    /// Parses the file; `None` without `MemTotal`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut info = Self::default();
        let mut total = None;
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let bytes = kilobytes(value);
            match name.trim() {
                "MemTotal" => total = bytes,
                "MemFree" => info.free = bytes,
                "MemAvailable" => info.available = bytes,
                "SwapTotal" => info.swap_total = bytes,
                "SwapFree" => info.swap_free = bytes,
                _ => {}
            }
        }
        info.total = total?;
        Some(info)
    }
}

/// `"  1234 kB"` as bytes. `None` when it is no number or too large to be bytes.
pub(crate) fn kilobytes(value: &str) -> Option<u64> {
    let number: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// One line of `/proc/swaps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapArea {
    /// The file or device, the kernel's escapes undone.
    pub path: String,
    /// `file`, `partition`, `virtual` …
    pub kind: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes in use.
    pub used: u64,
    /// Its priority: the highest is filled first.
    pub priority: i32,
}

/// Parses `/proc/swaps`. Lines that are not areas are left out.
pub fn parse_swaps(text: &str) -> Vec<SwapArea> {
    let area = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [path, kind, size, used, priority] = fields.as_slice() else {
            return None;
        };
        Some(SwapArea {
            path: super::mounts::unescape(path),
            kind: (*kind).to_owned(),
            bytes: kilobytes(size)?,
            used: kilobytes(used)?,
            priority: priority.parse().ok()?,
        })
    };
    text.lines().skip(1).filter_map(area).collect()
}

/// Parses lines of a name and a number: `/proc/vmstat`, a control group's `memory.stat` and `cpu.stat`.
pub fn parse_counters(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MEMINFO, SWAPS};
    use super::*;

    #[test]
    fn meminfo() {
        let info = Meminfo::parse(MEMINFO).unwrap();
        assert_eq!(
            (info.total, info.free, info.swap_free),
            (2 << 20, Some(1 << 20), Some(4096))
        );
        assert_eq!(Meminfo::parse("MemFree: 3 kB\n"), None);
        assert_eq!(Meminfo::parse("MemTotal: 18446744073709551615 kB\n"), None);
    }

    #[test]
    fn swaps() {
        let areas = parse_swaps(SWAPS);
        assert_eq!(areas.len(), 2);
        assert_eq!(
            (areas[0].kind.as_str(), areas[0].used, areas[0].priority),
            ("partition", 16 << 10, -2)
        );
        assert_eq!(
            (areas[1].path.as_str(), areas[1].bytes),
            ("/my swap (deleted)", 1 << 20)
        );
    }

    #[test]
    fn counters() {
        let counters = parse_counters("pgfault 12\npswpin 3\nbroken\nnegative -4\n");
        assert_eq!(counters.get("pswpin"), Some(&3));
        assert_eq!(counters.len(), 2);
    }
}
