//! What the source pasted from `top`: paging counters and memory, before and after a sequence.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::memory::{Meminfo, parse_counters};
use fingerpost_sys::procfs::system::Pressure;

/// `/proc/vmstat`'s names and ours, which carry the unit. The kernel counts disk traffic in KiB, swap in pages; what
/// zswap takes never gets to a swap area and is counted apart.
const COUNTED: [(&str, &str); 8] = [
    ("pgpgin", "page_in.kib"),
    ("pgpgout", "page_out.kib"),
    ("pswpin", "swap_in.pages"),
    ("pswpout", "swap_out.pages"),
    ("zswpin", "zswap_in.pages"),
    ("zswpout", "zswap_out.pages"),
    ("pgmajfault", "major_faults"),
    ("pgfault", "faults"),
];

/// One reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    counters: BTreeMap<&'static str, u64>,
    /// Microseconds for which some task, and all tasks, waited for memory.
    stalled: Option<(u64, u64)>,
    group_faults: Option<u64>,
    memory: Meminfo,
}

/// Reads the machine's counters, and those of the applications' control groups where there are any.
pub fn read(paths: &Paths, groups: &[PathBuf]) -> Reading {
    let vmstat = parse_counters(&paths.read("/proc/vmstat").unwrap_or_default());
    let pressure = paths
        .read("/proc/pressure/memory")
        .ok()
        .and_then(|text| Pressure::parse(&text));
    let faults = |dir: &PathBuf| {
        let stat = parse_counters(&paths.read(dir.join("memory.stat")).ok()?);
        // Version 1 tells the group's own and, with its descendants', the total.
        stat.get("total_pgmajfault")
            .or(stat.get("pgmajfault"))
            .copied()
    };
    Reading {
        counters: COUNTED
            .into_iter()
            .filter_map(|(theirs, ours)| Some((ours, *vmstat.get(theirs)?)))
            .collect(),
        stalled: pressure.map(|p| (p.some_us, p.full_us.unwrap_or(0))),
        group_faults: groups.iter().find_map(faults),
        memory: paths
            .read("/proc/meminfo")
            .ok()
            .and_then(|text| Meminfo::parse(&text))
            .unwrap_or_default(),
    }
}

/// The machine's counters since it was booted, by name; what this kernel does not count is absent.
pub fn since_boot(paths: &Paths) -> BTreeMap<String, f64> {
    read(paths, &[])
        .counters
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count as f64))
        .collect()
}

/// What happened between two readings, and how memory stood at both.
pub fn between(before: &Reading, after: &Reading) -> BTreeMap<String, f64> {
    let mut totals: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |name: &str, value: f64| totals.insert(name.to_owned(), value);
    for (name, later) in &after.counters {
        if let Some(earlier) = before.counters.get(name) {
            add(name, later.saturating_sub(*earlier) as f64);
        }
    }
    if let (Some(a), Some(b)) = (before.stalled, after.stalled) {
        add(
            "pressure_some.seconds",
            b.0.saturating_sub(a.0) as f64 / 1e6,
        );
        add(
            "pressure_full.seconds",
            b.1.saturating_sub(a.1) as f64 / 1e6,
        );
    }
    if let (Some(a), Some(b)) = (before.group_faults, after.group_faults) {
        add("applications.major_faults", b.saturating_sub(a) as f64);
    }
    for (when, reading) in [("before", before), ("after", after)] {
        let memory = &reading.memory;
        let free = memory.free.unwrap_or(0);
        add(&format!("free_{when}.bytes"), free as f64);
        add(
            &format!("used_{when}.bytes"),
            memory.total.saturating_sub(free) as f64,
        );
        let swap = memory
            .swap_total
            .unwrap_or(0)
            .saturating_sub(memory.swap_free.unwrap_or(0));
        add(&format!("swap_used_{when}.bytes"), swap as f64);
    }
    totals
}

/// The mean of several sequences' totals; a name that one of them lacks is the mean of the others.
pub fn mean(all: &[BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, value) in all.iter().flatten() {
        let (sum, count) = sums.entry(name.clone()).or_default();
        *sum += value;
        *count += 1.0;
    }
    sums.into_iter()
        .map(|(name, (sum, count))| (name, sum / count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(vmstat: &str, some: u64) -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/vmstat", vmstat);
        put(
            "proc/meminfo",
            "MemTotal: 100 kB\nMemFree: 40 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
        );
        put(
            "proc/pressure/memory",
            &format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            ),
        );
        put(
            "cg/memory.stat",
            &format!("pgmajfault 1\ntotal_pgmajfault {some}\n"),
        );
        let paths = Paths::under(dir.path());
        (dir, paths)
    }

    #[test]
    fn totals_are_what_happened_between_two_readings() {
        let (_a, before) = machine("pgpgin 100\npswpin 5\npgmajfault 7\n", 1_000_000);
        let (_b, after) = machine("pgpgin 160\npswpin 9\npgmajfault 7\n", 3_500_000);
        let groups = ["/cg".into()];
        let totals = between(&read(&before, &groups), &read(&after, &groups));
        assert_eq!(totals["page_in.kib"], 60.0);
        assert_eq!(totals["swap_in.pages"], 4.0);
        assert_eq!(totals["major_faults"], 0.0);
        assert_eq!(totals["pressure_some.seconds"], 2.5);
        assert_eq!(totals["applications.major_faults"], 2_500_000.0);
        assert_eq!(
            (totals["free_after.bytes"], totals["used_before.bytes"]),
            (40.0 * 1024.0, 60.0 * 1024.0)
        );
        assert_eq!(totals["swap_used_after.bytes"], 6.0 * 1024.0);
        // What this kernel does not tell is left out, not zero.
        assert!(!totals.contains_key("page_out.kib"));
    }

    #[test]
    fn the_mean_is_over_those_that_have_it() {
        let one = BTreeMap::from([("a".to_owned(), 2.0)]);
        let two = BTreeMap::from([("a".to_owned(), 4.0), ("b".to_owned(), 1.0)]);
        assert_eq!(
            mean(&[one, two]),
            BTreeMap::from([("a".to_owned(), 3.0), ("b".to_owned(), 1.0)])
        );
    }
}
