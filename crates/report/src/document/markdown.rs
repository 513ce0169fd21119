//! A document in Markdown, as issue trackers render it.

use std::io::{self, Write};

use super::blocks::{Document, Section};
use super::format::{Backend, Screen};
use super::markup::{self, Markup};
use super::table::Plain;
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
    let text = markup::document(&Markdown, document);
    text.trim_start_matches('\n').to_owned()
}

/// Sections: each begins with an empty line, and a heading of this rank.
pub fn render(sections: &[Section], rank: usize) -> String {
    markup::sections(&Markdown, sections, rank)
}

impl Markup for Markdown {
    fn escape(&self, text: &str) -> String {
        escape(text)
    }

    fn heading(&self, title: &str, rank: usize) -> String {
        format!("{} {}\n", "#".repeat(rank), escape(title))
    }

    fn words(&self, text: &Text) -> String {
        match text.tone {
            Tone::Strong => format!("**{}**", escape(text.words.trim())),
            _ => escape(text.words.trim()),
        }
    }

    fn item(&self, text: &Text) -> String {
        let below = text.below.iter();
        let below = below.map(|below| format!("  - {}\n", escape(below.trim())));
        format!("- {}\n{}", self.words(text), below.collect::<String>())
    }

    fn fact(&self, fact: &Fact) -> String {
        let words = escape(fact.text.words.trim());
        match fact.name.trim() {
            "" => format!("  - {words}\n"),
            name => format!("- **{}**: {words}\n", escape(name)),
        }
    }

    fn details(&self, summary: &str, blocks: &str) -> String {
        format!("\n{}:\n{blocks}", escape(summary))
    }

    fn command(&self, command: &str) -> String {
        format!("\nMade again by:\n\n    {command}\n")
    }

    fn rows(&self, table: &Plain, rows: &[Vec<String>]) -> String {
        let heads = table.heads.iter().map(|(title, _)| escape(title));
        let sides = table.heads.iter().map(|(_, align)| match align {
            Align::Right => "---:".to_owned(),
            Align::Left => "---".to_owned(),
        });
        let rows = rows
            .iter()
            .map(|row| line(row.iter().map(|cell| escape(cell.trim()))));
        line(heads) + &line(sides) + &rows.collect::<String>()
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Block;
    use super::super::table::{Cell, Column, Row, Table};
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
