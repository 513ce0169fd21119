//! Lines of text in columns that stay aligned over several headed groups.

use unicode_width::UnicodeWidthStr;

use crate::style::{Style, Tone};
use crate::wrap;

/// Space between two columns.
const GAP: &str = "  ";
/// A cell that has to give way keeps this much, and where that is not enough, half of it.
const LEAST: usize = 12;
/// So does a title, whose words are broken less readily.
const LEAST_TITLE: usize = 8;

/// Which side a column's texts are flush with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// Which side its texts are flush with.
    pub align: Align,
    /// Columns are left out on a narrow terminal, the highest number first; 0 is never left out.
    pub rank: u8,
}

/// A line.
#[derive(Clone, Debug)]
pub enum Line {
    /// A heading over the lines that follow.
    Heading(String),
    /// One text per column.
    Cells(Vec<String>, Tone),
    /// A sentence below a row, wrapped and indented.
    Note(String, Tone),
    /// A sentence of its own, wrapped, with a label of its own.
    Labelled(String, String, Tone),
    /// An empty line.
    Blank,
}

/// Columns and lines.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// The columns.
    pub columns: Vec<Column>,
    /// The lines in order.
    pub lines: Vec<Line>,
}

impl Grid {
    /// Columns by title, side and rank, and no lines yet.
    pub fn of<const N: usize>(columns: [(&'static str, Align, u8); N]) -> Grid {
        Grid {
            columns: columns
                .map(|(title, align, rank)| Column { title, align, rank })
                .to_vec(),
            lines: Vec::new(),
        }
    }

    /// The same, with a first line of the columns' titles.
    pub fn titled<const N: usize>(columns: [(&'static str, Align, u8); N]) -> Grid {
        let mut grid = Grid::of(columns);
        grid.lines.push(grid.titles());
        grid
    }

    /// Columns without titles, by side and rank, and no lines yet.
    pub fn untitled(columns: impl IntoIterator<Item = (Align, u8)>) -> Grid {
        let columns = columns
            .into_iter()
            .map(|(align, rank)| Column {
                title: "",
                align,
                rank,
            })
            .collect();
        Grid {
            columns,
            lines: Vec::new(),
        }
    }

    /// The text, every line ended.
    pub fn render(&self, style: &Style) -> String {
        let widths = self.widths(style);
        let label = self
            .lines
            .iter()
            .map(|l| {
                if let Line::Labelled(label, ..) = l {
                    label.width()
                } else {
                    0
                }
            })
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Blank => {}
                Line::Heading(title) => text.push_str(&heading(title, style)),
                Line::Cells(cells, tone) => {
                    text.push_str(&self.cells(cells, &widths, *tone, style))
                }
                Line::Note(sentence, tone) => {
                    text.push_str(&hanging("    ", 4, sentence, *tone, style))
                }
                Line::Labelled(name, sentence, tone) => {
                    text.push_str(&labelled(name, label, sentence, *tone, style));
                }
            }
            text.push('\n');
        }
        text
    }

    /// A line with the columns' titles.
    pub fn titles(&self) -> Line {
        Line::Cells(
            self.columns.iter().map(|c| c.title.to_owned()).collect(),
            Tone::Faint,
        )
    }

    /// Each column's width; nothing for a column that is left out.
    fn widths(&self, style: &Style) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = (0..self.columns.len())
            .map(|i| Some(self.natural_width(i)).filter(|w| *w > 0))
            .collect();
        let Some(limit) = style.width.filter(|_| !style.wide) else {
            return widths;
        };
        let total = |widths: &[Option<usize>]| {
            widths
                .iter()
                .flatten()
                .map(|w| w + GAP.len())
                .sum::<usize>()
                .saturating_sub(GAP.len())
        };
        while total(&widths) > limit {
            let last = (0..widths.len())
                .filter(|i| widths[*i].is_some() && self.columns[*i].rank > 0)
                .max_by_key(|i| self.columns[*i].rank);
            let Some(last) = last else { break };
            widths[last] = None;
        }
        // What is still too wide costs titles that are longer than what stands below them, then the widest columns of
        // words.
        for i in 0..widths.len() {
            let over = total(&widths).saturating_sub(limit);
            if let Some(w) = widths[i] {
                widths[i] = Some(w.saturating_sub(over).max(self.content_width(i)).min(w));
            }
        }
        for least in [LEAST, LEAST / 2]
            .into_iter()
            .flat_map(|least| vec![least; self.columns.len()])
        {
            let over = total(&widths).saturating_sub(limit);
            let words = (0..widths.len())
                .filter(|i| self.columns[*i].align == Align::Left)
                .max_by_key(|i| widths[*i]);
            let Some((i, w)) = words
                .and_then(|i| Some((i, widths[i]?)))
                .filter(|_| over > 0)
            else {
                break;
            };
            widths[i] = Some(w.saturating_sub(over).max(w.min(least)));
        }
        widths
    }

    /// What a column needs for its own texts, with its title broken. As in Markdown, the first cells are titles where
    /// they are faint.
    fn content_width(&self, column: usize) -> usize {
        let mut rows = self
            .lines
            .iter()
            .filter_map(|l| {
                if let Line::Cells(cells, tone) = l {
                    Some((cells, *tone))
                } else {
                    None
                }
            })
            .peekable();
        rows.next_if(|(_, tone)| *tone == Tone::Faint);
        let title = self.columns[column].title;
        let cells = rows
            .filter_map(|(cells, _)| cells.get(column))
            .filter(|c| *c != title);
        cells.map(|c| c.width()).max().unwrap_or(0).max(LEAST_TITLE)
    }

    /// The widest text of a column; 0 where all cells are empty, and then the title goes too.
    fn natural_width(&self, column: usize) -> usize {
        let title = self.columns[column].title;
        let cells = self.lines.iter().filter_map(|l| {
            if let Line::Cells(cells, _) = l {
                cells.get(column)
            } else {
                None
            }
        });
        let widest = cells
            .filter(|c| *c != title)
            .map(|c| c.width())
            .max()
            .unwrap_or(0);
        if widest == 0 {
            0
        } else {
            widest.max(title.width())
        }
    }

    /// A row: one line, or several where a column of words had to give way.
    fn cells(
        &self,
        cells: &[String],
        widths: &[Option<usize>],
        tone: Tone,
        style: &Style,
    ) -> String {
        let wrapped: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(c, w)| w.map_or(vec![], |w| wrap::cell(c, w)))
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let lines: Vec<String> = (0..height)
            .map(|i| style.paint(tone, self.line(&wrapped, widths, i).trim_end()))
            .collect();
        lines.join("\n")
    }

    fn line(&self, wrapped: &[Vec<String>], widths: &[Option<usize>], number: usize) -> String {
        let mut text = String::new();
        for ((lines, column), width) in wrapped.iter().zip(&self.columns).zip(widths) {
            let Some(width) = *width else { continue };
            let cell = lines.get(number).map_or("", String::as_str);
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            match column.align {
                Align::Left => text.extend([cell, &pad, GAP]),
                Align::Right => text.extend([&pad, cell, GAP]),
            }
        }
        text
    }
}

/// A heading, wrapped where it is longer than the terminal is wide.
fn heading(title: &str, style: &Style) -> String {
    let lines = wrap::indented(title, 0, style.width);
    lines
        .split('\n')
        .map(|line| style.paint(Tone::Strong, line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A sentence beside its label, or below it where the labels leave too little room.
fn labelled(name: &str, label: usize, sentence: &str, tone: Tone, style: &Style) -> String {
    let indent = label + GAP.len();
    if style.width.is_some_and(|width| indent * 2 > width) {
        return format!("{name}\n{}", hanging("      ", 6, sentence, tone, style));
    }
    let pad = " ".repeat(label - name.width());
    hanging(&format!("{name}{pad}{GAP}"), indent, sentence, tone, style)
}

/// A sentence wrapped at the terminal's width, its further lines indented.
fn hanging(first: &str, indent: usize, sentence: &str, tone: Tone, style: &Style) -> String {
    let room = style
        .width
        .map_or(usize::MAX, |w| w.saturating_sub(indent).max(20));
    let lines = wrap::sentence(sentence, room);
    let painted: Vec<String> = lines.iter().map(|l| style.paint(tone, l)).collect();
    format!(
        "{first}{}",
        painted.join(&format!("\n{}", " ".repeat(indent)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::of([
            ("name", Align::Left, 0),
            ("value", Align::Right, 0),
            ("p50", Align::Right, 1),
            ("none", Align::Left, 0),
        ]);
        let cells = |c: [&str; 4]| Line::Cells(c.map(String::from).to_vec(), Tone::Plain);
        grid.lines = vec![
            grid.titles(),
            Line::Heading("A group".into()),
            cells(["a.very.long.name.of.a.probe", "1.5 µs", "2 µs", ""]),
            cells(["b", "1000 µs", "7 µs", ""]),
            Line::Note(
                "a sentence that is long enough to be wrapped".into(),
                Tone::Doubtful,
            ),
        ];
        grid
    }

    #[test]
    fn columns_align_and_empty_ones_vanish() {
        let text = grid().render(&Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "name                           value   p50");
        assert_eq!(lines[2], "a.very.long.name.of.a.probe   1.5 µs  2 µs");
        assert_eq!(lines[3], "b                            1000 µs  7 µs");
    }

    #[test]
    fn a_narrow_terminal_costs_columns_then_words_and_wraps_sentences() {
        let text = grid().render(&Style {
            width: Some(30),
            ..Style::default()
        });
        assert!(text.lines().all(|l| l.width() <= 30), "{text}");
        assert!(
            !text.contains("p50")
                && text.contains("a.very.long.name.of. ")
                && text.contains("\na.probe\n"),
            "{text}"
        );
        let wide = grid().render(&Style {
            width: Some(30),
            wide: true,
            color: false,
        });
        assert!(wide.contains("p50"));
    }

    #[test]
    fn colours_are_used_only_where_they_may() {
        assert!(!grid().render(&Style::default()).contains('\x1b'));
        assert!(
            grid()
                .render(&Style {
                    color: true,
                    ..Style::default()
                })
                .contains("\x1b[1mA group\x1b[0m")
        );
    }
}
