//! A document as a page.

use std::io::{self, Write};

use maud::{Markup, html};

use super::blocks::{Block, Document, Section};
use super::format::{Backend, Screen};
use super::table::{Cell, Column, Group, LAST_RANK_ON_PAPER, Row, Table};
use super::text::Text;
use crate::grid::Align;
use crate::html::content::{self, Content};
use crate::html::page;
use crate::html::parts::{scrolling, sentence};
use crate::html::term::term;
use crate::style::{Style, Tone};

/// The format.
pub struct Html;

impl Backend for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn purpose(&self) -> &'static str {
        "A page that needs nothing else, as “report” makes it"
    }

    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, _: &Style) -> io::Result<()> {
        out.write_all(page::page(&screen.page()).as_bytes())
    }
}

/// Columns of this rank and higher have no room on a phone.
const FIRST_RANK_BESIDES: u8 = 2;

/// A document as the content of a page.
pub fn content(document: &Document) -> Content {
    let mut lead = blocks(&document.lead, &document.title);
    let mut sections: Vec<content::Section> = Vec::new();
    for part in &document.sections {
        // What has no title belongs to what stands before it.
        let before = sections.last_mut().map_or(&mut lead, |s| &mut s.body);
        match part.title.as_str() {
            "" => before.0 += &blocks(&part.blocks, &document.title).0,
            _ => sections.push(section(part)),
        }
    }
    let end = (!document.end.is_empty()).then(|| content::Section {
        key: "end".into(),
        title: "How it was made".into(),
        body: blocks(&document.end, ""),
    });
    Content {
        title: document.title.clone(),
        lead,
        sections: sections.into_iter().chain(end).collect(),
    }
}

/// A section of a page.
pub fn section(section: &Section) -> content::Section {
    content::Section {
        key: section.key.clone(),
        title: section.title.clone(),
        body: blocks(&section.blocks, &section.title),
    }
}

/// Blocks under a title, which names their tables.
fn blocks(all: &[Block], title: &str) -> Markup {
    let mut title = title;
    let each = all.iter().filter(|b| !b.is_empty()).map(|block| {
        if let Block::Heading(own) = block {
            title = own;
        }
        of_block(block, title)
    });
    html! { @for block in each { (block) } }
}

fn of_block(block: &Block, title: &str) -> Markup {
    match block {
        Block::Figures(_) | Block::Apart => html! {},
        Block::Heading(title) => html! { h3 { (title) } },
        Block::Sentence(text) if text.words.is_empty() => html! {},
        Block::Sentence(text) => html! { p class=[class(text.tone)] { (words(text)) } },
        Block::List(list) => html! { ul { @for text in list {
            li class=[class(text.tone)] {
                (words(text))
                @if !text.below.is_empty() { ul { @for below in &text.below { li { (sentence(below)) } } } }
            }
        } } },
        Block::Facts(facts) => html! { dl class="facts" {
            @for f in facts { div { dt { (f.name) } dd { (f.text.words) } } }
        } },
        Block::Table(table) => of_table(table, title),
        Block::Chart(chart) => chart.picture(),
        Block::Details {
            summary,
            blocks: all,
            ..
        } => html! { details { summary { (summary) } (blocks(all, title)) } },
        Block::Command(command) => html! { pre tabindex="0" { code { (command) } } },
    }
}

fn words(text: &Text) -> Markup {
    match text.tone {
        Tone::Strong => html! { strong { (sentence(&text.words)) } },
        _ => sentence(&text.words),
    }
}

/// The style sheet's class of a sentence.
fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain | Tone::Strong | Tone::Good => None,
        Tone::Faint => Some("note"),
        Tone::Doubtful => Some("doubts"),
        Tone::Bad => Some("failed"),
    }
}

/// The style sheet's class of a row.
fn class_of_row(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain | Tone::Strong | Tone::Good => None,
        Tone::Faint => Some("skipped"),
        Tone::Doubtful => Some("untrusted"),
        Tone::Bad => Some("failed"),
    }
}

/// The style sheet's classes of a column's cells.
fn class_of(column: &Column) -> Option<&'static str> {
    match (column.align, column.rank >= FIRST_RANK_BESIDES) {
        (Align::Right, true) => Some("number extra"),
        (Align::Right, false) => Some("number"),
        (Align::Left, true) => Some("extra"),
        (Align::Left, false) => None,
    }
}

fn of_table(table: &Table, title: &str) -> Markup {
    let mut shown = table.shown();
    shown.retain(|(_, column)| column.rank <= LAST_RANK_ON_PAPER);
    let titled = shown.iter().any(|(_, column)| !column.title.is_empty());
    let noted = table.rows().any(|row| !row.notes.is_empty());
    let markup = html! { table {
        @if let Some(caption) = &table.caption { caption { (caption) } }
        @if titled { thead { tr {
            @for (_, column) in &shown { th scope="col" class=[class_of(column)] { (term(&column.title)) } }
            @if noted { th scope="col" { (term("remarks")) } }
        } } }
        @for group in &table.groups { (of_group(group, &shown, noted)) }
    } };
    let notes = table.groups.iter().flat_map(|group| &group.notes);
    html! {
        (scrolling(&format!("{title}, table"), markup))
        @for note in notes { p class=[class(note.tone)] { (words(note)) } }
    }
}

fn of_group(group: &Group, shown: &[(usize, &Column)], noted: bool) -> Markup {
    let columns = shown.len() + usize::from(noted);
    html! { tbody {
        @if !group.title.is_empty() {
            tr { th scope="rowgroup" colspan=(columns) {
                (group.title) @if !group.shared.is_empty() { " " span class="params" { (group.shared.join(" ")) } }
            } }
        }
        @for row in &group.rows { (of_row(row, shown, noted)) }
    } }
}

fn of_row(row: &Row, shown: &[(usize, &Column)], noted: bool) -> Markup {
    html! { tr class=[class_of_row(row.tone)] {
        @for (n, (i, column)) in shown.iter().enumerate() {
            @let cell = row.cells.get(*i);
            @if n == 0 { th scope="row" class=[class_of(column)] { (of_cell(cell, row.tone)) } }
            @else { td class=[class_of(column)] { (of_cell(cell, row.tone)) } }
        }
        @if noted { td class="note" { @for note in &row.notes { p { (words(note)) } } } }
    } }
}

fn of_cell(cell: Option<&Cell>, tone: Tone) -> Markup {
    html! { @if let Some(cell) = cell {
        @if tone == Tone::Strong { strong { (cell.text) } } @else { (cell.text) }
        @if !cell.beside.is_empty() { br; span class="params piece-of-text" { (cell.beside) } }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_its_rows_and_lets_nothing_through() {
        let columns = [
            Column::words("app"),
            Column::figures("swap").beside(Column::figures("ratio")),
            Column::new("share", Align::Right, 2),
        ];
        let cells = [
            Cell::new("<script>\u{1b}"),
            Cell::new("3.1").beside("0.63"),
            Cell::new("7 %"),
        ];
        let table = Table::new(columns).with([Row::new(cells, Tone::Doubtful)]);
        let made = section(&Section::new("k", "Times").with([Block::Table(table)]));
        let body = made.body.into_string();
        for part in [
            "aria-label=\"Times, table\"",
            "<tr class=\"untrusted\"><th scope=\"row\">&lt;script&gt;\u{fffd}</th>",
            "3.1<br><span class=\"params piece-of-text\">0.63</span>",
            "class=\"number extra\">7 %",
        ] {
            assert!(body.contains(part), "no “{part}” in {body}");
        }
    }
}
