//! A reader that keeps the tables it has met in memory, as Frontier's object database did: “The performance ratio
//! increased … as more and more of the subtables had been loaded into memory.”
//!
//! A table that a walk comes to is loaded whole: its names, and for each cell the place of its content in LMDB's map.
//! Nothing is copied but names. Places are good for one commit: each request first asks which commit is the newest, and
//! a new one empties the memory. So a request sees what a read transaction begun at that moment would see.
//!
//! The price is a snapshot that is held between requests: pages that a writer frees meanwhile are used again only after
//! the next request.

use fingerpost_lmdb::{Place, Snapshot};

use crate::engine::{Piece, Reader};
use crate::names::{Name, Names};
use crate::nested::ROOT;
use crate::path;
use crate::value::{self, Cell, Entry, HEAD, Kind, Listing, Part, Read};
use crate::{Error, Result};

/// The reader.
pub(crate) struct Loaded {
    snapshot: Snapshot,
    /// The root table first.
    tables: Vec<Table>,
    cells: Vec<Content>,
}

struct Table {
    number: u64,
    /// Each with what it names; `None` until a walk comes here.
    names: Option<Names>,
}

/// A cell whose table was loaded.
#[derive(Clone, Copy)]
struct Content {
    kind: Kind,
    modified: i64,
    place: Place,
}

/// The index of a table, or, with the highest bit, that of a cell.
#[derive(Clone, Copy)]
struct Node(u32);

const CELL: u32 = 1 << 31;

impl Node {
    /// The node of the one that comes next. There is no room for more in memory long before this overflows.
    fn next<T>(of: &[T], bit: u32) -> Result<Node> {
        let index = u32::try_from(of.len())
            .ok()
            .filter(|index| *index < CELL - 1);
        index
            .map(|index| Node(index | bit))
            .ok_or_else(|| Error::Engine("there are too many entries to keep in memory".to_owned()))
    }

    fn table(self) -> Option<usize> {
        (self.0 & CELL == 0).then_some(self.0 as usize)
    }

    fn cell(self) -> Option<usize> {
        (self.0 & CELL != 0).then_some((self.0 ^ CELL) as usize)
    }
}

impl Loaded {
    pub(crate) fn new(snapshot: Snapshot) -> Loaded {
        Loaded {
            snapshot,
            tables: root(),
            cells: Vec::new(),
        }
    }

    /// Forgets what was loaded from an older commit.
    #[inline]
    fn refresh(&mut self) -> Result<()> {
        if self.snapshot.refresh()? {
            self.tables = root();
            self.cells.clear();
        }
        Ok(())
    }

    /// The names of a table.
    #[inline]
    fn names(&mut self, index: usize) -> Result<&Names> {
        if self.tables[index].names.is_none() {
            self.load(index)?;
        }
        self.tables[index]
            .names
            .as_ref()
            .ok_or_else(|| Error::Engine("a table was not loaded".to_owned()))
    }

    /// Loads one table: one pass over its keys.
    #[cold]
    fn load(&mut self, index: usize) -> Result<()> {
        let prefix = self.tables[index].number.to_be_bytes();
        let mut names: Vec<(Vec<u8>, u32)> = Vec::new();
        let mut from = prefix.to_vec();
        while let Some((key, val)) = self.snapshot.lower_bound(&from)? {
            let Some(name) = key.strip_prefix(&prefix[..]) else {
                break;
            };
            path::check_name(name)?;
            let (head, body) = val.split_at(HEAD.min(val.len()));
            let node = match value::read(head, body)? {
                Read::Table(number) => {
                    let node = Node::next(&self.tables, 0)?;
                    self.tables.push(Table {
                        number,
                        names: None,
                    });
                    node
                }
                Read::Cell(Cell { kind, modified, .. }) => {
                    let place = self
                        .snapshot
                        .locate(key, HEAD)?
                        .ok_or_else(|| Error::Damaged("a key is there and not there".to_owned()))?;
                    let node = Node::next(&self.cells, CELL)?;
                    self.cells.push(Content {
                        kind,
                        modified,
                        place,
                    });
                    node
                }
            };
            let next = [key, b"\0"].concat();
            names.push((name.to_vec(), node.0));
            from = next;
        }
        self.tables[index].names = Some(Names::new(&names));
        Ok(())
    }

    /// Walks to what a path names, which is trimmed.
    #[inline]
    fn walk(&mut self, path: &[u8]) -> Result<Option<Node>> {
        let (mut node, mut at) = (Node(0), 0);
        if path.is_empty() {
            return Ok(Some(node));
        }
        loop {
            let Some(table) = node.table() else {
                return Ok(None);
            };
            let (name, end) = Name::cut(path, at);
            // A name that cannot be is in no table, so nothing else need be checked here.
            match self.names(table)?.get(&name) {
                Some(found) if end == path.len() => return Ok(Some(Node(found))),
                Some(found) => node = Node(found),
                None => return Ok(None),
            }
            at = end + 1;
        }
    }

    fn describe(&self, node: Node) -> Entry {
        match node.cell().map(|index| self.cells[index]) {
            None => Entry::Table,
            Some(Content {
                kind,
                modified,
                place,
            }) => Entry::Cell {
                kind,
                modified,
                size: self.snapshot.at(place).map_or(0, |body| body.len() as u64),
            },
        }
    }
}

fn root() -> Vec<Table> {
    vec![Table {
        number: ROOT,
        names: None,
    }]
}

impl Reader for Loaded {
    fn part(&mut self, path: &[u8], offset: u64, room: &mut [u8]) -> Result<Option<Part>> {
        let mut part = None;
        self.cell(path, &mut |cell| {
            let Piece { size, read, .. } = Piece::of(&[], cell.body, offset, room);
            part = Some(Part {
                kind: cell.kind,
                modified: cell.modified,
                size,
                read,
            });
        })?;
        Ok(part)
    }

    fn cell(&mut self, path: &[u8], take: &mut dyn FnMut(Cell<'_>)) -> Result<bool> {
        self.refresh()?;
        let path = path::trimmed(path);
        let Some(node) = self.walk(path)? else {
            // Nothing is found under a path that cannot be, either; it is told as everywhere.
            return path::check(path).map(|()| false);
        };
        let Some(index) = node.cell() else {
            return Ok(false);
        };
        let Content {
            kind,
            modified,
            place,
        } = self.cells[index];
        let body = self
            .snapshot
            .at(place)
            .ok_or_else(|| Error::Engine("the snapshot moved".to_owned()))?;
        take(Cell {
            kind,
            modified,
            body,
        });
        Ok(true)
    }

    fn entry(&mut self, path: &[u8]) -> Result<Option<Entry>> {
        let path = path::checked(path)?;
        self.refresh()?;
        Ok(self.walk(path)?.map(|node| self.describe(node)))
    }

    fn list(&mut self, path: &[u8]) -> Result<Option<Listing>> {
        let path = path::checked(path)?;
        self.refresh()?;
        let Some(index) = self.walk(path)?.and_then(Node::table) else {
            return Ok(None);
        };
        let found: Vec<(Vec<u8>, u32)> = self.names(index)?.all().collect();
        let mut entries: Vec<_> = found
            .into_iter()
            .map(|(name, node)| (name, self.describe(Node(node))))
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(entries))
    }
}
