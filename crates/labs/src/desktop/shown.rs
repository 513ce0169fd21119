//! What is shown of how promptly a machine answers beside its loaded server, whichever lab loads it.

use crate::desktop::analysis::{Desktop, Task, Turns, analyse};
use fingerpost_record::text::counted;
use fingerpost_record::unit::significant;
use fingerpost_record::{Run, Unit};

use fingerpost_report::document::{Block, Cell, Column, Row, Section, Table, Text};
use fingerpost_report::grid::Align;
use fingerpost_report::lab::derived::{COUNT, Derived, NS, Of, RATIO, table_of, told};
use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::style::Tone;

/// The analysis: of every server that a desktop's tasks were measured beside, whichever lab loads it.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 1,
    of,
};

const MEANING: &str = "Time from when a turn was due until it was done; missed turns were not done when the next one was due.";

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let found = analyse(run);
    (!found.is_empty()).then(|| Shown::of([section(run, &found)]))
}

fn section(run: &Run, found: &[Desktop]) -> Section {
    let of_one = |desktop: &Desktop| [table(run, desktop), sentence(run, desktop)];
    Section::new("desktop", "A desktop's tasks beside a loaded server")
        .with(found.iter().flat_map(of_one))
        .with([Block::aside(MEANING)])
}

/// Two lines a task: the idle server's and the loaded one's, with the longest turn and the missed ones as figures. They
/// stand in the table of the rows.
fn table(run: &Run, desktop: &Desktop) -> Block {
    let of_rows = table_of(run, &desktop.probe);
    let row = |task: &Task, load: &'static str, turns: &Turns| {
        let figure = |what: &str, unit, value| {
            let params = told(&desktop.params, [("load", &load), ("task", &task.name)]);
            Of(&of_rows).exact(format!("{}_{what}", desktop.probe), params, unit, value)
        };
        let (name, server) = match load {
            "idle" => (task.name.as_str(), "idle"),
            _ => ("", "loaded"),
        };
        let time = |ns: f64| Cell::new(Unit::Nanoseconds.format(ns));
        let missed = Cell::new(format!("{:.0} of {}", turns.missed, turns.all));
        let cells = [
            Cell::new(name),
            Cell::new(server),
            time(turns.p50),
            time(turns.p99),
            time(turns.worst).with([figure("worst", NS, turns.worst)]),
            missed.with([figure("missed", COUNT, turns.missed)]),
        ];
        let tone = if turns.doubtful {
            Tone::Doubtful
        } else {
            Tone::Plain
        };
        Row::new(cells, tone)
    };
    let columns = ["p50", "p99", "worst"].map(Column::figures);
    let columns = ["task", "server"]
        .map(Column::words)
        .into_iter()
        .chain(columns)
        .chain([Column::new("missed", Align::Right, 1)]);
    let rows = desktop.tasks.iter().flat_map(|task| {
        let sides = [("idle", &task.idle), ("most", &task.loaded)];
        sides.map(|(load, turns)| row(task, load, turns))
    });
    Block::Table(
        Table::new(columns)
            .caption(desktop.params.to_string())
            .with(rows),
    )
}

/// What is for certain, in one sentence: which tasks take longer beside the load, and how many times; nothing where no
/// task can say. Its figures are how many times as long the middle turn takes, in its least and its most by the rows'
/// intervals.
fn sentence(run: &Run, desktop: &Desktop) -> Block {
    let words: Vec<String> = desktop.tasks.iter().filter_map(times).collect();
    let asking = desktop.params.asking().map(|(n, who)| counted(n, who.one));
    let beside = asking.map_or("the load".to_owned(), |asking| {
        format!("a server with {asking}")
    });
    let sentence = match words.is_empty() {
        true => String::new(),
        false => format!(
            "Beside {beside}, against the same server idle: {}.",
            words.join("; ")
        ),
    };
    let table = table_of(run, &desktop.probe);
    let figure = |task: &Task| {
        let (value, least, most) = certain(task)?;
        let (name, params) = (
            format!("{}_times", desktop.probe),
            told(&desktop.params, [("task", &task.name)]),
        );
        Some(Derived {
            interval: Some([least, most]),
            ..Of(&table).exact(name, params, RATIO, value)
        })
    };
    let figures = desktop.tasks.iter().filter_map(figure);
    Block::Sentence(Text::new(sentence, Tone::Plain).with(figures))
}

/// How many times as long the middle turn takes beside the load, where nothing speaks against its figures.
fn certain(task: &Task) -> Option<(f64, f64, f64)> {
    task.times
        .filter(|_| !task.idle.doubtful && !task.loaded.doubtful)
}

fn times(task: &Task) -> Option<String> {
    let (value, least, most) = certain(task)?;
    let what = match task.name.as_str() {
        "waker" => "waking by a timer",
        "exec" => "starting a program",
        "read" => "reading a small file",
        _ => return None,
    };
    Some(if least > 1.0 || most < 1.0 {
        format!(
            "{what} takes {} times as long ({}–{})",
            significant(value),
            significant(least),
            significant(most)
        )
    } else {
        format!("{what}: no difference for certain")
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Params;

    use super::*;
    use fingerpost_report::document::{html, markdown, terminal};
    use fingerpost_report::style::Style;

    fn desktop() -> Desktop {
        let turns = |p50: f64| Turns {
            p50,
            p99: 3.0 * p50,
            worst: 9e6,
            missed: 2.0,
            all: 300,
            doubtful: false,
        };
        let task = |name: &str, times| Task {
            name: name.into(),
            idle: turns(1e5),
            loaded: turns(4e5),
            times,
        };
        Desktop {
            probe: "database.desktop".into(),
            params: Params::new()
                .with("engine", "my|sql\u{1b}[31m")
                .with("clients", 50),
            tasks: vec![
                task("exec", Some((4.0, 3.0, 5.0))),
                task("read", Some((1.1, 0.9, 1.3))),
                task("waker", Some((0.5, 0.4, 0.6))),
            ],
        }
    }

    fn words(desktop: &Desktop) -> String {
        match sentence(&Run::default(), desktop) {
            Block::Sentence(text) => text.words,
            _ => unreachable!("it is a sentence"),
        }
    }

    #[test]
    fn the_sentence_says_what_is_certain_only() {
        assert_eq!(
            words(&desktop()),
            "Beside a server with 50 clients, against the same server idle: starting a program takes 4.000 times as \
             long (3.000–5.000); \
             reading a small file: no difference for certain; waking by a timer takes 0.5000 times as long \
             (0.4000–0.6000)."
        );
        let web = Desktop {
            params: Params::new()
                .with("server", "nginx")
                .with("connections", 1000),
            ..desktop()
        };
        let told = words(&web);
        assert!(
            told.starts_with("Beside a server with 1000 connections, against"),
            "{told}"
        );
        let mut doubtful = desktop();
        doubtful
            .tasks
            .iter_mut()
            .for_each(|t| t.loaded.doubtful = true);
        assert_eq!(words(&doubtful), "");
    }

    #[test]
    fn every_format_has_every_figure_and_nothing_that_acts() {
        let all = [section(&Run::default(), &[desktop()])];
        let texts = [
            terminal::render(&all, &Style::default()),
            markdown::render(&all, 2),
            html::section(&all[0]).body.into_string(),
        ];
        for text in &texts {
            assert!(!text.contains('\u{1b}'), "{text}");
            for figure in ["100.0 µs", "400.0 µs", "1.200 ms", "9.000 ms", "2 of 300"] {
                assert!(text.contains(figure), "{figure}: {text}");
            }
        }
        assert!(texts[1].contains("my\\|sql"), "{}", texts[1]);
    }
}
