//! What is said behind a sentence whose rows are not to be trusted.

use fingerpost_record::text::counted;
use fingerpost_record::{Measurement, Outcome, Run};

/// A sentence that rests on the rows whose probes begin so, with how many of them are not to be trusted.
pub fn doubted(sentence: String, run: &Run, of: &str) -> String {
    let rows = || {
        run.measurements
            .iter()
            .filter(|m| m.estimate.is_some() && m.probe.starts_with(of))
    };
    let untrusted = rows().filter(|m| m.outcome == Outcome::Untrusted).count();
    if untrusted == 0 {
        return sentence;
    }
    let is = if untrusted == 1 { "is" } else { "are" };
    format!(
        "{} ({untrusted} of {} {is} untrusted).",
        sentence.trim_end_matches('.'),
        counted(rows().count() as u64, "row")
    )
}

/// What stands behind a figure where its row is not to be trusted.
pub fn doubt(row: &Measurement) -> String {
    match &row.reason {
        Some(reason) if row.outcome == Outcome::Untrusted => format!(" (untrusted: {reason})"),
        _ if row.outcome == Outcome::Untrusted => " (untrusted)".to_owned(),
        _ => String::new(),
    }
}
