//! The suspects, judged: guilty first, then suspected, then those that were looked at and found innocent.

use fingerpost_record::{Finding, Status};

use super::facts::Facts;
use super::rules::RULES;

/// Judges every suspect by the facts of one step.
pub fn suspects(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = RULES
        .iter()
        .filter_map(|rule| {
            let v = (rule.judge)(facts)?;
            Some(Finding {
                cause: rule.cause.to_owned(),
                layer: rule.layer,
                status: v.status,
                share: v.share.clamp(0.0, 1.0),
                evidence: v.evidence,
            })
        })
        .collect();
    // The order of the rules is kept among the cleared: it is the order of the search.
    found.sort_by(|a, b| {
        a.status
            .cmp(&b.status)
            .then_with(|| if a.status == Status::Cleared { std::cmp::Ordering::Equal } else { b.share.total_cmp(&a.share) })
    });
    found
}

/// What a person calls a cause; the cause's own name where it is not one of the suspects.
pub fn label(cause: &str) -> &str {
    RULES.iter().find(|r| r.cause == cause).map_or(cause, |r| r.label)
}

#[cfg(test)]
mod tests;
