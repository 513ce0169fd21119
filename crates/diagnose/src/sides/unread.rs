//! Readings that tell a cause from another that would fit as well, where nobody had them: then the cause is likely
//! at most, and it is said what is missing.

use fingerpost_record::{Finding, Status};

use super::clues::Clues;

/// What a cause is told from another by.
struct Apart {
    cause: &'static str,
    /// Readings of which one is enough.
    by: &'static [&'static str],
    /// What would fit as well, in words.
    other: &'static str,
}

const THROTTLED: &[&str] = &["throttle.seconds"];
/// The version of a weight is known where the weight is.
const PRIORITY: &[&str] = &["server.nice", "cgroup.cpu_weight.version"];
const A_QUOTA: &str = "a quota that stops the server would fit as well";

const APART: &[Apart] = &[
    Apart {
        cause: "cpu.affinity",
        by: THROTTLED,
        other: A_QUOTA,
    },
    Apart {
        cause: "cpu.saturated",
        by: THROTTLED,
        other: A_QUOTA,
    },
    Apart {
        cause: "cpu.contention",
        by: THROTTLED,
        other: A_QUOTA,
    },
    Apart {
        cause: "cpu.contention",
        by: PRIORITY,
        other: "a lower priority of the server would fit as well",
    },
];

/// What is missing to tell a cause from others, a sentence each.
pub(super) fn missing(cause: &str, clues: &Clues) -> Vec<String> {
    let sentence = |apart: &Apart| {
        let one = |name: &&str| {
            Some(format!(
                "{name} cannot be compared ({})",
                clues.why_missing(name)?
            ))
        };
        let all: Vec<String> = apart.by.iter().map(one).collect::<Option<_>>()?;
        Some(format!("{}: {}", all.join(", "), apart.other))
    };
    APART
        .iter()
        .filter(|apart| apart.cause == cause)
        .filter_map(sentence)
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
