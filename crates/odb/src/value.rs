//! Cells, and how entries are written as values.

use crate::engine::Piece;
use crate::{Error, Result};

/// What a cell holds; the number is how a file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text: pages, style sheets, data that a person reads.
    Text = 1,
    /// Anything else: pictures, archives.
    Binary = 2,
    /// A program.
    Script = 3,
    /// An outline (OPML).
    Outline = 4,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        ["text", "binary", "script", "outline"][self as usize - 1]
    }

    fn from_tag(tag: u8) -> Option<Kind> {
        [Kind::Text, Kind::Binary, Kind::Script, Kind::Outline]
            .into_iter()
            .find(|k| *k as u8 == tag)
    }
}

/// A cell with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// What it holds.
    pub kind: Kind,
    /// When it was last changed, in seconds since 1970.
    pub modified: i64,
    /// The content.
    pub body: &'a [u8],
}

/// A part of a cell that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What the cell holds.
    pub kind: Kind,
    /// When it was last changed, in seconds since 1970.
    pub modified: i64,
    /// Its whole length in bytes.
    pub size: u64,
    /// The bytes that were read.
    pub read: usize,
}

/// Something that a table holds, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A further table.
    Table,
    /// A cell.
    Cell {
        /// What it holds.
        kind: Kind,
        /// When it was last changed, in seconds since 1970.
        modified: i64,
        /// Its length in bytes.
        size: u64,
    },
}

/// What a table holds: names and entries, in the order of the names.
pub type Listing = Vec<(Vec<u8>, Entry)>;

/// Bytes before a cell's body: its kind, and the time of its last change. Sixteen of them are more than are needed, but
/// an engine that keeps a large value in pages of its own puts sixteen bytes before it (LMDB does): then the body
/// begins where the widest loads of a processor are aligned, and is read twice as fast as one that does not.
pub(crate) const HEAD: usize = 16;
const TABLE: u8 = 0;

/// A head: what kind of value it is, and a number.
pub(crate) fn head(tag: u8, number: [u8; 8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = tag;
    head[HEAD - 8..].copy_from_slice(&number);
    head
}

/// What stands before a cell's body.
pub(crate) fn cell_head(cell: &Cell) -> [u8; HEAD] {
    head(cell.kind as u8, cell.modified.to_le_bytes())
}

/// A table's value: its number (0 with flat keys, which need none).
pub(crate) fn table_value(id: u64) -> [u8; HEAD] {
    head(TABLE, id.to_le_bytes())
}

/// The number in a head.
#[inline]
pub(crate) fn number_of(head: &[u8]) -> Option<[u8; 8]> {
    (head.len() == HEAD).then(|| head.last_chunk().copied())?
}

/// A value read.
pub(crate) enum Read<'a> {
    Table(u64),
    Cell(Cell<'a>),
}

/// Reads a value, given as its head and its body.
#[inline]
pub(crate) fn read<'a>(head: &[u8], body: &'a [u8]) -> Result<Read<'a>> {
    let damaged = || Error::Damaged("an entry is cut short or of no known kind".to_owned());
    let number = number_of(head).ok_or_else(damaged)?;
    match head[0] {
        TABLE => Ok(Read::Table(u64::from_le_bytes(number))),
        tag => {
            let kind = Kind::from_tag(tag).ok_or_else(damaged)?;
            Ok(Read::Cell(Cell {
                kind,
                modified: i64::from_le_bytes(number),
                body,
            }))
        }
    }
}

/// A cell's part; `None` for a table.
pub(crate) fn part(piece: &Piece) -> Result<Option<Part>> {
    Ok(match read(&piece.head, &[])? {
        Read::Table(_) => None,
        Read::Cell(c) => Some(Part {
            kind: c.kind,
            modified: c.modified,
            size: piece.size,
            read: piece.read,
        }),
    })
}

/// What an entry is, from the beginning of its value and the value's length.
pub(crate) fn entry(head: &[u8], length: u64) -> Result<Entry> {
    Ok(match read(head, &[])? {
        Read::Table(_) => Entry::Table,
        Read::Cell(c) => Entry::Cell {
            kind: c.kind,
            modified: c.modified,
            size: length.saturating_sub(HEAD as u64),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_written_and_nonsense_is_refused() {
        let cell = Cell {
            kind: Kind::Outline,
            modified: -5,
            body: b"text",
        };
        let head = cell_head(&cell);
        assert!(matches!(read(&head, cell.body), Ok(Read::Cell(c)) if c == cell));
        assert!(matches!(read(&table_value(77), &[]), Ok(Read::Table(77))));
        assert!(
            read(&head[..HEAD - 1], b"").is_err()
                && read(&[9; HEAD], b"").is_err()
                && read(&[], b"").is_err()
        );
        assert_eq!(
            entry(&head, HEAD as u64 + 4).unwrap(),
            Entry::Cell {
                kind: Kind::Outline,
                modified: -5,
                size: 4
            }
        );
    }
}
