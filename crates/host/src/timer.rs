//! The clock: how finely it tells time, what reading it costs, and how late a sleeper wakes.

use std::time::{Duration, Instant};

use fingerpost_sys::system;
use serde::Serialize;

/// What the clock is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Timer {
    /// The resolution that the kernel states, in nanoseconds: 1, or a tick (millions) without high-resolution timers.
    pub stated_ns: u64,
    /// The least step between two readings that was seen.
    pub step_ns: f64,
    /// The usual time from one reading to the next.
    pub reading_ns: f64,
    /// The median of how late sleeps of 1 ms ended.
    pub late_ns: f64,
    /// The latest of them.
    pub latest_ns: f64,
}

const READINGS: usize = 20_000;
const SLEEPS: usize = 100;
const SLEEP: Duration = Duration::from_millis(1);

/// Looks at the clock for about a seventh of a second.
pub fn look() -> Timer {
    let readings: Vec<Instant> = (0..READINGS).map(|_| Instant::now()).collect();
    let steps = readings
        .windows(2)
        .map(|pair| pair[1].duration_since(pair[0]).as_nanos() as f64)
        .collect();
    let sleep = |_| {
        let begun = Instant::now();
        std::thread::sleep(SLEEP);
        begun.elapsed().saturating_sub(SLEEP).as_nanos() as f64
    };
    evaluate(
        system::clock_resolution(),
        steps,
        (0..SLEEPS).map(sleep).collect(),
    )
}

fn evaluate(stated: Duration, mut steps: Vec<f64>, mut late: Vec<f64>) -> Timer {
    steps.sort_by(f64::total_cmp);
    late.sort_by(f64::total_cmp);
    let middle = |sorted: &[f64]| sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let mean = steps.iter().sum::<f64>() / steps.len().max(1) as f64;
    Timer {
        stated_ns: stated.as_nanos() as u64,
        step_ns: steps
            .iter()
            .copied()
            .find(|step| *step > 0.0)
            .unwrap_or(0.0),
        // A clock coarser than a reading answers the same many times: the mean still tells the cost.
        reading_ns: if middle(&steps) > 0.0 {
            middle(&steps)
        } else {
            mean
        },
        late_ns: middle(&late),
        latest_ns: late.last().copied().unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_lateness() {
        let timer = evaluate(
            Duration::from_nanos(1),
            vec![30.0, 0.0, 20.0, 25.0, 900.0],
            vec![60.0, 50.0, 9000.0],
        );
        let expected = Timer {
            stated_ns: 1,
            step_ns: 20.0,
            reading_ns: 25.0,
            late_ns: 60.0,
            latest_ns: 9000.0,
        };
        assert_eq!(timer, expected);
    }

    #[test]
    fn a_coarse_clock() {
        let timer = evaluate(
            Duration::from_millis(4),
            vec![0.0, 0.0, 0.0, 4000.0],
            vec![],
        );
        assert_eq!(
            (timer.step_ns, timer.reading_ns, timer.latest_ns),
            (4000.0, 1000.0, 0.0)
        );
        assert_eq!(evaluate(Duration::ZERO, vec![], vec![]), Timer::default());
    }
}
