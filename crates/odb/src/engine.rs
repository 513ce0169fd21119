//! The engines, what readers and writers of a database can be asked, and what each engine must be able to do: little
//! enough that nested and flat keys are written once for all of them.

use std::fmt;
use std::str::FromStr;

use crate::Result;
use crate::value::{Cell, Entry, Listing, Part};

/// An embedded engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// LMDB: a memory-mapped B+ tree. Values are read in place.
    Lmdb,
    /// SQLite: SQL over B-trees.
    Sqlite,
    /// redb: a B+ tree in Rust, with a cache of its own.
    Redb,
}

/// What the keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keys {
    /// The table's number and the name within it: a look-up walks the path.
    Nested,
    /// The whole path: one look-up.
    Flat,
}

/// An engine with its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The engine.
    pub engine: Engine,
    /// The keys.
    pub keys: Keys,
}

impl Store {
    /// Every one that there is.
    pub const ALL: [Store; 6] = {
        const fn with(engine: Engine, keys: Keys) -> Store {
            Store { engine, keys }
        }
        use Engine::*;
        use Keys::*;
        [
            with(Lmdb, Nested),
            with(Lmdb, Flat),
            with(Sqlite, Nested),
            with(Sqlite, Flat),
            with(Redb, Nested),
            with(Redb, Flat),
        ]
    };

    /// Its name: `lmdb`, `lmdb-flat` …
    pub fn name(self) -> &'static str {
        const NAMES: [[&str; 2]; 3] = [
            ["lmdb", "lmdb-flat"],
            ["sqlite", "sqlite-flat"],
            ["redb", "redb-flat"],
        ];
        NAMES[self.engine as usize][self.keys as usize]
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Store {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        Store::ALL
            .into_iter()
            .find(|s| s.name() == name)
            .ok_or_else(|| {
                let names = Store::ALL.map(Store::name).join(", ");
                format!("there is no object database “{name}”; take one of {names}")
            })
    }
}

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

/// One read transaction at a time over ordered keys.
pub(crate) trait View {
    /// Begins a read transaction that sees the newest commit.
    fn begin(&mut self) -> Result<()>;
    /// Ends it.
    fn end(&mut self) -> Result<()>;
    /// Hands over the head and the body of a key's value; the body only if `whole`.
    fn get<R>(
        &mut self,
        key: &[u8],
        whole: bool,
        take: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>>;
    /// Copies a part of a key's value: as much of the body from an offset on as there is room for.
    fn part(&mut self, key: &[u8], offset: u64, room: &mut [u8]) -> Result<Option<Piece>> {
        self.get(key, true, |head, body| Piece::of(head, body, offset, room))
    }
    /// Hands over the first key from this one on, the head of its value, and the value's whole length.
    fn lower_bound<R>(
        &mut self,
        key: &[u8],
        take: impl FnOnce(&[u8], &[u8], u64) -> R,
    ) -> Result<Option<R>>;
}

/// A part of a value that was copied.
pub(crate) struct Piece {
    pub(crate) head: Vec<u8>,
    /// The length of the whole body.
    pub(crate) size: u64,
    /// The bytes that were copied.
    pub(crate) read: usize,
}

impl Piece {
    /// A part of a body in memory.
    pub(crate) fn of(head: &[u8], body: &[u8], offset: u64, room: &mut [u8]) -> Piece {
        let from = usize::try_from(offset).map_or(body.len(), |at| at.min(body.len()));
        let read = room.len().min(body.len() - from);
        room[..read].copy_from_slice(&body[from..from + read]);
        Piece {
            head: head.to_vec(),
            size: body.len() as u64,
            read,
        }
    }
}

/// One write transaction over ordered keys.
pub(crate) trait Change {
    /// The head of a key's value.
    fn head(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Sets a key's value.
    fn put(&mut self, key: &[u8], head: &[u8], body: &[u8]) -> Result<()>;
    /// The longest key in bytes.
    fn max_key(&self) -> usize {
        usize::MAX
    }
}

/// How keys of one kind are read, within a transaction.
pub(crate) trait Layout {
    /// Hands over a cell; false when there is none.
    fn cell<V: View>(
        &mut self,
        view: &mut V,
        path: &[u8],
        take: &mut dyn FnMut(Cell),
    ) -> Result<bool>;
    /// Reads a part of a cell; `None` when there is none.
    fn part<V: View>(
        &mut self,
        view: &mut V,
        path: &[u8],
        offset: u64,
        room: &mut [u8],
    ) -> Result<Option<Part>>;
    /// What a path names.
    fn entry<V: View>(&mut self, view: &mut V, path: &[u8]) -> Result<Option<Entry>>;
    /// What a table holds, in the order of the names; `None` when it is no table.
    fn list<V: View>(&mut self, view: &mut V, path: &[u8]) -> Result<Option<Listing>>;
}

/// How keys of one kind are written, by what knows the tables that were met. Paths are trimmed and checked.
pub(crate) trait Tables {
    /// Makes a table where it is not there, with those on the way.
    fn table<C: Change>(&mut self, change: &mut C, path: &[u8]) -> Result<()>;
    /// Sets a cell, with the tables on the way.
    fn put<C: Change>(&mut self, change: &mut C, path: &[u8], cell: &Cell) -> Result<()>;
}

/// Where the kind of the keys is written; no path and no table number can be this.
pub(crate) const FORMAT_KEY: &[u8] = b"/format";
/// Where the number of the next table is written.
pub(crate) const NEXT_KEY: &[u8] = b"/next";

impl Keys {
    /// As it is written under [`FORMAT_KEY`]; longer than a head.
    pub(crate) fn mark(self) -> &'static [u8] {
        [&b"fingerpost odb 2 nested"[..], b"fingerpost odb 2 flat"][self as usize]
    }

    pub(crate) fn from_mark(mark: &[u8]) -> Option<Keys> {
        [Keys::Nested, Keys::Flat]
            .into_iter()
            .find(|k| k.mark() == mark)
    }
}
