//! A replay in the terminal and in Markdown: each published table with this machine's column, and the conclusions with both answers.

use fingerpost_compare::conclusions::Answer;
use fingerpost_compare::replay::{Concluded, Here, Line as Cells, Replay, Replayed};
use fingerpost_record::text::{clean, counted};

use crate::grid::{Align, Column, Grid, Line};
use crate::style::{Style, Tone};

/// The title of a page that holds all of it.
pub const TITLE: &str = "The mysteries, on your machine";

/// For the terminal; ends with a line end.
pub fn render(replay: &Replay, style: &Style) -> String {
    grids(replay).iter().map(|grid| grid.render(style)).collect()
}

/// In Markdown.
pub fn markdown(replay: &Replay) -> String {
    format!("# {TITLE}\n{}", grids(replay).iter().map(Grid::markdown).collect::<String>())
}

/// The name of this machine's column.
pub const OWN: &str = "here";

/// Words that every line of a table has, which are told once above it, and each line without them. A probe's name and its parameters are
/// taken out, what counts the rounds is not.
pub fn lines_apart(table: &Replayed) -> (String, Vec<String>) {
    let words = |what: &str| what.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = table.lines.iter().map(|line| words(&clean(&line.what))).collect();
    let common = |word: &String| word.contains(['.', '=']) && all.iter().all(|words| words.contains(word));
    let shared: Vec<String> =
        all.first().filter(|_| all.len() > 1).map(|first| first.iter().filter(|w| common(w)).cloned().collect()).unwrap_or_default();
    let own = all.iter().map(|words| words.iter().filter(|word| !shared.contains(word)).cloned().collect::<Vec<_>>().join(" ")).collect();
    (shared.join(" "), own)
}

/// What heads the column of lines: their unit.
pub fn unit_title(table: &Replayed) -> String {
    if table.unit == "count" { "number".into() } else { format!("in {}", table.unit) }
}

/// A figure of this machine: the value, with a mark where the run does not trust it.
pub fn own_figure(here: Option<&Here>) -> String {
    here.map_or("–".into(), |h| if h.trusted { h.text() } else { format!("{} (untrusted)", h.text()) })
}

/// What is said below a table: where its column comes from, or what would fill it.
pub fn below(table: &Replayed) -> String {
    let place = format!("{}, {}.", clean(&table.source), clean(&table.place));
    match &table.run {
        Some(run) => format!("{place} Here: run {}.", clean(run)),
        None => format!("{place} No run has a row of it; measured by: {}", table.measured_by),
    }
}

/// How many of the conclusions are true, false, not resolved and not measured here.
pub fn summary(replay: &Replay) -> String {
    let are = |answer: Answer| match replay.conclusions.iter().filter(|c| c.here.answer == answer).count() {
        1 => "1 is".to_owned(),
        count => format!("{count} are"),
    };
    format!(
        "Of {} {} true here, {} false, {} not resolved, and {} not measured.",
        counted(replay.conclusions.len() as u64, "conclusion"),
        are(Answer::True),
        are(Answer::False),
        are(Answer::NotResolved),
        are(Answer::NotMeasured)
    )
}

/// The answer there and here as a sentence each.
pub fn answers(c: &Concluded) -> [String; 2] {
    [("In the document", &c.there), ("Here", &c.here)]
        .map(|(side, judged)| format!("{side}: {}: {}", judged.answer.as_str(), clean(&judged.figure)))
}

fn grids(replay: &Replay) -> Vec<Grid> {
    let mut list = vec![Grid { columns: columns(0), lines: vec![Line::Note(summary(replay), Tone::Strong)] }];
    list.extend(replay.tables.iter().map(table));
    let mut end = Grid { columns: columns(0), lines: vec![Line::Blank, Line::Heading("The authors' conclusions".into())] };
    let mut document = None;
    for c in &replay.conclusions {
        if document != Some(c.document) {
            end.lines.extend([Line::Blank, Line::Heading(c.document.title().into())]);
            document = Some(c.document);
        }
        end.lines.push(Line::Note(format!("{} ({})", c.says, c.place), Tone::Strong));
        let [there, here] = answers(c);
        let tone = if c.here.answer == Answer::False { Tone::Doubtful } else { Tone::Plain };
        end.lines.extend([Line::Note(there, Tone::Faint), Line::Note(here, tone)]);
    }
    list.push(end);
    list
}

fn columns(systems: usize) -> Vec<Column> {
    let column = |align| Column { title: "", align, rank: 0 };
    let mut list = vec![column(Align::Left)];
    list.extend((0..=systems).map(|_| column(Align::Right)));
    list.push(column(Align::Left));
    list
}

fn table(t: &Replayed) -> Grid {
    let mut grid =
        Grid { columns: columns(t.systems.len()), lines: vec![Line::Blank, Line::Heading(format!("{} [{}]", clean(&t.title), t.name))] };
    let head = std::iter::once(unit_title(t)).chain(t.systems.iter().cloned()).chain([OWN.into(), String::new()]);
    grid.lines.push(Line::Cells(head.collect(), Tone::Faint));
    let (shared, own) = lines_apart(t);
    if !shared.is_empty() {
        grid.lines.insert(2, Line::Note(format!("All lines: {shared}"), Tone::Faint));
    }
    grid.lines.extend(t.lines.iter().zip(own).map(|(line, what)| Line::Cells(cells(line, what), Tone::Plain)));
    grid.lines.push(Line::Note(below(t), Tone::Faint));
    grid
}

/// One line's cells: what it is, as printed, here, and what stands for what.
fn cells(line: &Cells, what: String) -> Vec<String> {
    let printed = line.printed.iter().map(|p| p.clone().unwrap_or_else(|| "–".into()));
    let note = line.here.as_ref().and_then(|h| h.note.as_deref()).map(|n| clean(n).into_owned()).unwrap_or_default();
    std::iter::once(what).chain(printed).chain([own_figure(line.here.as_ref()), note]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::{references, replay};

    #[test]
    fn the_articles_table_has_a_column_of_ones_own() {
        let run = references::load("opteron-850-linux").unwrap();
        let found = replay::replay("mysql", &replay::tables_of("mysql"), std::slice::from_ref(&run));
        let text = render(&found, &Style::default());
        let line = text.lines().find(|l| l.contains("clients=10 ")).unwrap();
        // Darwin, the G5 under Linux, the Opteron, and the run: itself.
        assert_eq!(
            line.split_whitespace().filter(|w| w.parse::<f64>().is_ok()).collect::<Vec<_>>(),
            ["62", "443", "629", "629.0"],
            "{line}"
        );
        assert!(text.contains("Here: true: 50 clients get 231 % of one client's: it saturates at 10 clients"), "{text}");
        assert!(markdown(&found).contains("| ---: |") && markdown(&found).starts_with("# The mysteries, on your machine"));
    }

    #[test]
    fn without_a_run_the_reader_is_told_what_measures_it() {
        let found = replay::replay("all", &replay::tables_of("all"), &[]);
        let text = render(&found, &Style::default());
        assert!(
            text.contains("fingerpost run process.fork process.exec_dynamic") && text.contains("Of 105 conclusions 0 are true here"),
            "{text}"
        );
    }

    #[test]
    fn hostile_runs_stay_text() {
        let mut run = references::load("opteron-850-linux").unwrap();
        run.id = "a\u{1b}[2J|<script>".into();
        let found = replay::replay("mysql", &replay::tables_of("mysql"), &[run]);
        assert!(!render(&found, &Style::default()).contains('\u{1b}') && !markdown(&found).contains("<script>"));
        assert!(!crate::html::page(&crate::html::of_replay(&found)).contains("<script>"));
    }
}
