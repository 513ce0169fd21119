//! A table: columns, rows in groups, and cells that know their figures.

use super::text::Text;
use crate::grid::Align;
use crate::lab::derived::Derived;
use crate::style::Tone;
use crate::words::clean;

/// Columns of a higher rank are for a wide terminal alone.
pub const LAST_RANK_ON_PAPER: u8 = 3;

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its title, cleaned.
    pub title: String,
    /// Which side its texts are flush with.
    pub align: Align,
    /// Columns are left out on a narrow terminal, the highest number first; 0 is never left out.
    pub rank: u8,
    /// What stands beside the figures of its cells (a unit, an interval, a ratio, a share) as a column of its own, where
    /// there are no two sizes of letters.
    pub beside: Option<Box<Column>>,
}

/// A cell: its text, and what stands beside it.
#[derive(Default)]
pub struct Cell {
    /// The text, cleaned.
    pub text: String,
    /// What stands beside it: a unit, an interval, a ratio; mostly nothing.
    pub beside: String,
    /// The figures that it tells, for formats that programs read.
    pub figures: Vec<Derived>,
}

/// A row.
pub struct Row {
    /// One cell for each column.
    pub cells: Vec<Cell>,
    /// Whether it is doubtful, or a sum.
    pub tone: Tone,
    /// What is to be said of it.
    pub notes: Vec<Text>,
}

/// Rows of a table under a title of their own.
#[derive(Default)]
pub struct Group {
    /// The title, cleaned; empty where the table is one group.
    pub title: String,
    /// The parameters that all of its rows have alike.
    pub shared: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// What is to be said below them.
    pub notes: Vec<Text>,
}

/// A table.
#[derive(Default)]
pub struct Table {
    /// What it is of, where the title above it does not say so.
    pub caption: Option<String>,
    /// The columns; columns whose cells are all empty are not shown.
    pub columns: Vec<Column>,
    /// The rows.
    pub groups: Vec<Group>,
}

impl Column {
    /// A column whose title is cleaned here.
    pub fn new(title: impl AsRef<str>, align: Align, rank: u8) -> Column {
        Column {
            title: clean(title.as_ref()),
            align,
            rank,
            beside: None,
        }
    }

    /// A column of words that is always shown.
    pub fn words(title: impl AsRef<str>) -> Column {
        Column::new(title, Align::Left, 0)
    }

    /// A column of figures that is always shown.
    pub fn figures(title: impl AsRef<str>) -> Column {
        Column::new(title, Align::Right, 0)
    }

    /// The same with something beside each figure, under a title of its own.
    pub fn beside(mut self, beside: Column) -> Column {
        self.beside = Some(Box::new(beside));
        self
    }
}

impl Cell {
    /// A text, which is cleaned here.
    pub fn new(text: impl AsRef<str>) -> Cell {
        Cell {
            text: clean(text.as_ref()),
            ..Cell::default()
        }
    }

    /// The same with something beside it.
    pub fn beside(mut self, text: impl AsRef<str>) -> Cell {
        self.beside = clean(text.as_ref());
        self
    }

    /// The same with the figures that it tells.
    pub fn with(mut self, figures: impl IntoIterator<Item = Derived>) -> Cell {
        self.figures.extend(figures);
        self
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text)
    }
}

impl Row {
    /// A row of cells.
    pub fn new(cells: impl IntoIterator<Item = Cell>, tone: Tone) -> Row {
        Row {
            cells: cells.into_iter().collect(),
            tone,
            notes: Vec::new(),
        }
    }

    /// The same with what is to be said of it.
    pub fn noted(mut self, notes: impl IntoIterator<Item = Text>) -> Row {
        self.notes.extend(notes);
        self
    }
}

impl Group {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.notes.is_empty()
    }
}

impl Table {
    /// A table of these columns.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            columns: columns.into_iter().collect(),
            ..Table::default()
        }
    }

    /// The same with what it is of.
    pub fn caption(mut self, caption: impl AsRef<str>) -> Table {
        self.caption = Some(clean(caption.as_ref()));
        self
    }

    /// The same with further rows.
    pub fn with(mut self, rows: impl IntoIterator<Item = Row>) -> Table {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        if let Some(last) = self.groups.last_mut() {
            last.rows.extend(rows);
        }
        self
    }

    /// The same with further groups of rows.
    pub fn grouped(mut self, groups: impl IntoIterator<Item = Group>) -> Table {
        self.groups.extend(groups);
        self
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Group::is_empty)
    }

    /// The figures of all cells, row by row.
    pub fn figures(&self) -> impl Iterator<Item = &Derived> {
        let cells = self.rows().flat_map(|row| &row.cells);
        cells.flat_map(|cell| &cell.figures)
    }

    /// The columns that show something, with their places.
    pub fn shown(&self) -> Vec<(usize, &Column)> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(i, _)| self.says(*i, |cell| &cell.text) || self.says(*i, |cell| &cell.beside))
            .collect()
    }

    /// Whether a part of a column's cells says anything.
    fn says(&self, column: usize, part: fn(&Cell) -> &str) -> bool {
        let mut cells = self.rows().filter_map(|row| row.cells.get(column));
        cells.any(|cell| !part(cell).is_empty())
    }

    /// The parts of cells as columns of their own, as far as they say anything: for a format of which all letters have
    /// one size.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            let text: fn(&Cell) -> &str = |cell| &cell.text;
            let beside: fn(&Cell) -> &str = |cell| &cell.beside;
            let both = [(Some(column), text), (column.beside.as_deref(), beside)];
            let both = both.into_iter().filter(|(_, of)| self.says(place, *of));
            parts.extend(both.filter_map(|(column, of)| {
                let column = column?;
                Some(Part { column, place, of })
            }));
        }
        parts
    }

    /// The table in plain columns: for a format whose tables have nothing else.
    pub fn plain(&self) -> Plain {
        let mut parts = self.parts();
        parts.retain(|part| part.column.rank <= LAST_RANK_ON_PAPER);
        let noted = self.rows().any(|row| !row.notes.is_empty());
        let head = |part: &Part| (part.column.title.clone(), part.column.align);
        let mut heads: Vec<(String, Align)> = parts.iter().map(head).collect();
        heads.extend(noted.then(|| ("remarks".to_owned(), Align::Left)));
        let texts = |row: &Row| {
            let cells = parts.iter().map(|part| part.text(row).to_owned());
            let notes: Vec<&str> = row.notes.iter().map(|note| note.words.as_str()).collect();
            cells.chain(noted.then(|| notes.join("; "))).collect()
        };
        let group = |group: &Group| group.rows.iter().map(texts).collect();
        Plain {
            heads,
            groups: self.groups.iter().map(group).collect(),
        }
    }
}

/// A table in plain columns. What is said of rows is the last one.
pub struct Plain {
    /// The titles, each with the side that its column is flush with.
    pub heads: Vec<(String, Align)>,
    /// The rows' texts, group by group.
    pub groups: Vec<Vec<Vec<String>>>,
}

/// A part of a table's cells.
pub struct Part<'a> {
    /// The column that it is or could be.
    pub column: &'a Column,
    place: usize,
    of: fn(&Cell) -> &str,
}

impl Part<'_> {
    /// Its text in a row; empty where the row has no such cell.
    pub fn text<'a>(&self, row: &'a Row) -> &'a str {
        row.cells.get(self.place).map_or("", self.of)
    }
}
