//! Nested keys: a table's number and a name within it. A look-up walks from the root, table by table.

use std::collections::HashMap;

use crate::engine::{self, Change, Layout, NEXT_KEY, View};
use crate::names::end_of_name;
use crate::path::{self, shown};
use crate::value::{self, Cell, Entry, Listing, Part, Read};
use crate::{Error, Result};

/// The number of the root table.
pub(crate) const ROOT: u64 = 1;

/// A key, built in place: no look-up allocates.
pub(crate) struct Key {
    bytes: [u8; 8 + path::MAX_NAME],
    length: usize,
}

impl Key {
    pub(crate) fn new() -> Key {
        Key {
            bytes: [0; 8 + path::MAX_NAME],
            length: 8,
        }
    }

    /// The key of a name in a table; the name has been checked.
    #[inline]
    pub(crate) fn set(&mut self, table: u64, name: &[u8]) -> &[u8] {
        self.bytes[..8].copy_from_slice(&table.to_be_bytes());
        self.bytes[8..8 + name.len()].copy_from_slice(name);
        self.length = 8 + name.len();
        &self.bytes[..self.length]
    }
}

/// Walks to the table of the last name, and gives both; the name is empty for the root table itself. `None` when there
/// is no such table. `path` is trimmed; a path that cannot be leads nowhere, because a name that cannot be is in no
/// table.
#[inline]
fn walk<'p, V: View>(
    view: &mut V,
    key: &mut Key,
    path: &'p [u8],
) -> Result<Option<(u64, &'p [u8])>> {
    let (mut table, mut at) = (ROOT, 0);
    loop {
        let end = end_of_name(path, at);
        let name = &path[at..end];
        if name.len() > path::MAX_NAME {
            return Ok(None);
        }
        if end == path.len() {
            return Ok(Some((table, name)));
        }
        match view
            .get(key.set(table, name), false, number)?
            .transpose()?
            .flatten()
        {
            Some(next) => table = next,
            None => return Ok(None),
        }
        at = end + 1;
    }
}

/// The number of a table; `None` for a cell.
fn number(head: &[u8], body: &[u8]) -> Result<Option<u64>> {
    Ok(match value::read(head, body)? {
        Read::Table(number) => Some(number),
        Read::Cell(_) => None,
    })
}

impl Layout for Key {
    #[inline]
    fn cell<V: View>(
        &mut self,
        view: &mut V,
        path: &[u8],
        take: &mut dyn FnMut(Cell),
    ) -> Result<bool> {
        let path = path::trimmed(path);
        if let Some((table, name)) = walk(view, self, path)?
            && !name.is_empty()
        {
            let found = view.get(self.set(table, name), true, |head, body| match value::read(
                head, body,
            )? {
                Read::Cell(cell) => {
                    take(cell);
                    Ok(true)
                }
                Read::Table(_) => Ok(false),
            })?;
            if let Some(is_cell) = found {
                return is_cell;
            }
        }
        // Nothing is found under a path that cannot be, so only now need it be told from one that merely is not there.
        path::check(path).map(|()| false)
    }

    fn part<V: View>(
        &mut self,
        view: &mut V,
        path: &[u8],
        offset: u64,
        room: &mut [u8],
    ) -> Result<Option<Part>> {
        let path = path::checked(path)?;
        let Some((table, name)) = walk(view, self, path)?.filter(|(_, name)| !name.is_empty())
        else {
            return Ok(None);
        };
        view.part(self.set(table, name), offset, room)?
            .map_or(Ok(None), |piece| value::part(&piece))
    }

    fn entry<V: View>(&mut self, view: &mut V, path: &[u8]) -> Result<Option<Entry>> {
        let path = path::checked(path)?;
        match walk(view, self, path)? {
            None => Ok(None),
            Some((_, b"")) => Ok(Some(Entry::Table)),
            Some((table, name)) => {
                let wanted = self.set(table, name).to_vec();
                let found = view.lower_bound(&wanted, |key, head, length| {
                    (key == wanted).then(|| value::entry(head, length))
                })?;
                found.flatten().transpose()
            }
        }
    }

    fn list<V: View>(&mut self, view: &mut V, path: &[u8]) -> Result<Option<Listing>> {
        let Some(number) = table(view, self, path)? else {
            return Ok(None);
        };
        let prefix = number.to_be_bytes();
        let mut entries = Vec::new();
        let mut from = prefix.to_vec();
        loop {
            let next = view.lower_bound(&from, |key, head, length| {
                key.strip_prefix(&prefix)
                    .map(|name| value::entry(head, length).map(|entry| (name.to_vec(), entry)))
            })?;
            let Some((name, entry)) = next.flatten().transpose()? else {
                return Ok(Some(entries));
            };
            path::check_name(&name)?;
            // The smallest key above this one.
            from = [&prefix[..], &name, b"\0"].concat();
            entries.push((name, entry));
        }
    }
}

/// The number of the table that a path names.
fn table<V: View>(view: &mut V, key: &mut Key, path: &[u8]) -> Result<Option<u64>> {
    let path = path::checked(path)?;
    match walk(view, key, path)? {
        None => Ok(None),
        Some((table, b"")) => Ok(Some(table)),
        Some((table, name)) => Ok(view
            .get(key.set(table, name), false, number)?
            .transpose()?
            .flatten()),
    }
}

/// The state of a writer: tables that this transaction has met.
#[derive(Default)]
pub(crate) struct Tables {
    known: HashMap<Vec<u8>, u64>,
    next: Option<u64>,
}

impl Tables {
    /// The number of a table, made where it is not there, with those on the way. `path` is trimmed and checked.
    pub(crate) fn make<C: Change>(&mut self, change: &mut C, path: &[u8]) -> Result<u64> {
        if path.is_empty() {
            return Ok(ROOT);
        }
        if let Some(&number) = self.known.get(path) {
            return Ok(number);
        }
        let (above, name) = split(path);
        let parent = self.make(change, above)?;
        let mut key = Key::new();
        let key = key.set(parent, name);
        let number = match change.head(key)? {
            Some(head) => number(&head, &[])?
                .ok_or_else(|| Error::Mismatch(shown(path), "a cell, not a table"))?,
            None => {
                let number = self.number(change)?;
                change.put(key, &value::table_value(number), &[])?;
                number
            }
        };
        self.known.insert(path.to_vec(), number);
        Ok(number)
    }

    /// A number that no table has.
    fn number<C: Change>(&mut self, change: &mut C) -> Result<u64> {
        let cut_short = || Error::Damaged("the number of the next table is cut short".to_owned());
        let number = match self.next {
            Some(number) => number,
            None => match change.head(NEXT_KEY)? {
                Some(head) => value::number_of(&head)
                    .map(u64::from_le_bytes)
                    .ok_or_else(cut_short)?,
                None => ROOT + 1,
            },
        };
        self.next = Some(number + 1);
        Ok(number)
    }

    /// Writes down which number is next, if any was given out.
    pub(crate) fn finish<C: Change>(&self, change: &mut C) -> Result<()> {
        match self.next {
            Some(next) => change.put(NEXT_KEY, &value::head(COUNTER, next.to_le_bytes()), &[]),
            None => Ok(()),
        }
    }
}

impl engine::Tables for Tables {
    fn table<C: Change>(&mut self, change: &mut C, path: &[u8]) -> Result<()> {
        self.make(change, path).map(drop)
    }

    fn put<C: Change>(&mut self, change: &mut C, path: &[u8], cell: &Cell) -> Result<()> {
        let (above, name) = split(path);
        if name.is_empty() {
            return Err(Error::Mismatch(
                "/".to_owned(),
                "the root table, not a cell",
            ));
        }
        let table = self.make(change, above)?;
        let mut key = Key::new();
        let key = key.set(table, name);
        if let Some(head) = change.head(key)?
            && number(&head, &[])?.is_some()
        {
            return Err(Error::Mismatch(shown(path), "a table, not a cell"));
        }
        change.put(key, &value::cell_head(cell), cell.body)
    }
}

/// The first byte of the counter's value: that of no table, so that it is not taken for one.
const COUNTER: u8 = 1;

/// A path's tables, and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
