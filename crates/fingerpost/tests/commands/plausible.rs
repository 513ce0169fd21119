//! Whether a row's figure is one that its probe's descriptor says to be possible.

use std::time::Instant;

use fingerpost_probes::{Nature, Probe};
use fingerpost_record::{Better, Params};

use crate::common::DEADLINE;

/// How long a run asks a process of a probe for. A shorter slice may end while the batch is not found yet, and one
/// stall of the machine is then more than all the work of a batch of few operations.
pub const SLICE_NS: u64 = 40_000_000;

/// Runs a row until its figure is within the probe's bounds; fails at once where it is better than any machine's. Worse
/// than that may be other processes' doing, so that it is run again then, until the deadline. `run` gives the samples
/// of one process, or nothing where the row cannot run here.
pub fn is_within_bounds(probe: &Probe, params: &Params, mut run: impl FnMut() -> Option<Vec<f64>>) {
    let ([low, high], began) = (probe.bounds, Instant::now());
    while let Some(samples) = run() {
        let figure = figure(probe, params, &samples);
        let told = format!("{} {params}: {figure} of {samples:?}", probe.name);
        let (too_good, too_bad) = match probe.better {
            Better::Lower => (figure < low, figure > high),
            Better::Higher => (figure > high, figure < low),
        };
        assert!(
            figure.is_finite() && !too_good,
            "no machine does this: {told}"
        );
        if !too_bad {
            return;
        }
        assert!(
            began.elapsed() < DEADLINE,
            "no machine takes so long: {told}"
        );
    }
}

/// The best sample, which others' work spoils the least; the middle one where noise goes both ways.
fn figure(probe: &Probe, params: &Params, samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = match (probe.nature_of(params), probe.better) {
        // Of two the lower one: what a stall makes of a ratio is large.
        (Nature::Relates, _) => (sorted.len() - 1) / 2,
        (_, Better::Lower) => 0,
        (_, Better::Higher) => sorted.len() - 1,
    };
    sorted[at]
}

#[test]
fn better_than_any_machine_is_beyond_a_descriptors_bounds() {
    let probe = fingerpost_probes::find("syscall.null").unwrap();
    let params = Params::new();
    let [low, high] = probe.bounds;
    is_within_bounds(probe, &params, || Some(vec![high * 9.0, low * 2.0]));
    // The first process met a busy machine.
    let mut runs = vec![vec![low * 2.0], vec![high * 2.0]];
    is_within_bounds(probe, &params, || runs.pop());
    assert!(runs.is_empty());
    let too_fast = || is_within_bounds(probe, &params, || Some(vec![low / 2.0]));
    assert!(std::panic::catch_unwind(too_fast).is_err());
}
