//! Which experiments a trial makes: what its passes leave undecided is asked of the slower side's requests; what helped
//! there, and can be done on the other side as well, is tried there too.

use fingerpost_compare::Comparison;
use fingerpost_diagnose::deciding::Policy;
use fingerpost_record::{Answer, Experiment, Finding, Params, Status};

use super::kept::Kept;
use crate::deciding::Question;

/// Experiments on a side at most.
const MOST: usize = 3;

/// Has `ask` make the experiments, of the slower side and then of the other; none where no difference is resolved.
/// `kept` tells what a side has.
pub(super) fn decided<S, E>(
    [base, new]: [&mut S; 2],
    found: &Comparison,
    kept: impl Fn(&S) -> &Kept,
    mut ask: impl FnMut(&mut S, &[Finding], Policy) -> Result<(), E>,
) -> Result<(), E> {
    let Some(policy) = policy(found) else {
        return Ok(());
    };
    ask(new, &found.causes, policy)?;
    let helped = helped(&found.causes, &kept(new).run.experiments);
    if helped.is_empty() {
        Ok(())
    } else {
        ask(base, &helped, Policy::WhereUndecided)
    }
}

/// When the slower side is asked; nothing where no difference is resolved.
fn policy(found: &Comparison) -> Option<Policy> {
    found
        .rows
        .first()
        .and_then(|row| row.ratio)
        .filter(|r| r.low > 1.0)?;
    let nobody = !found.causes.iter().any(|f| f.status.accuses());
    Some(if nobody {
        Policy::Asked
    } else {
        Policy::WhereUndecided
    })
}

/// The causes about which an experiment on the slower side helped, as suspects of the other side.
fn helped(causes: &[Finding], experiments: &[Experiment]) -> Vec<Finding> {
    let helped = |f: &&Finding| {
        experiments
            .iter()
            .any(|e| e.answer == Answer::Faster && e.tests.contains(&f.cause))
    };
    causes
        .iter()
        .filter(helped)
        .map(|f| Finding {
            status: Status::Likely,
            ..f.clone()
        })
        .collect()
}

/// What is asked of one side, under the load that its passes had.
pub(super) fn question<'a>(
    params: &'a Params,
    findings: &'a [Finding],
    passes: (&Kept, f64),
    policy: Policy,
    own_neighbours: Vec<i32>,
) -> Question<'a> {
    let (kept, clients) = passes;
    let rates: Vec<f64> = kept.throughput.iter().filter_map(|p| p.value).collect();
    let rate = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let load = (rate, clients / rate.max(f64::MIN_POSITIVE));
    Question {
        params,
        findings,
        load,
        closed: true,
        most: MOST,
        beyond_ours: false,
        policy,
        own_neighbours,
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Change, Layer, Measure, Process};

    use super::*;

    #[test]
    fn only_what_helped_is_asked_of_the_other_side() {
        let finding = |cause: &str| Finding {
            cause: cause.into(),
            layer: Layer::Scheduler,
            status: Status::Confirmed,
            share: 0.5,
            evidence: Vec::new(),
            step: None,
            relation: None,
        };
        let causes = [finding("cpu.quota"), finding("cpu.affinity")];
        let of = |tests: &str, answer| Experiment {
            workload: "database".into(),
            params: Params::new(),
            change: Change::Quota,
            what: "one thing".into(),
            tests: vec![tests.to_owned()],
            by: Measure::Rate,
            pairs: Vec::new(),
            effect: None,
            answer,
            reason: None,
        };
        let asked = helped(
            &causes,
            &[
                of("cpu.quota", Answer::Faster),
                of("cpu.affinity", Answer::Same),
            ],
        );
        assert_eq!(
            asked
                .iter()
                .map(|f| (f.cause.as_str(), f.status))
                .collect::<Vec<_>>(),
            [("cpu.quota", Status::Likely)]
        );
        assert!(helped(&causes, &[]).is_empty());
    }

    #[test]
    fn the_load_is_that_of_the_passes() {
        let pass = |value: f64| Process {
            value: Some(value),
            ..Process::default()
        };
        let mut kept = Kept::default();
        kept.throughput.extend([pass(900.0), pass(1100.0)]);
        let (params, none) = (Params::new(), Vec::new());
        let q = question(
            &params,
            &none,
            (&kept, 4.0),
            Policy::WhereUndecided,
            vec![7],
        );
        assert_eq!((q.load, q.own_neighbours), ((1000.0, 0.004), vec![7]));
    }
}
