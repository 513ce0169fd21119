//! Two sides of a comparison as a screen: what a person reads, the comparison itself, and its rows as lines.

mod records;

use std::io::{self, Write};

use fingerpost_compare::comparison::{Comparison, Row};
use fingerpost_record::Status;
use fingerpost_record::params::named;

use crate::compare_words::{
    SETTLED, SURER, below_causes, causes, cells, in_order, not_compared, not_compared_in_short,
    overlap, settled, sides, summary, surer, text, tone,
};
use crate::document::format::Screen;
use crate::document::records::Records;
use crate::document::{
    self, Block, Cell, Column, Document, Fact, Group, Section, Table, Text, json,
};
use crate::explain::pieces;
use crate::grid::Align;
use crate::html::content::Content;
use crate::html::of_comparison;
use crate::style::Tone;
use crate::view::parts_of_doubt;

impl Screen for Comparison {
    fn document(&self) -> Document {
        document(self)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write(out, self)
    }

    fn records(&self) -> Records {
        records::of(self)
    }

    fn page(&self) -> Content {
        of_comparison(self, None)
    }
}

/// The comparison: what a person reads first comes first.
fn document(c: &Comparison) -> Document {
    let list = |told: Vec<String>, tone| {
        let told = told.into_iter();
        Block::List(told.map(|t| Text::new(t, tone)).collect())
    };
    let mut sections = vec![
        Section::new("hosts", "What differs between the hosts").with([Block::Facts(hosts(c))]),
        Section::new("settled", SETTLED).with([list(settled(c), Tone::Plain)]),
        Section::new("why", "Why").with(why(c)),
    ];
    let below = below_causes(c).into_iter();
    sections.extend(
        below.map(|(title, told)| Section::new("part", title).with([list(told, Tone::Plain)])),
    );
    sections.push(Section::new("rows", "").with([Block::Table(rows(c))]));
    let rest = Block::Details {
        summary: "Not compared".into(),
        short: Text::new(not_compared_in_short(c).join("; "), Tone::Faint),
        blocks: vec![list(not_compared(c), Tone::Faint)],
    };
    sections.push(Section::new("not-compared", "").with([rest]));
    sections.retain(|s| !s.blocks.is_empty());
    let mut end = vec![Fact::new("Rows", summary(c), Tone::Plain)];
    end.extend(surer(c).map(|how| Fact::new(SURER, how, Tone::Plain)));
    Document {
        title: text(&c.headline),
        lead: vec![Block::Facts(sides(c).into_iter().map(side).collect())],
        sections,
        end: vec![Block::Facts(end)],
    }
}

/// Who is compared; of a doubt what is the matter.
fn side((name, sentence, doubt): (String, String, bool)) -> Fact {
    match doubt {
        true => Fact::new(name, parts_of_doubt(&sentence).0, Tone::Doubtful),
        false => Fact::new(name, sentence, Tone::Plain),
    }
}

fn hosts(c: &Comparison) -> Vec<Fact> {
    c.hosts
        .iter()
        .map(|d| Fact::new(&d.what, format!("{} → {}", d.base, d.new), Tone::Plain))
        .collect()
}

/// Who is accused, with the evidence; in short who was ruled out and who could not be judged.
fn why(c: &Comparison) -> Vec<Block> {
    let (accused, rest): (Vec<_>, Vec<_>) = causes(c)
        .into_iter()
        .partition(|(_, _, status)| status.accuses());
    let overlap = overlap(c).into_iter();
    let overlap = overlap.map(|sentence| Text::new(sentence, Tone::Plain));
    let accused = accused
        .into_iter()
        .map(|(label, evidence, status)| Text::new(label, pieces::tone(status)).over(evidence));
    let mut blocks = vec![Block::List(overlap.chain(accused).collect())];
    for status in [Status::RuledOut, Status::NotObserved] {
        let of = c.causes.iter().filter(|f| f.status == status);
        let names: Vec<&str> = of.map(|f| fingerpost_diagnose::label(&f.cause)).collect();
        let told = rest.iter().filter(|(_, _, of)| *of == status);
        // A suspect that was ruled out is one line, as one that was not observed.
        let told = told.map(|(label, evidence, _)| {
            Text::new(format!("{label}: {}", evidence.join("; ")), Tone::Faint)
        });
        blocks.push(Block::Details {
            summary: status.as_str().into(),
            short: Text::new(names.join(", "), Tone::Faint),
            blocks: vec![Block::List(told.collect())],
        });
    }
    blocks
}

/// The rows, in groups of one title; the parameters that all of several rows have alike belong into it.
fn rows(c: &Comparison) -> Table {
    let columns = [
        Column::words("probe"),
        Column::words("parameters"),
        Column::figures("base"),
        Column::figures("new"),
        Column::figures("× slower"),
        Column::new("95 % interval", Align::Left, 1),
        Column::words("verdict"),
    ];
    let row = |row: &Row, shared: &[String]| {
        let mut cells = cells(row);
        let own = params(row).filter(|word| !shared.contains(word));
        cells[1] = own.collect::<Vec<_>>().join(" ");
        let note = row.note.iter().map(|note| Text::new(note, Tone::Faint));
        document::Row::new(cells.map(Cell::from), tone(row.verdict)).noted(note)
    };
    let in_order = in_order(c);
    let groups = in_order.chunk_by(|a, b| a.descriptor.table.key == b.descriptor.table.key);
    let group = |rows: &[&Row]| {
        let shared = shared(rows);
        Group {
            title: text(&rows[0].descriptor.table.title),
            rows: rows.iter().map(|r| row(r, &shared)).collect(),
            shared,
            notes: Vec::new(),
        }
    };
    Table::new(columns).grouped(groups.map(group))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{markdown, terminal};
    use crate::format::Format;
    use crate::style::Style;
    use fingerpost_compare::comparison::NotCompared;
    use fingerpost_compare::{Options, compare, references};
    use fingerpost_record::{Params, Unit};

    fn table(c: &Comparison, style: &Style) -> String {
        terminal::document(&document(c), style)
    }

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
        format.write(&mut out, &g5(), &Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_headline_and_the_hosts_come_before_the_rows() {
        let text = written(Format::TABLE);
        let at = |what: &str| {
            text.find(what)
                .unwrap_or_else(|| panic!("no “{what}” in {text}"))
        };
        assert!(at("the operating system, not the CPU") < at("What differs between the hosts"));
        assert!(
            at("What differs between the hosts")
                < at("system call and signal cost, 42 % (syscall.entry, layer kernel)")
        );
        assert!(at("(syscall.entry, layer kernel)") < at("ruled out  "));
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
                markdown::document(&document(c)),
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
        let v: serde_json::Value = serde_json::from_str(&written(Format::JSON)).unwrap();
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
        let csv = written(Format::CSV);
        assert_eq!(csv.lines().count(), 1 + c.rows.len() + c.not_compared.len());
        let mut hostile = c.clone();
        hostile.rows[0].probe = "=cmd|\"<script>\u{1b}[2J".into();
        hostile.headline = "a <b> | c".into();
        let mut csv = Vec::new();
        Format::CSV
            .write(&mut csv, &hostile, &Style::default())
            .unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let md = markdown::document(&document(&hostile));
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
