//! What others trace, audit or probe: it makes every call, switch or function that it looks at slower, and nobody's budget tells.
//!
//! What this process itself has attached is left out: it is told as the observers' own cost.

use fingerpost_sys::bpf::attached;
use fingerpost_sys::tracefs::SwitchedOn;
use fingerpost_sys::{audit, tracefs};

use crate::machine::Totals;

/// What the three ways of asking told.
struct Asked {
    on: Result<SwitchedOn, String>,
    rules: Result<usize, String>,
    programs: Result<usize, String>,
}

/// How it was seen what is on now, and the totals.
pub fn look() -> (String, Totals) {
    told(&Asked {
        on: tracefs::switched_on(),
        rules: audit::rules().map_err(|e| format!("the audit does not answer: {e}")),
        programs: attached::tracing_programs().map_err(|e| format!("programs in the kernel are not told: {e}")),
    })
}

/// How it was seen, with what could not be, and the totals of what could.
fn told(asked: &Asked) -> (String, Totals) {
    let mut t = Totals::new();
    if let Ok(on) = &asked.on {
        t.insert("tracing.events".into(), on.events as f64);
        t.insert("tracing.tracers".into(), on.tracers as f64);
    }
    t.extend(asked.rules.iter().map(|n| ("audit.rules".to_owned(), *n as f64)));
    t.extend(asked.programs.iter().map(|n| ("tracing.programs".to_owned(), *n as f64)));
    let refused = [asked.on.as_ref().err(), asked.rules.as_ref().err(), asked.programs.as_ref().err()];
    let refused: Vec<&str> = refused.into_iter().flatten().map(String::as_str).collect();
    let source = match (t.is_empty(), refused.is_empty()) {
        (true, _) => format!("none: {}", refused.join("; ")),
        (false, true) => "what the kernel tells of tracing".to_owned(),
        (false, false) => format!("what the kernel tells of tracing ({})", refused.join("; ")),
    };
    (source, t)
}

/// The names of the totals where all could be asked.
#[cfg(test)]
pub(crate) fn names() -> Totals {
    told(&Asked { on: Ok(SwitchedOn::default()), rules: Ok(0), programs: Ok(0) }).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_missing_and_says_why() {
        fn no<T>() -> Result<T, String> {
            Err("not permitted".to_owned())
        }
        let on = Ok(SwitchedOn { events: 3, tracers: 1 });
        let (source, totals) = told(&Asked { on, rules: Ok(0), programs: no() });
        assert_eq!(source, "what the kernel tells of tracing (not permitted)");
        let expected = [("audit.rules", 0.0), ("tracing.events", 3.0), ("tracing.tracers", 1.0)];
        assert_eq!(totals, expected.map(|(name, value)| (name.to_owned(), value)).into());
        let (source, totals) = told(&Asked { on: no(), rules: no(), programs: no() });
        assert!(source.starts_with("none: not permitted") && totals.is_empty());
    }
}
