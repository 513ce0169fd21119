//! What a change between the sides was measured to make by itself comes before every passive sign: what may follow from it is told as its
//! consequence, and what cannot has no more than what it leaves.

use fingerpost_record::cause::{cause, label};
use fingerpost_record::{Finding, Status};

use super::roots::follows;
use crate::chain::{self, FOLLOWS};
use crate::rules::{GUILTY, SUSPECTED, percent};

/// How sentences begin that put one finding before another.
const ORDERED: [&str; 2] = [FOLLOWS, LEAVES];
const LEAVES: &str = "what was measured of single changes leaves ";

/// Puts findings of a workload's step in order again after `measured`, causes whose part of the difference an experiment gave, got theirs.
pub fn put_first(findings: &mut Vec<Finding>, measured: &[&str]) {
    let is_measured = |f: &Finding| measured.contains(&f.cause.as_str());
    findings.iter_mut().for_each(|f| f.evidence.retain(|line| !ORDERED.iter().any(|begin| line.starts_with(begin))));
    // Of what is equal in all else, what was measured comes first.
    findings.sort_by_key(|f| !is_measured(f));
    let roots: Vec<Finding> = findings.iter().filter(|f| is_measured(f) && f.status.accuses() && f.share > 0.0).cloned().collect();
    let left = (1.0 - roots.iter().map(|f| f.share).sum::<f64>()).clamp(0.0, 1.0);
    for f in findings.iter_mut().filter(|f| f.status.accuses() && !is_measured(f)) {
        match root(f, &roots) {
            Some(root) => f.status = f.status.max(root.status),
            None if !roots.is_empty() => leave(f, left),
            None => {}
        }
    }
    chain::order(findings);
    for root in roots.iter().rev() {
        gather(findings, root, &roots);
    }
}

/// Of the causes that were measured the one that a finding may follow from, with the largest part.
fn root<'a>(f: &Finding, roots: &'a [Finding]) -> Option<&'a Finding> {
    let may = roots.iter().filter(|root| cause(&root.cause).is_some_and(|entry| follows(entry, &f.cause)));
    may.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Moves what may follow from a measured cause, by way of causes that nobody is accused of, behind it.
fn gather(findings: &mut Vec<Finding>, of: &Finding, roots: &[Finding]) {
    let loose = |f: &Finding| {
        let told = f.evidence.iter().any(|line| line.starts_with(FOLLOWS));
        f.status.accuses() && !told && root(f, roots).is_some_and(|root| root.cause == of.cause)
    };
    let (mut after, rest): (Vec<Finding>, Vec<Finding>) = std::mem::take(findings).into_iter().partition(loose);
    let sentence = format!("{FOLLOWS}{} ({}), which comes first", of.cause, label(&of.cause));
    after.iter_mut().for_each(|f| f.evidence.push(sentence.clone()));
    *findings = rest;
    let of_chain = |f: &Finding| f.cause == of.cause || f.evidence.contains(&sentence);
    let at = findings.iter().rposition(of_chain).map_or(0, |last| last + 1);
    findings.splice(at..at, after);
}

/// Leaves a cause that cannot follow from what was measured no more than this share.
fn leave(f: &mut Finding, left: f64) {
    if f.share <= left {
        return;
    }
    f.evidence.push(format!("{LEAVES}{} of the difference for it", percent(left)));
    f.share = left;
    f.status = match f.status {
        Status::Guilty if left >= GUILTY => Status::Guilty,
        _ if left >= SUSPECTED => Status::Suspected,
        _ => Status::NotJudged,
    };
    if f.status == Status::NotJudged {
        f.share = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;

    use super::*;

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        Finding { cause: cause.into(), layer: Layer::Application, status, share, evidence: Vec::new() }
    }

    fn ordered(found: &[Finding]) -> Vec<(&str, Status, f64)> {
        found.iter().map(|f| (f.cause.as_str(), f.status, (f.share * 100.0).round() / 100.0)).collect()
    }

    #[test]
    fn what_was_measured_comes_first_and_its_consequences_after_it() {
        let mut found = vec![
            finding("cpu.contention", Status::Guilty, 0.58),
            finding("cpu.saturated", Status::Suspected, 0.9),
            finding("app.lock", Status::Guilty, 0.95),
            finding("app.setting", Status::Guilty, 0.89),
            finding("cpu.speed", Status::Cleared, 0.0),
        ];
        put_first(&mut found, &["app.setting"]);
        use Status::{Cleared, Guilty, Suspected};
        // More threads than CPUs follow from a setting by way of the server's work, of which nobody is accused here.
        assert_eq!(
            ordered(&found),
            [
                ("app.setting", Guilty, 0.89),
                ("app.lock", Guilty, 0.95),
                ("cpu.saturated", Suspected, 0.9),
                ("cpu.contention", Guilty, 0.11),
                ("cpu.speed", Cleared, 0.0)
            ]
        );
        assert!(found[1].evidence[0].starts_with("it follows from app.setting"), "{:?}", found[1]);
        assert!(found[2].evidence[0].starts_with("it follows from app.setting"), "{:?}", found[2]);
        assert_eq!(found[3].evidence, ["what was measured of single changes leaves 11 % of the difference for it"]);
        let once = found.clone();
        put_first(&mut found, &["app.setting"]);
        assert_eq!(ordered(&found), ordered(&once), "a second time changes nothing");
        assert_eq!(found[1].evidence.len(), 1);
    }

    #[test]
    fn what_has_all_of_the_difference_leaves_nobody_else_accused_of_it() {
        let mut found = vec![finding("cpu.contention", Status::Guilty, 0.58), finding("app.setting", Status::Guilty, 0.98)];
        put_first(&mut found, &["app.setting"]);
        assert_eq!(ordered(&found), [("app.setting", Status::Guilty, 0.98), ("cpu.contention", Status::NotJudged, 0.0)]);
    }

    #[test]
    fn a_small_part_takes_nothing_from_a_larger_cause() {
        let mut found = vec![finding("app.setting", Status::Guilty, 0.3), finding("cpu.contention", Status::Guilty, 0.6)];
        put_first(&mut found, &["app.setting"]);
        assert_eq!(ordered(&found), [("cpu.contention", Status::Guilty, 0.6), ("app.setting", Status::Guilty, 0.3)]);
    }

    #[test]
    fn nothing_follows_from_what_was_measured_and_cleared() {
        let mut found = vec![finding("app.setting", Status::Cleared, 0.0), finding("app.lock", Status::Guilty, 0.9)];
        found[1].evidence.push(format!("{FOLLOWS}app.setting (a setting), which comes first"));
        put_first(&mut found, &["app.setting"]);
        assert_eq!(ordered(&found), [("app.lock", Status::Guilty, 0.9), ("app.setting", Status::Cleared, 0.0)]);
        assert!(found[0].evidence.is_empty());
    }
}
