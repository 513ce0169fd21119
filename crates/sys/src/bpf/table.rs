//! Maps of programs, read and written by their keys.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::attached::info;
use super::calls::{MAP_LOOKUP, MAP_UPDATE, command};
use crate::system::there;

const MAP_DELETE: libc::c_long = 3;
const MAP_NEXT: libc::c_long = 4;
const LOOKUP_BATCH: libc::c_long = 24;
/// Kinds of which each CPU has a value of its own.
const OF_CPUS: [u32; 2] = [5, 6];
/// Entries that are read in one call.
const BATCH: usize = 256;

/// A map.
pub struct Table {
    map: OwnedFd,
    key: usize,
    /// Bytes of one value, and how many each key has.
    value: usize,
    values: usize,
    entries: usize,
}

impl Table {
    pub(super) fn of(map: OwnedFd) -> io::Result<Table> {
        let [kind, _, key, value, entries, ..] = info(&map)?;
        let values = if OF_CPUS.contains(&kind) {
            crate::trace::possible_cpus()?
        } else {
            1
        };
        let value = value as usize;
        Ok(Table {
            map,
            key: key as usize,
            value: if values > 1 {
                value.next_multiple_of(8)
            } else {
                value
            },
            values,
            entries: entries as usize,
        })
    }

    fn fits(&self, key: &[u8]) -> io::Result<()> {
        if key.len() == self.key {
            return Ok(());
        }
        Err(io::Error::other("a key of another length than the map's"))
    }

    /// The values of a key, one for each CPU where the map is such; nothing where it has none.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<Vec<Vec<u8>>>> {
        self.fits(key)?;
        let mut value = vec![0u8; self.value * self.values];
        let found = command(
            MAP_LOOKUP,
            &mut [
                self.map.as_raw_fd() as u64,
                key.as_ptr() as u64,
                value.as_mut_ptr() as u64,
                0,
            ],
        );
        Ok(there(found)?.map(|_| {
            value
                .chunks(self.value.max(1))
                .map(<[u8]>::to_vec)
                .collect()
        }))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.fits(key)?;
        if self.values > 1 || value.len() != self.value {
            return Err(io::Error::other("a value of another length than the map's"));
        }
        command(
            MAP_UPDATE,
            &mut [
                self.map.as_raw_fd() as u64,
                key.as_ptr() as u64,
                value.as_ptr() as u64,
                0,
            ],
        )
        .map(drop)
    }

    /// Takes a key out, which may be gone.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        self.fits(key)?;
        let removed = command(
            MAP_DELETE,
            &mut [self.map.as_raw_fd() as u64, key.as_ptr() as u64],
        );
        there(removed).map(drop)
    }

    /// All keys with their values, of a map that has one value for each. What changes meanwhile may be there or not.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn all(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        match self.batches() {
            // Not before Linux 5.6.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => self.one_by_one(),
            all => all,
        }
    }

    fn batches(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut found = HashMap::new();
        // The kernel needs room for all entries of one of its buckets at once.
        let mut room = BATCH;
        let (mut keys, mut values) = (vec![0; room * self.key], vec![0; room * self.value]);
        let (mut from, mut to) = ([0u64; 2], [0u64; 2]);
        let mut first = true;
        loop {
            let mut attributes = [
                if first { 0 } else { from.as_ptr() as u64 },
                to.as_mut_ptr() as u64,
                keys.as_mut_ptr() as u64,
                values.as_mut_ptr() as u64,
                room as u64 | (self.map.as_raw_fd() as u64) << 32,
                0,
                0,
            ];
            let read = command(LOOKUP_BATCH, &mut attributes);
            if let Err(e) = &read
                && e.raw_os_error() == Some(libc::ENOSPC)
                && room < self.entries
            {
                room *= 4;
                (keys, values) = (vec![0; room * self.key], vec![0; room * self.value]);
                continue;
            }
            let over = there(read)?.is_none();
            let count = (attributes[4] & 0xffff_ffff) as usize;
            let pairs = keys.chunks(self.key).zip(values.chunks(self.value));
            found.extend(
                pairs
                    .take(count.min(room))
                    .map(|(k, v)| (k.to_vec(), v.to_vec())),
            );
            if over {
                return Ok(found.into_iter().collect());
            }
            (from, first) = (to, false);
        }
    }

    fn one_by_one(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut found = HashMap::new();
        let (mut key, mut next) = (None::<Vec<u8>>, vec![0u8; self.key]);
        // A key that is gone leads back to the first one.
        for _ in 0..4 * self.entries {
            let mut attributes = [
                self.map.as_raw_fd() as u64,
                key.as_ref().map_or(0, |k| k.as_ptr() as u64),
                next.as_mut_ptr() as u64,
                0,
            ];
            if there(command(MAP_NEXT, &mut attributes))?.is_none() {
                break;
            }
            if let Some(value) = self.get(&next)? {
                found.insert(next.clone(), value.concat());
            }
            key = Some(next.clone());
        }
        Ok(found.into_iter().collect())
    }
}
