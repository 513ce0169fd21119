//! A sweep's files: what was asked for, and for each host its record or the reason why there is none.
//!
//! ```text
//! manifest.json           what was asked for
//! hosts/NODE.json.gz      the slim record
//! failed/NODE             why there is none, a sentence
//! again/NODE.json.gz      the record of the confirmation: of a suspect, or of a control beside it
//! more/NODE-ID.json.gz    a further record of a host that has one
//! index                   all figures, made again from the records where it is lost or old
//! ```
//!
//! Each file is put in place whole, so that a sweep is usable after every interruption: what has neither record nor
//! reason is left to do. Nothing is ever made of anything but these files, and nothing that is in no other file is in
//! the index.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use fingerpost_record::archive::{ArchiveError, write_whole};
use fingerpost_record::load::{LoadError, valid_id};
use fingerpost_record::text::clean_short;
use fingerpost_record::{Run, open};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{nodes, slim};

/// The name and version of the manifest's format.
pub const SCHEMA: &str = "fingerpost/sweep/1";
/// The largest manifest that is read; a list of 200,000 names without a number is 50 MB, and nobody's.
const MOST_MANIFEST: u64 = 8 << 20;
/// What is kept of a reason.
const REASON: usize = 300;

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// The sweep's id, as a run's.
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// What started the runs: `slurm`, `ssh`, `gather` …
    pub engine: String,
    /// The nodes, folded ([`nodes::fold`]).
    pub nodes: String,
    /// The words after `run` on every node.
    pub args: Vec<String>,
}

/// Why a sweep cannot be read or written. Each prints as one sentence.
#[derive(Debug, Error)]
pub enum SweepError {
    /// It is no sweep, or not one of this version.
    /// Its directory, and why.
    #[error("{0} is no sweep: {1}")]
    NotOne(String, String),
    /// The system refused, or a file could not be put in place.
    #[error(transparent)]
    Write(#[from] ArchiveError),
    /// A record is none.
    #[error(transparent)]
    Record(#[from] LoadError),
}

/// What became of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// There is a record.
    Measured,
    /// There is none, because …
    Failed(String),
    /// There is neither: not begun, or interrupted.
    Left,
}

/// Which record of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The sweep's own.
    First,
    /// The confirmation's.
    Again,
}

impl Pass {
    fn dir(self) -> &'static str {
        if self == Pass::First {
            "hosts"
        } else {
            "again"
        }
    }
}

/// A sweep's directories.
const BELOW: [&str; 4] = ["hosts", "failed", "again", "more"];
/// The file with all figures, which [`crate::index`] reads and writes.
pub(crate) const INDEX: &str = "index";

/// What tells that a record has not changed: its size and the nanoseconds of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp(pub(crate) u64, pub(crate) i64, pub(crate) i64);

impl Stamp {
    /// The stamp of a file; nothing where there is none.
    pub fn of(path: &Path) -> Option<Stamp> {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(Stamp(found.len(), found.mtime(), found.mtime_nsec()))
    }
}

/// A sweep's directory.
#[derive(Clone, Debug)]
pub struct Sweep {
    dir: PathBuf,
    /// What was asked for.
    pub manifest: Manifest,
}

fn shown(path: &Path) -> String {
    clean_short(&path.display().to_string(), 300)
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SweepError {
    move |source| ArchiveError::io(doing, path, source).into()
}

impl Sweep {
    /// Makes a sweep's directory, which nobody else may enter and which must not be there.
    ///
    /// # Errors
    /// The system's, as when there is such a directory.
    pub fn create(dir: &Path, manifest: Manifest) -> Result<Sweep, SweepError> {
        let private = |path: &Path| {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(path)
                .map_err(io_error("make the directory", path))
        };
        private(dir)?;
        for below in BELOW {
            private(&dir.join(below))?;
        }
        let sweep = Sweep {
            dir: dir.to_owned(),
            manifest,
        };
        let text = serde_json::to_vec_pretty(&sweep.manifest).expect("a manifest is plain data");
        write_whole(&dir.join("manifest.json"), &text)?;
        Ok(sweep)
    }

    /// Opens a sweep.
    ///
    /// # Errors
    /// That it is none, or the system's.
    pub fn open(dir: &Path) -> Result<Sweep, SweepError> {
        let path = dir.join("manifest.json");
        let not_one = |why: String| SweepError::NotOne(shown(dir), clean_short(&why, 200));
        let text = open::beginning(&path, MOST_MANIFEST)
            .map_err(|e| not_one(format!("manifest.json cannot be read: {e}")))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|e| not_one(format!("manifest.json: {e}")))?;
        if manifest.schema != SCHEMA {
            return Err(not_one(format!(
                "its format is “{}”, this version reads “{SCHEMA}”",
                manifest.schema
            )));
        }
        // It goes into names of jobs and into lines for a shell.
        if !manifest.id.is_empty() {
            valid_id(&manifest.id).map_err(|why| not_one(format!("manifest.json: {why}")))?;
        }
        Ok(Sweep {
            dir: dir.to_owned(),
            manifest,
        })
    }

    /// Takes the directory away again, where nothing came from any host; whether it did. What is not the sweep's own
    /// stays, and the directory with it.
    pub fn withdraw(&self) -> bool {
        let below = || BELOW.iter().map(|name| self.dir.join(name));
        let empty =
            |dir: PathBuf| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
        if !below().all(empty) {
            return false;
        }
        let _ = fs::remove_file(self.dir.join(INDEX));
        below().all(|dir| fs::remove_dir(dir).is_ok())
            && fs::remove_file(self.dir.join("manifest.json")).is_ok()
            && fs::remove_dir(&self.dir).is_ok()
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn file(&self, pass: Pass, node: &str) -> PathBuf {
        self.dir.join(pass.dir()).join(format!("{node}.json.gz"))
    }

    /// What tells that a host's record has not changed.
    pub fn stamp(&self, node: &str) -> Option<Stamp> {
        Stamp::of(&self.file(Pass::First, node))
    }

    /// Keeps a packed record that came from a node, when it is one. A host that has one keeps that, and the other goes
    /// beside it: which of two is right nobody knows. Says whether it is the host's record now.
    ///
    /// # Errors
    /// That it is no record, with the reason, or the system's.
    pub fn put(&self, pass: Pass, node: &str, packed: &[u8]) -> Result<bool, SweepError> {
        let run = slim::unpack(packed, &format!("the record of {}", clean_short(node, 60)))?;
        Ok(self.put_run(pass, node, run)?.is_some())
    }

    /// The same of a run; its samples are left out. Gives the run as it is kept, where it is the host's record now.
    ///
    /// # Errors
    /// The system's.
    pub fn put_run(&self, pass: Pass, node: &str, run: Run) -> Result<Option<Run>, SweepError> {
        self.check(node)?;
        // Packed anew: what a node put into its record beside what a run has is not kept.
        let (path, run) = (self.file(pass, node), slim::slim(run));
        let packed = slim::pack(&run).map_err(io_error("pack", &path))?;
        // One that cannot be read any more is no record.
        if let Some(kept) = self.read(pass, node).ok().filter(|_| pass == Pass::First) {
            if kept.id != run.id {
                write_whole(
                    &self
                        .dir
                        .join("more")
                        .join(format!("{node}-{}.json.gz", run.id)),
                    &packed,
                )?;
            }
            return Ok(None);
        }
        write_whole(&path, &packed)?;
        if pass == Pass::First {
            let _ = fs::remove_file(self.dir.join("failed").join(node));
        }
        Ok(Some(run))
    }

    /// Keeps the reason why a host has no record.
    ///
    /// # Errors
    /// The system's.
    pub fn fail(&self, node: &str, reason: &str) -> Result<(), SweepError> {
        self.check(node)?;
        Ok(write_whole(
            &self.dir.join("failed").join(node),
            clean_short(reason, REASON).as_bytes(),
        )?)
    }

    fn check(&self, node: &str) -> Result<(), SweepError> {
        if nodes::is_name(node) {
            return Ok(());
        }
        Err(SweepError::NotOne(
            shown(&self.dir),
            format!("“{}” cannot be the name of a node", clean_short(node, 60)),
        ))
    }

    /// A host's record.
    ///
    /// # Errors
    /// The system's, or that it is none.
    pub fn read(&self, pass: Pass, node: &str) -> Result<Run, SweepError> {
        self.check(node)?;
        Ok(slim::from_path(&self.file(pass, node))?)
    }

    /// The hosts that have a record of this pass, in order.
    ///
    /// # Errors
    /// The system's.
    pub fn measured(&self, pass: Pass) -> Result<Vec<String>, SweepError> {
        self.names(pass.dir(), ".json.gz")
    }

    fn names(&self, below: &str, suffix: &str) -> Result<Vec<String>, SweepError> {
        let dir = self.dir.join(below);
        let entries = fs::read_dir(&dir).map_err(io_error("list", &dir))?;
        let name = |entry: io::Result<fs::DirEntry>| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_suffix(suffix)
                .map(str::to_owned)
        };
        let mut names: Vec<String> = entries
            .filter_map(name)
            .filter(|name| nodes::is_name(name))
            .take(nodes::MOST_NODES)
            .collect();
        names.sort();
        Ok(names)
    }

    /// What became of each host that was asked for or answered.
    ///
    /// # Errors
    /// The system's, or that the manifest's list is none.
    pub fn states(&self) -> Result<BTreeMap<String, State>, SweepError> {
        let asked = nodes::parse(&self.manifest.nodes)
            .map_err(|why| SweepError::NotOne(shown(&self.dir), why))?;
        let mut states: BTreeMap<String, State> =
            asked.into_iter().map(|node| (node, State::Left)).collect();
        for node in self.names("failed", "")? {
            let read = open::beginning(&self.dir.join("failed").join(&node), 4096);
            let reason = read.ok().and_then(|reason| String::from_utf8(reason).ok());
            let reason = reason.map_or("its reason cannot be read".into(), |reason| {
                clean_short(&reason, REASON)
            });
            states.insert(node, State::Failed(reason));
        }
        states.extend(
            self.measured(Pass::First)?
                .into_iter()
                .map(|node| (node, State::Measured)),
        );
        Ok(states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;

    fn sweep(dir: &Path) -> Sweep {
        let manifest = Manifest {
            schema: SCHEMA.into(),
            nodes: "n[1-3]".into(),
            engine: "ssh".into(),
            ..Manifest::default()
        };
        Sweep::create(dir, manifest).unwrap()
    }

    #[test]
    fn every_host_is_a_row_and_an_interrupted_sweep_says_the_rest() {
        let home = tempfile::tempdir().unwrap();
        let made = sweep(&home.path().join("s"));
        made.fail("n1", "no route\u{1b}[1m").unwrap();
        made.fail("n2", "hung").unwrap();
        let packed = slim::pack(&slim::slim(fixture::run())).unwrap();
        assert!(made.put(Pass::First, "n2", &packed).unwrap());
        let again = Sweep::open(&home.path().join("s")).unwrap();
        assert_eq!(again.manifest, made.manifest);
        let states: Vec<State> = again.states().unwrap().into_values().collect();
        assert_eq!(
            states,
            [
                State::Failed("no route\u{fffd}[1m".into()),
                State::Measured,
                State::Left
            ]
        );
        assert_eq!(again.read(Pass::First, "n2").unwrap().id, fixture::run().id);
        assert!(
            Sweep::create(&home.path().join("s"), Manifest::default()).is_err(),
            "what is there is not written over"
        );
    }

    #[test]
    fn an_id_that_a_shell_could_misread_makes_no_sweep() {
        let home = tempfile::tempdir().unwrap();
        let manifest = Manifest {
            schema: SCHEMA.into(),
            id: "x'; reboot; '".into(),
            nodes: "n1".into(),
            ..Manifest::default()
        };
        let made = Sweep::create(&home.path().join("s"), manifest).unwrap();
        let refused = Sweep::open(made.dir()).unwrap_err().to_string();
        assert!(refused.contains("cannot be the id"), "{refused}");
    }

    #[test]
    fn a_sweep_that_nothing_came_to_is_taken_away_and_no_other() {
        let home = tempfile::tempdir().unwrap();
        let (empty, other) = (
            sweep(&home.path().join("empty")),
            sweep(&home.path().join("other")),
        );
        other.fail("n1", "no route").unwrap();
        assert!(empty.withdraw() && !empty.dir().exists());
        assert!(
            !other.withdraw() && other.states().unwrap()["n1"] == State::Failed("no route".into())
        );
    }

    #[test]
    fn a_second_record_of_a_host_is_kept_beside_the_first() {
        let home = tempfile::tempdir().unwrap();
        let sweep = sweep(&home.path().join("s"));
        let (first, second) = (
            fixture::run(),
            Run {
                id: "20260101T000000Z-00000002".into(),
                ..fixture::run()
            },
        );
        assert_eq!(
            sweep.put_run(Pass::First, "n1", first.clone()).unwrap(),
            Some(slim::slim(first.clone()))
        );
        assert_eq!(
            sweep.put_run(Pass::First, "n1", first.clone()).unwrap(),
            None
        );
        assert_eq!(sweep.put_run(Pass::First, "n1", second).unwrap(), None);
        assert_eq!(sweep.read(Pass::First, "n1").unwrap().id, first.id);
        assert_eq!(
            sweep.names("more", ".json.gz").unwrap(),
            ["n1-20260101T000000Z-00000002"]
        );
    }

    #[test]
    fn half_a_record_and_a_strange_name_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let sweep = sweep(&home.path().join("s"));
        let packed = slim::pack(&slim::slim(fixture::run())).unwrap();
        assert!(
            sweep
                .put(Pass::First, "n1", &packed[..packed.len() / 2])
                .is_err()
        );
        assert!(
            sweep.put(Pass::First, "../n1", &packed).is_err() && sweep.fail("a/b", "x").is_err()
        );
        assert_eq!(sweep.measured(Pass::First).unwrap(), Vec::<String>::new());
        fs::write(home.path().join("s/hosts/n3.json.gz"), b"nonsense").unwrap();
        assert!(sweep.read(Pass::First, "n3").is_err());
        assert!(
            Sweep::open(home.path())
                .unwrap_err()
                .to_string()
                .contains("is no sweep")
        );
    }
}
