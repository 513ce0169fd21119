//! What a change between the sides was measured to make by itself comes before every passive sign: what may follow from
//! it is told as its consequence, and what cannot has no more than what it leaves for sure: all but the low end of the
//! experiment's interval.

use crate::causes::cause;
use fingerpost_record::{Finding, Metric, Status};

use super::decided::leave;
use super::roots::follows;
use crate::chain;

/// A cause whose part of the difference an experiment gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured<'a> {
    /// The cause.
    pub cause: &'a str,
    /// The low end of its part's interval: the rest may belong to others.
    pub least: f64,
}

/// Puts findings of a workload's step in order again after `measured`, causes whose part of the difference an
/// experiment gave, got theirs.
pub fn put_first(findings: &mut Vec<Finding>, measured: &[Measured]) {
    let is_measured = |f: &Finding| measured.iter().any(|m| m.cause == f.cause);
    for f in findings.iter_mut() {
        chain::forget(f);
        f.evidence
            .retain(|fact| fact.metric != Metric::LeftByChanges);
    }
    // Of what is equal in all else, what was measured comes first.
    findings.sort_by_key(|f| !is_measured(f));
    let roots: Vec<Finding> = findings
        .iter()
        .filter(|f| is_measured(f) && f.status.accuses() && f.share > 0.0)
        .cloned()
        .collect();
    // Who comes first is decided by what the experiment gives and leaves at its middle; how much others have, by what
    // it leaves for sure.
    let middle = (1.0 - roots.iter().map(|f| f.share).sum::<f64>()).clamp(0.0, 1.0);
    let mut shown: Vec<(String, f64)> = Vec::new();
    let least = measured
        .iter()
        .filter(|m| roots.iter().any(|f| f.cause == m.cause))
        .map(|m| m.least.max(0.0));
    let left = (1.0 - least.sum::<f64>()).clamp(0.0, 1.0);
    for f in findings
        .iter_mut()
        .filter(|f| f.status.accuses() && !is_measured(f))
    {
        match root(f, &roots) {
            Some(root) => f.status = f.status.max(root.status),
            None if !roots.is_empty() => {
                leave(f, left, Metric::LeftByChanges);
                if f.status == Status::NotObserved {
                    f.share = 0.0;
                }
                shown.push((f.cause.clone(), f.share));
                f.share = f.share.min(middle);
            }
            None => {}
        }
    }
    chain::order(findings);
    for f in findings.iter_mut() {
        f.share = shown
            .iter()
            .find(|(cause, _)| *cause == f.cause)
            .map_or(f.share, |(_, share)| *share);
    }
    for root in roots.iter().rev() {
        gather(findings, root, &roots);
    }
}

/// Of the causes that were measured the one that a finding may follow from, with the largest part.
fn root<'a>(f: &Finding, roots: &'a [Finding]) -> Option<&'a Finding> {
    let may = roots
        .iter()
        .filter(|root| cause(&root.cause).is_some_and(|entry| follows(entry, &f.cause)));
    may.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Moves what may follow from a measured cause, by way of causes that nobody is accused of, behind it.
fn gather(findings: &mut Vec<Finding>, of: &Finding, roots: &[Finding]) {
    let loose = |f: &Finding| {
        f.status.accuses()
            && chain::follows_from(f).is_none()
            && root(f, roots).is_some_and(|root| root.cause == of.cause)
    };
    let (mut after, rest): (Vec<Finding>, Vec<Finding>) =
        std::mem::take(findings).into_iter().partition(loose);
    after.iter_mut().for_each(|f| chain::follow(f, &of.cause));
    *findings = rest;
    let of_chain =
        |f: &Finding| f.cause == of.cause || chain::follows_from(f) == Some(of.cause.as_str());
    let at = findings
        .iter()
        .rposition(of_chain)
        .map_or(0, |last| last + 1);
    findings.splice(at..at, after);
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;

    use super::*;

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status,
            share,
            evidence: Vec::new(),
            step: None,
            relation: None,
        }
    }

    fn ordered(found: &[Finding]) -> Vec<(&str, Status, f64)> {
        found
            .iter()
            .map(|f| {
                (
                    f.cause.as_str(),
                    f.status,
                    (f.share * 100.0).round() / 100.0,
                )
            })
            .collect()
    }

    /// What is left for a cause, to two digits.
    fn left(f: &Finding) -> Option<f64> {
        let [fact] = &f.evidence[..] else { return None };
        fact.value
            .filter(|_| fact.metric == Metric::LeftByChanges)
            .map(|value| (value * 100.0).round() / 100.0)
    }

    fn setting(least: f64) -> [Measured<'static>; 1] {
        [Measured {
            cause: "app.setting",
            least,
        }]
    }

    #[test]
    fn what_was_measured_comes_first_and_its_consequences_after_it() {
        let mut found = vec![
            finding("cpu.contention", Status::Confirmed, 0.58),
            finding("cpu.saturated", Status::Likely, 0.9),
            finding("app.lock", Status::Confirmed, 0.95),
            finding("app.setting", Status::Confirmed, 0.89),
            finding("cpu.speed", Status::RuledOut, 0.0),
        ];
        put_first(&mut found, &setting(0.85));
        use Status::{Confirmed, Likely, RuledOut};
        // More threads than CPUs follow from a setting by way of the server's work, of which nobody is accused here.
        assert_eq!(
            ordered(&found),
            [
                ("app.setting", Confirmed, 0.89),
                ("app.lock", Confirmed, 0.95),
                ("cpu.saturated", Likely, 0.9),
                ("cpu.contention", Confirmed, 0.15),
                ("cpu.speed", RuledOut, 0.0)
            ]
        );
        for consequence in &found[1..3] {
            assert_eq!(
                chain::follows_from(consequence),
                Some("app.setting"),
                "{consequence:?}"
            );
        }
        assert_eq!(left(&found[3]), Some(0.15));
        let once = found.clone();
        put_first(&mut found, &setting(0.85));
        assert_eq!(
            ordered(&found),
            ordered(&once),
            "a second time changes nothing"
        );
        assert_eq!(found[1].evidence.len(), 0);
    }

    #[test]
    fn what_has_all_of_the_difference_leaves_nobody_else_accused_of_it() {
        let mut found = vec![
            finding("cpu.contention", Status::Confirmed, 0.58),
            finding("app.setting", Status::Confirmed, 0.98),
        ];
        put_first(&mut found, &setting(0.96));
        assert_eq!(
            ordered(&found),
            [
                ("app.setting", Status::Confirmed, 0.98),
                ("cpu.contention", Status::NotObserved, 0.0)
            ]
        );
    }

    #[test]
    fn a_wide_interval_leaves_others_all_but_its_low_end() {
        let mut found = vec![
            finding("cpu.contention", Status::Confirmed, 0.58),
            finding("app.setting", Status::Confirmed, 0.98),
        ];
        put_first(&mut found, &setting(0.6));
        assert_eq!(
            ordered(&found),
            [
                ("app.setting", Status::Confirmed, 0.98),
                ("cpu.contention", Status::Confirmed, 0.4)
            ]
        );
        assert_eq!(left(&found[1]), Some(0.4));
    }

    #[test]
    fn what_others_may_have_at_most_puts_nobody_before_what_was_measured() {
        let mut found = vec![
            finding("cpu.contention", Status::Confirmed, 0.9),
            finding("app.setting", Status::Confirmed, 0.6),
        ];
        put_first(&mut found, &setting(0.3));
        assert_eq!(
            ordered(&found),
            [
                ("app.setting", Status::Confirmed, 0.6),
                ("cpu.contention", Status::Confirmed, 0.7)
            ]
        );
    }

    #[test]
    fn a_small_part_takes_nothing_from_a_larger_cause() {
        let mut found = vec![
            finding("app.setting", Status::Confirmed, 0.3),
            finding("cpu.contention", Status::Confirmed, 0.6),
        ];
        put_first(&mut found, &setting(0.28));
        assert_eq!(
            ordered(&found),
            [
                ("cpu.contention", Status::Confirmed, 0.6),
                ("app.setting", Status::Confirmed, 0.3)
            ]
        );
    }

    #[test]
    fn nothing_follows_from_what_was_measured_and_ruled_out() {
        let mut found = vec![
            finding("app.setting", Status::RuledOut, 0.0),
            finding("app.lock", Status::Confirmed, 0.9),
        ];
        chain::follow(&mut found[1], "app.setting");
        put_first(&mut found, &setting(0.0));
        assert_eq!(
            ordered(&found),
            [
                ("app.lock", Status::Confirmed, 0.9),
                ("app.setting", Status::RuledOut, 0.0)
            ]
        );
        assert!(found[0].evidence.is_empty());
    }
}
