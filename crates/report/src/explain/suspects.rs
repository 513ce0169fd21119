//! The table of suspects.

use fingerpost_diagnose::wording::overlapping;
use fingerpost_record::{Finding, Status};

use super::{clean, percent};
use crate::grid::{Align, Grid, Line};
use crate::style::Tone;

fn tone(status: Status) -> Tone {
    match status {
        Status::Guilty => Tone::Bad,
        Status::Suspected => Tone::Doubtful,
        Status::Cleared | Status::NotJudged => Tone::Faint,
    }
}

/// The suspects with their figures, in the order in which they are given, each with at most so many lines of evidence.
pub(super) fn suspects_grid(findings: &[Finding], evidence: usize) -> Grid {
    let mut grid =
        Grid::titled([("suspect", Align::Left, 0), ("cause", Align::Left, 1), ("verdict", Align::Left, 0), ("share", Align::Right, 0)]);
    for f in findings {
        let label = fingerpost_diagnose::label(&f.cause);
        let share = if !f.status.accuses() || f.share == 0.0 { String::new() } else { percent(f.share) };
        grid.lines.push(Line::Cells(vec![clean(label), clean(&f.cause), f.status.as_str().into(), share], tone(f.status)));
        grid.lines.extend(f.evidence.iter().take(evidence).map(|e| Line::Note(clean(e), Tone::Faint)));
    }
    grid.lines.extend(overlapping(findings, None).map(|sentence| Line::Note(sentence, Tone::Plain)));
    grid
}
