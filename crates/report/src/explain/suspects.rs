//! The table of suspects.

use fingerpost_diagnose::wording::overlapping;
use fingerpost_record::{Finding, Status};

use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::words::{clean, percent};

fn tone(status: Status) -> Tone {
    match status {
        Status::Guilty => Tone::Bad,
        Status::Suspected => Tone::Doubtful,
        Status::Cleared | Status::NotJudged => Tone::Faint,
    }
}

/// The share of a suspect for a column of them: nothing of who is not accused.
pub(super) fn share(f: &Finding) -> String {
    match f.status.accuses() {
        true if f.share == 0.0 => "not known".to_owned(),
        true => percent(f.share),
        false => String::new(),
    }
}

/// The suspects with their figures, in the order in which they are given, each with at most so many lines of evidence.
pub(super) fn suspects_grid(findings: &[Finding], evidence: usize) -> Grid {
    let mut grid =
        Grid::titled([("suspect", Align::Left, 0), ("cause", Align::Left, 1), ("verdict", Align::Left, 0), ("share", Align::Right, 0)]);
    for f in findings {
        let label = fingerpost_diagnose::label(&f.cause);
        grid.lines.push(Line::Cells(vec![clean(label), clean(&f.cause), f.status.as_str().into(), share(f)], tone(f.status)));
        grid.lines.extend(f.evidence.iter().take(evidence).map(|e| Line::Note(clean(e), Tone::Faint)));
    }
    grid.lines.extend(overlapping(findings, None).map(|sentence| Line::Note(sentence, Tone::Plain)));
    grid
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;

    use super::*;
    use crate::style::Style;

    #[test]
    fn suspects_of_the_same_time_are_said_to_overlap() {
        let of = |cause: &str, share: f64, evidence: &str| Finding {
            cause: cause.into(),
            layer: Layer::Kernel,
            status: Status::Suspected,
            share,
            evidence: ["first", "second", evidence].map(str::to_owned).to_vec(),
            relation: None,
        };
        let told = |findings: &[Finding]| suspects_grid(findings, 2).render(&Style::default());
        assert!(!told(&[of("syscall.entry", 0.6, ""), of("client.saturated", 0.4, "")]).contains("overlap"));
        let both = told(&[of("syscall.entry", 0.6, "third"), of("client.saturated", 0.7, "")]);
        assert!(both.contains("The shares overlap") && both.contains("second") && !both.contains("third"), "{both}");
        // What it follows from is told further down than is shown.
        let follows = of("cpu.saturated", 0.6, "it follows from app.work (more work), which comes first");
        assert!(!told(&[of("app.work", 0.6, ""), follows]).contains("overlap"));
    }
}
