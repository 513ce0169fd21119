//! Writing a run while it is being measured.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::Archive;
use super::error::ArchiveError;
use super::private;
use super::replace::{Readers, SUFFIX, is_special, replaced};
use crate::guard::{Guard, Kind};
use crate::run::Run;
use crate::valid::storable;

/// The least time between two writes of an unfinished run.
const LEAST_GAP: Duration = Duration::from_millis(500);
/// Writing may take one part in this many of the time, so that a large record on a slow disk does not become the load
/// it measures.
const SHARE: u32 = 50;
/// A temporary file this old was left behind by a killed run.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Keeps the file of a run in progress up to date.
///
/// [`Writer::write`] is meant to be called after every measurement, and [`Writer::finish`] once at the end. A whole
/// record is some MiB and measurements come many a second, so `write` does nothing when the last write was less than
/// half a second ago (more when writing is slow: at most 2 % of the time goes to writing). A killed run thus loses the
/// last half second at most, and its file is a valid run whose `complete` is false. Every write goes to a temporary
/// file that is then renamed: a reader never sees half a run.
///
/// A full disk or a read-only home does not stop measuring: the first failure is handed back once, as a sentence for
/// the user, and `finish` tries a last time.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    gap: Duration,
    last: Option<Instant>,
    given_up: bool,
    /// What the user can do when writing fails.
    advice: &'static str,
    readers: Readers,
}

impl Writer {
    /// A writer for a run kept in the archive. Makes the directory, removes what killed runs left there, and writes the
    /// run as it is; the sentence says why that failed.
    pub fn in_archive(archive: &Archive, run: &Run) -> (Writer, Option<String>) {
        let mut writer = Writer {
            advice: "; measuring goes on, and `-o FILE` can keep the run elsewhere",
            readers: Readers::Owner,
            ..Writer::at(archive.path_of(&run.id))
        };
        if let Err(e) = private::make(archive.dir()) {
            writer.given_up = true;
            let trouble = writer.sentence(&ArchiveError::io("make the archive", archive.dir(), e));
            return (writer, Some(trouble));
        }
        sweep(archive.dir());
        let trouble = writer.write(run);
        (writer, trouble)
    }

    /// A writer for a run kept in a file of the user's choice (`-o FILE`).
    pub fn at(path: PathBuf) -> Writer {
        Writer {
            path,
            gap: LEAST_GAP,
            last: None,
            given_up: false,
            advice: "",
            readers: Readers::AsBefore,
        }
    }

    /// Writes the run unless it was written a moment ago. Gives a sentence when writing fails for the first time; after
    /// that, writing waits for [`Writer::finish`].
    #[must_use = "the sentence is for the user"]
    pub fn write(&mut self, run: &Run) -> Option<String> {
        // A pipe or a device is written once, at the end.
        if self.given_up
            || self.last.is_some_and(|t| t.elapsed() < self.gap)
            || is_special(&self.path)
        {
            return None;
        }
        let began = Instant::now();
        let result = replaced(&self.path, &encode(run), false, self.readers);
        self.gap = LEAST_GAP.max(began.elapsed() * SHARE);
        self.last = Some(Instant::now());
        let error = result.err()?;
        self.given_up = true;
        Some(self.sentence(&error))
    }

    /// Writes the run for the last time and waits until it is on the disk. Gives the file.
    pub fn finish(self, run: &Run) -> Result<PathBuf, ArchiveError> {
        replaced(&self.path, &encode(run), true, self.readers)?;
        Ok(self.path)
    }

    /// Takes the file away again, where this writer has written one that is a file of its own: a run that turned out
    /// not to be one.
    pub fn withdraw(&mut self) {
        if self.last.take().is_some() && !is_special(&self.path) {
            self.given_up = true;
            // What cannot be removed is a run without rows.
            let _ = fs::remove_file(&self.path);
        }
    }

    fn sentence(&self, error: &ArchiveError) -> String {
        format!("{error}{}", self.advice)
    }
}

/// A run as its file has it: one line of JSON, with nothing in it that acts on a terminal.
fn encode(run: &Run) -> Vec<u8> {
    let mut text = Vec::new();
    let mut guard = Guard::new(&mut text, Kind::Json);
    serde_json::to_writer(&mut guard, &*storable(run)).expect("a run is plain data");
    guard.flush().expect("memory takes what is written to it");
    text.push(b'\n');
    text
}

/// Removes temporary files that killed runs left behind.
fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.as_encoded_bytes().starts_with(b".")
            && name.as_encoded_bytes().ends_with(SUFFIX.as_bytes());
        let age = entry
            .metadata()
            .and_then(|m| m.modified())
            .ok()
            .and_then(|t| SystemTime::now().duration_since(t).ok());
        if ours && age.is_some_and(|a| a > ABANDONED) {
            // Another run may be sweeping too.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::replace::PREFIX;
    use crate::{fixture, load};

    fn archive() -> (tempfile::TempDir, Archive) {
        let dir = tempfile::tempdir().unwrap();
        let archive = Archive::open(Some(dir.path().join("runs"))).unwrap();
        (dir, archive)
    }

    #[test]
    fn a_run_in_progress_can_be_read_and_is_whole_at_the_end() {
        let (_dir, archive) = archive();
        let whole = fixture::run();
        let mut run = Run {
            complete: false,
            measurements: vec![],
            ..whole.clone()
        };
        let (mut writer, trouble) = Writer::in_archive(&archive, &run);
        assert_eq!(trouble, None);
        assert!(!load::from_path(&writer.path).unwrap().complete);

        run.measurements = whole.measurements.clone();
        writer.gap = Duration::ZERO;
        assert_eq!(writer.write(&run), None);
        let partial = load::from_path(&writer.path).unwrap();
        assert_eq!(
            (partial.complete, partial.measurements.len()),
            (false, whole.measurements.len())
        );

        let path = writer.finish(&whole).unwrap();
        assert!(
            load::from_path(&path).unwrap() == whole,
            "what is read is what was measured"
        );
        let names: Vec<_> = fs::read_dir(archive.dir())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
    }

    #[test]
    fn writes_that_come_too_soon_are_left_out() {
        let (_dir, archive) = archive();
        let run = Run {
            measurements: vec![],
            ..fixture::run()
        };
        let (mut writer, _) = Writer::in_archive(&archive, &run);
        writer.gap = Duration::from_secs(3600);
        assert_eq!(writer.write(&fixture::run()), None);
        assert!(
            load::from_path(&writer.path)
                .unwrap()
                .measurements
                .is_empty()
        );
        assert!(
            !load::from_path(&writer.finish(&fixture::run()).unwrap())
                .unwrap()
                .measurements
                .is_empty()
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let archive = Archive::open(Some(file.join("runs"))).unwrap();
        let (mut writer, trouble) = Writer::in_archive(&archive, &fixture::run());
        let trouble = trouble.unwrap();
        assert!(
            trouble.contains("cannot make the archive") && trouble.contains("-o FILE"),
            "{trouble}"
        );
        assert_eq!(writer.write(&fixture::run()), None);
        assert!(writer.finish(&fixture::run()).is_err());
    }

    #[test]
    fn a_full_disk_is_told_once_and_leaves_what_was_there() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            fingerpost_testing::skipped("there is no /dev/full here");
            return;
        }
        let error = Writer::at(full.into()).finish(&fixture::run()).unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
        assert!(is_special(full), "a device stays a device");
    }

    #[test]
    fn what_killed_runs_left_is_swept_and_what_is_young_is_not() {
        let (_dir, archive) = archive();
        fs::create_dir_all(archive.dir()).unwrap();
        let (old, young) = (
            archive.dir().join(format!("{PREFIX}a{SUFFIX}")),
            archive.dir().join(format!("{PREFIX}b{SUFFIX}")),
        );
        for path in [&old, &young] {
            fs::write(path, "half").unwrap();
        }
        fs::File::options()
            .write(true)
            .open(&old)
            .unwrap()
            .set_modified(SystemTime::now() - 2 * ABANDONED)
            .unwrap();
        let (_writer, trouble) = Writer::in_archive(&archive, &fixture::run());
        assert_eq!(trouble, None);
        assert!(!old.exists() && young.exists());
    }
}
