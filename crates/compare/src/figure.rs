//! What one run says of a row, and what of it a virtual machine's host decides.

use fingerpost_measure::OWN_CACHES;
use fingerpost_record::{Estimate, Params};

/// What one run says about a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// Its interval's lower end.
    pub low: f64,
    /// Its interval's upper end.
    pub high: f64,
    /// That interval's coverage.
    pub confidence: f64,
    /// One value per process or repetition, in the order of their measuring.
    pub processes: Vec<f64>,
    /// Where it depends on what a virtual machine's host does for minutes.
    pub host_made: Option<HostMade>,
}

impl Figure {
    /// Of this estimate, made by these processes, and by no virtual machine's host.
    pub fn of(e: Estimate, processes: Vec<f64>) -> Figure {
        Figure { value: e.value, low: e.low, high: e.high, confidence: e.confidence, processes, host_made: None }
    }

    /// The estimate with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.value, low: self.low, high: self.high, confidence: self.confidence }
    }
}

/// How a figure depends on what a virtual machine's host does for minutes at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostMade {
    /// What runs differ by for it at least, as a share of the value (one standard deviation).
    pub least: f64,
    /// Whether the parts of one run show more of it. Processes of a probe are slow together for the host's sake alone; rounds of a server
    /// under load also differ by themselves, and how far they are apart is no measure of the host.
    pub in_parts: bool,
}

/// Probes that get pages from the kernel and give them back, time and again.
const TAKE_PAGES: [&str; 4] = ["vm.fault_anon", "vm.fault_file", "vm.munmap", "fs.append"];

/// Probes that wait for the disk.
const DISK: [&str; 2] = ["fs.fsync", "fs.fdatasync"];

/// Probes of the memory's bandwidth.
const BANDWIDTH: [&str; 3] = ["memory.read", "memory.write", "memory.copy"];

/// What runs differ by where a virtual machine's memory beyond the caches decides, at least (one standard deviation): a run can be at one
/// level from beginning to end and the next one at another. In five series of five runs `memory.latency` with 64 MiB varied by 5, 8, 4, 2
/// and 11 % and `process.fork` by 6, 3, 5, 9 and 4 % (`bench/pairs`, E to I in `bench/RESULTS.md`).
const OTHERS_MEMORY: f64 = 0.07;

/// Servers under the load of a lab.
const SERVERS: [&str; 4] = ["database.throughput", "database.latency", "web.throughput", "web.latency"];

/// What runs of a server under load differ by on a virtual machine beyond what their rounds let expect (one standard deviation). Of seven
/// quick runs in ten minutes that was 4.6 % (SQLite), 3.8 % (MariaDB) and 3.1 % (nginx), and in an hour in which the host became slower 11 to
/// 13 % (`bench/labs-pairs` in `bench/RESULTS.md`).
const SERVERS_RUNS: f64 = 0.04;

/// Where a virtual machine's figure depends on what its host does with it and with others, for minutes at a time, what runs differ by for
/// it at least. A row's parameters may be in two places, those that it has and those that were taken out of it:
///
/// - of memory beyond a core's own caches, and of processes that have so much, on who else uses it and on how the host backs it. (Not the
///   primitives' bandwidth: the good tenth of all processes repeats as their spread lets expect, that of the latency does not.);
/// - of pages taken anew, also on which part of the memory they are from;
/// - of the disk, on who else writes to the one that the host made it from;
/// - of a server under load, on how fast the host runs the CPUs in those minutes: nothing that rounds of one run show.
pub fn made_by_the_host(probe: &str, params: [&Params; 2]) -> Option<HostMade> {
    let among = |probes: &[&str]| probes.contains(&probe);
    let int = |key: &str| params.into_iter().find_map(|p| p.int(key));
    let much = ["size", "resident"].into_iter().filter_map(int).any(|bytes| bytes > OWN_CACHES);
    let of_a_lab = int("threads").is_some();
    let good_tenth = among(&BANDWIDTH) && !of_a_lab;
    let works_on_memory = probe.starts_with("memory.") || probe.starts_with("process.");
    let parts = |least| HostMade { least, in_parts: true };
    match () {
        () if works_on_memory && much && !good_tenth => Some(parts(OTHERS_MEMORY)),
        () if among(&TAKE_PAGES) || among(&DISK) => Some(parts(0.0)),
        () if among(&SERVERS) => Some(HostMade { least: SERVERS_RUNS, in_parts: false }),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio;

    #[test]
    fn the_probes_that_are_named_here_exist() {
        for name in TAKE_PAGES.iter().chain(&DISK).chain(&BANDWIDTH) {
            assert!(fingerpost_probes::all().any(|probe| probe.name == *name), "{name}");
        }
    }

    #[test]
    fn what_a_guest_cannot_keep_steady_is_told_by_probe_and_parameters() {
        let depends = |probe: &str, params: Params| made_by_the_host(probe, [&params, &Params::new()]).is_some();
        let with = |key: &str, value: i64| Params::new().with(key, value);
        assert!(depends("memory.latency", with("size", 64 << 20)) && !depends("memory.latency", with("size", 512 << 10)));
        assert!(depends("process.fork", with("resident", 64 << 20)) && !depends("process.fork", with("resident", 0)));
        assert!(!depends("memory.read", with("size", 64 << 20)), "the good tenth");
        assert!(depends("memory.read", with("size", 64 << 20).with("threads", 1)), "a laboratory's median");
        assert!(depends("vm.fault_anon", with("pages", 1)) && depends("fs.append", with("size", 4096)));
        assert!(depends("fs.fsync", with("size", 4096)));
        assert!(depends("database.throughput", with("clients", 10)) && depends("web.latency", with("connections", 1)));
        assert!(!depends("sync.rwlock", with("threads", 2)) && !depends("syscall.null", Params::new()));
    }

    #[test]
    fn a_server_on_a_guest_is_as_sure_as_its_runs_are_alike_and_not_its_rounds() {
        // Six rounds within 1 %; another run may be 4 % away. Rounds that differ by themselves are no measure of the host.
        let side = |value: f64, spread: f64, host_made| {
            let processes = (0..6).map(|i| value * (1.0 + spread * (f64::from(i) - 2.5))).collect();
            Figure { value, low: value * 0.99, high: value * 1.01, confidence: 0.95, processes, host_made }
        };
        let low = |slower: f64, spread: f64, host_made| {
            let mut weights = ratio::QuantileWeights::default();
            let mut level = |value| ratio::level(&[side(value, spread, host_made)], &mut weights).unwrap();
            ratio::between(level(100.0), level(100.0 * slower), false).low
        };
        let server = made_by_the_host("web.latency", [&Params::new(), &Params::new()]);
        assert!(low(1.06, 0.002, None) > 1.03 && low(1.06, 0.002, server) < 1.0);
        assert!(low(1.2, 0.002, server) > 1.03);
        assert!(low(1.2, 0.02, server) > 1.0, "rounds that vary by 4 % do not count a second time");
    }
}
