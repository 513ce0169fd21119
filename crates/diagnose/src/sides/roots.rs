//! What was changed between the sides is named before what it does: a build, a setting.

use fingerpost_record::cause::{Cause, cause};
use fingerpost_record::{Finding, Status};

use super::candidates::finding;
use super::clues::Clues;
use super::signs;
use crate::hosts;

/// Adds another build and another setting where they differ and what can follow from them is accused, with the largest share of that. One
/// setting alone that differs is as sure as what follows from it; beside others, and beside hosts that differ, it is suspected.
pub(super) fn add(findings: &mut Vec<Finding>, clues: &Clues) {
    for (name, fact) in [("app.build", signs::build(clues)), ("app.setting", signs::setting(clues))] {
        let (Some(fact), Some(entry)) = (fact, cause(name)) else { continue };
        let after: Vec<&Finding> = findings.iter().filter(|f| f.status.accuses() && follows(entry, &f.cause)).collect();
        let share = after.iter().map(|f| f.share).fold(0.0, f64::max);
        let Some(status) = after.iter().map(|f| f.status).min() else { continue };
        let alone = clues.changed().len() == 1 && hosts::differences(clues.cheap().facts, clues.dear().facts).is_empty();
        findings.push(finding(entry, if alone { status } else { Status::Suspected }, share, vec![fact]));
    }
}

/// Whether a cause may follow from another, by way of others too.
fn follows(from: &Cause, name: &str) -> bool {
    cause(name).is_some_and(|c| c.follows.contains(&from.name) || c.follows.iter().any(|f| follows(from, f)))
}
