//! The archive: a directory of run files, one per run, named by its id.
//!
//! There is no index and no lock. A run file appears under its name only when it is whole (written beside, then
//! renamed), so readers and writers need not know of each other, and a directory copied by hand is an archive too. The
//! directory and its files are their owner's alone (0700, 0600).

mod error;
mod head;
mod labels;
mod private;
mod replace;
mod writer;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::load;
use crate::run::Run;
use crate::suggest;
use crate::text::{clean_short, counted, shown};

pub use error::ArchiveError;
pub use head::{Entry, Head, entry};
pub use labels::{Words, checked_label, checked_note};
use replace::{Readers, replaced};
pub use replace::{write_public, write_whole};
pub use writer::Writer;

/// Where the runs that there are can be seen.
const LOOK: &str = "`fingerpost archive list` shows those that there are";

/// What became of one imported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It was added.
    Added,
    /// The same run was there already.
    AlreadyThere,
}

/// A directory of run files.
#[derive(Clone, Debug)]
pub struct Archive {
    dir: PathBuf,
}

impl Archive {
    /// Where runs are kept: `$FINGERPOST_HOME/runs`, else `$XDG_DATA_HOME/fingerpost/runs`, else
    /// `~/.local/share/fingerpost/runs`.
    pub fn locate() -> Result<PathBuf, ArchiveError> {
        Self::locate_with(|name| std::env::var_os(name))
    }

    /// [`Archive::locate`] with another environment.
    pub fn locate_with(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<PathBuf, ArchiveError> {
        let set = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        // The XDG specification: a relative path is invalid and to be ignored.
        let base = set("FINGERPOST_HOME")
            .or_else(|| {
                set("XDG_DATA_HOME")
                    .filter(|p| p.is_absolute())
                    .map(|p| p.join("fingerpost"))
            })
            .or_else(|| set("HOME").map(|p| p.join(".local/share/fingerpost")));
        base.map(|p| p.join("runs")).ok_or_else(|| {
            let place = "there is no place for the archive: set FINGERPOST_HOME to a directory (XDG_DATA_HOME and HOME \
                         are not set either)";
            ArchiveError::Refused(place.to_owned())
        })
    }

    /// The archive in a directory, else in the usual place. The directory need not exist: such an archive is empty.
    pub fn open(dir: Option<PathBuf>) -> Result<Archive, ArchiveError> {
        Ok(Archive {
            dir: dir.map_or_else(Self::locate, Ok)?,
        })
    }

    /// The archive's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file in which a run of this id is kept.
    pub fn path_of(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Every run file, the latest first, files that cannot be read last. Only the heads are read.
    pub fn list(&self) -> Result<Vec<Entry>, ArchiveError> {
        let mut list: Vec<Entry> = self.files()?.into_iter().map(entry).collect();
        list.sort_by_cached_key(|e| {
            let key = e
                .head
                .as_ref()
                .ok()
                .map(|h| (instant(&h.started), h.id.clone()));
            (std::cmp::Reverse(key), e.path.clone())
        });
        Ok(list)
    }

    /// The run files in no order, unread: what [`entry`] takes.
    ///
    /// # Errors
    /// When the directory is there and cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, ArchiveError> {
        let reading = |e| ArchiveError::io("read the archive", &self.dir, e);
        private::close(&self.dir);
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(reading(e)),
        };
        let mut list = Vec::new();
        for entry in entries {
            let path = entry.map_err(reading)?.path();
            let hidden = path
                .file_name()
                .is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|e| e == "json") {
                list.push(path);
            }
        }
        Ok(list)
    }

    /// The file that RUN names: `latest`, `latest~N` (the Nth before it), a path, a whole id, or the start of one.
    pub fn resolve(&self, wanted: &str) -> Result<PathBuf, ArchiveError> {
        if let Some(back) = back_from_latest(wanted) {
            return self.nth_latest(wanted, back);
        }
        let path = Path::new(wanted);
        if wanted.contains('/') || (path.extension().is_some_and(|e| e == "json") && path.exists())
        {
            return Ok(path.to_owned());
        }
        if load::valid_id(wanted).is_ok() && self.path_of(wanted).is_file() {
            return Ok(self.path_of(wanted));
        }
        let kept: Vec<(String, PathBuf)> = self
            .list()?
            .into_iter()
            .filter_map(|e| Some((e.head.ok()?.id, e.path)))
            .collect();
        let mut found: Vec<&(String, PathBuf)> = kept
            .iter()
            .filter(|(id, _)| !wanted.is_empty() && id.starts_with(wanted))
            .collect();
        match found.len() {
            0 if !wanted.is_empty() && path.exists() => Ok(path.to_owned()),
            0 => {
                let ids: Vec<&str> = kept.iter().map(|(id, _)| id.as_str()).collect();
                Err(self.not_found(wanted, &meant(wanted, &ids)))
            }
            1 => Ok(found.remove(0).1.clone()),
            count => {
                let examples = found
                    .iter()
                    .take(3)
                    .map(|(id, _)| id.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                let wanted = clean_short(wanted, 60);
                Err(ArchiveError::Refused(format!(
                    "“{wanted}” could be any of {count} runs ({examples}); give more of the id"
                )))
            }
        }
    }

    fn nth_latest(&self, wanted: &str, back: usize) -> Result<PathBuf, ArchiveError> {
        let readable: Vec<Entry> = self
            .list()?
            .into_iter()
            .filter(|e| e.head.is_ok())
            .collect();
        let hint = match readable.len() {
            0 => ", which holds 0 runs; make one with `fingerpost run`".to_owned(),
            n => format!(", which holds {}; {LOOK}", counted(n as u64, "run")),
        };
        readable
            .into_iter()
            .nth(back)
            .map(|e| e.path)
            .ok_or_else(|| self.not_found(wanted, &hint))
    }

    fn not_found(&self, wanted: &str, hint: &str) -> ArchiveError {
        ArchiveError::NotFound {
            wanted: clean_short(wanted, 60),
            dir: shown(&self.dir),
            hint: hint.to_owned(),
        }
    }

    /// Adds a run file from elsewhere, as it is, after checking it whole.
    pub fn import(&self, path: &Path) -> Result<(Run, Imported), ArchiveError> {
        self.import_bytes(&load::bytes_of(path)?, &shown(path))
    }

    /// Takes the text of a run file into the archive; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Archive::import`].
    pub fn import_bytes(&self, bytes: &[u8], name: &str) -> Result<(Run, Imported), ArchiveError> {
        let run = load::from_slice(bytes, name)?;
        let target = self.path_of(&run.id);
        if target.exists() {
            // Labels and notes are the user's own words about the same run.
            let same =
                load::from_path(&target).is_ok_and(|kept| without(kept) == without(run.clone()));
            if !same {
                return Err(ArchiveError::Refused(format!(
                    "{name} has the id {}, and the archive keeps a different run under it; remove that one first, or \
                     leave this one out",
                    run.id
                )));
            }
            return Ok((run, Imported::AlreadyThere));
        }
        private::make(&self.dir).map_err(|e| ArchiveError::io("make the archive", &self.dir, e))?;
        replaced(&target, bytes, true, Readers::Owner)?;
        Ok((run, Imported::Added))
    }

    /// Writes the run that RUN names to a file, as it is, after checking it whole.
    pub fn export(&self, wanted: &str, target: &Path) -> Result<Run, ArchiveError> {
        let source = self.resolve(wanted)?;
        let bytes = load::bytes_of(&source)?;
        let run = load::from_slice(&bytes, &shown(&source))?;
        replaced(target, &bytes, true, Readers::AsBefore)?;
        Ok(run)
    }

    /// The file to remove for a whole id, `latest` or `latest~N`: nothing less exact is accepted, and nothing outside
    /// the archive.
    pub fn resolve_to_remove(&self, wanted: &str) -> Result<PathBuf, ArchiveError> {
        if back_from_latest(wanted).is_some() {
            return self.resolve(wanted);
        }
        if load::valid_id(wanted).is_ok() && self.path_of(wanted).is_file() {
            return Ok(self.path_of(wanted));
        }
        let kept: Vec<String> = self
            .list()?
            .into_iter()
            .filter_map(|e| e.head.ok())
            .map(|h| h.id)
            .collect();
        let ids: Vec<&str> = kept.iter().map(String::as_str).collect();
        let begun: Vec<&str> = ids
            .iter()
            .copied()
            .filter(|id| id.starts_with(wanted))
            .collect();
        let hint = match begun.as_slice() {
            [] => return Err(self.not_found(wanted, &meant(wanted, &ids))),
            [one] => format!(": {one}"),
            _ => String::new(),
        };
        let wanted = clean_short(wanted, 60);
        let sentence =
            format!("“{wanted}” is not the whole id of a run; removing needs it whole{hint}");
        Err(ArchiveError::Refused(sentence))
    }

    /// Removes runs. All are resolved before the first is removed, so a mistyped id removes nothing. Gives the removed
    /// files.
    pub fn remove(&self, wanted: &[String]) -> Result<Vec<PathBuf>, ArchiveError> {
        let mut paths = wanted
            .iter()
            .map(|w| self.resolve_to_remove(w))
            .collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        paths.dedup();
        for path in &paths {
            fs::remove_file(path).map_err(|e| ArchiveError::io("remove", path, e))?;
        }
        Ok(paths)
    }

    /// Loads every file whole, in the order of their names: gives the run's id, or the sentence that says what is wrong
    /// with the file.
    pub fn verify(&self) -> Result<Vec<Result<String, String>>, ArchiveError> {
        let mut files = self.files()?;
        files.sort();
        Ok(files.iter().map(|path| self.verify_one(path)).collect())
    }

    fn verify_one(&self, path: &Path) -> Result<String, String> {
        let run = load::from_path(path).map_err(|e| e.to_string())?;
        if path != self.path_of(&run.id) {
            return Err(format!(
                "{} holds the run {}; rename it to {}.json",
                shown(path),
                run.id,
                run.id
            ));
        }
        Ok(run.id)
    }
}

/// The run without its user's words.
fn without(run: Run) -> Run {
    Run {
        label: None,
        note: None,
        ..run
    }
}

/// What a name that no run has was most likely meant to be: `latest`, an id, or the id whose beginning is nearly this.
fn meant(wanted: &str, ids: &[&str]) -> String {
    let near = suggest::nearest(wanted, ids.iter().copied().chain(["latest"]));
    let begins = || {
        ids.iter()
            .filter(|_| wanted.len() >= LEAST_BEGUN)
            .filter_map(|id| id.get(..wanted.len()))
    };
    let begun = || {
        suggest::nearest(wanted, begins())
            .and_then(|begin| ids.iter().copied().find(|id| id.starts_with(begin)))
    };
    match near.or_else(begun) {
        Some(name) => format!("; did you mean “{name}”?"),
        None => format!("; {LOOK}"),
    }
}

/// A run's id: its start as `YYYYMMDDTHHMMSSZ`, a dash, and eight hexadecimal digits that tell runs of one second
/// apart.
pub fn new_id(started: Timestamp, random: u32) -> String {
    format!("{}-{random:08x}", started.strftime("%Y%m%dT%H%M%SZ"))
}

/// An instant as the record's `started` field has it: RFC 3339 in UTC, in whole seconds.
pub fn rfc3339(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The instant that a `started` field names; runs that name none are the oldest.
fn instant(started: &str) -> Timestamp {
    started.parse().unwrap_or(Timestamp::MIN)
}

/// The least of an id's beginning that another id can be taken for: a date.
const LEAST_BEGUN: usize = 8;

/// `latest` is 0, `latest~2` is 2, anything else is nothing.
fn back_from_latest(wanted: &str) -> Option<usize> {
    match wanted.strip_prefix("latest")? {
        "" => Some(0),
        rest => rest
            .strip_prefix('~')
            .map(|n| if n.is_empty() { Ok(1) } else { n.parse() })?
            .ok(),
    }
}

#[cfg(test)]
mod tests;
