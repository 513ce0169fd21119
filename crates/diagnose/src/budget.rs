//! The budget of one request: what followed requests spent their time on, in parts that exclude each other.
//!
//! Every moment of a followed request is in one leaf, so the parts and what could not be followed are the whole by
//! their making: nothing is scaled, clamped or fitted. What checks them is the load generator's own account of the same
//! requests ([`super::check`]).
//!
//! Where requests could not be followed there is no budget of them. What is known then is what the threads did
//! ([`super::threads`]), which is no request's time: threads wait for locks and timers all day on nobody's behalf.

use fingerpost_record::{Budget, Component, Layer, Params, Part, Paths, WaitClass};

use super::StepFigures;
use super::places::Place;

/// A system call whose share is below this is put together with the others.
const SMALL: f64 = 0.005;

/// The budget of followed requests. Without any, `parts` is empty and `unexplained` is 1. The caller fills in the
/// workload's name and parameters where there are no paths to tell them.
pub fn budget(step: &StepFigures, paths: Option<&Paths>) -> Budget {
    let Some(paths) = paths.filter(|p| p.followed > 0) else {
        let (workload, params, parts) = (String::new(), Params::new(), Vec::new());
        let (transactions, seconds_per_transaction) =
            (step.transactions, step.seconds_per_transaction());
        return Budget {
            workload,
            params,
            transactions,
            seconds_per_transaction,
            parts,
            unexplained: 1.0,
        };
    };
    let turns = step.turns_per_transaction;
    let mut parts: Vec<Part> = Vec::new();
    for leaf in paths
        .leaves
        .iter()
        .filter(|l| l.class != WaitClass::NotFollowed)
    {
        let (mut layer, mut component) = Place::of(leaf).component(leaf);
        if component.is_call() && share_of(paths, &component) < SMALL {
            (layer, component) = (Layer::Kernel, Component::OtherCalls);
        }
        let seconds = leaf.all.seconds * turns;
        match parts
            .iter_mut()
            .find(|p| p.layer == layer && p.component == component)
        {
            Some(part) => {
                part.seconds_per_transaction += seconds;
                part.share += leaf.all.share;
            }
            None => parts.push(Part {
                layer,
                component,
                seconds_per_transaction: seconds,
                share: leaf.all.share,
            }),
        }
    }
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let (workload, params, unexplained) = (
        paths.workload.clone(),
        paths.params.clone(),
        paths.not_followed,
    );
    let transactions = (paths.followed as f64 / turns).round().max(1.0) as u64;
    Budget {
        workload,
        params,
        transactions,
        seconds_per_transaction: paths.latency.mean * turns,
        parts,
        unexplained,
    }
}

fn share_of(paths: &Paths, component: &Component) -> f64 {
    paths
        .leaves
        .iter()
        .filter(|l| l.component().1 == *component)
        .map(|l| l.all.share)
        .sum()
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture::followed;

    use super::*;

    fn seconds(b: &Budget, component: &str) -> f64 {
        b.parts
            .iter()
            .filter(|p| p.component == Component::of_name(component))
            .map(|p| p.seconds_per_transaction)
            .sum()
    }

    #[test]
    fn the_parts_and_what_was_not_followed_are_the_whole() {
        for run in [followed::healthy(), followed::slow_locks()] {
            let b = budget(&StepFigures::default(), run.paths.first());
            let shares: f64 = b.parts.iter().map(|p| p.share).sum();
            assert!((shares + b.unexplained - 1.0).abs() < 1e-9, "{b:#?}");
            let seconds: f64 = b.parts.iter().map(|p| p.seconds_per_transaction).sum();
            assert!((seconds / (1.0 - b.unexplained) - b.seconds_per_transaction).abs() < 1e-12);
        }
    }

    #[test]
    fn a_holder_that_works_is_the_lock_and_one_that_waits_is_what_it_waits_for() {
        let b = budget(
            &StepFigures::default(),
            followed::slow_locks().paths.first(),
        );
        assert!(
            (seconds(&b, "waiting for a lock") - 64e-6).abs() < 1e-12,
            "{b:#?}"
        );
        assert!((seconds(&b, "waiting for the disk") - (180.0 + 24.0 + 12.0) * 1e-6).abs() < 1e-12);
        assert!((seconds(&b, "waiting for a CPU") - 126e-6).abs() < 1e-12);
        assert!((seconds(&b, "server user code") - 310e-6).abs() < 1e-12);
    }

    #[test]
    fn a_transaction_of_several_turns_takes_as_many_times_as_long() {
        let paths = followed::healthy().paths.remove(0);
        let step = StepFigures {
            turns_per_transaction: 4.0,
            ..StepFigures::default()
        };
        let b = budget(&step, Some(&paths));
        assert!((b.seconds_per_transaction - 4.0 * paths.latency.mean).abs() < 1e-12);
        assert!((seconds(&b, "server user code") - 4.0 * 310e-6).abs() < 1e-12);
        assert_eq!(b.transactions, (paths.followed as f64 / 4.0).round() as u64);
    }

    #[test]
    fn rare_system_calls_are_put_together() {
        let row = |call, us| (Layer::Kernel, call, "", &[][..], [us; 3]);
        let rows = [
            row("kernel: read", 900.0),
            row("kernel: futex", 2.0),
            row("kernel: brk", 1.0),
        ];
        let b = budget(&StepFigures::default(), Some(&followed::paths(&rows, 0.0)));
        assert!((seconds(&b, "kernel: other calls") - 3e-6).abs() < 1e-12);
        assert_eq!(b.parts.len(), 2);
    }

    #[test]
    fn without_followed_requests_nothing_is_explained() {
        let step = StepFigures {
            transactions: 100,
            elapsed_s: 1.0,
            clients: 2.0,
            ..StepFigures::default()
        };
        for paths in [None, Some(&Paths::default())] {
            let b = budget(&step, paths);
            assert_eq!(
                (b.parts.len(), b.unexplained, b.seconds_per_transaction),
                (0, 1.0, 0.02)
            );
        }
    }
}
