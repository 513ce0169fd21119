//! The suspects, judged: confirmed first, then likely, then those that were looked at and ruled out, then those
//! that nothing tells of.

use crate::cause::{Cause, Need};
use crate::causes;
use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Finding, Metric, Relation, Status};

use super::chain;
use super::facts::{Facts, PROGRAMS};
use super::judging::{self, without};

/// Judges every suspect by the facts of one step.
pub fn suspects(facts: &Facts) -> Vec<Finding> {
    let judged = |cause: &'static Cause| {
        let verdict = (cause.one_side?)(facts);
        // Where nothing tells it from a cause that would fit as well, nothing is confirmed.
        let verdict = cause.told_from.iter().fold(verdict, |verdict, from| {
            without(facts, from.by, from.other, verdict)
        });
        let Some(v) = verdict else {
            let why = missing(cause, facts)?;
            return Some(Finding::new(
                cause.name,
                cause.layer,
                Status::NotObserved,
                0.0,
                why,
            ));
        };
        let relation = v.told_of.map(|other| Relation::ToldOf(other.to_owned()));
        Some(Finding {
            relation,
            ..Finding::new(
                cause.name,
                cause.layer,
                v.status,
                v.share.clamp(0.0, 1.0),
                v.evidence,
            )
        })
    };
    let mut found: Vec<Finding> = causes::all().filter_map(judged).collect();
    // A service that listens, and nothing was asked of it.
    if facts.known(PROGRAMS).is_some()
        && facts
            .known(name::ACCEPT_BACKLOG)
            .is_some_and(|may| may > 0.0)
    {
        found
            .iter_mut()
            .filter(|f| f.status.accuses())
            .for_each(|f| {
                (f.status, f.share) = (Status::NotObserved, 0.0);
                f.evidence.push(Evidence::of(Metric::NoRequest));
            });
    }
    chain::order(&mut found);
    found
}

/// Takes guilt from everybody where the step's row is not to be trusted, with the reason; but from the load generator,
/// whose limit is what makes such a row untrusted.
pub fn doubt(findings: &mut Vec<Finding>, why: &str) {
    let held = |f: &&mut Finding| f.status == Status::Confirmed && f.cause != id::CLIENT_SATURATED;
    for f in findings.iter_mut().filter(held) {
        f.status = Status::Likely;
        f.evidence
            .push(Evidence::of(Metric::RowNotTrusted).saying(why));
    }
    // What follows from what is told anew with the order.
    findings.iter_mut().for_each(chain::forget);
    chain::order(findings);
}

/// What a verdict on a cause lacks; nothing where it lacks nothing: then the workload has no such thing.
fn missing(cause: &Cause, facts: &Facts) -> Option<Vec<Evidence>> {
    let why = |need: &Need| match *need {
        Need::Followed => facts
            .followed
            .is_none()
            .then(|| Evidence::of(Metric::NotFollowed)),
        Need::Reading(name) => {
            facts.readings?.why_missing(name.as_str())?;
            Some(Evidence {
                missing: vec![judging::missing(facts, name)],
                ..Evidence::of(Metric::Missing)
            })
        }
    };
    let all: Vec<Evidence> = cause.needs.iter().filter_map(why).collect();
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests;
