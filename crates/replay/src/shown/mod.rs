//! A replay as a screen: each published table with this machine's column, and the conclusions with both answers.

pub mod html;

use std::io::{self, Write};

use crate::conclusions::Answer;
use crate::{Concluded, Here, Line as Cells, Replay, Replayed};
use fingerpost_record::text::{clean, counted};
use fingerpost_record::unit::Scale;

use fingerpost_report::document::format::Screen;
use fingerpost_report::document::records::{Field, Records};
use fingerpost_report::document::{Block, Cell, Column, Document, Row, Section, Table, Text, json};
use fingerpost_report::figure::Figure;
use fingerpost_report::grid::Align;
use fingerpost_report::html::Content;
use fingerpost_report::style::Tone;

/// The title of a page that holds all of it.
pub const TITLE: &str = "The published tables, on your machine";

impl Screen for Replay {
    /// How many conclusions are true here, the tables, and each conclusion with both answers.
    fn document(&self) -> Document {
        let summary = Text::new(summary(self), Tone::Strong);
        let documents = self
            .conclusions
            .chunk_by(|a, b| a.document == b.document)
            .map(conclusions);
        Document {
            title: TITLE.into(),
            lead: vec![Block::List(vec![summary])],
            sections: self.tables.iter().map(table).chain(documents).collect(),
            end: Vec::new(),
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write(out, self)
    }

    /// Each line of each table, with this machine's figure in the table's unit.
    fn records(&self) -> Records {
        let lines = self.tables.iter();
        let lines = lines.flat_map(|t| t.lines.iter().map(move |line| (t, line)));
        let fields = |(t, line): (&Replayed, &Cells)| {
            let here = line.here.as_ref().map(|here| here.estimate);
            vec![
                Field::text(t.name),
                Field::text(clean(&line.what)),
                Field::text(t.unit),
                Field::maybe(here.map(|e| e.value)),
                Field::maybe(here.map(|e| e.low)),
                Field::maybe(here.map(|e| e.high)),
            ]
        };
        Records {
            columns: vec!["table", "line", "unit", "here", "here_low", "here_high"],
            lines: lines.map(fields).collect(),
        }
    }

    fn page(&self) -> Content {
        html::content(self)
    }
}

/// The name of this machine's column.
pub const OWN: &str = "here";

/// Words that every line of a table has, which are told once above it, and each line without them. A probe's name and
/// its parameters are taken out, what counts the rounds is not.
pub fn lines_apart(table: &Replayed) -> (String, Vec<String>) {
    let words = |what: &str| what.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = table
        .lines
        .iter()
        .map(|line| words(&clean(&line.what)))
        .collect();
    let common =
        |word: &String| word.contains(['.', '=']) && all.iter().all(|words| words.contains(word));
    let shared: Vec<String> = all
        .first()
        .filter(|_| all.len() > 1)
        .map(|first| first.iter().filter(|w| common(w)).cloned().collect())
        .unwrap_or_default();
    let own = all
        .iter()
        .map(|words| {
            words
                .iter()
                .filter(|word| !shared.contains(word))
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    (shared.join(" "), own)
}

/// What heads the column of lines: their unit.
pub fn unit_title(table: &Replayed) -> String {
    match table.unit {
        "count" => "number".into(),
        "/s" => "per second".into(),
        unit => format!("in {unit}"),
    }
}

/// A figure of this machine: the value, with a mark where the run does not trust it; and its interval, nothing where it
/// has none.
pub fn own_figure(here: Option<&Here>) -> [String; 2] {
    let Some(here) = here else {
        return ["–".to_owned(), String::new()];
    };
    // It is in the table's unit already.
    let figure = Figure {
        estimate: here.estimate,
        scale: Scale {
            divisor: 1.0,
            symbol: "",
        },
    };
    let value = if here.trusted {
        figure.value()
    } else {
        format!("{} (untrusted)", figure.value())
    };
    [value, figure.interval()]
}

/// What stands for what in each line; what is so in all of them, with the interval's meaning, is told once below the
/// table.
pub fn notes_apart(table: &Replayed) -> (String, Vec<String>) {
    let parts = |line: &Cells| -> Vec<String> {
        let note = line
            .here
            .as_ref()
            .and_then(|here| here.note.as_deref())
            .map(clean)
            .unwrap_or_default();
        note.split("; ")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let of_ours: Vec<Vec<String>> = table
        .lines
        .iter()
        .filter(|line| line.here.is_some())
        .map(parts)
        .collect();
    let everywhere =
        |part: &String| of_ours.len() > 1 && of_ours.iter().all(|parts| parts.contains(part));
    let shared: Vec<String> = of_ours
        .first()
        .into_iter()
        .flatten()
        .filter(|part| everywhere(part))
        .cloned()
        .collect();
    let own = |line: &Cells| {
        parts(line)
            .into_iter()
            .filter(|part| !shared.contains(part))
            .collect::<Vec<_>>()
            .join("; ")
    };
    (shared.join("; "), table.lines.iter().map(own).collect())
}

/// What is said below a table: where its column comes from, what its intervals are and where there is none, or what
/// would fill it.
pub fn below(table: &Replayed) -> String {
    let place = format!("{}, {}.", clean(&table.source), clean(&table.place));
    let Some(run) = &table.run else {
        return format!(
            "{place} No run has a row of it; measured by: {}",
            table.measured_by
        );
    };
    let mut said = vec![format!("{place} Here: run {}.", clean(run))];
    let (shared, _) = notes_apart(table);
    said.extend((!shared.is_empty()).then(|| format!("All of its figures: {shared}.")));
    let ours = || table.lines.iter().filter_map(|line| line.here.as_ref());
    let with = ours().find(|here| here.without_interval.is_none());
    said.extend(with.map(|here| match table.own_is_published {
        true => {
            "An interval is what the figure was rounded from, or what follows from that.".to_owned()
        }
        false => format!(
            "± and from–to are {:.0} % intervals, meant to hold the figure of another run.",
            100.0 * here.estimate.confidence
        ),
    }));
    let mut reasons: Vec<&str> = ours().filter_map(|here| here.without_interval).collect();
    reasons.sort_unstable();
    reasons.dedup();
    said.extend((!reasons.is_empty()).then(|| format!("No interval: {}.", reasons.join("; "))));
    said.extend(without(table));
    said.join(" ")
}

/// How many lines no run here has a figure of, and what would measure them; the mark that stands in them is explained.
fn without(table: &Replayed) -> Option<String> {
    let empty = table
        .lines
        .iter()
        .filter(|line| line.here.is_none())
        .count();
    let of = format!(
        "–: {empty} of {} have no figure here",
        counted(table.lines.len() as u64, "line")
    );
    (empty > 0).then(|| {
        if table.measured_by.is_empty() {
            format!("{of}.")
        } else {
            format!("{of}; measured by: {}", table.measured_by)
        }
    })
}

/// How many of the conclusions are true, false, not resolved and not measured here; kinds that none is of are left out.
pub fn summary(replay: &Replay) -> String {
    const KINDS: [(Answer, &str); 4] = [
        (Answer::True, "true"),
        (Answer::False, "false"),
        (Answer::NotResolved, "not resolved"),
        (Answer::NotMeasured, "not measured"),
    ];
    let of = |answer: Answer| {
        replay
            .conclusions
            .iter()
            .filter(|c| c.here.answer == answer)
            .count()
    };
    let all = replay.conclusions.len();
    if of(Answer::NotMeasured) == all {
        return format!(
            "None of {} could be judged on this machine.",
            counted(all as u64, "conclusion")
        );
    }
    let mut told: Vec<String> = KINDS
        .into_iter()
        .filter_map(|(answer, word)| match of(answer) {
            0 => None,
            1 => Some(format!("1 is {word}")),
            count => Some(format!("{count} are {word}")),
        })
        .collect();
    told[0] += " here";
    let last = told.pop().expect("a conclusion has some answer");
    let list = if told.is_empty() {
        last
    } else {
        format!("{} and {last}", told.join(", "))
    };
    format!("Of {} {list}.", counted(all as u64, "conclusion"))
}

/// The answer there and here as a sentence each.
pub fn answers(c: &Concluded) -> [String; 2] {
    [("In the document", &c.there), ("Here", &c.here)].map(|(side, judged)| {
        format!(
            "{side}: {}: {}",
            judged.answer.as_str(),
            clean(&judged.figure)
        )
    })
}

/// One document's conclusions, each with both answers.
fn conclusions(of: &[Concluded]) -> Section {
    let list = of.iter().map(|c| {
        let tone = match c.here.answer {
            Answer::False => Tone::Doubtful,
            Answer::True | Answer::NotResolved | Answer::NotMeasured => Tone::Plain,
        };
        Text::new(format!("{} ({})", c.says, c.place), tone).over(answers(c))
    });
    let title = format!("The authors' conclusions: {}", of[0].document.title());
    Section::new("conclusions", title).with([Block::List(list.collect())])
}

/// A published table with this machine's column; what stands for what is said of its line.
fn table(t: &Replayed) -> Section {
    let without = |line: &Cells| {
        let here = line.here.as_ref();
        here.is_some_and(|here| here.without_interval.is_none())
    };
    let interval = match t.lines.iter().any(without) {
        true if t.own_is_published => "interval",
        true => "95 % interval",
        false => "",
    };
    // What a source prints of its lines is shown where there is room for it.
    let about = Column::new(t.about.unwrap_or_default(), Align::Left, 1);
    let own = Column::figures(OWN).beside(Column::words(interval));
    let columns = [Column::words(unit_title(t)), about]
        .into_iter()
        .chain(t.systems.iter().map(Column::figures))
        .chain([own]);
    let (shared, apart) = lines_apart(t);
    let shared = (!shared.is_empty()).then(|| Block::aside(format!("All lines: {shared}")));
    let lines = t.lines.iter().zip(apart).zip(notes_apart(t).1);
    let rows = lines.map(|((line, what), note)| {
        let note = Some(note).filter(|note| !note.is_empty());
        Row::new(cells(line, what), Tone::Plain)
            .noted(note.map(|note| Text::new(note, Tone::Faint)))
    });
    Section::new(t.name, format!("{} [{}]", t.title, t.name))
        .with(shared)
        .with([
            Block::Table(Table::new(columns).with(rows)),
            Block::aside(below(t)),
        ])
}

/// One line's cells: what it is, what the source prints of it besides, its figures as printed, and here.
fn cells(line: &Cells, what: String) -> Vec<Cell> {
    let printed = line.printed.iter();
    let printed = printed.map(|p| Cell::new(p.as_deref().unwrap_or("–")));
    let [value, interval] = own_figure(line.here.as_ref());
    [what, line.about.clone().unwrap_or_default()]
        .map(Cell::from)
        .into_iter()
        .chain(printed)
        .chain([Cell::new(value).beside(interval)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay, tables_of};
    use fingerpost_compare::references;
    use fingerpost_record::{Estimate, Process, Profile, Run};
    use fingerpost_report::document::{markdown as in_markdown, terminal};
    use fingerpost_report::style::Style;
    use unicode_width::UnicodeWidthStr;

    fn render(replay: &Replay, style: &Style) -> String {
        terminal::document(&replay.document(), style)
    }

    fn markdown(replay: &Replay) -> String {
        in_markdown::document(&replay.document())
    }

    #[test]
    fn the_articles_table_has_a_column_of_ones_own() {
        let run = references::load("opteron-850-linux").unwrap();
        let found = replay("mysql", &tables_of("mysql"), std::slice::from_ref(&run));
        let text = render(&found, &Style::default());
        let line = text.lines().find(|l| l.contains("clients=10 ")).unwrap();
        // Darwin, the G5 under Linux, the Opteron, and the run: itself, with what it was rounded from.
        assert_eq!(
            line.split_whitespace().skip(1).collect::<Vec<_>>(),
            ["62", "443", "629", "629.0", "±", "0.5"],
            "{line}"
        );
        assert!(
            text.contains("An interval is what the figure was rounded from"),
            "{text}"
        );
        assert!(
            text.contains(
                "Here: true: 50 clients get 231 % of one client's: it saturates at 10 clients"
            ),
            "{text}"
        );
        assert!(
            markdown(&found).contains("| ---: |")
                && markdown(&found).starts_with("# The published tables, on your machine")
        );
    }

    /// The Opteron's figures as a run of five starts of a server of today, which stands for the published one.
    fn own() -> Run {
        let mut run = references::load("opteron-850-linux").unwrap();
        (run.id, run.profile) = ("20260101T000000Z-00000001".into(), Profile::Standard);
        for m in run
            .measurements
            .iter_mut()
            .filter(|m| m.probe == "database.throughput")
        {
            let value = m.estimate.unwrap().value;
            let half = 0.031 * value;
            m.estimate = Some(Estimate {
                value,
                low: value - half,
                high: value + half,
                confidence: 0.95,
            });
            m.processes = [0.98, 0.99, 1.0, 1.01, 1.02]
                .map(|share| Process::of_one(share * value, 1))
                .to_vec();
            m.params = m.params.clone().with("engine", "mariadb").with("scale", 2);
        }
        run
    }

    #[test]
    fn ones_own_figures_have_their_intervals_in_every_format() {
        let run = own();
        let found = replay("mysql", &["mysql-scaling"], std::slice::from_ref(&run));
        let text = render(&found, &Style::default());
        let line = |words: &str| {
            text.lines()
                .find(|l| l.starts_with(words))
                .unwrap_or_else(|| panic!("{words}: {text}"))
                .to_owned()
        };
        assert!(
            line("clients=10 ").ends_with("629  629.0  ± 19.5"),
            "{}",
            line("clients=10 ")
        );
        let percent = own_figure(found.tables[0].lines[10].here.as_ref());
        let scaled = line("scaling in %, clients=10 ");
        assert!(
            percent[1].starts_with("± ")
                && scaled.ends_with(&format!("{}  {}", percent[0], percent[1])),
            "{scaled}"
        );
        assert!(
            line("scaling in %, clients=1 ").ends_with("100.0"),
            "what is 100 % by definition has none"
        );
        assert!(
            line("per second").ends_with("here  95 % interval"),
            "{}",
            line("per second")
        );
        // Once below the table, not in each line.
        for said in [
            "No interval: 100 % by definition.",
            "All of its figures: engine mariadb stands for mysql; scale=2.",
            "are 95 % intervals",
        ] {
            assert_eq!(text.matches(said).count(), 1, "{said}: {text}");
        }
        assert!(
            markdown(&found).contains("| 629 | 629.0 | ± 19.5 |"),
            "{}",
            markdown(&found)
        );
        let page = fingerpost_report::html::page(&html::content(&found));
        assert!(page.contains(
            "<strong>629.0</strong><br><span class=\"params piece-of-text\">± 19.5</span>"
        ));
        assert!(
            !page.contains("what stands for what"),
            "a column for what is told once would only be narrow"
        );
    }

    #[test]
    fn every_table_fits_a_terminal_of_80_columns_with_its_intervals_whole() {
        let run = own();
        for table in references::table_names() {
            for system in references::table(table)
                .unwrap()
                .systems()
                .into_iter()
                .chain(["own"])
            {
                let own = if system == "own" {
                    run.clone()
                } else {
                    references::load(system).unwrap()
                };
                let found = replay(table, &[table], std::slice::from_ref(&own));
                let text = render(
                    &found,
                    &Style {
                        width: Some(80),
                        ..Style::default()
                    },
                );
                let long = text.lines().find(|l| l.width() > 80);
                assert_eq!(long, None, "{table} of {system}");
                for line in &found.tables[0].lines {
                    let [_, interval] = own_figure(line.here.as_ref());
                    assert!(
                        text.contains(&interval),
                        "{table} of {system}: {interval} of {}:\n{text}",
                        line.what
                    );
                }
            }
        }
    }

    #[test]
    fn the_mix_of_operations_stands_beside_the_modules_where_there_is_room() {
        let found = replay("flops", &["flops"], &[]);
        let wide = render(&found, &Style::default());
        let line = wide.lines().find(|l| l.starts_with("module=2 ")).unwrap();
        assert!(
            line.split_whitespace()
                .take(6)
                .eq(["module=2", "43,", "29,", "14,", "14", "607"]),
            "{line}"
        );
        assert!(
            wide.contains("instruction mix in %")
                && markdown(&found).contains("| module=2 | 43, 29, 14, 14 | 607 |")
        );
        let narrow = render(
            &found,
            &Style {
                width: Some(80),
                ..Style::default()
            },
        );
        assert!(
            narrow.lines().any(|l| l.starts_with("module=2 "))
                && !narrow.contains("instruction mix"),
            "{narrow}"
        );
        let page = fingerpost_report::html::page(&html::content(&found));
        assert!(
            page.contains(
                "<td class=\"number wide\" data-of=\"instruction mix in %\">43, 29, 14, 14</td>"
            ),
            "{page}"
        );
        let other = fingerpost_report::html::page(&html::content(&replay("site", &["site"], &[])));
        assert!(!other.contains("FADD"));
    }

    #[test]
    fn without_a_run_the_reader_is_told_what_measures_it() {
        let found = replay("all", &tables_of("all"), &[]);
        let text = render(&found, &Style::default());
        assert!(
            text.contains("fingerpost run process.fork process.exec_dynamic")
                && text.contains("None of 105 conclusions could be judged on this machine."),
            "{text}"
        );
    }

    #[test]
    fn kinds_of_answers_that_none_has_are_left_out() {
        let of = |answers: &[Answer]| {
            let mut found = replay("all", &tables_of("all"), &[]);
            found.conclusions.truncate(answers.len());
            found
                .conclusions
                .iter_mut()
                .zip(answers)
                .for_each(|(c, answer)| c.here.answer = *answer);
            summary(&found)
        };
        use Answer::{False, NotMeasured, NotResolved, True};
        assert_eq!(
            of(&[True, True, NotMeasured]),
            "Of 3 conclusions 2 are true here and 1 is not measured."
        );
        assert_eq!(
            of(&[False, True, NotResolved, NotMeasured]),
            "Of 4 conclusions 1 is true here, 1 is false, 1 is not resolved and 1 is not measured."
        );
        assert_eq!(of(&[False, False]), "Of 2 conclusions 2 are false here.");
        assert_eq!(
            of(&[NotMeasured]),
            "None of 1 conclusion could be judged on this machine."
        );
    }

    #[test]
    fn a_line_without_a_figure_says_why_it_is_empty() {
        let mut run = own();
        let whole = replay("mysql", &["mysql-scaling"], std::slice::from_ref(&run));
        assert!(
            !render(&whole, &Style::default()).contains("have no figure here"),
            "every line has one"
        );
        run.measurements
            .retain(|m| m.probe != "database.throughput" || m.params.int("clients") != Some(35));
        let found = replay("mysql", &["mysql-scaling"], std::slice::from_ref(&run));
        // The throughput, and what scales with it.
        let told = "–: 2 of 14 lines have no figure here; measured by: fingerpost run database";
        assert!(
            render(&found, &Style::default()).contains(told),
            "{}",
            render(&found, &Style::default())
        );
        let page = fingerpost_report::html::page(&html::content(&found));
        let [before, command] = [
            &told[..told.len() - 23],
            r#"<code><span class="word">fingerpost</span> <span class="word">run</span> "#,
        ];
        assert!(page.contains(&format!("{before}{command}")), "{page}");
    }

    /// On a phone the head of the table is not shown beside its cells, so that each says itself whose figure it is.
    #[test]
    fn every_figure_of_the_page_names_its_system() {
        let run = own();
        for table in references::table_names() {
            let found = replay(table, &[table], std::slice::from_ref(&run));
            let page = fingerpost_report::html::page(&html::content(&found));
            let t = &found.tables[0];
            for name in t.systems.iter().map(String::as_str).chain([OWN]) {
                let cells = page
                    .matches(&format!("<td class=\"number\" data-of=\"{name}\">"))
                    .count();
                assert_eq!(cells, t.lines.len(), "{table}: {name}");
            }
        }
    }

    #[test]
    fn what_could_not_be_judged_stands_behind_the_tables() {
        let [judged, open] = ["mysql-scaling", "flops"].map(|table| {
            let found = replay(table, &[table], &[own()]);
            let content = html::content(&found);
            content
                .sections
                .iter()
                .map(|s| s.key.clone())
                .collect::<Vec<_>>()
        });
        assert_eq!(
            (&*judged[0], &*judged[1]),
            ("conclusions-1", "mysql-scaling")
        );
        assert_eq!((&*open[0], &*open[1]), ("flops", "conclusions-1"));
    }

    #[test]
    fn hostile_runs_stay_text() {
        let mut run = references::load("opteron-850-linux").unwrap();
        run.id = "a\u{1b}[2J|<script>".into();
        let found = replay("mysql", &tables_of("mysql"), &[run]);
        assert!(
            !render(&found, &Style::default()).contains('\u{1b}')
                && !markdown(&found).contains("<script>")
        );
        assert!(!fingerpost_report::html::page(&html::content(&found)).contains("<script>"));
    }
}
