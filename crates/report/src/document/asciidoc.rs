//! A document in AsciiDoc, for a manual or a report that is built of several files.

use std::io::{self, Write};

use super::blocks::{Block, Document, Section};
use super::format::{Backend, Screen};
use super::table::Table;
use super::text::{Fact, Text};
use crate::grid::Align;
use crate::style::{Style, Tone};

/// The format.
pub struct AsciiDoc;

impl Backend for AsciiDoc {
    fn name(&self) -> &'static str {
        "asciidoc"
    }

    fn purpose(&self) -> &'static str {
        "For a manual or a report that is built of several files"
    }

    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, _: &Style) -> io::Result<()> {
        out.write_all(document(&screen.document()).as_bytes())
    }
}

/// Text that AsciiDoc shows as it is. Its characters of markup are many, and depend on their neighbours: as numbers they
/// are none.
fn escape(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " .,:;/()=-%’“”–×→".contains(c);
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.trim().chars() {
        // Two of these make a sign of another kind, and one at the beginning a list.
        let doubled = "-.=:/;".contains(c) && (before == c || safe.is_empty());
        match plain(c) && !doubled {
            true => safe.push(c),
            false => safe += &format!("&#{};", u32::from(c)),
        }
        before = c;
    }
    safe
}

fn document(document: &Document) -> String {
    let title = match document.title.as_str() {
        "" => String::new(),
        title => format!("= {}\n", escape(title)),
    };
    let [lead, end] = [&document.lead, &document.end].map(|of| blocks(of, 2));
    let sections = document.sections.iter().map(section);
    [title, lead, sections.collect(), end].concat()
}

fn section(section: &Section) -> String {
    match section.title.as_str() {
        "" => blocks(&section.blocks, 2),
        title => heading(title, 2) + &blocks(&section.blocks, 3),
    }
}

fn heading(title: &str, rank: usize) -> String {
    format!("\n{} {}\n", "=".repeat(rank), escape(title))
}

fn blocks(blocks: &[Block], rank: usize) -> String {
    let all = blocks.iter().filter(|b| !b.is_empty());
    all.map(|b| block(b, rank)).collect()
}

fn block(block: &Block, rank: usize) -> String {
    match block {
        Block::Figures(_) | Block::Apart => String::new(),
        Block::Heading(title) => heading(title, rank),
        Block::Sentence(text) if text.words.is_empty() => String::new(),
        Block::Sentence(text) => format!("\n{}\n", words(text)),
        Block::List(list) => format!("\n{}", list.iter().map(item).collect::<String>()),
        Block::Facts(facts) => format!("\n{}", facts.iter().map(fact).collect::<String>()),
        Block::Table(table) => of_table(table, rank),
        Block::Chart(chart) => {
            let table = chart.table();
            table.map_or_else(String::new, |table| of_table(&table, rank))
        }
        Block::Details {
            summary,
            blocks: all,
            ..
        } => format!(
            "\n.{}\n[%collapsible]\n====\n{}\n====\n",
            escape(summary),
            blocks(all, rank)
        ),
        Block::Command(command) => format!("\nMade again by:\n\n----\n{command}\n----\n"),
    }
}

fn words(text: &Text) -> String {
    match text.tone {
        Tone::Strong => format!("**{}**", escape(&text.words)),
        _ => escape(&text.words),
    }
}

fn item(text: &Text) -> String {
    let below = text.below.iter().map(|b| format!("** {}\n", escape(b)));
    format!("* {}\n{}", words(text), below.collect::<String>())
}

fn fact(fact: &Fact) -> String {
    match fact.name.trim() {
        // It belongs to the fact before it.
        "" => format!("* {}\n", words(&fact.text)),
        name => format!("{}:: {}\n", escape(name), words(&fact.text)),
    }
}

fn of_table(table: &Table, rank: usize) -> String {
    let plain = table.plain();
    let sides = plain.heads.iter().map(|(_, align)| match align {
        Align::Right => ">",
        Align::Left => "<",
    });
    let sides: Vec<&str> = sides.collect();
    let head = line(plain.heads.iter().map(|(title, _)| title));
    let caption = table.caption.iter();
    let mut text: String = caption.map(|c| format!("\n{}\n", escape(c))).collect();
    for (group, rows) in table.groups.iter().zip(&plain.groups) {
        if !group.title.is_empty() && !group.is_empty() {
            text += &heading(&group.title, rank);
        }
        if !group.shared.is_empty() {
            text += &format!("\nAll rows: {}\n", escape(&group.shared.join(" ")));
        }
        if !rows.is_empty() {
            let rows: String = rows.iter().map(|row| line(row.iter())).collect();
            let options = format!("[%header%autowidth,cols=\"{}\"]", sides.join(","));
            text += &format!("\n{options}\n|===\n{head}\n{rows}|===\n");
        }
        if !group.notes.is_empty() {
            text += &format!("\n{}", group.notes.iter().map(item).collect::<String>());
        }
    }
    text
}

fn line<'a>(cells: impl Iterator<Item = &'a String>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("|{}", escape(cell))).collect();
    format!("{}\n", cells.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, Column, Row};
    use super::*;

    #[test]
    fn a_document_has_its_tables_and_nothing_of_a_run_is_markup() {
        let columns = [
            Column::words("app"),
            Column::figures("swap").beside(Column::figures("ratio")),
        ];
        let cells = [
            Cell::new("a|b\n++++\n<script>"),
            Cell::new("3.1").beside("0.63"),
        ];
        let section = Section::new("k", "One").with([
            Block::Table(Table::new(columns).with([Row::new(cells, Tone::Plain)])),
            Block::Facts(vec![Fact::new("L1", "include::/etc/passwd[]", Tone::Plain)]),
        ]);
        let text = document(&Document {
            title: "All".into(),
            lead: vec![Block::List(vec![
                Text::new("--- found", Tone::Strong).over(["why"]),
            ])],
            sections: vec![section],
            end: Vec::new(),
        });
        for part in [
            "= All\n\n* **&#45;&#45;&#45; found**\n** why\n",
            "\n== One\n\n[%header%autowidth,cols=\"<,>,>\"]\n|===\n|app |swap |ratio\n\n|a&#124;b",
            " |3.1 |0.63\n|===\n",
            "\nL1:: include:&#58;/etc/passwd&#91;&#93;\n",
        ] {
            assert!(text.contains(part), "no “{part}” in {text}");
        }
        assert!(!text.contains("<script") && !text.contains("++"), "{text}");
    }
}
