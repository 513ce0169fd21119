//! Reading everything in a file, and holding it against what an import makes.
//!
//! Keys rise, so the scan ends; each key and each byte of content is counted against the length of the file, so it ends
//! soon, also where a hostile file has the same pages in many places.

use std::collections::HashSet;

use crate::engine::{FORMAT_KEY, Keys, NEXT_KEY, View};
use crate::nested::ROOT;
use crate::path::{check, check_name, shown};
use crate::value::{self, Part};
use crate::{Error, Result};

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Cells.
    pub cells: u64,
    /// Tables, without the root.
    pub tables: u64,
    /// Bytes of content.
    pub bytes: u64,
}

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Goes through all keys of a view; `most` is the length of the file.
pub(crate) fn scan<V: View>(view: &mut V, keys: Keys, most: u64) -> Result<Verified> {
    view.begin()?;
    let (led_to, holding) = (HashSet::new(), HashSet::new());
    let mut scan = Scan {
        view,
        keys,
        most,
        used: 0,
        led_to,
        holding,
        found: Verified::default(),
        room: vec![0; PIECE],
    };
    let mut from = Vec::new();
    while let Some(key) = scan.view.lower_bound(&from, |key, _, _| key.to_vec())? {
        if key < from {
            return Err(damaged("its keys are not in order"));
        }
        scan.entry(&key)?;
        from = key;
        // The smallest key above this one.
        from.push(0);
    }
    if !scan.holding.is_subset(&scan.led_to) {
        return Err(damaged("it has entries in a table that does not exist"));
    }
    let found = scan.found;
    view.end()?;
    Ok(found)
}

struct Scan<'v, V> {
    view: &'v mut V,
    keys: Keys,
    most: u64,
    used: u64,
    /// Tables of nested keys: each has one entry that leads to it, or a walk could go on for ever.
    led_to: HashSet<u64>,
    holding: HashSet<u64>,
    found: Verified,
    room: Vec<u8>,
}

impl<V: View> Scan<'_, V> {
    fn entry(&mut self, key: &[u8]) -> Result<()> {
        self.count(key.len() as u64)?;
        if key == FORMAT_KEY || key == NEXT_KEY {
            return Ok(());
        }
        let part = self.part(key, 0)?;
        match self.keys {
            Keys::Nested => self.nested(key, part)?,
            Keys::Flat => flat(key, part.is_none())?,
        }
        match part {
            None => self.found.tables += 1,
            Some(part) => self.content(key, part)?,
        }
        Ok(())
    }

    /// What the file holds cannot be more than the file.
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.most {
            Err(damaged("it says to hold more than the file has bytes"))
        } else {
            Ok(())
        }
    }

    fn part(&mut self, key: &[u8], offset: u64) -> Result<Option<Part>> {
        let piece = self
            .view
            .part(key, offset, &mut self.room)?
            .ok_or_else(|| damaged("an entry is there and then is not"))?;
        value::part(&piece)
    }

    fn nested(&mut self, key: &[u8], part: Option<Part>) -> Result<()> {
        let (table, name) = key
            .split_first_chunk::<8>()
            .ok_or_else(|| damaged("a key is cut short"))?;
        check_name(name)?;
        let table = u64::from_be_bytes(*table);
        if table != ROOT {
            self.holding.insert(table);
        }
        if part.is_none() {
            let number = self
                .view
                .get(key, false, |head, _| value::number_of(head))?
                .flatten();
            let number = number
                .map(u64::from_le_bytes)
                .ok_or_else(|| damaged("a table has no number"))?;
            if number <= ROOT || !self.led_to.insert(number) {
                return Err(damaged("two entries lead to one table"));
            }
        }
        Ok(())
    }

    fn content(&mut self, key: &[u8], first: Part) -> Result<()> {
        self.count(first.size)?;
        self.found.cells += 1;
        self.found.bytes += first.size;
        let mut at = first.read as u64;
        while at < first.size {
            match self.part(key, at)? {
                Some(part) if part.read > 0 && part.size == first.size => at += part.read as u64,
                _ => return Err(damaged("a cell ends before its end")),
            }
        }
        Ok(())
    }
}

/// With flat keys the key is the path, and a table's ends in a slash.
fn flat(key: &[u8], is_table: bool) -> Result<()> {
    let path = match (is_table, key.strip_suffix(b"/")) {
        (true, Some(path)) => path,
        (false, None) => key,
        _ => return Err(damaged("an entry is no table and no cell")),
    };
    check(path).map_err(|_| damaged(&format!("it holds “{}”, which is no path", shown(path))))
}

fn damaged(what: &str) -> Error {
    Error::Damaged(what.to_owned())
}
