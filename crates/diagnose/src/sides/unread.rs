//! Readings that tell a cause from another that would fit as well, where nobody had them: then the cause is likely
//! at most, and it is said what is missing.

use fingerpost_record::{Evidence, Finding, Metric, Status};

use super::clues::Clues;
use crate::cause::ToldFrom;
use crate::causes;

/// What is missing to tell a cause from others.
pub(super) fn missing(cause: &str, clues: &Clues) -> Vec<Evidence> {
    let fact = |from: &ToldFrom| {
        let missing = from.by.iter().map(|name| clues.why_missing(*name));
        Some(Evidence {
            missing: missing.collect::<Option<_>>()?,
            ..Evidence::of(Metric::Missing).about(from.other)
        })
    };
    let apart = causes::cause(cause).map_or(&[][..], |c| c.told_from);
    apart.iter().filter_map(fact).collect()
}

/// Takes guilt from causes that nothing tells from others, and says of all that are accused what is missing.
pub(super) fn hold(findings: &mut [Finding], clues: &Clues) {
    for f in findings.iter_mut().filter(|f| f.status.accuses()) {
        let missing = missing(&f.cause, clues);
        if !missing.is_empty() {
            f.status = Status::Likely;
            f.evidence.extend(missing);
        }
    }
}
