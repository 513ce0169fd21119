//! The pace of the CPUs while a process measures: how long a piece of fixed work takes, over and over.
//!
//! Two things slow a CPU that no counter of a guest shows, and few of a machine's own: a neighbour on the same core (of
//! this system, or of another guest of the host), and a clock rate that goes down when other cores are busy. Both slow
//! work in user mode that touches no memory. So such work is timed before, between and after the batches. Batches
//! beside which it took longer than at best are marked as disturbed, and the pace of the others goes into the record,
//! where it tells whether this process ran at the speed of the rest.

use std::hint::black_box;

use fingerpost_measure::estimate::{MIN_UNDISTURBED, median};
use fingerpost_measure::pace::TOLERANCE;

use crate::monotonic::now_ns;

/// Turns of the empty loop in one piece: some microseconds, a hundred times the time it takes to read the clock.
const TURNS: u64 = 1 << 15;

/// Pieces in a reading. The shortest counts, so that an interrupt does not.
const PIECES: usize = 3;

/// One reading: nanoseconds of a piece of work, on the CPU where this thread is.
pub(crate) fn reading() -> u64 {
    let piece = || {
        let begin = now_ns();
        for i in 0..TURNS {
            black_box(i);
        }
        now_ns() - begin
    };
    (0..PIECES).map(|_| piece()).min().unwrap_or(0)
}

/// Nanoseconds for which the CPU that was just left may still poll for work, if ever so idle, and slow the other half
/// of its core.
const SETTLING_NS: u64 = 300_000;

/// A reading on another CPU: this thread goes there for it, and comes back. Nothing where it may not.
fn reading_on(cpu: usize) -> Option<u64> {
    let home = fingerpost_sys::affinity::allowed_cpus().ok()?;
    fingerpost_sys::affinity::pin(&[cpu]).ok()?;
    let begin = now_ns();
    let mut ns = reading();
    while now_ns() - begin < SETTLING_NS {
        ns = reading();
    }
    fingerpost_sys::affinity::pin(&home).ok()?;
    Some(ns)
}

/// Readings along a process's samples.
pub(crate) struct Pace {
    /// How many samples there were, and the reading then.
    readings: Vec<(usize, u64)>,
    /// The partner's CPU, where there is one, and the longer of its two readings.
    second: Option<(usize, u64)>,
}

impl Pace {
    /// The first readings; `second` is the partner's CPU.
    pub(crate) fn start(second: Option<usize>) -> Pace {
        let second = second.and_then(|cpu| Some((cpu, reading_on(cpu)?)));
        Pace {
            readings: vec![(0, reading())],
            second,
        }
    }

    /// Reads again, after so many samples.
    pub(crate) fn read(&mut self, samples: usize) {
        self.readings.push((samples, reading()));
    }

    /// The last readings. Marks the samples beside which the CPU was slower than at best, and returns the pace of the
    /// others on each CPU, in nanoseconds.
    pub(crate) fn end(mut self, disturbed: &mut [bool]) -> Vec<u64> {
        if self
            .readings
            .last()
            .is_none_or(|(samples, _)| *samples < disturbed.len())
        {
            self.read(disturbed.len());
        }
        let second = self
            .second
            .and_then(|(cpu, before)| Some(before.max(reading_on(cpu)?)));
        [Some(judge(&self.readings, disturbed)), second]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Marks the samples between two readings of which one was slow, and returns the pace of those that are left; of all
/// where too few are.
fn judge(readings: &[(usize, u64)], disturbed: &mut [bool]) -> u64 {
    let stretches: Vec<(std::ops::Range<usize>, u64)> = readings
        .windows(2)
        .map(|pair| {
            (
                pair[0].0.min(disturbed.len())..pair[1].0.min(disturbed.len()),
                pair[0].1.max(pair[1].1),
            )
        })
        .filter(|(samples, _)| !samples.is_empty())
        .collect();
    let best = stretches.iter().map(|(_, ns)| *ns).min().unwrap_or(0);
    let slow = |ns: u64| ns as f64 > best as f64 * (1.0 + TOLERANCE);
    for (samples, _) in stretches.iter().filter(|(_, ns)| slow(*ns)) {
        disturbed[samples.clone()]
            .iter_mut()
            .for_each(|d| *d = true);
    }
    if disturbed.iter().filter(|d| !**d).count() >= MIN_UNDISTURBED {
        return best;
    }
    let per_sample: Vec<f64> = stretches
        .iter()
        .flat_map(|(samples, ns)| samples.clone().map(|_| *ns as f64))
        .collect();
    // 0 for no samples.
    median(&per_sample) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_beside_a_slow_reading_are_marked() {
        let mut disturbed = [false; 30];
        let pace = judge(
            &[(0, 4000), (10, 4010), (20, 8400), (30, 4000)],
            &mut disturbed,
        );
        assert_eq!(pace, 4010);
        assert!(disturbed[..10].iter().all(|d| !d) && disturbed[10..].iter().all(|d| *d));
    }

    #[test]
    fn where_too_few_are_left_the_pace_is_that_of_all() {
        let mut disturbed = [false; 30];
        assert_eq!(
            judge(&[(0, 4000), (3, 4000), (30, 8400)], &mut disturbed),
            8400
        );
        let mut none: [bool; 0] = [];
        assert_eq!(judge(&[(0, 4000)], &mut none), 0);
        // A process that is slow all along has nothing to compare itself with: the other processes are set beside it
        // later.
        let mut slow = [false; 6];
        assert_eq!(judge(&[(0, 8400), (6, 8500)], &mut slow), 8500);
        assert!(slow.iter().all(|d| !d));
    }

    #[test]
    fn readings_are_taken_and_the_thread_stays_where_it_may_be() {
        let before = fingerpost_sys::affinity::allowed_cpus().unwrap();
        let mut pace = Pace::start(before.last().copied());
        pace.read(5);
        let paces = pace.end(&mut [false; 10]);
        assert_eq!(paces.len(), 2);
        assert!(paces.iter().all(|ns| *ns > 0));
        assert_eq!(fingerpost_sys::affinity::allowed_cpus().unwrap(), before);
    }
}
