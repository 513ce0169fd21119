//! What others trace, audit or probe: it makes every call, switch or function that it looks at slower, and nobody's
//! budget tells.
//!
//! What this process itself has attached is left out: it is told as the observers' own cost.

use fingerpost_sys::bpf::attached;
use fingerpost_sys::tracefs::SwitchedOn;
use fingerpost_sys::{audit, tracefs};

use crate::machine::Totals;

/// How it was seen what is on now, and the totals.
pub fn look() -> (String, Totals) {
    let rules = audit::rules().map_err(|e| format!("the audit does not answer: {e}"));
    let programs = attached::tracing_programs()
        .map_err(|e| format!("programs in the kernel are not told: {e}"));
    let on = tracefs::switched_on().map_err(|e| e.to_string());
    told(&on, &rules, &programs)
}

/// How it was seen, with what could not be, and the totals of what could.
pub(crate) fn told(
    on: &Result<SwitchedOn, String>,
    rules: &Result<usize, String>,
    programs: &Result<usize, String>,
) -> (String, Totals) {
    let mut t = Totals::new();
    if let Ok(on) = on {
        t.insert("tracing.events".into(), on.events as f64);
        t.insert("tracing.tracers".into(), on.tracers as f64);
    }
    t.extend(rules.iter().map(|n| ("audit.rules".to_owned(), *n as f64)));
    t.extend(
        programs
            .iter()
            .map(|n| ("tracing.programs".to_owned(), *n as f64)),
    );
    let refused = [
        on.as_ref().err(),
        rules.as_ref().err(),
        programs.as_ref().err(),
    ];
    let refused: Vec<&str> = refused.into_iter().flatten().map(String::as_str).collect();
    let source = match (t.is_empty(), refused.is_empty()) {
        (true, _) => format!("none: {}", refused.join("; ")),
        (false, true) => "what the kernel tells of tracing".to_owned(),
        (false, false) => format!("what the kernel tells of tracing ({})", refused.join("; ")),
    };
    (source, t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_missing_and_says_why() {
        fn no<T>() -> Result<T, String> {
            Err("not permitted".to_owned())
        }
        let on = Ok(SwitchedOn {
            events: 3,
            tracers: 1,
        });
        let (source, totals) = told(&on, &Ok(0), &no());
        assert_eq!(source, "what the kernel tells of tracing (not permitted)");
        let expected = [
            ("audit.rules", 0.0),
            ("tracing.events", 3.0),
            ("tracing.tracers", 1.0),
        ];
        assert_eq!(
            totals,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
        let (source, totals) = told(&no(), &no(), &no());
        assert!(source.starts_with("none: not permitted") && totals.is_empty());
    }
}
