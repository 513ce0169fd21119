//! Whether a machine kept its speed while it was measured.
//!
//! Work that is the same each time, in user mode, without memory, has no reason to take longer once than another time, but for the CPU
//! itself: a neighbour on the same core (of this system, or of another guest of the host, which no counter of a guest shows), a clock
//! that changes. As long as that hits the lesser half of the processes, medians pass over it. When it hits most, they are medians of
//! another machine, by a factor that differs from row to row, and no interval from within the run holds it.

use fingerpost_record::Run;

/// Rows of fixed work in user mode.
const FIXED: &[&str] = &["clock.loop", "cpu.int"];

/// Processes of a row that it takes to say anything.
const ENOUGH: usize = 8;

/// How much slower than the fastest the median of fixed work may be, relatively.
const TOLERANCE: f64 = 0.02;

/// A CPU that did not keep its speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Wander {
    /// How many times as long as the fastest a tenth of the processes took at least.
    pub factor: f64,
    row: String,
    median: f64,
}

impl Wander {
    /// How far a run's CPU wandered; `None` where it kept its speed for most of the time, or where nothing tells.
    pub fn of(run: &Run) -> Option<Wander> {
        let rows = run.measurements.iter().filter(|m| FIXED.contains(&m.probe.as_str()));
        let wanders = rows.filter_map(|m| {
            let mut values = m.process_values();
            values.sort_by(f64::total_cmp);
            let fastest = values.first().copied().filter(|v| *v > 0.0)?;
            let at = |q: f64| values[(q * (values.len() - 1) as f64) as usize] / fastest;
            let wanders = values.len() >= ENOUGH && at(0.5) > 1.0 + TOLERANCE;
            wanders.then(|| Wander { factor: at(0.9), row: m.probe.clone(), median: at(0.5) })
        });
        wanders.max_by(|a, b| a.factor.total_cmp(&b.factor))
    }

    /// Variance of every row's logarithm that comes of it: two standard deviations to the tenth that took longest.
    pub fn variance(&self) -> f64 {
        (self.factor.ln() / 2.0).powi(2)
    }

    /// The sentence that tells it.
    pub fn doubt(&self) -> String {
        format!(
            "The CPU did not keep its speed: most processes of {} took {:.0} % longer than the fastest or more, a tenth of them {:.2} times as long. \
             A neighbour on the same core does that, or a changing clock; intervals of this run are widened accordingly. Measure again when it is quiet.",
            self.row,
            (self.median - 1.0) * 100.0,
            self.factor
        )
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Process, fixture};

    use super::*;

    fn run(probe: &str, values: &[f64]) -> Run {
        let mut run = fixture::run();
        run.measurements.truncate(1);
        run.measurements[0].probe = probe.to_owned();
        run.measurements[0].processes = values.iter().map(|v| Process { value: Some(*v), ..Process::default() }).collect();
        run
    }

    #[test]
    fn a_neighbour_that_hits_most_processes_is_seen_and_one_that_hits_few_is_not() {
        let few = [1.0, 1.0, 1.0, 1.0, 1.0, 1.01, 1.0, 1.0, 1.9, 1.9];
        assert_eq!(Wander::of(&run("clock.loop", &few)), None);
        let most = [1.0, 1.0, 1.0, 1.05, 1.05, 1.1, 1.3, 1.6, 1.6, 2.0, 1.05];
        let wander = Wander::of(&run("clock.loop", &most)).unwrap();
        assert!((wander.factor - 1.6).abs() < 1e-12, "{wander:?}");
        assert!((wander.variance() - (1.6f64.ln() / 2.0).powi(2)).abs() < 1e-12);
        assert!(wander.doubt().contains("clock.loop took 5 % longer"), "{}", wander.doubt());
    }

    #[test]
    fn other_rows_and_few_processes_tell_nothing() {
        let most = [1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5];
        assert_eq!(Wander::of(&run("process.fork", &most)), None);
        assert_eq!(Wander::of(&run("clock.loop", &most[..5])), None);
    }
}
