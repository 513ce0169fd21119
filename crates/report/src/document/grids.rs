//! Blocks of the lines that a grid has: for screens that are made as lines.

use super::blocks::Block;
use super::table::{Cell, Column, Group, Row, Table};
use super::text::{Fact, Text};
use crate::grid::{Grid, Line};
use crate::style::Tone;
use crate::words::clean;

/// A grid as blocks. Its first cells are titles where they are faint, or the columns' own.
pub(crate) fn blocks(grid: Grid) -> Vec<Block> {
    let titles: Vec<String> = grid.columns.iter().map(|c| c.title.to_owned()).collect();
    let named = |titles: &[String]| {
        let columns = grid.columns.iter().zip(titles);
        Table::new(columns.map(|(c, title)| Column::new(title, c.align, c.rank)))
    };
    let mut all: Vec<Block> = Vec::new();
    let mut lines = grid.lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        match (line, all.last_mut()) {
            (Line::Blank, _) => {}
            (Line::Heading(title), Some(Block::Table(table))) if is_of_table(lines.peek()) => {
                table.groups.push(Group {
                    title: clean(&title),
                    ..Group::default()
                });
            }
            (Line::Heading(title), _) => all.push(Block::heading(title)),
            (Line::Cells(cells, tone), Some(Block::Table(table))) => {
                let row = Row::new(cells.iter().map(Cell::from), tone);
                *table = std::mem::take(table).with([row]);
            }
            (Line::Cells(cells, tone), _) if tone == Tone::Faint || cells == titles => {
                all.push(Block::Table(named(&cells)));
            }
            (Line::Cells(cells, tone), _) => {
                let row = Row::new(cells.iter().map(Cell::from), tone);
                all.push(Block::Table(named(&titles).with([row])));
            }
            (Line::Note(words, tone), Some(Block::Table(table))) if !table.is_empty() => {
                let rows = table.groups.last_mut().map(|group| &mut group.rows);
                if let Some(row) = rows.and_then(|rows| rows.last_mut()) {
                    row.notes.push(Text::new(words, tone));
                }
            }
            (Line::Note(words, tone), Some(Block::List(list))) => list.push(Text::new(words, tone)),
            (Line::Note(words, tone), _) => all.push(Block::List(vec![Text::new(words, tone)])),
            (Line::Labelled(name, words, tone), Some(Block::Facts(facts))) => {
                facts.push(Fact::new(name, words, tone));
            }
            (Line::Labelled(name, words, tone), _) if name.is_empty() => {
                all.push(Block::Sentence(Text::new(words, tone)));
            }
            (Line::Labelled(name, words, tone), _) => {
                all.push(Block::Facts(vec![Fact::new(name, words, tone)]));
            }
        }
    }
    all
}

/// Whether a title before this line is one of rows: they follow, or the next title where there are none.
fn is_of_table(line: Option<&Line>) -> bool {
    match line {
        Some(Line::Cells(_, tone)) => *tone != Tone::Faint,
        Some(Line::Heading(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Section, markdown, terminal};
    use crate::grid::Align;
    use crate::style::Style;

    #[test]
    fn lines_become_tables_facts_and_lists() {
        let mut grid = Grid::titled([("what", Align::Left, 0), ("time", Align::Right, 0)]);
        let cells = |cells: [&str; 2], tone| Line::Cells(cells.map(String::from).to_vec(), tone);
        grid.lines.extend([
            cells(["a lock", "1 s"], Tone::Bad),
            Line::Note("its evidence".into(), Tone::Faint),
            cells(["no time", ""], Tone::Faint),
            Line::Heading("Below".into()),
            Line::Note("One.".into(), Tone::Plain),
            Line::Note("Two.".into(), Tone::Plain),
            Line::Labelled("L1".into(), "holds".into(), Tone::Plain),
        ]);
        let section = || Section::new("k", "T").with(blocks(grid.clone()));
        assert_eq!(
            markdown::render(&[section()], 2),
            "\n## T\n\n| what | time | remarks |\n| --- | ---: | --- |\n| a lock | 1 s | its evidence |\n| no time |  |  \
             |\n\n### Below\n\n- One.\n- Two.\n\n- **L1**: holds\n"
        );
        let text = terminal::render(&[section()], &Style::default());
        assert_eq!(
            text,
            "T\nwhat     time\na lock    1 s\n    its evidence\nno time\n\nBelow\n    One.\n    Two.\nL1  holds\n"
        );
    }
}
