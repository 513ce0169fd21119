//! What readers and writers of a database can be asked.

use crate::Result;
use crate::value::{Cell, Entry, Listing, Part};

/// Finds cells. Every call is one read transaction, which sees the newest commit.
pub trait Reader {
    /// Hands over the cell at a path; false when there is none. The body is valid within the call only.
    fn cell(&mut self, path: &[u8], take: &mut dyn FnMut(Cell<'_>)) -> Result<bool>;
    /// Reads a part of the cell at a path: as much from an offset on as there is room for. `None` when there is no
    /// cell. However large the cell, no more than the part is in memory (with redb, whose cache holds a value as a
    /// whole, all readers share one).
    fn part(&mut self, path: &[u8], offset: u64, room: &mut [u8]) -> Result<Option<Part>>;
    /// What a path names, without its content.
    fn entry(&mut self, path: &[u8]) -> Result<Option<Entry>>;
    /// What a table holds, in the order of the names; `None` when there is no such table.
    fn list(&mut self, path: &[u8]) -> Result<Option<Listing>>;
}

/// Changes the database, within one transaction.
pub trait Writer {
    /// Makes a table, with those on the way. One that exists stays as it is.
    fn table(&mut self, path: &[u8]) -> Result<()>;
    /// Sets a cell, with the tables on the way.
    fn put(&mut self, path: &[u8], cell: &Cell) -> Result<()>;
}
