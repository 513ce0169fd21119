//! Readings that tell a cause from another that would fit as well, where nobody had them: then the cause is likely
//! at most, and it is said what is missing.

use fingerpost_record::cause::id;
use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Evidence, Finding, Metric, Status};

use super::clues::Clues;

/// What a cause is told from another by.
struct Apart {
    cause: &'static str,
    /// Readings of which one is enough.
    by: &'static [Name],
    /// The cause that would fit as well.
    other: &'static str,
}

const THROTTLED: &[Name] = &[name::THROTTLE_SECONDS];
/// The version of a weight is known where the weight is.
const PRIORITY: &[Name] = &[name::SERVER_NICE, name::CGROUP_CPU_WEIGHT_VERSION];

const APART: &[Apart] = &[
    Apart {
        cause: id::CPU_AFFINITY,
        by: THROTTLED,
        other: id::CPU_QUOTA,
    },
    Apart {
        cause: id::CPU_SATURATED,
        by: THROTTLED,
        other: id::CPU_QUOTA,
    },
    Apart {
        cause: id::CPU_CONTENTION,
        by: THROTTLED,
        other: id::CPU_QUOTA,
    },
    Apart {
        cause: id::CPU_CONTENTION,
        by: PRIORITY,
        other: id::CPU_PRIORITY,
    },
];

/// What is missing to tell a cause from others.
pub(super) fn missing(cause: &str, clues: &Clues) -> Vec<Evidence> {
    let fact = |apart: &Apart| {
        let missing = apart.by.iter().map(|name| clues.why_missing(*name));
        Some(Evidence {
            missing: missing.collect::<Option<_>>()?,
            ..Evidence::of(Metric::Missing).about(apart.other)
        })
    };
    APART
        .iter()
        .filter(|apart| apart.cause == cause)
        .filter_map(fact)
        .collect()
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

#[cfg(test)]
mod tests {
    use fingerpost_record::cause::cause;

    use super::*;

    #[test]
    fn what_is_told_apart_is_in_the_registry() {
        for apart in APART {
            assert!(
                cause(apart.cause).is_some() && !apart.by.is_empty(),
                "{}",
                apart.cause
            );
        }
    }
}
