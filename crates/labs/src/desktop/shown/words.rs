//! How promptly a machine answers beside its loaded server: a table of the tasks, and a sentence.

use crate::desktop::analysis::{Desktop, Task, Turns};
use fingerpost_record::Unit;
use fingerpost_record::text::counted;
use fingerpost_record::unit::significant;

use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;
use fingerpost_report::words::{clean, escape};

/// The columns, each with the side that its texts are flush with.
pub const COLUMNS: [(&str, Align, u8); 6] = [
    ("task", Align::Left, 0),
    ("server", Align::Left, 0),
    ("p50", Align::Right, 0),
    ("p99", Align::Right, 0),
    ("worst", Align::Right, 0),
    ("missed", Align::Right, 1),
];

pub const MEANING: &str = "Time from when a turn was due until it was done; missed turns were not done when the next one was due.";

/// What the table is of.
pub fn title(desktop: &Desktop) -> String {
    format!("A desktop's tasks: {}", clean(&desktop.params.to_string()))
}

/// Two lines a task: the idle server's and the loaded one's, and whether something speaks against the figures.
pub fn cells(desktop: &Desktop) -> impl Iterator<Item = (bool, [String; 6])> {
    desktop.tasks.iter().flat_map(|task| {
        let line = |name: String, server: &str, t: &Turns| {
            let [p50, p99, worst] = [t.p50, t.p99, t.worst].map(|ns| Unit::Nanoseconds.format(ns));
            (
                t.doubtful,
                [
                    name,
                    server.to_owned(),
                    p50,
                    p99,
                    worst,
                    format!("{:.0} of {}", t.missed, t.all),
                ],
            )
        };
        [
            line(clean(&task.name), "idle", &task.idle),
            line(String::new(), "loaded", &task.loaded),
        ]
    })
}

/// What is for certain, in one sentence: which tasks take longer beside the load, and how many times; nothing where no
/// task can say.
pub fn sentence(desktop: &Desktop) -> Option<String> {
    let told: Vec<String> = desktop.tasks.iter().filter_map(times).collect();
    let asking = desktop.params.asking().map(|(n, who)| counted(n, who.one));
    let beside = asking.map_or("the load".to_owned(), |asking| {
        format!("a server with {asking}")
    });
    (!told.is_empty()).then(|| {
        format!(
            "Beside {beside}, against the same server idle: {}.",
            told.join("; ")
        )
    })
}

fn times(task: &Task) -> Option<String> {
    let (value, least, most) = task
        .times
        .filter(|_| !task.idle.doubtful && !task.loaded.doubtful)?;
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

/// The table with what is for certain.
pub fn grid(desktop: &Desktop) -> Grid {
    let mut grid = Grid::of(COLUMNS);
    grid.lines
        .extend([Line::Heading(title(desktop)), grid.titles()]);
    for (doubtful, row) in cells(desktop) {
        grid.lines.push(Line::Cells(
            row.to_vec(),
            if doubtful {
                Tone::Doubtful
            } else {
                Tone::Plain
            },
        ));
    }
    grid.lines
        .extend(sentence(desktop).map(|text| Line::Labelled(String::new(), text, Tone::Plain)));
    grid.lines.push(Line::Labelled(
        String::new(),
        MEANING.to_owned(),
        Tone::Faint,
    ));
    grid
}

pub fn markdown(found: &[Desktop]) -> String {
    let mut text = String::new();
    for desktop in found {
        let titles = COLUMNS.map(|(title, ..)| title).join(" | ");
        text.push_str(&format!(
            "\n## {}\n\n| {titles} |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
            escape(&title(desktop))
        ));
        for (_, row) in cells(desktop) {
            text.push_str(&format!(
                "| {} |\n",
                row.map(|cell| escape(&cell)).join(" | ")
            ));
        }
        text.push_str(&format!(
            "\n{} {MEANING}\n",
            escape(&sentence(desktop).unwrap_or_default())
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Params;

    use super::*;
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

    #[test]
    fn the_sentence_says_what_is_certain_only() {
        let text = sentence(&desktop()).unwrap();
        assert_eq!(
            text,
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
        assert!(
            sentence(&web)
                .unwrap()
                .starts_with("Beside a server with 1000 connections, against"),
            "{:?}",
            sentence(&web)
        );
        let mut doubtful = desktop();
        doubtful
            .tasks
            .iter_mut()
            .for_each(|t| t.loaded.doubtful = true);
        assert_eq!(sentence(&doubtful), None);
    }

    #[test]
    fn a_terminal_and_markdown_have_every_figure_and_nothing_that_acts() {
        let (shown, marked) = (
            grid(&desktop()).render(&Style::default()),
            markdown(&[desktop()]),
        );
        for text in [&shown, &marked] {
            assert!(!text.contains('\u{1b}'), "{text}");
            for figure in ["100.0 µs", "400.0 µs", "1.200 ms", "9.000 ms", "2 of 300"] {
                assert!(text.contains(figure), "{figure}: {text}");
            }
        }
        assert!(marked.contains("my\\|sql"), "{marked}");
    }
}
