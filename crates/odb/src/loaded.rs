//! A reader that keeps the tables it has met in memory, as Frontier's object database did: “The performance ratio increased … as more
//! and more of the subtables had been loaded into memory.”
//!
//! A table that a walk comes to is loaded whole: its names, and for each cell the place of its content in LMDB's map. Nothing is copied
//! but names. Places are good for one commit: each request first asks which commit is the newest, and a new one empties the memory. So
//! a request sees what a read transaction begun at that moment would see.
//!
//! The price is a snapshot that is held between requests: pages that a writer frees meanwhile are used again only after the next
//! request.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use fingerpost_sys::lmdb::{Place, Snapshot};

use crate::database::Reader;
use crate::nested::ROOT;
use crate::path::{self, bad_name, shown};
use crate::value::{self, Cell, Entry, HEAD, Kind, Listing, Read};
use crate::{Error, Result};

/// The reader.
pub(crate) struct Loaded {
    snapshot: Snapshot,
    /// The root table first.
    tables: Vec<Table>,
}

struct Table {
    number: u64,
    /// `None` until a walk comes here.
    names: Option<HashMap<Box<[u8]>, Node, BuildHasherDefault<NameHash>>>,
}

#[derive(Clone, Copy)]
enum Node {
    /// The index of a table.
    Table(usize),
    Cell {
        kind: Kind,
        modified: i64,
        place: Place,
    },
}

impl Loaded {
    pub(crate) fn new(snapshot: Snapshot) -> Loaded {
        Loaded { snapshot, tables: root() }
    }

    /// Forgets what was loaded from an older commit.
    #[inline]
    fn refresh(&mut self) -> Result<()> {
        if self.snapshot.refresh()? {
            self.tables = root();
        }
        Ok(())
    }

    #[inline]
    fn find(&mut self, index: usize, name: &[u8]) -> Result<Option<Node>> {
        if self.tables[index].names.is_none() {
            self.load(index)?;
        }
        Ok(self.tables[index].names.as_ref().and_then(|names| names.get(name)).copied())
    }

    /// Loads one table: one pass over its keys.
    fn load(&mut self, index: usize) -> Result<()> {
        let prefix = self.tables[index].number.to_be_bytes();
        let mut names: HashMap<Box<[u8]>, Node, _> = HashMap::default();
        let mut from = prefix.to_vec();
        while let Some((key, val)) = self.snapshot.lower_bound(&from)? {
            let Some(name) = key.strip_prefix(&prefix[..]) else { break };
            if let Some(why) = bad_name(name) {
                return Err(Error::Damaged(format!("a table holds “{}”: {why}", shown(name))));
            }
            let (head, body) = val.split_at(HEAD.min(val.len()));
            let node = match value::read(head, body)? {
                Read::Table(number) => {
                    self.tables.push(Table { number, names: None });
                    Node::Table(self.tables.len() - 1)
                }
                Read::Cell(cell) => {
                    let place =
                        self.snapshot.locate(key, HEAD)?.ok_or_else(|| Error::Damaged("a key is there and not there".to_owned()))?;
                    Node::Cell { kind: cell.kind, modified: cell.modified, place }
                }
            };
            let next = [key, b"\0"].concat();
            names.insert(name.into(), node);
            from = next;
        }
        self.tables[index].names = Some(names);
        Ok(())
    }

    /// Walks to what a path names.
    #[inline]
    fn walk(&mut self, path: &[u8]) -> Result<Option<Node>> {
        let mut at = 0;
        let mut rest = path::trimmed(path);
        if rest.is_empty() {
            return Ok(Some(Node::Table(0)));
        }
        while let Some(slash) = rest.iter().position(|&b| b == b'/') {
            match self.find(at, &rest[..slash])? {
                Some(Node::Table(next)) => at = next,
                _ => return Ok(None),
            }
            rest = &rest[slash + 1..];
        }
        // A name that cannot be is in no table, so nothing else need be checked here.
        self.find(at, rest)
    }
}

fn root() -> Vec<Table> {
    vec![Table { number: ROOT, names: None }]
}

impl Reader for Loaded {
    fn cell(&mut self, path: &[u8], take: &mut dyn FnMut(Cell<'_>)) -> Result<bool> {
        self.refresh()?;
        match self.walk(path)? {
            Some(Node::Cell { kind, modified, place }) => {
                let body = self.snapshot.at(place).ok_or_else(|| Error::Engine("the snapshot moved".to_owned()))?;
                take(Cell { kind, modified, body });
                Ok(true)
            }
            // Nothing is found under a path that cannot be, either; it is told as everywhere.
            None => path::check(path::trimmed(path)).map(|()| false),
            Some(Node::Table(_)) => Ok(false),
        }
    }

    fn entry(&mut self, path: &[u8]) -> Result<Option<Entry>> {
        path::check(path::trimmed(path))?;
        self.refresh()?;
        Ok(self.walk(path)?.map(|node| describe(&self.snapshot, node)))
    }

    fn list(&mut self, path: &[u8]) -> Result<Option<Listing>> {
        path::check(path::trimmed(path))?;
        self.refresh()?;
        let Some(Node::Table(index)) = self.walk(path)? else { return Ok(None) };
        if self.tables[index].names.is_none() {
            self.load(index)?;
        }
        let names = self.tables[index].names.iter().flatten();
        let mut entries: Vec<_> = names.map(|(name, node)| (name.to_vec(), describe(&self.snapshot, *node))).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(entries))
    }
}

fn describe(snapshot: &Snapshot, node: Node) -> Entry {
    match node {
        Node::Table(_) => Entry::Table,
        Node::Cell { kind, modified, place } => Entry::Cell { kind, modified, size: snapshot.at(place).map_or(0, |b| b.len() as u64) },
    }
}

/// A hash for short names: eight bytes at a time, multiplied and folded. What is hashed is the site's own names, which its owner chose;
/// a request only looks up.
#[derive(Default)]
struct NameHash(u64);

impl Hasher for NameHash {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut mix = |word: u64| {
            let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
            self.0 = (product as u64) ^ ((product >> 64) as u64);
        };
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            mix(u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
        }
        let rest = chunks.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    #[inline]
    fn write_usize(&mut self, _length: usize) {
        // A slice hashes its length before its bytes; it is mixed in with the last of them.
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
