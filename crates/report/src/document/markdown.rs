//! A document in Markdown, as issue trackers render it.

use std::io::{self, Write};

use super::blocks::{Block, Document, Section};
use super::format::{Backend, Screen};
use super::table::Table;
use super::text::{Fact, Text};
use crate::grid::Align;
use crate::style::{Style, Tone};
use crate::words::escape;

/// The format.
pub struct Markdown;

impl Backend for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn purpose(&self) -> &'static str {
        "For an issue or a page"
    }

    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, _: &Style) -> io::Result<()> {
        out.write_all(document(&screen.document()).as_bytes())
    }
}

/// A document in Markdown.
pub fn document(document: &Document) -> String {
    let title = match document.title.as_str() {
        "" => String::new(),
        title => format!("# {}\n", escape(title)),
    };
    let [lead, end] = [&document.lead, &document.end].map(|of| blocks(of, 2));
    let text = [title, lead, render(&document.sections, 2), end].concat();
    text.trim_start_matches('\n').to_owned()
}

/// Sections: each begins with an empty line, and a heading of this rank.
pub fn render(sections: &[Section], rank: usize) -> String {
    let section = |s: &Section| match s.title.as_str() {
        "" => blocks(&s.blocks, rank),
        title => heading(title, rank) + &blocks(&s.blocks, rank + 1),
    };
    sections.iter().map(section).collect()
}

fn heading(title: &str, rank: usize) -> String {
    format!("\n{} {}\n", "#".repeat(rank), escape(title))
}

/// Blocks, each behind an empty line.
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
        } => format!("\n{}:\n{}", escape(summary), blocks(all, rank)),
        Block::Command(command) => format!("\nMade again by:\n\n    {command}\n"),
    }
}

fn words(text: &Text) -> String {
    match text.tone {
        Tone::Strong => format!("**{}**", escape(text.words.trim())),
        _ => escape(text.words.trim()),
    }
}

fn item(text: &Text) -> String {
    let below = text.below.iter();
    let below = below.map(|below| format!("  - {}\n", escape(below.trim())));
    format!("- {}\n{}", words(text), below.collect::<String>())
}

fn fact(fact: &Fact) -> String {
    let words = escape(fact.text.words.trim());
    match fact.name.trim() {
        // It belongs to the fact before it.
        "" => format!("  - {words}\n"),
        name => format!("- **{}**: {words}\n", escape(name)),
    }
}

fn of_table(table: &Table, rank: usize) -> String {
    let plain = table.plain();
    let heads = plain.heads.iter().map(|(title, _)| escape(title));
    let sides = plain.heads.iter().map(|(_, align)| match align {
        Align::Right => "---:".to_owned(),
        Align::Left => "---".to_owned(),
    });
    let head = line(heads) + &line(sides);
    let caption = table.caption.iter();
    let mut text: String = caption
        .map(|text| format!("\n{}\n", escape(text)))
        .collect();
    for (group, rows) in table.groups.iter().zip(&plain.groups) {
        if !group.title.is_empty() && !group.is_empty() {
            text += &heading(&group.title, rank);
        }
        if !group.shared.is_empty() {
            text += &format!("\nAll rows: {}\n", escape(&group.shared.join(" ")));
        }
        if !rows.is_empty() {
            let rows = rows
                .iter()
                .map(|row| line(row.iter().map(|cell| escape(cell.trim()))));
            text += &format!("\n{head}{}", rows.collect::<String>());
        }
        if !group.notes.is_empty() {
            text += &format!("\n{}", group.notes.iter().map(item).collect::<String>());
        }
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, Column, Row};
    use super::*;

    #[test]
    fn a_document_becomes_headings_tables_and_lists_and_nothing_breaks_out() {
        let columns = [
            Column::words("app"),
            Column::figures("swap").beside(Column::figures("ratio")),
            Column::new("detail", Align::Left, 9),
        ];
        let cells = [
            Cell::new("a|b"),
            Cell::new("3.1").beside("0.63"),
            Cell::new("much"),
        ];
        let section = Section::new("k", "One").with([
            Block::Table(Table::new(columns).with([Row::new(cells, Tone::Plain)])),
            Block::Facts(vec![Fact::new("L1", "<b>", Tone::Plain)]),
            Block::heading("Two"),
            Block::List(vec![
                Text::new("A *sentence*.", Tone::Faint).over(["its reason"]),
            ]),
        ]);
        let text = document(&Document {
            title: "All".into(),
            lead: vec![Block::Sentence(Text::new("Found.", Tone::Strong))],
            sections: vec![section],
            end: Vec::new(),
        });
        assert_eq!(
            text,
            "# All\n\n**Found.**\n\n## One\n\n| app | swap | ratio |\n| --- | ---: | ---: |\n| a\\|b | 3.1 | 0.63 |\n\n\
             - **L1**: &lt;b&gt;\n\n### Two\n\n- A \\*sentence\\*.\n  - its reason\n"
        );
    }
}
