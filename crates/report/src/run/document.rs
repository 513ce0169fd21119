//! A run as a document: what was found, what speaks against it, the laboratories' sections, the rows, and how it was
//! measured.

use fingerpost_record::unit::significant;
use fingerpost_record::{Outcome, Run};

use crate::document::{Block, Cell, Column, Document, Fact, Group, Row, Section, Table, Text};
use crate::explain;
use crate::grid::Align;
use crate::style::Tone;
use crate::view::{self, Shared, View, outcome_name, parts_of_doubt};
use crate::watched::Watched;

/// The columns behind the value; what is ranked is left out on a narrow terminal, counters and lmbench's names first,
/// the tail last. A column without any text is left out too.
const COLUMNS: [(&str, Align, u8); 9] = [
    ("interval", Align::Left, 0),
    ("p50", Align::Right, 2),
    ("p90", Align::Right, 3),
    ("p99", Align::Right, 1),
    ("lmbench", Align::Left, 4),
    ("instr user", Align::Right, 5),
    ("kernel", Align::Right, 5),
    ("cycles user", Align::Right, 5),
    ("kernel", Align::Right, 5),
];

/// The whole run.
pub fn of(run: &Run, mut view: View) -> Document {
    let reasons = view.shared_reasons();
    let answers = view.answers.iter();
    let answers = answers
        .map(|answer| Text::new(answer, Tone::Strong))
        .collect();
    let mut sections = found(&mut view, true);
    sections.extend(explained(run));
    sections.extend(found(&mut view, false));
    sections.push(Section::new("rows", "").with([Block::Table(rows(&view, &reasons))]));
    sections.extend(view.watched.iter().map(watched));
    Document {
        title: view.title(),
        lead: vec![Block::List(answers), Block::Facts(lead(&view, &reasons))],
        sections,
        end: end(&view),
    }
}

/// What the laboratories' analyses show, before what explains the time of requests or behind it.
fn found(view: &mut View, before: bool) -> Vec<Section> {
    let found = view.found.iter_mut();
    let of = found.filter(|(of, _)| of.before_requests == before);
    of.flat_map(|(_, shown)| std::mem::take(&mut shown.sections))
        .collect()
}

/// The steps that speak for the run's servers, explained; nothing where none was watched.
fn explained(run: &Run) -> Vec<Section> {
    let found = explain::speaking(explain::of_run(run));
    let mut sections = explain::document::sections(&found);
    if !sections.is_empty() {
        let more = format!("Every step and every figure: fingerpost explain {}", run.id);
        sections.push(Section::new("more", "").with([Block::sentence(more)]));
    }
    sections
}

/// Which run it is, and what speaks against its figures. A doubt is one line here: what to do about it is `doctor`'s
/// and the report's to say.
fn lead(view: &View, reasons: &[Shared]) -> Vec<Fact> {
    let id = view.id_beside_title();
    let mut all: Vec<Fact> = id
        .map(|id| Fact::new("Run", id, Tone::Plain))
        .into_iter()
        .collect();
    all.extend(view.lead_facts().map(fact));
    let own = view.doubts.iter().map(|d| parts_of_doubt(d).0.to_owned());
    let shared = reasons.iter().enumerate();
    let shared = shared.map(|(n, s)| format!("{} {}", mark(n), s.sentence()));
    let doubts = own.chain(shared);
    all.extend(doubts.map(|doubt| Fact::new("Doubt", doubt, Tone::Doubtful)));
    all
}

fn fact(fact: &view::Fact) -> Fact {
    Fact::new(fact.name, &fact.text, Tone::Plain)
}

/// What there is of each outcome, what it was measured on and with, and how it is measured again.
fn end(view: &View) -> Vec<Block> {
    let mut facts = vec![Fact::new("Rows", summary(view), Tone::Plain)];
    facts.extend(view.other_facts().map(fact));
    let command = view.command.iter().cloned().map(Block::Command);
    [Block::Facts(facts)].into_iter().chain(command).collect()
}

/// How many rows there are of each outcome.
pub fn summary(view: &View) -> String {
    if view.published() {
        // A row of a repeated measurement has a figure for each repetition; of imported results the samples are no
        // figures that were published.
        let printed = fingerpost_compare::references::names().contains(&view.id);
        let figures = |row: &view::Row| if printed { row.counts[1].max(1) } else { 1 };
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

/// A block that the source's author watched.
fn watched(watched: &Watched) -> Section {
    let fact = |(name, figure): &(String, String)| Fact::new(name, figure, Tone::Plain);
    Section::new("watched", &watched.title)
        .with([Block::Facts(watched.rows.iter().map(fact).collect())])
}

/// The rows, in groups. What several of them share as a reason is a mark, which the doubts explain.
fn rows(view: &View, reasons: &[Shared]) -> Table {
    let columns = COLUMNS.into_iter().map(|(title, align, rank)| {
        let title = match title {
            "interval" => interval_title(view),
            title => title,
        };
        Column::new(title, align, rank)
    });
    let value = Column::figures("value").beside(Column::words("unit"));
    let first = [Column::words("probe"), Column::words("parameters"), value];
    Table::new(first.into_iter().chain(columns))
        .grouped(view.groups.iter().map(|g| group(g, reasons)))
}

/// The interval's title names the confidence of the run's rows; where they differ, none.
fn interval_title(view: &View) -> &'static str {
    let rows = view.groups.iter().flat_map(|g| &g.rows);
    let mut confidences = rows.filter_map(|r| Some(r.figure?.estimate.confidence));
    let first = confidences.next().unwrap_or(0.95);
    let usual = first == 0.95 && confidences.all(|c| c == first) && !view.published();
    if usual { "95 % interval" } else { "interval" }
}

/// The mark of a reason that several rows share.
fn mark(n: usize) -> String {
    format!("[{}]", n + 1)
}

fn group(group: &view::Group, reasons: &[Shared]) -> Group {
    let shared = group.shared_params();
    let skipped = group.skipped();
    let skipped = skipped
        .iter()
        .map(|s| format!("skipped: {} ({})", s.names.join(", "), s.reason));
    Group {
        title: group.table.title.to_string(),
        rows: group.shown().map(|r| row(r, &shared, reasons)).collect(),
        shared,
        notes: skipped.map(|words| Text::new(words, Tone::Faint)).collect(),
    }
}

fn row(row: &view::Row, shared: &[String], reasons: &[Shared]) -> Row {
    let told = reasons.iter().position(|reason| reason.has(row));
    let marked = told.map_or(String::new(), |n| format!(" {}", mark(n)));
    let tone = tone(row.outcome);
    let own = row.reason.as_ref().filter(|_| told.is_none());
    let note = own.map(|reason| format!("{}: {reason}", outcome_name(row.outcome)));
    let start = [
        Cell::new(format!("{}{marked}", row.probe)),
        Cell::new(row.params_without(shared)),
    ];
    let figures = match &row.figure {
        Some(f) => {
            let value = Cell::new(f.value()).beside(f.symbol());
            let others = [f.interval()].into_iter().chain(row.percentile_words(f));
            [value].into_iter().chain(others.map(Cell::from)).collect()
        }
        None => vec![Cell::new("–"), "".into(), "".into(), "".into(), "".into()],
    };
    let lmbench = Cell::new(row.lmbench.clone().unwrap_or_default());
    let counters = row
        .counters
        .map(|of| of.map(significant).unwrap_or_default());
    let cells = start
        .into_iter()
        .chain(figures)
        .chain([lmbench])
        .chain(counters.map(Cell::from));
    Row::new(cells, tone).noted(note.map(|words| Text::new(words, tone)))
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Measured => Tone::Plain,
        Outcome::Untrusted => Tone::Doubtful,
        Outcome::Skipped => Tone::Faint,
        Outcome::Failed => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture;

    use super::*;
    use crate::document::markdown;

    /// Rows of one probe, of which the clients differ and the engine does not.
    fn rows(count: i64, reason: Option<&str>) -> Run {
        let mut run = fixture::run();
        let row = run
            .measurements
            .iter()
            .find(|m| m.estimate.is_some())
            .expect("a row with a figure")
            .clone();
        run.measurements = (1..=count)
            .map(|clients| {
                let mut row = row.clone();
                row.params = fingerpost_record::Params::new()
                    .with("clients", clients)
                    .with("engine", "redis");
                if let Some(reason) = reason {
                    (row.outcome, row.reason) = (Outcome::Untrusted, Some(reason.to_owned()));
                }
                row
            })
            .collect();
        run
    }

    fn shown(run: &Run) -> String {
        markdown::document(&of(run, View::of(run, &[])))
    }

    #[test]
    fn what_all_rows_share_is_told_once() {
        let text = shown(&rows(3, Some("only 2 processes")));
        assert_eq!(
            text.matches("engine=redis").count(),
            1 + text.matches("--set engine=redis").count(),
            "{text}"
        );
        assert!(
            text.contains("\nAll rows: engine=redis\n") && text.contains(" | clients=2 | "),
            "{text}"
        );
        assert_eq!(text.matches("only 2 processes").count(), 1, "{text}");
        assert!(
            text.contains("- **Doubt**: \\[1\\] 3 rows are untrusted: only 2 processes")
                && text.contains(" \\[1\\] | clients=1 | "),
            "{text}"
        );
    }

    #[test]
    fn one_row_keeps_its_parameters_and_its_reason() {
        let text = shown(&rows(1, Some("only 2 processes")));
        assert!(
            text.contains("| clients=1 engine=redis |")
                && text.contains("| untrusted: only 2 processes |"),
            "{text}"
        );
    }
}
