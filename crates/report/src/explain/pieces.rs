//! Pieces of several screens: a share as a bar of cells, the table of suspects, and what a server's threads did.

use fingerpost_diagnose::threads::State;
use fingerpost_record::{Finding, Status};

use crate::evidence::{Whose, evidence_of};
use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::wording::overlapping;
use crate::words::{clean, percent, time};

/// Cells of the bar for the whole of the time.
pub(super) const BAR: usize = 40;

/// A bar that begins where the one above it ended, as the parts of a whole lie side by side.
pub(super) fn bar(start: f64, share: f64) -> String {
    let cell = |x: f64| (x.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let (from, to) = (cell(start), cell(start + share.max(0.0)));
    let filled = (to - from).max(usize::from(share > 0.0 && from < BAR));
    format!("{}{}", " ".repeat(from), "█".repeat(filled))
}

pub(crate) fn tone(status: Status) -> Tone {
    match status {
        Status::Confirmed => Tone::Bad,
        Status::Likely => Tone::Doubtful,
        Status::RuledOut | Status::NotObserved => Tone::Faint,
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
pub(super) fn suspects_grid(findings: &[Finding], whose: Whose, evidence: usize) -> Grid {
    let mut grid = Grid::titled([
        ("suspect", Align::Left, 0),
        ("cause", Align::Left, 1),
        ("verdict", Align::Left, 0),
        ("share", Align::Right, 0),
    ]);
    for f in findings {
        let label = fingerpost_diagnose::label(&f.cause);
        grid.lines.push(Line::Cells(
            vec![
                clean(label),
                clean(&f.cause),
                f.status.as_str().into(),
                share(f),
            ],
            tone(f.status),
        ));
        grid.lines.extend(
            evidence_of(f, whose)
                .iter()
                .take(evidence)
                .map(|e| Line::Note(clean(e), Tone::Faint)),
        );
    }
    grid.lines.extend(
        overlapping(findings, None)
            .map(|sentence| Line::Labelled(String::new(), sentence, Tone::Plain)),
    );
    grid
}

/// What threads did. It is no budget: they are nobody's requests.
pub(super) fn threads_grid(states: &[State]) -> Grid {
    let mut grid = Grid::titled([
        ("what the threads did", Align::Left, 0),
        ("layer", Align::Left, 2),
        ("time", Align::Right, 0),
        ("of their life", Align::Right, 0),
        ("", Align::Left, 4),
    ]);
    let line = |s| {
        Line::Cells(
            thread_cells(s)
                .into_iter()
                .chain([bar(0.0, s.share)])
                .collect(),
            Tone::Plain,
        )
    };
    grid.lines.extend(states.iter().map(line));
    grid
}

/// A state of threads, its layer, and how long they were in it.
pub(crate) fn thread_cells(s: &State) -> [String; 4] {
    [
        clean(&s.state),
        s.layer.to_string(),
        time(s.seconds),
        percent(s.share),
    ]
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Evidence, Layer, Metric, Relation};

    use super::*;
    use crate::style::Style;

    #[test]
    fn bars_lie_side_by_side() {
        assert_eq!(bar(0.0, 0.5), "█".repeat(20));
        assert_eq!(
            bar(0.5, 0.25),
            format!("{}{}", " ".repeat(20), "█".repeat(10))
        );
        assert_eq!(bar(0.0, 0.001), "█", "what there is can be seen");
        assert_eq!(bar(1.0, 0.3).trim(), "");
        assert_eq!(bar(0.5, -0.2).trim(), "");
    }

    #[test]
    fn suspects_of_the_same_time_are_said_to_overlap() {
        let of = |cause: &str, share: f64, evidence: &str| Finding {
            cause: cause.into(),
            layer: Layer::Kernel,
            status: Status::Likely,
            share,
            evidence: ["first", "second", evidence]
                .map(|text| Evidence::of(Metric::Text).saying(text))
                .to_vec(),
            step: None,
            relation: None,
        };
        let told = |findings: &[Finding]| {
            suspects_grid(findings, Whose::default(), 2).render(&Style::default())
        };
        assert!(
            !told(&[
                of("syscall.entry", 0.6, ""),
                of("client.saturated", 0.4, "")
            ])
            .contains("overlap")
        );
        let both = told(&[
            of("syscall.entry", 0.6, "third"),
            of("client.saturated", 0.7, ""),
        ]);
        assert!(
            both.contains("The shares overlap")
                && both.contains("second")
                && !both.contains("third"),
            "{both}"
        );
        // What it follows from is told further down than is shown.
        let follows = Finding {
            relation: Some(Relation::FollowsFrom("app.work".into())),
            ..of("cpu.saturated", 0.6, "")
        };
        assert!(!told(&[of("app.work", 0.6, ""), follows]).contains("overlap"));
    }
}
