//! Probes of others: programs on `PATH` whose names begin with `fingerpost-probe-`, and that speak the probe protocol
//! (`fingerpost_probes::protocol`).
//!
//! What is known of one is its name. It has one row without parameters, whose samples are nanoseconds, and is run when
//! it is named, never by itself. A name of our own is ours. What such a program says is bounded as everything is that
//! comes from elsewhere.

use std::path::PathBuf;

use fingerpost_measure::Slice;
use fingerpost_probes::protocol::MAX_SAMPLES;
use fingerpost_probes::{LATENCY, Nature, Probe};
use fingerpost_record::Params;
use fingerpost_record::text::clean_short;
use fingerpost_sys::search;

use crate::plan::Row;

/// How the files' names begin.
const PREFIX: &str = "fingerpost-probe-";
/// The most characters of a name, and of what a program says of why it gave no figure.
const LONGEST_NAME: usize = 64;
const LONGEST_SENTENCE: usize = 300;
/// The most counters of a process that are kept.
const MOST_COUNTERS: usize = 32;

/// Those that there are, by name. For root, only those that nobody else can change.
pub fn all() -> Vec<Row> {
    search::programs(PREFIX)
        .into_iter()
        .filter_map(|(rest, program)| row(&rest, program))
        .collect()
}

/// The one with this name.
pub fn find(name: &str) -> Option<Row> {
    all().into_iter().find(|row| row.probe.name == name)
}

fn row(name: &str, program: PathBuf) -> Option<Row> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c);
    let ours = crate::plan::known_names().any(|own| own == name);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) || ours {
        return None;
    }
    // Descriptors are known by reference and last as long as the program: of these there are a handful, made once.
    let kept = |text: String| -> &'static str { text.leak() };
    let probe: &'static Probe = Box::leak(Box::new(Probe {
        name: kept(name.to_owned()),
        summary: kept(format!("a probe of others: {}", program.display())),
        timed: "what its author says; one operation a row, in nanoseconds.",
        pitfalls: "nothing is known of it here: it is not held against anything.",
        bounds: [f64::MIN_POSITIVE, f64::MAX],
        // Noise may go both ways.
        nature: Nature::Blocks,
        ..LATENCY
    }));
    Some(Row {
        probe,
        params: Params::new(),
        program: Some(program),
    })
}

/// What a program that is not this one answered, within bounds.
pub fn bounded(slice: Slice) -> Slice {
    let short = |sentence: String| clean_short(&sentence, LONGEST_SENTENCE);
    match slice {
        Slice::Skipped(sentence) => Slice::Skipped(short(sentence)),
        Slice::Failed(sentence) => Slice::Failed(short(sentence)),
        Slice::Samples(samples)
            if samples
                .process
                .samples
                .len()
                .max(samples.process.pace.len())
                > MAX_SAMPLES =>
        {
            Slice::Failed(format!("the probe gave more than {MAX_SAMPLES} samples"))
        }
        Slice::Samples(mut samples) => {
            let counters = std::mem::take(&mut samples.process.counters);
            samples.process.counters = counters
                .into_iter()
                .take(MOST_COUNTERS)
                .map(|(name, value)| (clean_short(&name, LONGEST_NAME), value))
                .collect();
            Slice::Samples(samples)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_none_of_ours() {
        let named = |name: &str| row(name, "/x".into()).map(|row| row.probe.name);
        assert_eq!(named("net.ping"), Some("net.ping"));
        let long = "x".repeat(65);
        for wrong in [
            "",
            "syscall.null",
            "syscall",
            "web",
            "a b",
            "A",
            "\u{1b}[1m",
            &long,
        ] {
            assert_eq!(named(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_it_says_is_cut_and_cleaned() {
        let said = format!("no\u{1b}[31m{}", "x".repeat(1000));
        for slice in [Slice::Failed(said.clone()), Slice::Skipped(said)] {
            let (Slice::Failed(kept) | Slice::Skipped(kept)) = bounded(slice) else {
                panic!("another outcome");
            };
            assert!(kept.chars().count() <= LONGEST_SENTENCE + 1 && !kept.contains('\u{1b}'));
        }
    }
}
