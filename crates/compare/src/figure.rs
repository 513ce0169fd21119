//! What one run says of a row, and what of it a virtual machine's host decides.

use fingerpost_record::Estimate;
use fingerpost_record::descriptor::HostDependence;

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
        Figure {
            value: e.value,
            low: e.low,
            high: e.high,
            confidence: e.confidence,
            processes,
            host_made: None,
        }
    }

    /// The estimate with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate {
            value: self.value,
            low: self.low,
            high: self.high,
            confidence: self.confidence,
        }
    }
}

/// How a figure depends on what a virtual machine's host does for minutes at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostMade {
    /// What runs differ by for it at least, as a share of the value (one standard deviation).
    pub least: f64,
    /// Whether the parts of one run show more of it. Processes of a probe are slow together for the host's sake alone;
    /// rounds of a server under load also differ by themselves, and how far they are apart is no measure of the host.
    pub in_parts: bool,
}

/// What runs differ by where a virtual machine's memory beyond the caches decides, at least (one standard deviation): a
/// run can be at one level from beginning to end and the next one at another. In five series of five runs
/// `memory.latency` with 64 MiB varied by 5, 8, 4, 2 and 11 % and `process.fork` by 6, 3, 5, 9 and 4 % (`bench/pairs`,
/// E to I in `bench/RESULTS.md`).
const OTHERS_MEMORY: f64 = 0.07;

/// What runs of a server under load differ by on a virtual machine beyond what their rounds let expect (one standard
/// deviation). Of seven quick runs in ten minutes that was 4.6 % (SQLite), 3.8 % (MariaDB) and 3.1 % (nginx), and in an
/// hour in which the host became slower 11 to 13 % (`bench/labs-pairs` in `bench/RESULTS.md`).
const SERVERS_RUNS: f64 = 0.04;

/// What runs differ by at least where a virtual machine's host decides this of a figure, for minutes at a time. What
/// rounds of a server under load show is nothing of how fast the host runs the CPUs in those minutes.
pub fn made_by_the_host(dependence: HostDependence) -> HostMade {
    match dependence {
        HostDependence::Memory => HostMade {
            least: OTHERS_MEMORY,
            in_parts: true,
        },
        HostDependence::Pages | HostDependence::Disk => HostMade {
            least: 0.0,
            in_parts: true,
        },
        HostDependence::Server => HostMade {
            least: SERVERS_RUNS,
            in_parts: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio;

    #[test]
    fn a_server_on_a_guest_is_as_sure_as_its_runs_are_alike_and_not_its_rounds() {
        // Six rounds within 1 %; another run may be 4 % away. Rounds that differ by themselves are no measure of the
        // host.
        let side = |value: f64, spread: f64, host_made| {
            let processes = (0..6)
                .map(|i| value * (1.0 + spread * (f64::from(i) - 2.5)))
                .collect();
            Figure {
                value,
                low: value * 0.99,
                high: value * 1.01,
                confidence: 0.95,
                processes,
                host_made,
            }
        };
        let low = |slower: f64, spread: f64, host_made| {
            let mut weights = ratio::QuantileWeights::default();
            let mut level =
                |value| ratio::level(&[side(value, spread, host_made)], &mut weights).unwrap();
            ratio::between(level(100.0), level(100.0 * slower), false).low
        };
        let server = Some(made_by_the_host(HostDependence::Server));
        assert!(low(1.06, 0.002, None) > 1.03 && low(1.06, 0.002, server) < 1.0);
        assert!(low(1.2, 0.002, server) > 1.03);
        assert!(
            low(1.2, 0.02, server) > 1.0,
            "rounds that vary by 4 % do not count a second time"
        );
    }
}
