//! A directory tree in the order in which the keys will be, without all of it in memory: what is held are the
//! directories that are still to be gone through, and the names of one of them.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fingerpost_sys::beneath::{FileType, Links, Root};

use crate::engine::Keys;
use crate::path::{MAX_DEPTH, MAX_PATH, shown};
use crate::{Error, Result};

/// Something found in a directory tree.
pub(crate) struct Found {
    pub(crate) path: Vec<u8>,
    pub(crate) is_table: bool,
}

/// What the walk meets.
pub(crate) enum Met {
    /// To be taken.
    Taken(Found),
    /// To be left out, with the reason as a sentence.
    LeftOut(String),
}

/// A walk through a tree. With nested keys table after table, with flat keys by path.
pub(crate) struct Walk {
    /// The directory itself, to open what was found.
    pub(crate) root: Root,
    /// For sentences.
    dir: PathBuf,
    keys: Keys,
    /// What is to be told next, in this order.
    next: VecDeque<Met>,
    /// With nested keys the directories whose names come later.
    later: VecDeque<Vec<u8>>,
}

impl Walk {
    pub(crate) fn new(dir: &Path, keys: Keys) -> Result<Walk> {
        let root = Root::open(dir, Links::None).map_err(Error::io("cannot list", dir))?;
        Ok(Walk {
            root,
            dir: dir.to_owned(),
            keys,
            next: VecDeque::new(),
            later: [Vec::new()].into(),
        })
    }

    /// The name of something in it, for a sentence.
    pub(crate) fn name(&self, path: &[u8]) -> PathBuf {
        self.dir.join(OsStr::from_bytes(path))
    }

    /// What stands in a directory, sorted by the keys that it will have: with flat keys a table's ends in a slash.
    fn list(&self, table: &[u8]) -> Result<Vec<Met>> {
        let listed = self
            .root
            .list(table)
            .map_err(Error::io("cannot list", self.name(table)))?;
        let gone = || {
            Error::Engine(format!(
                "{} cannot be listed, or is no directory any more",
                self.name(table).display()
            ))
        };
        let mut names = listed.ok_or_else(gone)?;
        let flat = self.keys == Keys::Flat;
        let key = |(name, kind): &(Vec<u8>, FileType)| {
            [
                &name[..],
                if flat && kind.is_dir() {
                    &b"/"[..]
                } else {
                    &b""[..]
                },
            ]
            .concat()
        };
        names.sort_by_cached_key(key);
        names
            .into_iter()
            .map(|(name, kind)| {
                self.met(
                    if table.is_empty() {
                        name
                    } else {
                        [table, b"/", &name].concat()
                    },
                    kind,
                )
            })
            .collect()
    }

    fn met(&self, path: Vec<u8>, kind: FileType) -> Result<Met> {
        if path.iter().filter(|&&b| b == b'/').count() >= MAX_DEPTH {
            return Err(Error::Path(
                shown(&path),
                "it goes through more than 128 directories",
            ));
        }
        if path.len() > MAX_PATH {
            return Err(Error::Path(
                shown(&path[..200]),
                "it is longer than 4095 bytes",
            ));
        }
        let what = match kind {
            FileType::RegularFile | FileType::Directory => {
                return Ok(Met::Taken(Found {
                    path,
                    is_table: kind.is_dir(),
                }));
            }
            FileType::Symlink => "a symbolic link",
            _ => "neither a file nor a directory",
        };
        Ok(Met::LeftOut(format!(
            "{} is {what} and was left out",
            self.name(&path).display()
        )))
    }
}

impl Iterator for Walk {
    type Item = Result<Met>;

    fn next(&mut self) -> Option<Result<Met>> {
        while self.next.is_empty() {
            let table = self.later.pop_front()?;
            match self.list(&table) {
                Ok(met) => self.next = met.into(),
                Err(e) => return Some(Err(e)),
            }
        }
        let met = self.next.pop_front()?;
        if let Met::Taken(Found {
            path,
            is_table: true,
        }) = &met
        {
            match self.keys {
                Keys::Nested => self.later.push_back(path.clone()),
                // With flat keys all that is in a directory comes before what stands behind it.
                Keys::Flat => match self.list(path) {
                    Ok(inner) => inner
                        .into_iter()
                        .rev()
                        .for_each(|met| self.next.push_front(met)),
                    Err(e) => return Some(Err(e)),
                },
            }
        }
        Some(Ok(met))
    }
}
