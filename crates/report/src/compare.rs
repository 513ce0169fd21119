//! Two sides of a comparison on a terminal.

use std::io::{self, Write};

use fingerpost_compare::comparison::{Comparison, Row};
use fingerpost_record::Status;
use fingerpost_record::params::named;

use crate::compare_words::{
    SETTLED, SURER, below_causes, causes, cells, in_order, not_compared_in_short, overlap, settled,
    sides, summary, surer, text, tone,
};
use crate::explain::pieces;
use crate::format::Format;
use crate::grid::{Align, Grid, Line};
use crate::style::{Style, Tone};
use crate::view::parts_of_doubt;
use crate::{compare_csv, compare_markdown, json};

const COLUMNS: [(&str, Align, u8); 7] = [
    ("probe", Align::Left, 0),
    ("parameters", Align::Left, 0),
    ("base", Align::Right, 0),
    ("new", Align::Right, 0),
    ("× slower", Align::Right, 0),
    ("95 % interval", Align::Left, 1),
    ("verdict", Align::Left, 0),
];

/// Writes a comparison in a format. The style matters to the table only.
///
/// # Errors
/// What writing to `out` gives.
pub fn write(
    out: &mut dyn Write,
    comparison: &Comparison,
    format: Format,
    style: &Style,
) -> io::Result<()> {
    match format {
        Format::Table => out.write_all(table(comparison, style).as_bytes()),
        Format::Json => json::write(out, comparison),
        Format::Csv => out.write_all(compare_csv::render(comparison).as_bytes()),
        Format::Markdown => out.write_all(compare_markdown::render(comparison).as_bytes()),
    }
}

/// The comparison as a table: what a person reads first comes first.
pub fn table(c: &Comparison, style: &Style) -> String {
    let mut grid = Grid::of(COLUMNS);
    let lines = &mut grid.lines;
    lines.push(Line::Heading(text(&c.headline)));
    lines.extend(
        sides(c)
            .into_iter()
            .map(|(name, sentence, doubt)| match doubt {
                true => {
                    Line::Labelled(name, parts_of_doubt(&sentence).0.to_owned(), Tone::Doubtful)
                }
                false => Line::Labelled(name, sentence, Tone::Plain),
            }),
    );
    section(
        lines,
        "What differs between the hosts",
        c.hosts.iter().map(|d| {
            Line::Labelled(
                text(&d.what),
                text(&format!("{} → {}", d.base, d.new)),
                Tone::Plain,
            )
        }),
    );
    section(
        lines,
        SETTLED,
        settled(c).into_iter().map(|l| Line::Note(l, Tone::Plain)),
    );
    let (accused, rest): (Vec<_>, Vec<_>) = causes(c)
        .into_iter()
        .partition(|(_, _, status)| style.wide || status.accuses());
    let overlap = overlap(c)
        .into_iter()
        .map(|sentence| Line::Note(sentence, Tone::Plain));
    let accused = accused.into_iter().flat_map(cause_lines);
    section(
        lines,
        "Why",
        overlap
            .chain(accused)
            .chain(in_one_line(c).into_iter().filter(|_| !rest.is_empty())),
    );
    for (title, told) in below_causes(c) {
        section(
            lines,
            &title,
            told.into_iter().map(|l| Line::Note(l, Tone::Plain)),
        );
    }
    row_lines(&mut grid, c);
    let lines = &mut grid.lines;
    section(
        lines,
        "Not compared",
        not_compared_in_short(c)
            .into_iter()
            .map(|l| Line::Note(l, Tone::Faint)),
    );
    lines.extend([
        Line::Blank,
        Line::Labelled("Rows".into(), summary(c), Tone::Plain),
    ]);
    lines.extend(surer(c).map(|how| Line::Labelled(SURER.into(), how.into(), Tone::Plain)));
    grid.render(style)
}

fn section(lines: &mut Vec<Line>, title: &str, content: impl Iterator<Item = Line>) {
    let content: Vec<Line> = content.collect();
    if !content.is_empty() {
        lines.extend([Line::Blank, Line::Heading(title.to_owned())]);
        lines.extend(content);
    }
}

fn row_lines(grid: &mut Grid, c: &Comparison) {
    if c.rows.is_empty() {
        return;
    }
    let titles = grid.titles();
    grid.lines.extend([Line::Blank, titles]);
    for rows in in_order(c).chunk_by(|a, b| a.descriptor.table.key == b.descriptor.table.key) {
        let shared = shared(rows);
        let title = text(&rows[0].descriptor.table.title);
        let words = std::iter::once(title.as_str()).chain(shared.iter().map(String::as_str));
        grid.lines
            .push(Line::Heading(words.collect::<Vec<_>>().join("  ")));
        for row in rows {
            let mut cells = cells(row);
            cells[1] = params(row)
                .filter(|word| !shared.contains(word))
                .collect::<Vec<_>>()
                .join(" ");
            grid.lines
                .push(Line::Cells(cells.to_vec(), tone(row.verdict)));
            grid.lines.extend(
                row.note
                    .iter()
                    .map(|note| Line::Note(text(note), Tone::Faint)),
            );
        }
    }
}

/// A row's parameters, a word each.
fn params(row: &Row) -> impl Iterator<Item = String> {
    row.params
        .iter()
        .map(|(key, value)| text(&named(key, value)))
}

/// The parameters that all of several rows have alike: they belong into the title, as in a run's own table.
fn shared(rows: &[&Row]) -> Vec<String> {
    let [first, others @ ..] = rows else {
        return Vec::new();
    };
    let all = |word: &String| others.iter().all(|row| params(row).any(|own| own == *word));
    params(first)
        .filter(|word| !others.is_empty() && all(word))
        .collect()
}

/// Who was ruled out and who could not be judged: names, each kind in one line. Their figures come with every column.
fn in_one_line(c: &Comparison) -> Vec<Line> {
    let of = |status: Status| -> Vec<String> {
        c.causes
            .iter()
            .filter(|f| f.status == status)
            .map(|f| text(fingerpost_diagnose::label(&f.cause)))
            .collect()
    };
    let kinds = [Status::RuledOut, Status::NotObserved].map(|status| (status, of(status)));
    let told = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    told.map(|(status, names)| {
        Line::Note(
            format!(
                "{} (by what: --wide): {}",
                status.as_str(),
                names.join(", ")
            ),
            Tone::Faint,
        )
    })
    .collect()
}

fn cause_lines((label, evidence, status): (String, Vec<String>, Status)) -> Vec<Line> {
    let tone = pieces::tone(status);
    // A suspect that was ruled out is one line, as one that was not observed; a named one has its evidence below it.
    if !status.accuses() {
        return vec![Line::Note(
            format!("{label}: {}", evidence.join("; ")),
            tone,
        )];
    }
    let evidence = evidence
        .into_iter()
        .map(|e| Line::Note(format!("– {e}"), Tone::Plain));
    std::iter::once(Line::Note(label, tone))
        .chain(evidence)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::comparison::NotCompared;
    use fingerpost_compare::{Options, compare, references};
    use fingerpost_record::{Params, Unit};

    fn g5() -> Comparison {
        let load = |name| references::load(name).unwrap();
        compare(
            &[load("g5-2.5-linux")],
            &[load("g5-2.7-darwin")],
            &Options::default(),
        )
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        write(&mut out, &g5(), format, &Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_headline_and_the_hosts_come_before_the_rows() {
        let text = written(Format::Table);
        let at = |what: &str| {
            text.find(what)
                .unwrap_or_else(|| panic!("no “{what}” in {text}"))
        };
        assert!(at("the operating system, not the CPU") < at("What differs between the hosts"));
        assert!(
            at("What differs between the hosts")
                < at("system call and signal cost, 42 % (syscall.entry, layer kernel)")
        );
        assert!(at("(syscall.entry, layer kernel)") < at("ruled out (by what: --wide): "));
        assert!(at("the CPU's speed") < at("\nSystem calls\n"));
        assert!(!text.contains("cpu.speed"), "names alone");
        let wide = table(
            &g5(),
            &Style {
                wide: true,
                ..Style::default()
            },
        );
        assert!(
            wide.find("(syscall.entry").unwrap()
                < wide
                    .find("the CPU's speed, ruled out (cpu.speed, layer cpu): ")
                    .unwrap(),
            "{wide}"
        );
        assert!(
            text.contains("8.071") && text.contains("5 clients"),
            "{text}"
        );
    }

    #[test]
    fn each_row_tells_itself_from_its_neighbours_on_a_narrow_terminal_too() {
        let style = Style {
            width: Some(80),
            ..Style::default()
        };
        let text = table(&g5(), &style);
        let title = text
            .lines()
            .find(|line| line.starts_with("Database  "))
            .expect("a title with what all of its rows have");
        assert!(
            title.contains("engine=mysql") && title.contains("storage=myisam"),
            "{title}"
        );
        let row = |clients: u32| {
            text.lines().any(|line| {
                line.contains("database.throughput")
                    && line.contains(&format!("clients={clients} "))
            })
        };
        assert!([1, 2, 5, 10, 20, 35, 50].into_iter().all(row), "{text}");
        assert!(
            !text.lines().any(|line| line.contains("database.throughput  ") && line.contains("engine=mysql")),
            "{text}"
        );
    }

    #[test]
    fn every_format_says_where_shares_overlap_or_are_not_known() {
        use crate::html::comparison::sections;
        let all = |c: &Comparison| {
            let page: String = sections(c, None)
                .into_iter()
                .map(|s| s.body.into_string())
                .collect();
            [
                table(c, &Style::default()),
                compare_markdown::render(c),
                page,
            ]
        };
        let mut c = g5();
        let told = "Together they explain";
        assert!(
            all(&c).iter().all(|text| !text.contains(told)),
            "parts that exclude each other"
        );
        c.causes[1].share = c.causes[0].share;
        c.causes[2].share = c.causes[0].share;
        for text in all(&c) {
            assert!(
                text.contains(&format!(
                    "{told} {:.0} % of the difference",
                    (1.0 - c.unexplained) * 100.0
                )),
                "{text}"
            );
        }
        let load = |name| references::load(name).unwrap();
        for text in all(&compare(
            &[load("launch-10.0.4")],
            &[load("launch-10.1")],
            &Options::default(),
        )) {
            assert!(
                text.contains("share not known")
                    && text.contains("or of a cause whose share is not known"),
                "{text}"
            );
        }
    }

    #[test]
    fn json_is_the_comparison_with_the_fields_of_the_design() {
        let v: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
        for key in ["base", "new", "rows", "causes", "headline"] {
            assert!(!v[key].is_null(), "{key}");
        }
        let row = &v["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["probe"] == "syscall.null")
            .unwrap();
        assert_eq!(row["verdict"], "slower");
        assert!(row["ratio"]["low"].as_f64().unwrap() < row["ratio"]["value"].as_f64().unwrap());
        assert!(
            row["ratio"]["high"].is_f64()
                && row["params"].is_object()
                && row["base"]["value"].is_f64()
        );
        for key in ["cause", "layer", "share", "status", "evidence"] {
            assert!(!v["causes"][0][key].is_null(), "{key}");
        }
    }

    #[test]
    fn csv_and_markdown_have_every_row_and_escape() {
        let c = g5();
        let csv = written(Format::Csv);
        assert_eq!(csv.lines().count(), 1 + c.rows.len() + c.not_compared.len());
        let mut hostile = c.clone();
        hostile.rows[0].probe = "=cmd|\"<script>\u{1b}[2J".into();
        hostile.headline = "a <b> | c".into();
        let (csv, md) = (
            compare_csv::render(&hostile),
            compare_markdown::render(&hostile),
        );
        assert!(csv.contains("'=cmd") && !md.contains("<script>") && !md.contains("<b>"));
        assert!(
            !csv.contains('\u{1b}')
                && !md.contains('\u{1b}')
                && !table(&hostile, &Style::default()).contains('\u{1b}')
        );
    }

    #[test]
    fn rows_of_one_side_say_once_what_they_share_and_no_head_stands_over_nothing() {
        let row = |probe: &str, clients: i64, value: f64| NotCompared {
            probe: probe.into(),
            params: Params::new()
                .with("clients", clients)
                .with("engine", "mariadb"),
            unit: Unit::Nanoseconds,
            base: None,
            new: Some(value),
            why: "only the new side has it".into(),
        };
        let mut c = g5();
        c.rows.clear();
        c.not_compared = vec![
            row("database.latency", 1, 10.0),
            row("database.latency", 5, 20.0),
            row("database.stall", 1, 3.0),
        ];
        let told = "only the new side has it: database.latency clients=1 (10.00 ns), clients=5 (20.00 ns); \
            database.stall clients=1 (3.000 ns); \
            all with engine=mariadb";
        let text = table(&c, &Style::default());
        assert!(text.contains(told), "{text}");
        assert!(
            !text.contains("\n\n\n") && !text.contains("× slower"),
            "{text}"
        );
        c.not_compared.truncate(1);
        assert!(
            table(&c, &Style::default())
                .contains("it: database.latency clients=1 engine=mariadb (10.00 ns)\n")
        );
    }

    #[test]
    fn narrow_terminals_lose_columns_and_no_line_is_too_long() {
        use unicode_width::UnicodeWidthStr;
        let text = table(
            &g5(),
            &Style {
                width: Some(80),
                ..Style::default()
            },
        );
        assert!(
            text.lines()
                .filter(|l| l.contains("slower") && l.contains("syscall"))
                .all(|l| l.width() <= 80),
            "{text}"
        );
    }
}
