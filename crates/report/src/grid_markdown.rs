//! A grid in Markdown: what a laboratory shows in the terminal, as an issue tracker renders it.

use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::words::escape;

/// What the line before belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Table,
    List,
}

impl Grid {
    /// Headings of the second rank, tables, lists and sentences. The first cells of a table are its head where they are
    /// titles (faint, or the columns' own); else the head stays empty, since Markdown knows no table without one. A
    /// sentence with an empty label belongs to the item before it, and is a sentence where there is none.
    pub fn markdown(&self) -> String {
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|i| self.natural_width(*i) > 0)
            .collect();
        let mut text = String::new();
        let mut before = Block::Text;
        for line in &self.lines {
            let block = match line {
                Line::Blank => continue,
                Line::Cells(..) => Block::Table,
                Line::Labelled(name, ..) if name.is_empty() && before != Block::List => Block::Text,
                Line::Labelled(..) => Block::List,
                Line::Heading(_) | Line::Note(..) => Block::Text,
            };
            let begins = block == Block::Text || block != before;
            if begins {
                text.push('\n');
            }
            match line {
                Line::Blank => {}
                Line::Heading(title) => text.push_str(&format!("## {}\n", escape(title))),
                Line::Note(sentence, _) => text.push_str(&format!("{}\n", escape(sentence.trim()))),
                Line::Labelled(_, sentence, _) if block == Block::Text => {
                    text.push_str(&format!("{}\n", escape(sentence)));
                }
                Line::Labelled(name, sentence, _) if name.is_empty() => {
                    text.push_str(&format!("  - {}\n", escape(sentence)));
                }
                Line::Labelled(name, sentence, _) => text.push_str(&format!(
                    "- **{}**: {}\n",
                    escape(name.trim()),
                    escape(sentence)
                )),
                Line::Cells(cells, tone) => {
                    let titles =
                        *tone == Tone::Faint || self.columns.iter().map(|c| c.title).eq(cells);
                    let cells = row(used.iter().map(|i| {
                        cells
                            .get(*i)
                            .map_or(String::new(), |cell| escape(cell.trim()))
                    }));
                    match (begins, titles) {
                        (false, _) => text.push_str(&cells),
                        (true, true) => text.push_str(&(cells + &self.rule(&used))),
                        (true, false) => text.push_str(
                            &(row(used.iter().map(|_| String::new())) + &self.rule(&used) + &cells),
                        ),
                    }
                }
            }
            before = block;
        }
        text
    }

    /// The line below a table's head, which says how its columns are aligned.
    fn rule(&self, used: &[usize]) -> String {
        rule(used.iter().map(|i| self.columns[*i].align))
    }
}

/// A table of cells that are escaped: columns as a [`Grid`] has them, and rows.
pub(crate) fn table<const N: usize>(
    columns: [(&str, Align, u8); N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let head = row(columns.iter().map(|c| c.0.to_owned())) + &rule(columns.iter().map(|c| c.1));
    head + &rows
        .into_iter()
        .map(|cells| row(cells.into_iter()))
        .collect::<String>()
}

fn rule(columns: impl Iterator<Item = Align>) -> String {
    row(columns.map(|align| if align == Align::Right { "---:" } else { "---" }.to_owned()))
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Column;

    #[test]
    fn the_columns_titles_are_the_head_of_a_table_whatever_their_tone() {
        let mut grid = Grid::of([("a", Align::Right, 0), ("b", Align::Right, 0)]);
        let cells = |cells: [&str; 2]| Line::Cells(cells.map(String::from).to_vec(), Tone::Strong);
        grid.lines.extend([cells(["a", "b"]), cells(["1", "2"])]);
        assert_eq!(grid.markdown(), "\n| a | b |\n| ---: | ---: |\n| 1 | 2 |\n");
    }

    #[test]
    fn a_grid_becomes_headings_tables_lists_and_sentences() {
        let column = |align| Column {
            title: "",
            align,
            rank: 0,
        };
        let cells = |cells: [&str; 3], tone| Line::Cells(cells.map(String::from).to_vec(), tone);
        let lines = vec![
            Line::Heading("One".into()),
            cells(["", "", "size"], Tone::Faint),
            cells(["  a|b", "", "1"], Tone::Plain),
            Line::Blank,
            Line::Note("A *sentence*.".into(), Tone::Plain),
            cells(["c", "", "2"], Tone::Plain),
            Line::Labelled("  L1".into(), "holds".into(), Tone::Plain),
            Line::Labelled("L2".into(), "holds more".into(), Tone::Plain),
            Line::Labelled(String::new(), "and more".into(), Tone::Plain),
            Line::Heading("Two".into()),
            Line::Labelled(String::new(), "Alone.".into(), Tone::Plain),
        ];
        let grid = Grid {
            columns: vec![
                column(Align::Left),
                column(Align::Left),
                column(Align::Right),
            ],
            lines,
        };
        // The column in the middle is empty, and goes.
        assert_eq!(
            grid.markdown(),
            "\n## One\n\n|  | size |\n| --- | ---: |\n| a\\|b | 1 |\n\nA \\*sentence\\*.\n\n|  |  |\n| --- | ---: |\n| \
             c | 2 |\n\n\
             - **L1**: holds\n- **L2**: holds more\n  - and more\n\n## Two\n\nAlone.\n"
        );
    }
}
