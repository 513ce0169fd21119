//! What experiments change of the findings: their answer counts above every passive sign.

use crate::causes::cause;
use crate::thresholds::{CONFIRMED, LIKELY};
use fingerpost_record::{Answer, Evidence, Experiment, Finding, Metric, Status};

use super::{by_suspicion, decides, decides_about, takes_away};
use crate::chain;

/// The findings of one step, with what its experiments say of them.
///
/// - *Faster*: the cause that the change takes away is confirmed where the whole interval of what it takes away lies above
///   the share that confirms, else likely. Where the change takes several away, it is the one that was likely
///   most.
/// - *As fast as before*: what the change takes away whole is ruled out. Where it need not act (a weight, one neighbour
///   of many), the sentence stands with the suspect, and its status as it was.
/// - Else nothing changes, and the sentence stands with the suspect.
///
/// The share of a cause is what the change took away of the time. Suspects that no change decided about stay as they
/// were: a sentence without an experiment is no less true. Applied to its own result it changes nothing.
pub fn verdict(findings: &[Finding], experiments: &[Experiment]) -> Vec<Finding> {
    let mut found = findings.to_vec();
    let mut changed = false;
    experiments
        .iter()
        .for_each(|experiment| changed |= apply(&mut found, experiment, experiments));
    if changed {
        // Sentences about what follows from what are made anew with the order.
        found.iter_mut().for_each(chain::forget);
        chain::order(&mut found);
    }
    found
}

/// What an experiment took away and what had been seen differ by more than this before that is told.
const APART: f64 = 0.05;

/// That the share that an experiment measured is not the one that was seen.
fn measured_and_seen(measured: f64, seen: f64) -> Evidence {
    Evidence::pair(Metric::MeasuredAndSeen, [seen, measured])
}

/// Whether the experiment said anything of a finding that it had not said before. `all` are those of the step.
fn apply(found: &mut Vec<Finding>, experiment: &Experiment, all: &[Experiment]) -> bool {
    let decides = decides(experiment.change);
    let tested = |f: &Finding| decides_about(experiment, f);
    let fact = Evidence::of_experiment(experiment);
    if found.iter().any(|f| f.evidence.contains(&fact)) {
        return false;
    }
    let most = found
        .iter()
        .filter(|f| tested(f))
        .min_by(|a, b| by_suspicion(a, b));
    let Some(name) = most
        .map(|f| f.cause.clone())
        .or_else(|| unlisted(experiment, found))
    else {
        return false;
    };
    let earlier: Vec<Evidence> = all.iter().map(Evidence::of_experiment).collect();
    for f in found.iter_mut().filter(|f| {
        f.cause == name || (tested(f) && experiment.answer == Answer::Same && f.status.accuses())
    }) {
        match (experiment.answer, &experiment.effect) {
            (Answer::Faster, Some(e)) => {
                let seen = Some(f.share).filter(|_| {
                    f.status.accuses() && !f.evidence.iter().any(|s| earlier.contains(s))
                });
                f.share = 1.0 - 1.0 / e.value;
                let apart =
                    seen.filter(|seen| !f.evidence.is_empty() && (f.share - seen).abs() > APART);
                f.evidence
                    .splice(0..0, apart.map(|seen| measured_and_seen(f.share, seen)));
                f.status = if 1.0 - 1.0 / e.low > CONFIRMED.value {
                    Status::Confirmed
                } else {
                    Status::Likely
                };
                // Whatever it was told with, now it was measured itself.
                f.relation = None;
            }
            (Answer::Same, _) if decides.clears => {
                (f.status, f.share, f.relation) = (Status::RuledOut, 0.0, None)
            }
            _ => {}
        }
        f.evidence.insert(0, fact.clone());
    }
    true
}

/// A cause that the passive signs said nothing about at all, and that requests were faster without.
fn unlisted(experiment: &Experiment, found: &mut Vec<Finding>) -> Option<String> {
    let name = experiment
        .tests
        .iter()
        .find(|t| takes_away(experiment.change, t))?;
    let known = cause(name).filter(|_| experiment.answer == Answer::Faster)?;
    let (status, share) = (Status::Likely, LIKELY.value);
    found.push(Finding::new(
        known.name,
        known.layer,
        status,
        share,
        Vec::new(),
    ));
    Some(name.clone())
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Change, Estimate, Layer, Measure, Params, fixture};

    use super::super::answer;
    use super::*;

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        fixture::loaded::finding(cause, Layer::Scheduler, status, share, "as seen")
    }

    fn experiment(change: Change, tests: &[&str], low: f64, high: f64) -> Experiment {
        let effect = Some(Estimate {
            value: (low * high).sqrt(),
            low,
            high,
            confidence: 0.95,
        });
        Experiment {
            workload: "database".into(),
            params: Params::new(),
            change,
            what: format!("{change:?} made"),
            tests: tests.iter().map(|t| (*t).to_owned()).collect(),
            by: Measure::Rate,
            pairs: Vec::new(),
            answer: answer(effect.as_ref()),
            effect,
            reason: None,
        }
    }

    fn told(findings: &[Finding]) -> Vec<(&str, Status)> {
        findings
            .iter()
            .map(|f| (f.cause.as_str(), f.status))
            .collect()
    }

    #[test]
    fn the_answer_convicts_one_and_clears_the_other() {
        let before = [
            finding("cpu.affinity", Status::Likely, 0.5),
            finding("cpu.quota", Status::Likely, 0.4),
        ];
        let lifted = experiment(Change::Quota, &["cpu.quota"], 1.85, 1.99);
        let widened = experiment(Change::Cpus, &["cpu.affinity"], 0.98, 1.02);
        let after = verdict(&before, &[widened, lifted]);
        assert_eq!(
            told(&after),
            [
                ("cpu.quota", Status::Confirmed),
                ("cpu.affinity", Status::RuledOut)
            ]
        );
        assert!((after[0].share - 0.479).abs() < 0.005, "{}", after[0].share);
        let first = &after[0].evidence[0];
        assert_eq!(
            (first.metric, first.answer, first.change),
            (
                Metric::Experiment,
                Some(Answer::Faster),
                Some(Change::Quota)
            )
        );
        assert_eq!(
            after[0].evidence.last().unwrap().text.as_deref(),
            Some("as seen")
        );
    }

    #[test]
    fn a_share_that_was_measured_is_told_from_the_one_that_was_seen() {
        let weight = experiment(Change::Weight, &["cpu.contention"], 1.85, 1.99);
        let after = |seen: f64| {
            verdict(
                &[finding("cpu.contention", Status::Likely, seen)],
                std::slice::from_ref(&weight),
            )
            .remove(0)
            .evidence
        };
        let more = after(0.078);
        assert_eq!(more.len(), 3, "{more:?}");
        assert_eq!(
            (more[1].metric, more[1].base),
            (Metric::MeasuredAndSeen, Some(0.078))
        );
        assert!((more[1].value.unwrap() - 0.479).abs() < 0.005, "{more:?}");
        assert_eq!(after(0.9)[1].metric, Metric::MeasuredAndSeen);
        assert_eq!(after(0.46).len(), 2, "alike");
        let held = experiment(Change::Hold, &["cpu.contention"], 1.2, 1.3);
        let both = verdict(
            &[finding("cpu.contention", Status::Likely, 0.47)],
            &[weight.clone(), held],
        );
        assert_eq!(
            both[0].evidence.len(),
            3,
            "two experiments differ by what they change: {:?}",
            both[0].evidence
        );
    }

    #[test]
    fn a_weight_without_effect_clears_nobody() {
        let before = [finding("cpu.contention", Status::Likely, 0.5)];
        let after = verdict(
            &before,
            &[experiment(Change::Weight, &["cpu.contention"], 0.99, 1.01)],
        );
        assert_eq!(told(&after), [("cpu.contention", Status::Likely)]);
        assert_eq!(
            after[0].evidence[0].answer,
            Some(Answer::Same),
            "that is said"
        );
    }

    #[test]
    fn what_is_unresolved_or_not_done_leaves_the_verdict() {
        let before = [finding("cpu.quota", Status::Confirmed, 0.5)];
        let mut not_done = experiment(Change::Quota, &["cpu.quota"], 0.5, 2.0);
        assert_eq!(
            told(&verdict(&before, std::slice::from_ref(&not_done))),
            told(&before)
        );
        not_done.answer = Answer::NotDone;
        not_done.effect = None;
        let after = verdict(&before, &[not_done]);
        assert_eq!(told(&after), told(&before));
        assert_eq!(after[0].evidence[0].answer, Some(Answer::NotDone));
    }

    #[test]
    fn a_small_effect_is_a_suspicion_and_a_cause_that_nobody_named_is_named() {
        let small = verdict(
            &[finding("cpu.quota", Status::Confirmed, 0.5)],
            &[experiment(Change::Quota, &["cpu.quota"], 1.06, 1.2)],
        );
        assert_eq!(told(&small), [("cpu.quota", Status::Likely)]);
        let named = verdict(&[], &[experiment(Change::Quota, &["cpu.quota"], 1.9, 2.1)]);
        assert_eq!(told(&named), [("cpu.quota", Status::Confirmed)]);
        assert_eq!(
            verdict(&[], &[experiment(Change::Quota, &["app.lock"], 1.9, 2.1)]),
            [],
            "a record cannot accuse whom it likes"
        );
    }

    #[test]
    fn of_two_that_a_change_takes_away_the_one_that_was_likely_most_is_it() {
        let before = [
            finding("cpu.priority", Status::RuledOut, 0.0),
            finding("cpu.contention", Status::Likely, 0.4),
        ];
        let after = verdict(
            &before,
            &[experiment(
                Change::Weight,
                &["cpu.contention", "cpu.priority"],
                1.8,
                2.2,
            )],
        );
        assert_eq!(
            told(&after),
            [
                ("cpu.contention", Status::Confirmed),
                ("cpu.priority", Status::RuledOut)
            ]
        );
    }

    #[test]
    fn applied_twice_it_is_the_same() {
        let before = [
            finding("cpu.saturated", Status::Likely, 0.4),
            finding("cpu.quota", Status::Likely, 0.4),
        ];
        let made = [experiment(Change::Quota, &["cpu.quota"], 1.85, 1.99)];
        let once = verdict(&before, &made);
        assert_eq!(verdict(&once, &made), once);
        assert_eq!(verdict(&before, &[]), before);
    }
}
