//! A document as text with signs for headings, lists and tables: the way through it, which such formats share. Each says
//! how it writes what it finds there.

use super::blocks::{Block, Document, Section};
use super::table::{Plain, Table};
use super::text::{Fact, Text};

/// How a format of text with signs writes the pieces of a document.
pub(super) trait Markup {
    /// Text that is shown as it is, whatever it is made of.
    fn escape(&self, text: &str) -> String;
    /// A heading of this rank, with its line end.
    fn heading(&self, title: &str, rank: usize) -> String;
    /// A sentence, by its tone.
    fn words(&self, text: &Text) -> String;
    /// A point of a list with what stands below it.
    fn item(&self, text: &Text) -> String;
    /// A fact under its name; without one it belongs to the fact before it.
    fn fact(&self, fact: &Fact) -> String;
    /// Blocks that are looked at where they are wanted, written already.
    fn details(&self, summary: &str, blocks: &str) -> String;
    /// A command as it is typed.
    fn command(&self, command: &str) -> String;
    /// Rows under the heads of their table.
    fn rows(&self, table: &Plain, rows: &[Vec<String>]) -> String;
}

/// A document: its title, what leads, its sections, and what ends it.
pub(super) fn document(of: &dyn Markup, document: &Document) -> String {
    let title = match document.title.as_str() {
        "" => String::new(),
        title => of.heading(title, 1),
    };
    let [lead, end] = [&document.lead, &document.end].map(|all| blocks(of, all, 2));
    [title, lead, sections(of, &document.sections, 2), end].concat()
}

/// Sections: each begins with an empty line, and a heading of this rank.
pub(super) fn sections(of: &dyn Markup, all: &[Section], rank: usize) -> String {
    let section = |s: &Section| match s.title.as_str() {
        "" => blocks(of, &s.blocks, rank),
        title => below(of.heading(title, rank)) + &blocks(of, &s.blocks, rank + 1),
    };
    all.iter().map(section).collect()
}

/// Behind an empty line.
fn below(text: String) -> String {
    format!("\n{text}")
}

/// Blocks, each behind an empty line.
fn blocks(of: &dyn Markup, all: &[Block], rank: usize) -> String {
    let all = all.iter().filter(|b| !b.is_empty());
    all.map(|b| block(of, b, rank)).collect()
}

fn block(of: &dyn Markup, block: &Block, rank: usize) -> String {
    match block {
        Block::Figures(_) | Block::Apart => String::new(),
        Block::Heading(title) => below(of.heading(title, rank)),
        Block::Sentence(text) if text.words.is_empty() => String::new(),
        Block::Sentence(text) => format!("\n{}\n", of.words(text)),
        Block::List(list) => below(items(of, list)),
        Block::Facts(facts) => below(facts.iter().map(|f| of.fact(f)).collect()),
        Block::Table(table) => of_table(of, table, rank),
        Block::Chart(chart) => {
            let table = chart.table();
            table.map_or_else(String::new, |table| of_table(of, &table, rank))
        }
        Block::Details {
            summary,
            blocks: all,
            ..
        } => of.details(summary, &blocks(of, all, rank)),
        Block::Command(command) => of.command(command),
    }
}

fn items(of: &dyn Markup, list: &[Text]) -> String {
    list.iter().map(|text| of.item(text)).collect()
}

fn of_table(of: &dyn Markup, table: &Table, rank: usize) -> String {
    let plain = table.plain();
    let caption = table.caption.iter();
    let mut text: String = caption.map(|c| format!("\n{}\n", of.escape(c))).collect();
    for (group, rows) in table.groups.iter().zip(&plain.groups) {
        if !group.title.is_empty() && !group.is_empty() {
            text += &below(of.heading(&group.title, rank));
        }
        if !group.shared.is_empty() {
            text += &format!("\nAll rows: {}\n", of.escape(&group.shared.join(" ")));
        }
        if !rows.is_empty() {
            text += &below(of.rows(&plain, rows));
        }
        if !group.notes.is_empty() {
            text += &below(items(of, &group.notes));
        }
    }
    text
}
