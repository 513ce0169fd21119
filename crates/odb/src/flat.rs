//! Flat keys: the whole path is the key. A table is a key of its own, which ends in a slash.

use std::collections::HashSet;

use crate::engine::{self, Change, Layout, View};
use crate::nested::split;
use crate::path::{self, shown};
use crate::value::{self, Cell, Entry, Listing, Part, Read};
use crate::{Error, Result};

/// The whole path as the key.
pub(crate) struct Whole;

impl Layout for Whole {
    #[inline]
    fn cell<V: View>(
        &mut self,
        view: &mut V,
        path: &[u8],
        take: &mut dyn FnMut(Cell),
    ) -> Result<bool> {
        let path = path::trimmed(path);
        // Our own two keys begin with a slash.
        if path.is_empty() || path[0] == b'/' {
            return path::check(path).map(|()| false);
        }
        let found = view.get(path, true, |head, body| match value::read(head, body)? {
            Read::Cell(cell) => {
                take(cell);
                Ok(true)
            }
            Read::Table(_) => {
                // A path with a slash too many has the key of a table.
                path::check(path)?;
                Err(Error::Damaged(format!(
                    "“{}” is a table under the key of a cell",
                    shown(path)
                )))
            }
        })?;
        // Nothing is found under a path that cannot be, so only now need it be told from one that merely is not there.
        found.unwrap_or_else(|| path::check(path).map(|()| false))
    }

    fn part<V: View>(
        &mut self,
        view: &mut V,
        path: &[u8],
        offset: u64,
        room: &mut [u8],
    ) -> Result<Option<Part>> {
        let path = path::checked(path)?;
        if path.is_empty() {
            return Ok(None);
        }
        view.part(path, offset, room)?
            .map_or(Ok(None), |piece| value::part(&piece))
    }

    fn entry<V: View>(&mut self, view: &mut V, path: &[u8]) -> Result<Option<Entry>> {
        let path = path::checked(path)?;
        if path.is_empty() {
            return Ok(Some(Entry::Table));
        }
        for key in [path.to_vec(), [path, b"/"].concat()] {
            let found = view.lower_bound(&key, |found, head, length| {
                (found == key).then(|| value::entry(head, length))
            })?;
            if let Some(entry) = found.flatten() {
                return entry.map(Some);
            }
        }
        Ok(None)
    }

    fn list<V: View>(&mut self, view: &mut V, path: &[u8]) -> Result<Option<Listing>> {
        if self.entry(view, path)? != Some(Entry::Table) {
            return Ok(None);
        }
        let path = path::trimmed(path);
        let prefix = if path.is_empty() {
            Vec::new()
        } else {
            [path, b"/"].concat()
        };
        let mut entries = Vec::new();
        let mut from = [&prefix[..], b"\0"].concat();
        loop {
            let next = view.lower_bound(&from, |key, head, length| {
                // With flat keys our own two keys begin with a slash, as no path does.
                key.strip_prefix(&prefix[..])
                    .map(|rest| (rest.to_vec(), value::entry(head, length)))
            })?;
            let Some((rest, found)) = next.flatten() else {
                break;
            };
            if prefix.is_empty() && rest.first() == Some(&b'/') {
                from = b"0".to_vec();
                continue;
            }
            let (name, entry) = match rest.iter().position(|&b| b == b'/') {
                // The key of a table, or of something in it; the next to look at is behind all that is in it.
                Some(at) => {
                    from = [&prefix[..], &rest[..at], b"0"].concat();
                    (rest[..at].to_vec(), Entry::Table)
                }
                None => {
                    from = [&prefix[..], &rest, b"\0"].concat();
                    (rest, found?)
                }
            };
            path::check_name(&name)?;
            entries.push((name, entry));
        }
        // “a.html” comes before “a/” and after “a”, so tables may be out of order.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|a, b| a.0 == b.0);
        Ok(Some(entries))
    }
}

/// The state of a writer: tables that this transaction has met.
#[derive(Default)]
pub(crate) struct Tables(HashSet<Vec<u8>>);

impl engine::Tables for Tables {
    fn table<C: Change>(&mut self, change: &mut C, path: &[u8]) -> Result<()> {
        if path.is_empty() || self.0.contains(path) {
            return Ok(());
        }
        self.table(change, split(path).0)?;
        let key = [path, b"/"].concat();
        fits(change, &key)?;
        if change.head(path)?.is_some() {
            return Err(Error::Mismatch(shown(path), "a cell, not a table"));
        }
        if change.head(&key)?.is_none() {
            change.put(&key, &value::table_value(0), &[])?;
        }
        self.0.insert(path.to_vec());
        Ok(())
    }

    fn put<C: Change>(&mut self, change: &mut C, path: &[u8], cell: &Cell) -> Result<()> {
        if path.is_empty() {
            return Err(Error::Mismatch(
                "/".to_owned(),
                "the root table, not a cell",
            ));
        }
        self.table(change, split(path).0)?;
        fits(change, path)?;
        if change.head(&[path, b"/"].concat())?.is_some() {
            return Err(Error::Mismatch(shown(path), "a table, not a cell"));
        }
        change.put(path, &value::cell_head(cell), cell.body)
    }
}

fn fits<C: Change>(change: &C, key: &[u8]) -> Result<()> {
    if key.len() > change.max_key() {
        return Err(Error::Path(
            shown(key),
            "it is longer than a key of this engine (511 bytes with LMDB); nested keys have no such limit",
        ));
    }
    Ok(())
}
