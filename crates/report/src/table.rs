//! The table on a terminal.

use fingerpost_record::Outcome;
use fingerpost_record::unit::significant;

use crate::grid::{Align, Column, Grid, Line};
use crate::style::{Style, Tone};
use crate::view::{Fact, Group, Row, Shared, View, outcome_name, parts_of_doubt};

/// The columns; what is ranked is left out on a narrow terminal, counters and lmbench's names first, the tail last.
/// A column without any text is left out too.
const COLUMNS: [(&str, Align, u8); 13] = [
    ("probe", Align::Left, 0),
    ("parameters", Align::Left, 0),
    ("value", Align::Right, 0),
    ("unit", Align::Left, 0),
    ("95 % interval", Align::Left, 0),
    ("p50", Align::Right, 2),
    ("p90", Align::Right, 3),
    ("p99", Align::Right, 1),
    ("lmbench", Align::Left, 4),
    ("instr user", Align::Right, 5),
    ("kernel", Align::Right, 5),
    ("cycles user", Align::Right, 5),
    ("kernel", Align::Right, 5),
];

/// The whole run for a terminal: what was found, what speaks against it, the laboratories' pictures (each after an
/// empty line), the rows, and how it was measured.
pub fn render(view: &View, pictures: &str, style: &Style) -> String {
    let reasons = view.shared_reasons();
    [
        lead(view, &reasons).render(style),
        pictures.to_owned(),
        rows(view, &reasons).render(style),
    ]
    .concat()
}

/// What a person reads first. A doubt is one line here: what to do about it is `doctor`'s and the report's to say.
fn lead(view: &View, reasons: &[Shared]) -> Grid {
    let mut grid = Grid {
        lines: vec![Line::Heading(view.title())],
        ..Grid::default()
    };
    grid.lines.extend(
        view.answers
            .iter()
            .map(|answer| Line::Note(answer.clone(), Tone::Strong)),
    );
    grid.lines.extend(
        view.id_beside_title()
            .map(|id| Line::Labelled("Run".into(), id.to_owned(), Tone::Plain)),
    );
    grid.lines.extend(facts(view.lead_facts()));
    grid.lines.extend(view.doubts.iter().map(|d| {
        Line::Labelled(
            "Doubt".into(),
            parts_of_doubt(d).0.to_owned(),
            Tone::Doubtful,
        )
    }));
    let shared = reasons.iter().enumerate();
    let told = shared.map(|(n, s)| {
        Line::Labelled(
            "Doubt".into(),
            format!("{} {}", mark(n), s.sentence()),
            Tone::Doubtful,
        )
    });
    grid.lines.extend(told);
    grid
}

fn rows(view: &View, reasons: &[Shared]) -> Grid {
    let mut grid = Grid {
        columns: columns(view),
        lines: vec![Line::Blank],
    };
    grid.lines.push(grid.titles());
    for group in &view.groups {
        let shared = group.shared_params();
        grid.lines.push(Line::Heading(group.titled(&shared)));
        grid.lines.extend(group_lines(group, &shared, reasons));
    }
    grid.lines
        .extend(view.watched.iter().flat_map(watched_lines));
    grid.lines.extend([
        Line::Blank,
        Line::Labelled("Rows".into(), summary(view), Tone::Plain),
    ]);
    grid.lines.extend(facts(view.other_facts()));
    grid
}

fn facts<'a>(facts: impl Iterator<Item = &'a Fact>) -> impl Iterator<Item = Line> {
    facts.map(|f| Line::Labelled(f.name.into(), f.text.clone(), Tone::Plain))
}

/// How many rows there are of each outcome.
pub fn summary(view: &View) -> String {
    if view.published() {
        // A row of a repeated measurement has a figure for each repetition; of imported results the samples are no
        // figures that were published.
        let printed = fingerpost_compare::references::names().contains(&view.id);
        let figures = |row: &Row| if printed { row.counts[1].max(1) } else { 1 };
        let rows = view
            .groups
            .iter()
            .flat_map(|g| &g.rows)
            .filter(|row| row.outcome == Outcome::Measured);
        let figures: usize = rows.map(figures).sum();
        return fingerpost_record::text::counted(figures as u64, "published figure");
    }
    let outcomes = [
        Outcome::Measured,
        Outcome::Untrusted,
        Outcome::Skipped,
        Outcome::Failed,
    ];
    let parts: Vec<String> = outcomes
        .iter()
        .map(|o| (view.count(*o), outcome_name(*o)))
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{n} {name}"))
        .collect();
    if parts.is_empty() {
        "none".into()
    } else {
        parts.join(", ")
    }
}

/// The interval's title names the confidence of the run's rows; where they differ, none.
fn columns(view: &View) -> Vec<Column> {
    let mut confidences = view
        .groups
        .iter()
        .flat_map(|g| &g.rows)
        .filter_map(|r| r.figure)
        .map(|f| f.estimate.confidence);
    let first = confidences.next().unwrap_or(0.95);
    let usual = first == 0.95 && confidences.all(|c| c == first) && !view.published();
    COLUMNS
        .into_iter()
        .map(|(title, align, rank)| Column {
            title: if title == "95 % interval" && !usual {
                "interval"
            } else {
                title
            },
            align,
            rank,
        })
        .collect()
}

/// A block that the source's author watched.
fn watched_lines(watched: &crate::watched::Watched) -> Vec<Line> {
    let text =
        |(name, figure): &(String, String)| Line::Note(format!("{name}: {figure}"), Tone::Plain);
    std::iter::once(Line::Heading(watched.title.clone()))
        .chain(watched.rows.iter().map(text))
        .collect()
}

/// The mark of a reason that several rows share.
fn mark(n: usize) -> String {
    format!("[{}]", n + 1)
}

fn group_lines(group: &Group, shared: &[String], reasons: &[Shared]) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in group.shown() {
        let told = reasons.iter().position(|reason| reason.has(row));
        lines.push(Line::Cells(cells(row, shared, told), tone(row.outcome)));
        if let (Some(reason), None) = (&row.reason, told) {
            lines.push(Line::Note(
                format!("{}: {reason}", outcome_name(row.outcome)),
                tone(row.outcome),
            ));
        }
    }
    for skipped in group.skipped() {
        lines.push(Line::Note(
            format!("skipped: {} ({})", skipped.names.join(", "), skipped.reason),
            Tone::Faint,
        ));
    }
    lines
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Measured => Tone::Plain,
        Outcome::Untrusted => Tone::Doubtful,
        Outcome::Skipped => Tone::Faint,
        Outcome::Failed => Tone::Bad,
    }
}

fn cells(row: &Row, shared: &[String], told: Option<usize>) -> Vec<String> {
    let marked = told.map_or(String::new(), |n| format!(" {}", mark(n)));
    let start = [
        format!("  {}{marked}", row.probe),
        row.params_without(shared),
    ];
    let figures = match &row.figure {
        Some(f) => {
            let [p50, p90, p99] = row.percentile_words(f);
            [f.value(), f.symbol().into(), f.interval(), p50, p90, p99]
        }
        None => [
            "–".into(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ],
    };
    start
        .into_iter()
        .chain(figures)
        .chain([row.lmbench.clone().unwrap_or_default()])
        .chain(
            row.counters
                .map(|of| of.map(significant).unwrap_or_default()),
        )
        .collect()
}
