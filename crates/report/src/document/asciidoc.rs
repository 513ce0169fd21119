//! A document in AsciiDoc, for a manual or a report that is built of several files.

use std::io::{self, Write};

use super::format::{Backend, Screen};
use super::markup::{self, Markup};
use super::table::Plain;
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
        out.write_all(markup::document(self, &screen.document()).as_bytes())
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

impl Markup for AsciiDoc {
    fn escape(&self, text: &str) -> String {
        escape(text)
    }

    fn heading(&self, title: &str, rank: usize) -> String {
        format!("{} {}\n", "=".repeat(rank), escape(title))
    }

    fn words(&self, text: &Text) -> String {
        match text.tone {
            Tone::Strong => format!("**{}**", escape(&text.words)),
            _ => escape(&text.words),
        }
    }

    fn item(&self, text: &Text) -> String {
        let below = text.below.iter().map(|b| format!("** {}\n", escape(b)));
        format!("* {}\n{}", self.words(text), below.collect::<String>())
    }

    fn fact(&self, fact: &Fact) -> String {
        match fact.name.trim() {
            "" => format!("* {}\n", self.words(&fact.text)),
            name => format!("{}:: {}\n", escape(name), self.words(&fact.text)),
        }
    }

    fn details(&self, summary: &str, blocks: &str) -> String {
        format!(
            "\n.{}\n[%collapsible]\n====\n{blocks}\n====\n",
            escape(summary)
        )
    }

    fn command(&self, command: &str) -> String {
        format!("\nMade again by:\n\n----\n{command}\n----\n")
    }

    fn rows(&self, table: &Plain, rows: &[Vec<String>]) -> String {
        let sides = table.heads.iter().map(|(_, align)| match align {
            Align::Right => ">",
            Align::Left => "<",
        });
        let sides: Vec<&str> = sides.collect();
        let head = line(table.heads.iter().map(|(title, _)| title));
        let rows: String = rows.iter().map(|row| line(row.iter())).collect();
        let options = format!("[%header%autowidth,cols=\"{}\"]", sides.join(","));
        format!("{options}\n|===\n{head}\n{rows}|===\n")
    }
}

fn line<'a>(cells: impl Iterator<Item = &'a String>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("|{}", escape(cell))).collect();
    format!("{}\n", cells.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::{Block, Document, Section};
    use super::super::table::{Cell, Column, Row, Table};
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
        let document = Document {
            title: "All".into(),
            lead: vec![Block::List(vec![
                Text::new("--- found", Tone::Strong).over(["why"]),
            ])],
            sections: vec![section],
            end: Vec::new(),
        };
        let text = markup::document(&AsciiDoc, &document);
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
