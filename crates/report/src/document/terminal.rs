//! A document on a terminal.

use std::io::{self, Write};

use super::blocks::{Block, Document, Section};
use super::format::{Backend, Screen};
use super::table::{Group, Part, Table};
use super::text::{Fact, Text};
use crate::grid::{Grid, Line};
use crate::style::{Style, Tone};

/// The format.
pub struct Terminal;

impl Backend for Terminal {
    fn name(&self) -> &'static str {
        "table"
    }

    fn purpose(&self) -> &'static str {
        "For a person at a terminal"
    }

    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, style: &Style) -> io::Result<()> {
        out.write_all(document(&screen.document(), style).as_bytes())
    }
}

/// A document for a terminal.
pub fn document(document: &Document, style: &Style) -> String {
    let heading = (!document.title.is_empty()).then(|| Line::Heading(document.title.clone()));
    let lead = grid(heading).render(style) + &blocks(&document.lead, style);
    let parts = [
        lead,
        render(&document.sections, style),
        blocks(&document.end, style),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Sections, with an empty line between them.
pub fn render(sections: &[Section], style: &Style) -> String {
    let section = |s: &Section| {
        let title = (!s.title.is_empty()).then(|| Line::Heading(s.title.clone()));
        grid(title).render(style) + &blocks(&s.blocks, style)
    };
    let all: Vec<String> = sections.iter().map(section).collect();
    all.join("\n")
}

/// Blocks, as far as they show anything. A title, and a table that would look like what is before it, begin behind an
/// empty line.
fn blocks(blocks: &[Block], style: &Style) -> String {
    let mut text = String::new();
    let (mut titled, mut parted) = (true, false);
    for block in blocks.iter().filter(|b| !b.is_empty()) {
        let own = render_block(block, style);
        if own.is_empty() {
            parted |= matches!(block, Block::Apart) && !text.is_empty();
            continue;
        }
        let apart = match block {
            Block::Heading(_) => !text.is_empty(),
            Block::Table(_) | Block::Chart(_) => !titled,
            _ => parted,
        };
        if apart {
            text.push('\n');
        }
        text += &own;
        parted = false;
        titled = matches!(block, Block::Heading(_));
    }
    text
}

fn render_block(block: &Block, style: &Style) -> String {
    match block {
        Block::Figures(_) | Block::Command(_) | Block::Apart => String::new(),
        Block::Heading(title) => grid([Line::Heading(title.clone())]).render(style),
        Block::Sentence(text) if text.words.is_empty() => String::new(),
        Block::Sentence(text) => {
            let (none, words) = (String::new(), text.words.clone());
            grid([Line::Labelled(none, words, text.tone)]).render(style)
        }
        Block::List(list) => grid(list.iter().flat_map(item)).render(style),
        Block::Facts(facts) => grid(facts.iter().map(fact)).render(style),
        Block::Table(table) => of_table(table).render(style),
        Block::Chart(chart) => chart
            .table()
            .map_or_else(String::new, |table| of_table(&table).render(style)),
        Block::Details { blocks: all, .. } if style.wide => blocks(all, style),
        Block::Details { summary, short, .. } => {
            let line = Line::Labelled(summary.clone(), short.words.clone(), short.tone);
            grid([line]).render(style)
        }
    }
}

fn fact(fact: &Fact) -> Line {
    Line::Labelled(fact.name.clone(), fact.text.words.clone(), fact.text.tone)
}

/// A sentence, and below it what belongs to it.
fn item(text: &Text) -> Vec<Line> {
    let first = Line::Note(text.words.clone(), text.tone);
    let below = text.below.iter();
    let below = below.map(|words| Line::Note(format!("– {words}"), Tone::Plain));
    std::iter::once(first).chain(below).collect()
}

fn grid(lines: impl IntoIterator<Item = Line>) -> Grid {
    Grid {
        columns: Vec::new(),
        lines: lines.into_iter().collect(),
    }
}

/// A table as aligned lines: each part of a cell has a column of its own.
fn of_table(table: &Table) -> Grid {
    let parts = table.parts();
    let sides = parts
        .iter()
        .map(|part| (part.column.align, part.column.rank));
    let mut grid = Grid::untitled(sides);
    let caption = table.caption.iter();
    grid.lines
        .extend(caption.map(|text| Line::Labelled(String::new(), text.clone(), Tone::Faint)));
    let titles: Vec<String> = parts.iter().map(|p| p.column.title.clone()).collect();
    if titles.iter().any(|title| !title.is_empty()) {
        grid.lines.push(Line::Cells(titles, Tone::Faint));
    }
    for group in &table.groups {
        grid.lines.extend(of_group(group, &parts));
    }
    grid
}

fn of_group(group: &Group, parts: &[Part]) -> Vec<Line> {
    let mut lines = Vec::new();
    // Rows stand a little to the right of their title.
    let mut indent = "";
    if !group.title.is_empty() {
        let words = std::iter::once(&group.title).chain(&group.shared);
        let words: Vec<&str> = words.map(String::as_str).collect();
        lines.push(Line::Heading(words.join("  ")));
        indent = "  ";
    }
    for row in &group.rows {
        let cell = |(n, part): (usize, &Part)| match n {
            0 => format!("{indent}{}", part.text(row)),
            _ => part.text(row).to_owned(),
        };
        let cells = parts.iter().enumerate().map(cell).collect();
        lines.push(Line::Cells(cells, row.tone));
        lines.extend(row.notes.iter().flat_map(item));
    }
    lines.extend(group.notes.iter().flat_map(item));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, Column, Row};
    use super::*;

    fn document_of() -> Document {
        let columns = [
            Column::words("app"),
            Column::figures("swap").beside(Column::figures("ratio")),
            Column::words("nothing"),
        ];
        let cells = [Cell::new("vi\u{1b}"), Cell::new("3.1").beside("0.63")];
        let row = Row::new(cells, Tone::Plain).noted([Text::new("a remark", Tone::Faint)]);
        let group = Group {
            title: "Editors".into(),
            shared: vec!["cpu=1".into()],
            rows: vec![row],
            notes: Vec::new(),
        };
        let section = Section::new("k", "Title").with([
            Block::Table(Table::new(columns).grouped([group])),
            Block::Facts(vec![Fact::new("Name", "text", Tone::Plain)]),
            Block::sentence("What follows."),
            Block::Apart,
            Block::sentence("Another matter."),
            Block::heading("Below"),
            Block::Details {
                summary: "ruled out".into(),
                short: Text::new("a, b", Tone::Faint),
                blocks: vec![Block::List(vec![
                    Text::new("a", Tone::Faint).over(["its evidence"]),
                ])],
            },
        ]);
        Document {
            title: "All".into(),
            lead: vec![Block::sentence("First.")],
            sections: vec![section],
            end: vec![Block::Command("fingerpost run".into())],
        }
    }

    #[test]
    fn a_document_is_lines_in_columns_and_hides_details_until_asked() {
        let text = document(&document_of(), &Style::default());
        assert_eq!(
            text,
            "All\n  First.\n\nTitle\napp    swap  ratio\nEditors  cpu=1\n  vi\u{fffd}   3.1   0.63\n    a remark\nName  \
             text\n  What follows.\n\n  Another matter.\n\nBelow\nruled out  a, b\n"
        );
        let style = Style {
            wide: true,
            ..Style::default()
        };
        let wide = document(&document_of(), &style);
        assert!(
            wide.ends_with("Below\n    a\n    – its evidence\n"),
            "{wide}"
        );
    }
}
