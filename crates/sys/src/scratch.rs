//! A private directory for one run, and the promise that nothing of the run outlives it.
//!
//! The owner holds a lock on a file in the directory for as long as it lives, so a directory whose lock is free belongs to a
//! process that is gone, however it went. [`sweep`] undoes what the journal of such a directory lists, and removes it.
//!
//! Every change to the system outside the directory is written to the journal *before* it is made ([`Scratch::record`]), so that
//! undoing must cope with a change that was never made.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::child;
use crate::files;
use crate::journal::{self, Undo};

/// How long a server may take to end on SIGTERM before it is killed.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// A private directory with its lock and journal. Dropping it undoes the journal and removes the directory.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
    journal: File,
    /// What is to be undone, oldest first. An undone entry stays as `None`, so that tickets keep their meaning.
    entries: Vec<Option<Undo>>,
    /// Held for its lock.
    _lock: File,
}

/// Names one entry of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(usize);

impl Scratch {
    /// Makes a new private directory below the root for this user, `$TMPDIR/fingerpost-UID`.
    ///
    /// Directories are open to be passed through (0711) and closed to be listed, so that a server that was dropped to an unprivileged
    /// user can reach what it is given.
    pub fn create() -> io::Result<Scratch> {
        Self::create_in(&root())
    }

    /// As [`Scratch::create`], below another root.
    pub fn create_in(root: &Path) -> io::Result<Scratch> {
        make_private(root)?;
        let stamp = Instant::now();
        for attempt in 0..1000u32 {
            let dir = root.join(format!("run-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o711).create(&dir) {
                Ok(()) => return Self::own(dir),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && stamp.elapsed() < Duration::from_secs(5) => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is full of directories of ours", root.display())))
    }

    fn own(dir: PathBuf) -> io::Result<Scratch> {
        let lock = OpenOptions::new().create_new(true).write(true).open(dir.join("lock"))?;
        if !try_lock(&lock)? {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{} is locked by another process", dir.display())));
        }
        let journal = OpenOptions::new().create_new(true).append(true).open(dir.join("journal"))?;
        Ok(Scratch { dir, journal, entries: Vec::new(), _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// A new directory within, with this name.
    pub fn subdir(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.dir.join(name);
        DirBuilder::new().mode(0o711).create(&path)?;
        Ok(path)
    }

    /// Writes down how to undo a change that is about to be made. On disk before it returns.
    pub fn record(&mut self, undo: Undo) -> io::Result<Ticket> {
        let line = journal::to_line(&undo);
        self.journal.write_all(line.as_bytes())?;
        self.journal.sync_data()?;
        self.entries.push(Some(undo));
        Ok(Ticket(self.entries.len() - 1))
    }

    /// Undoes one change now. The change is forgotten only when undoing it worked.
    pub fn undo(&mut self, ticket: Ticket) -> Result<(), String> {
        let Some(entry) = self.entries.get_mut(ticket.0) else { return Ok(()) };
        if let Some(undo) = entry {
            undo.apply()?;
            *entry = None;
        }
        Ok(())
    }

    /// Starts a server: in its own process group, dying with this thread, listed in the journal, told apart by the variable
    /// `FINGERPOST_SCRATCH` in its environment.
    pub fn spawn(&mut self, command: &mut Command) -> io::Result<Server> {
        command.env("FINGERPOST_SCRATCH", &self.dir);
        let child = child::die_with_parent(command).spawn()?;
        let pgid = child.id() as i32;
        let ticket = self.record(Undo::KillGroup { pgid, start: child::start_time(pgid).unwrap_or(0), boot: journal::boot_id() })?;
        Ok(Server { child, ticket })
    }

    /// Ends a server and all of its group: SIGTERM, a grace of a few seconds, SIGKILL.
    pub fn stop(&mut self, mut server: Server) -> Result<(), String> {
        let pgid = server.child.id() as i32;
        child::signal_group(pgid, libc::SIGTERM).map_err(|e| format!("cannot end process group {pgid}: {e}"))?;
        let _ = child::wait_deadline(&mut server.child, Instant::now() + TERM_GRACE);
        let ended = self.undo(server.ticket);
        let _ = server.child.wait();
        ended
    }

    /// Undoes everything, newest first, and tells what could not be undone.
    fn undo_all(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        for entry in self.entries.iter_mut().rev() {
            match entry.as_ref().map(Undo::apply) {
                Some(Err(sentence)) => failures.push(sentence),
                Some(Ok(())) => *entry = None,
                None => {}
            }
        }
        failures
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What could not be undone stays in the journal for the next sweep.
        if self.undo_all().is_empty() {
            let _ = files::remove_tree(&self.dir);
        }
    }
}

/// A server that [`Scratch::spawn`] started. End it with [`Scratch::stop`]; what is not ended so ends with the scratch directory.
#[derive(Debug)]
pub struct Server {
    /// The process itself, for its id, its output and its exit status.
    pub child: Child,
    ticket: Ticket,
}

impl Server {
    /// The id of the process, which is also that of its group.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

/// The directory that holds this user's scratch directories.
pub fn root() -> PathBuf {
    // SAFETY: geteuid cannot fail.
    let uid = unsafe { libc::geteuid() };
    std::env::temp_dir().join(format!("fingerpost-{uid}"))
}

/// Removes what runs that were killed left behind, and says what it did, one sentence each.
pub fn sweep() -> Vec<String> {
    sweep_in(&root())
}

/// As [`sweep`], below another root.
pub fn sweep_in(root: &Path) -> Vec<String> {
    let mut told = Vec::new();
    let Ok(entries) = fs::read_dir(root) else { return told };
    for dir in entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()) {
        match reclaim(&dir) {
            Ok(Some(mut sentences)) => told.append(&mut sentences),
            Ok(None) => {}
            Err(e) => told.push(format!("could not clean up {}: {e}", dir.display())),
        }
    }
    told
}

/// Cleans up one directory; `None` when its owner lives.
fn reclaim(dir: &Path) -> io::Result<Option<Vec<String>>> {
    let lock = match OpenOptions::new().write(true).open(dir.join("lock")) {
        Ok(file) => file,
        // Killed between making the directory and the lock, or just being made: it holds nothing yet.
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return if fs::metadata(dir)?.modified()?.elapsed().is_ok_and(|age| age > Duration::from_secs(60)) {
                fs::remove_dir_all(dir)?;
                Ok(Some(vec![format!("removed the empty work directory {} of a killed run", dir.display())]))
            } else {
                Ok(None)
            };
        }
        Err(e) => return Err(e),
    };
    if !try_lock(&lock)? {
        return Ok(None);
    }
    let text = fs::read_to_string(dir.join("journal")).unwrap_or_default();
    let mut sentences = Vec::new();
    let mut failed = false;
    for undo in journal::from_text(&text).iter().rev() {
        match undo.apply() {
            Ok(()) => sentences.push(format!("undid what a killed run left: {undo}")),
            Err(sentence) => {
                failed = true;
                sentences.push(sentence);
            }
        }
    }
    if !failed {
        files::remove_tree(dir)?;
        sentences.push(format!("removed the work directory {} of a killed run", dir.display()));
    }
    Ok(Some(sentences))
}

/// Makes the root, or refuses one that another user could have prepared for us.
fn make_private(root: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o711).create(root) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let meta = fs::symlink_metadata(root)?;
    // SAFETY: geteuid cannot fail.
    let uid = unsafe { libc::geteuid() };
    if !meta.is_dir() || meta.uid() != uid || meta.permissions().mode() & 0o022 != 0 {
        let sentence = format!("{} is not a directory that only this user can write to; remove it or set TMPDIR", root.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, sentence));
    }
    Ok(())
}

/// Takes an exclusive lock without waiting; false when another process has it.
fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: flock takes a descriptor that `file` keeps open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        e => Err(e),
    }
}

/// Has a command run as an unprivileged user. A no-op unless we are root.
pub fn drop_privileges(command: &mut Command, uid: u32, gid: u32) -> &mut Command {
    // SAFETY: geteuid cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(uid).gid(gid);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_scratch_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        let outside = base.path().join("outside");
        let dir = {
            let mut scratch = Scratch::create_in(&base.path().join("root")).unwrap();
            scratch.record(Undo::RemovePath { path: outside.clone() }).unwrap();
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("file"), "x").unwrap();
            scratch.path().to_owned()
        };
        assert!(!dir.exists());
        assert!(!outside.exists());
    }

    #[test]
    fn a_scratch_whose_owner_lives_is_not_swept() {
        let base = tempfile::tempdir().unwrap();
        let scratch = Scratch::create_in(base.path().join("root").as_path()).unwrap();
        // A lock belongs to the open file, so a second open of it in this process competes as another process would.
        assert!(sweep_in(&base.path().join("root")).is_empty());
        assert!(scratch.path().exists());
    }

    #[test]
    fn what_a_killed_owner_left_is_swept() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        let outside = base.path().join("outside");
        let mut scratch = Scratch::create_in(&root).unwrap();
        scratch.record(Undo::RemovePath { path: outside.clone() }).unwrap();
        fs::write(&outside, "x").unwrap();
        let mut server = scratch.spawn(Command::new("sleep").arg("600")).unwrap();
        let dir = scratch.path().to_owned();
        // As kill -9 does: the lock is released, nothing else happens.
        // SAFETY: the original is forgotten on the next line, so the file has one owner.
        let lock = unsafe { std::ptr::read(&scratch._lock) };
        std::mem::forget(scratch);
        drop(lock);
        let told = sweep_in(&root);
        assert!(told.iter().any(|s| s.contains("process group")), "{told:?}");
        assert!(!dir.exists() && !outside.exists());
        assert!(child::wait_deadline(&mut server.child, Instant::now() + Duration::from_secs(10)).unwrap().is_some());
        assert!(sweep_in(&root).is_empty());
    }

    #[test]
    fn a_root_that_others_can_write_to_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Scratch::create_in(&root).unwrap_err().to_string().contains("only this user"));
    }
}
