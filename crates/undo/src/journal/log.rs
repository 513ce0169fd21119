//! The journal's file: one JSON object a line, at most [`MOST_BYTES`].
//!
//! A line says that a change is about to be made (`n`, `undo`, …), which directory was made (`made`), or that a change
//! was undone (`struck`). Undone changes leave the file when it has grown, so that it holds what there is to undo and
//! little else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{Area, Areas, Undo, permit};
use crate::owned::{Dir, Identity, read_bounded};

/// The name of the file in its directory.
pub const NAME: &str = "journal";
/// Its name while it is written anew.
const NEW_NAME: &str = "journal.new";
/// A journal that holds more was not written by us: a run has a few dozen changes to undo at any time.
pub const MOST_BYTES: u64 = 1 << 20;
/// When it has grown by so much it is written anew without what was undone.
const GROWN: u64 = 64 << 10;
/// Room for what is undone while nothing new can be written down.
const RESERVE: u64 = 64 << 10;

/// One change that is to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// How.
    #[serde(flatten)]
    pub undo: Undo,
    /// For a directory that we made: which one it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Identity>,
}

/// What a line says.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Struck {
        struck: u64,
    },
    Made {
        of: u64,
        made: Identity,
    },
    Entry {
        n: u64,
        // Larger than the others by far.
        #[serde(flatten)]
        entry: Box<Entry>,
    },
}

/// The entries, by number.
pub type Entries = BTreeMap<u64, Entry>;

/// The directories that the entries say are ours.
pub fn areas(entries: &Entries) -> Areas {
    Areas(entries.values().filter_map(own_area).collect())
}

/// The numbers of the entries in the order in which they are undone ([`Undo::turn`]), the newest first of each turn.
pub fn order(entries: &Entries) -> Vec<u64> {
    let mut order: Vec<u64> = entries.keys().rev().copied().collect();
    order.sort_by_key(|n| entries[n].undo.turn());
    order
}

/// Reads the text of a journal.
///
/// # Errors
/// A sentence, when it holds what this version does not write. A last line that a kill cut short was written for a
/// change that was not made yet, and is left out.
pub fn parse(text: &str) -> Result<Entries, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut entries = Entries::new();
    for (number, line) in whole.lines().enumerate() {
        let wrong = |why: &str| format!("line {} of the journal: {why}", number + 1);
        match serde_json::from_str(line)
            .map_err(|_| wrong("it is not one that this version writes"))?
        {
            Line::Struck { struck } => drop(entries.remove(&struck)),
            Line::Made { of, made } => match entries.get_mut(&of) {
                Some(entry) if matches!(entry.undo, Undo::RemoveDirectory { .. }) => {
                    entry.made = Some(made)
                }
                _ => return Err(wrong("it speaks of a directory that is not in it")),
            },
            Line::Entry { n, entry } => {
                check(&entry, &entries).map_err(wrong)?;
                if entries.insert(n, *entry).is_some() {
                    return Err(wrong("its number is taken"));
                }
            }
        }
    }
    Ok(entries)
}

/// Refuses an entry that may not come after these. A directory that is about to be made is in itself.
fn check(entry: &Entry, before: &Entries) -> Result<(), &'static str> {
    permit::check(
        &entry.undo,
        &Areas(
            before
                .values()
                .chain([entry])
                .filter_map(own_area)
                .collect(),
        ),
    )
}

fn own_area(entry: &Entry) -> Option<Area> {
    match &entry.undo {
        Undo::RemoveDirectory { path } => Some(Area {
            path: path.clone(),
            made: entry.made,
        }),
        _ => None,
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Log {
    file: File,
    bytes: u64,
    /// How long it was when it was written anew.
    began: u64,
    next: u64,
    /// What is to be undone.
    pub entries: Entries,
}

impl Log {
    /// A new journal in this directory.
    pub fn create(dir: &Dir) -> io::Result<Log> {
        Ok(Log {
            file: dir.new_file(NAME)?,
            bytes: 0,
            began: 0,
            next: 0,
            entries: Entries::new(),
        })
    }

    /// The journal that another process left in this directory; `Ok(Err(…))` says in a sentence why it is not undone.
    pub fn open(dir: &Dir) -> io::Result<Result<Log, String>> {
        let file = dir.file(NAME)?;
        let text = match read_bounded(&file, MOST_BYTES) {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidData
                ) =>
            {
                return Ok(Err(format!("the journal: {e}")));
            }
            other => other?,
        };
        Ok(parse(&text).map(|entries| {
            let next = entries.keys().next_back().map_or(0, |n| n + 1);
            Log {
                file,
                bytes: text.len() as u64,
                began: 0,
                next,
                entries,
            }
        }))
    }

    /// Writes down how to undo a change that is about to be made, and gives its number. On disk before it returns.
    ///
    /// # Errors
    /// The kernel's; `InvalidInput` for an entry that [`parse`] would refuse, `FileTooLarge` when there is too much to
    /// be undone.
    pub fn record(&mut self, dir: &Dir, undo: Undo) -> io::Result<u64> {
        let entry = Entry { undo, made: None };
        check(&entry, &self.entries).map_err(|why| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{why}: {:?}", entry.undo),
            )
        })?;
        if self.bytes > self.began + GROWN {
            self.write_anew(dir)?;
        }
        let n = self.next;
        let line = to_line(&Line::Entry {
            n,
            entry: Box::new(entry.clone()),
        });
        if self.bytes + line.len() as u64 > MOST_BYTES - RESERVE {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the journal is full",
            ));
        }
        self.append(&line)?;
        self.file.sync_data()?;
        self.next += 1;
        self.entries.insert(n, entry);
        Ok(n)
    }

    /// Writes down which directory was made.
    pub fn made(&mut self, n: u64, made: Identity) -> io::Result<()> {
        self.append(&to_line(&Line::Made { of: n, made }))?;
        if let Some(entry) = self.entries.get_mut(&n) {
            entry.made = Some(made);
        }
        Ok(())
    }

    /// Strikes an entry out: it was undone.
    pub fn strike(&mut self, n: u64) -> io::Result<()> {
        if self.entries.remove(&n).is_none() {
            return Ok(());
        }
        self.append(&to_line(&Line::Struck { struck: n }))
    }

    /// Undoes an entry and strikes it out. An entry that is not there was undone before.
    ///
    /// # Errors
    /// A sentence; the entry stays.
    pub fn undo(&mut self, n: u64) -> Result<(), String> {
        let Some(entry) = self.entries.get(&n) else {
            return Ok(());
        };
        entry.undo.apply(&areas(&self.entries))?;
        self.strike(n)
            .map_err(|e| format!("cannot write the journal: {e}"))
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        self.bytes += line.len() as u64;
        self.file.write_all(line.as_bytes())
    }

    /// Replaces the file by one without what was undone.
    fn write_anew(&mut self, dir: &Dir) -> io::Result<()> {
        let text: String = self
            .entries
            .iter()
            .map(|(n, entry)| {
                to_line(&Line::Entry {
                    n: *n,
                    entry: Box::new(entry.clone()),
                })
            })
            .collect();
        dir.remove(NEW_NAME, None)?;
        let mut file = dir.new_file(NEW_NAME)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        rustix::fs::renameat(dir, NEW_NAME, dir, NAME)?;
        (self.file, self.bytes, self.began) = (file, text.len() as u64, text.len() as u64);
        Ok(())
    }
}

fn to_line(line: &Line) -> String {
    serde_json::to_string(line).expect("a line is plain data") + "\n"
}
