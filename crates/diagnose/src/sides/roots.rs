//! What was changed between the sides is named before what it does: a build, a setting.

use fingerpost_record::cause::id;
use fingerpost_record::{Finding, Metric, Status};

use super::candidates::finding;
use super::clues::Clues;
use super::{contention, work};
use crate::cause::Cause;
use crate::causes::cause;
use crate::hosts;

/// Adds another build and another setting where they differ and what can follow from them is accused, with the largest
/// share of that. One setting alone that differs is as sure as what follows from it; beside others, and beside hosts
/// that differ, it is likely.
pub(super) fn add(findings: &mut Vec<Finding>, clues: &Clues) {
    for (name, fact) in [
        (id::APP_BUILD, work::build(clues)),
        (id::APP_SETTING, work::setting(clues)),
    ] {
        let (Some(fact), Some(entry)) = (fact, cause(name)) else {
            continue;
        };
        let after: Vec<&Finding> = findings
            .iter()
            .filter(|f| f.status.accuses() && follows(entry, &f.cause))
            .collect();
        let share = after.iter().map(|f| f.share).fold(0.0, f64::max);
        let Some(status) = after.iter().map(|f| f.status).min() else {
            continue;
        };
        let alone = clues.changed.len() == 1
            && hosts::differences(clues.fast().facts, clues.slow().facts).is_empty();
        findings.push(finding(
            entry,
            if alone { status } else { Status::Likely },
            share,
            vec![fact],
        ));
    }
}

/// What gives the CPU to others where there are any.
const GIVES_WAY: [&str; 2] = [id::CPU_AFFINITY, id::CPU_PRIORITY];

/// Where the same others want the CPUs on both sides, and a setting of the server's own was changed between them,
/// waiting for those others follows from the setting.
pub(super) fn neighbours_of_both(findings: &mut [Finding], clues: &Clues) {
    let Some(others) = contention::on_both_sides(clues) else {
        return;
    };
    let set = findings
        .iter()
        .filter(|f| f.status.accuses() && GIVES_WAY.contains(&f.cause.as_str()));
    let Some((root, share, status)) = set
        .map(|f| (f.cause.clone(), f.share, f.status))
        .max_by(|a, b| a.1.total_cmp(&b.1))
    else {
        return;
    };
    let Some(f) = findings
        .iter_mut()
        .find(|f| f.cause == id::CPU_CONTENTION && f.status.accuses() && f.status <= status)
    else {
        return;
    };
    (f.status, f.share) = (Status::Likely, f.share.min(share));
    f.evidence
        .push(clues.told(Metric::OthersOnBothSides, others).about(root));
}

/// Whether a cause may follow from another, by way of others too.
pub(super) fn follows(from: &Cause, name: &str) -> bool {
    cause(name).is_some_and(|c| {
        c.follows.contains(&from.name) || c.follows.iter().any(|f| follows(from, f))
    })
}
