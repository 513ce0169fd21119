//! Readings of the machine over time, taken while a workload is watched.

use std::time::{Duration, Instant};

use fingerpost_record::Series;
use fingerpost_sys::procfs::Paths;

use crate::machine::{Reading, Totals};

/// How often the machine's counters are read for the series.
pub(crate) const SERIES_EVERY: Duration = Duration::from_millis(250);

/// Readings over time: CPUs busy and stolen, network in and out.
pub(crate) struct Recorder {
    begun: Instant,
    last: (f64, Reading),
    points: [Vec<(f64, f64)>; 4],
}

impl Recorder {
    pub(crate) fn new(paths: &Paths, begun: Instant) -> Recorder {
        let reading = Reading::light(paths);
        Recorder {
            begun,
            last: (begun.elapsed().as_secs_f64(), reading),
            points: Default::default(),
        }
    }

    /// Reads again, where the last reading is old enough.
    pub(crate) fn tick(&mut self, paths: &Paths) {
        let now = self.begun.elapsed().as_secs_f64();
        let span = now - self.last.0;
        if span < 0.9 * SERIES_EVERY.as_secs_f64() {
            return;
        }
        let reading = Reading::light(paths);
        let [busy, steal] = reading.busy_cpus_since(&self.last.1);
        let mbit = reading
            .network_bytes_since(&self.last.1)
            .map(|b| b as f64 * 8e-6 / span);
        for (points, value) in self.points.iter_mut().zip([busy, steal, mbit[0], mbit[1]]) {
            points.push((now, value));
        }
        self.last = (now, reading);
    }

    /// The series, one for each thing that was read.
    pub(crate) fn finish(self) -> Vec<Series> {
        let names = [
            ("cpu.busy", "CPUs"),
            ("cpu.steal", "CPUs"),
            ("net.in", "Mbit/s"),
            ("net.out", "Mbit/s"),
        ];
        let series = |((name, unit), points): ((&str, &str), _)| Series {
            name: name.to_owned(),
            unit: unit.to_owned(),
            points,
        };
        names.into_iter().zip(self.points).map(series).collect()
    }
}

/// Takes out the series whose names begin so.
pub(crate) fn take_series(series: &mut Vec<Series>, prefix: &str) -> Vec<Series> {
    let (taken, rest) = std::mem::take(series)
        .into_iter()
        .partition(|s| s.name.starts_with(prefix));
    *series = rest;
    taken
}

/// Average and peak rates in Mbit/s.
pub(crate) fn add_rates(network: &mut Totals, series: &[Series], elapsed: f64) {
    for side in ["in", "out"] {
        let bytes = network
            .get(&format!("net.{side}.bytes"))
            .copied()
            .unwrap_or(0.0);
        let average = bytes * 8e-6 / elapsed.max(1e-9);
        let peak = series
            .iter()
            .filter(|s| s.name == format!("net.{side}"))
            .flat_map(|s| &s.points)
            .map(|p| p.1)
            .fold(average, f64::max);
        network.insert(format!("net.{side}.mbit_s"), average);
        network.insert(format!("net.{side}.peak.mbit_s"), peak);
    }
}
