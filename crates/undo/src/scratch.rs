//! A private directory for one run, and the promise that nothing of the run outlives it.
//!
//! There are two directories. The *work directory*, in the temporary directory, holds the data of servers and probes.
//! The *control directory*, where nobody else may write, holds a lock and the journal. Its owner holds the lock for as
//! long as it lives, so a control directory whose lock is free belongs to a process that is gone, however it went.
//!
//! Every change to the system is written to the journal *before* it is made ([`Scratch::record`]), so that undoing must
//! cope with a change that was never made. Whoever finds the lock free undoes the journal: the
//! [guardian](crate::guardian) of the run within a second of its end, else [`sweep`] at the next start.

mod places;
mod sweep;

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fingerpost_sys::child::{self, Change};
use fingerpost_sys::random::random_name;
use fingerpost_sys::sample;
use fingerpost_sys::system::is_root;

use crate::guardian::Guardian;
use crate::journal::log::Log;
use crate::journal::{self, Undo};
use crate::owned::{self, Dir, Trust};
use places::{LOCK, RUN};
pub(crate) use sweep::{Found, reclaim};
pub use sweep::{sweep, sweep_in};

/// How long a server may take to end on SIGTERM before it is killed.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// A sweep that looks at a directory while it is being made holds its lock for a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The directories of one run. Dropping it undoes the journal and removes them.
#[derive(Debug)]
pub struct Scratch {
    work: PathBuf,
    control: Dir,
    /// The directory in the control directory that is this run's, and its name.
    run: (Dir, String),
    log: Log,
    guardian: Option<Guardian>,
    /// Whether there is a guardian to be started: this process must be the binary that answers to it.
    guarded: bool,
    /// Held for their locks.
    _locks: (std::fs::File, Vec<Dir>),
}

/// Names one entry of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

impl Scratch {
    /// Makes the directories of a run, in the places for this user; a guardian is started before the first change to
    /// the system. For the binary alone, which must call [`crate::guardian::dispatch`] when it starts.
    ///
    /// # Errors
    /// The temporary directory, or every place for the control directory, can be changed by others; the sentence says
    /// which and by whom.
    pub fn create() -> io::Result<Scratch> {
        Self::prepare(places::control()?, true)?.with_work_directory(&places::temporary()?)
    }

    /// As [`Scratch::create`], with a guardian from the beginning: for runs that will make more than files in the work
    /// directory.
    pub fn create_guarded() -> io::Result<Scratch> {
        let mut scratch = Self::prepare(places::control()?, true)?;
        scratch.start_guardian()?;
        scratch.with_work_directory(&places::temporary()?)
    }

    /// As [`Scratch::create`], below a directory that is made where there is none, and without a guardian.
    pub fn create_in(root: &Path) -> io::Result<Scratch> {
        let root = places::root(root)?;
        Self::prepare(root.private_or_new(places::CONTROL)?, false)?.with_work_directory(&root)
    }

    /// Makes all but the work directory.
    fn prepare(control: Dir, guarded: bool) -> io::Result<Scratch> {
        // From here on servers are started, some as other users.
        child::keep_descriptors();
        let name = random_name(RUN)?;
        let run = control.make(&name, 0o700)?;
        let mut lock = run.new_file(LOCK)?;
        wait_for_lock(&lock, run.path())?;
        lock.write_all(sweep::owner().as_bytes())?;
        let log = Log::create(&run)?;
        let (work, run, _locks) = (PathBuf::new(), (run, name), (lock, Vec::new()));
        Ok(Scratch {
            work,
            control,
            run,
            log,
            guardian: None,
            guarded,
            _locks,
        })
    }

    fn with_work_directory(mut self, temporary: &Dir) -> io::Result<Scratch> {
        let made = self.make_directory(temporary, journal::PREFIXES[0]);
        self.work = made
            .map_err(|e| nothing_can_be_made(temporary.path(), e))?
            .0;
        if self.guardian.is_some() {
            self.guard()?;
        }
        Ok(self)
    }

    /// The work directory. It is open to be passed through (0711) and closed to be listed, so that a server that was
    /// dropped to an unprivileged user can reach what it is given.
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// A new directory within the work directory, with this name.
    pub fn subdir(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.work.join(name);
        DirBuilder::new().mode(0o711).create(&path)?;
        Ok(path)
    }

    /// A new directory of ours in one that the user named, removed with its ticket or at the end.
    ///
    /// # Errors
    /// Others than the user could change what lies in it, or the kernel's.
    pub fn directory_in(&mut self, parent: &Path) -> io::Result<(PathBuf, Ticket)> {
        let parent = Dir::open(parent, Trust::Caller)?;
        self.make_directory(&parent, journal::PREFIXES[1])
    }

    fn make_directory(&mut self, parent: &Dir, prefix: &str) -> io::Result<(PathBuf, Ticket)> {
        let name = random_name(prefix)?;
        let path = parent.path().join(&name);
        let ticket = self.record(Undo::RemoveDirectory { path: path.clone() })?;
        let dir = parent.make(&name, 0o711)?;
        self.log.made(ticket.0, dir.identity()?)?;
        // Whoever finds it unlocked and in no journal may remove it: a journal on a memory file system does not outlive
        // the power.
        owned::try_lock(&dir)?;
        self._locks.1.push(dir);
        Ok((path, ticket))
    }

    /// Writes down how to undo a change that is about to be made. On disk before it returns. Before the first change to
    /// the system the guardian is started.
    ///
    /// # Errors
    /// The kernel's, or the journal's ([`Log::record`]).
    pub fn record(&mut self, undo: Undo) -> io::Result<Ticket> {
        if !undo.is_within() {
            self.guard()?;
        }
        self.log.record(&self.run.0, undo).map(Ticket)
    }

    /// Makes a change for a short time: says to the guardian by when it will be undone, and writes down how. End it
    /// with [`Scratch::end_brief`].
    ///
    /// # Errors
    /// The kernel's, or the journal's; then nothing may be changed.
    pub fn begin_brief(&mut self, undo: &[Undo], limit: Duration) -> io::Result<Vec<Ticket>> {
        self.guard()?;
        if let Some(guardian) = &mut self.guardian {
            guardian.changed_for(limit)?;
        }
        undo.iter().map(|undo| self.record(undo.clone())).collect()
    }

    /// Undoes what was changed for a short time, settings before what has to be looked for, else the last first.
    ///
    /// # Errors
    /// The first of all that could not be undone, in a sentence; it stays in the journal.
    pub fn end_brief(&mut self, tickets: Vec<Ticket>) -> Result<(), String> {
        let order = journal::log::order(&self.log.entries);
        let order = order.into_iter().filter(|n| tickets.contains(&Ticket(*n)));
        // All of them, even when one fails.
        let result = order
            .collect::<Vec<u64>>()
            .into_iter()
            .map(|n| self.log.undo(n))
            .fold(Ok(()), Result::and);
        if let (Ok(()), Some(guardian)) = (&result, &mut self.guardian) {
            guardian
                .undone()
                .map_err(|e| format!("the guardian does not listen: {e}"))?;
        }
        result
    }

    /// Sees to it that there is a guardian, and that it ends what carries our mark.
    fn guard(&mut self) -> io::Result<()> {
        self.start_guardian()?;
        let marked = Undo::KillMarked {
            scratch: self.work.clone(),
        };
        if !self.log.entries.values().any(|entry| entry.undo == marked) {
            self.log.record(&self.run.0, marked)?;
        }
        Ok(())
    }

    fn start_guardian(&mut self) -> io::Result<()> {
        if self.guarded && self.guardian.is_none() {
            let failed =
                |e| format!("the process that undoes changes after a kill cannot be started: {e}");
            let guardian = Guardian::start(self.control.path(), &self.run.1);
            self.guardian = Some(guardian.map_err(|e| io::Error::new(e.kind(), failed(e)))?);
        }
        Ok(())
    }

    /// Undoes one change now. The change is forgotten only when undoing it worked.
    pub fn undo(&mut self, ticket: Ticket) -> Result<(), String> {
        self.log.undo(ticket.0)
    }

    /// Starts a server: in its own process group, dying with this thread, listed in the journal, marked as ours
    /// ([`child::mark`]).
    pub fn spawn(&mut self, command: &mut Command) -> io::Result<Server> {
        self.guard()?;
        child::mark(command, &self.work);
        let child = child::die_with_parent(command).spawn()?;
        let pgid = child.id() as i32;
        // It is not waited for yet, so it has a start time even if it has ended.
        let undo = Undo::KillGroup {
            pgid,
            start: child::start_time(pgid).unwrap_or(0),
            boot: child::boot_id(),
        };
        let ticket = self.record(undo)?;
        Ok(Server { child, ticket })
    }

    /// Ends a server and all of its group: SIGTERM, a grace of a few seconds, SIGKILL.
    pub fn stop(&mut self, mut server: Server) -> Result<(), String> {
        let pgid = server.pid();
        let trouble = |e: io::Error| format!("cannot end process group {pgid}: {e}");
        // Until it is waited for, its number is nobody else's.
        if matches!(server.child.try_wait(), Ok(None)) {
            child::signal_group(pgid, libc::SIGTERM).map_err(trouble)?;
            let ended = || {
                Ok(matches!(child::change(pgid), Ok(Some(Change::Ended)) | Err(_)).then_some(()))
            };
            child::look_until(Instant::now() + TERM_GRACE, ended).map_err(trouble)?;
            child::signal_group(pgid, libc::SIGKILL).map_err(trouble)?;
            server.child.wait().map_err(trouble)?;
        } else {
            let of_group =
                |pid: &i32| sample::process(*pid).is_some_and(|process| process.group == pgid);
            let rest = || {
                child::marked(&self.work)
                    .into_iter()
                    .filter(of_group)
                    .collect()
            };
            child::kill_all(rest).map_err(trouble)?;
        }
        self.log
            .strike(server.ticket.0)
            .map_err(|e| format!("cannot write the journal: {e}"))
    }

    /// Undoes everything, and tells what could not be undone.
    fn undo_all(&mut self) -> Vec<String> {
        journal::log::order(&self.log.entries)
            .into_iter()
            .filter_map(|n| self.log.undo(n).err())
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What could not be undone stays in the journal for the next sweep.
        let whole = self.undo_all().is_empty();
        if whole {
            let _ = self.control.remove(&self.run.1, None);
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}

/// A server that [`Scratch::spawn`] started. End it with [`Scratch::stop`]; what is not ended so ends with the scratch
/// directory.
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

/// Where nothing could be made, as on a file system that is read-only or full, and what helps.
fn nothing_can_be_made(dir: &Path, error: io::Error) -> io::Error {
    let dir = dir.display();
    let sentence =
        format!("{error} in {dir}; name another directory for temporary files by TMPDIR");
    io::Error::new(error.kind(), sentence)
}

fn wait_for_lock(lock: &std::fs::File, dir: &Path) -> io::Result<()> {
    let held = || Ok(owned::try_lock(lock)?.then_some(()));
    child::look_until(Instant::now() + LOCK_PATIENCE, held)?.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::WouldBlock,
            format!("{} is locked by another process", dir.display()),
        )
    })
}

/// Has a command run as an unprivileged user. A no-op unless we are root.
pub fn drop_privileges(command: &mut Command, uid: u32, gid: u32) -> &mut Command {
    if is_root() {
        command.uid(uid).gid(gid);
    }
    command
}

#[cfg(test)]
mod tests;
