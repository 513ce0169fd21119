//! The process that undoes what a run changed when the run is killed.
//!
//! It is this binary, started before the first change, with a session of its own, so that a kill of the run's group
//! passes it by. It sleeps in a read of a pipe whose other end only the run holds: when the run ends without a word the
//! kernel closes that end, and the guardian takes the lock and undoes the journal. Should it be killed as well, the
//! next start sweeps.
//!
//! While an experiment has something changed, the run says so with a time by which it will be as it was. Where that
//! passes without a word (the run was stopped, or waits for a CPU), the guardian undoes what is brief
//! ([`crate::journal::Undo::is_brief`]) although the run lives; undoing it once more does no harm.

use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fingerpost_sys::{child, wait};

use crate::journal::log::{Log, areas, order};
use crate::owned::{Dir, Trust};
use crate::scratch::{Found, reclaim};

/// The first argument of such a process.
const MARK: &str = "__guardian";
/// What it writes into the lock while it is at work.
const AT_WORK: &str = "guardian";
/// The lock is freed when the dead process has closed its files, which can be a moment after the pipe.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// What the run writes when something is changed, before the milliseconds after which it is to be undone, and when it
/// was undone.
const CHANGED: u8 = b'+';
const UNDONE: u8 = b'-';
/// The longest that a change may ask for.
const LONGEST: Duration = Duration::from_millis(u16::MAX as u64);
/// How long a guardian may take to end when it is not needed any more.
const END: Duration = Duration::from_secs(2);
/// The kernel kills others first when memory runs out (proc_pid_oom_score_adj(5)); root alone may ask for it.
const OOM_SCORE: &str = "-900";

/// A guardian that sleeps.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    pipe: PipeWriter,
}

impl Guardian {
    /// Starts one for the run with this name in the control directory.
    pub(crate) fn start(control: &Path, run: &str) -> io::Result<Guardian> {
        let (reader, pipe) = io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("fingerpost")
            .arg(MARK)
            .arg(control)
            .arg(run)
            .env_clear();
        command
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/");
        // Whoever waits for the end of a pipe that this program was given must not wait for the guardian.
        child::keep_descriptors();
        child::apart(&mut command);
        Ok(Guardian {
            child: command.spawn()?,
            pipe,
        })
    }

    /// Says that something brief is about to be changed, and for how long at most.
    pub(crate) fn changed_for(&mut self, limit: Duration) -> io::Result<()> {
        let [low, high] = (limit.min(LONGEST).as_millis() as u16).to_le_bytes();
        self.pipe.write_all(&[CHANGED, low, high])
    }

    /// Says that it was undone.
    pub(crate) fn undone(&mut self) -> io::Result<()> {
        self.pipe.write_all(&[UNDONE])
    }

    /// Ends it: everything is undone, or told to be not.
    pub(crate) fn dismiss(mut self) {
        let _ = self.pipe.write_all(b"\n");
        drop(self.pipe);
        if let Ok(None) = child::wait_deadline(&mut self.child, Instant::now() + END) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs the guardian when this process was started as one; `None` when it is an ordinary invocation.
pub fn dispatch() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != MARK {
        return None;
    }
    let (Some(control), Some(run)) = (args.next(), args.next()) else {
        return Some(ExitCode::from(2));
    };
    let _ = rustix::thread::set_name(c"fp-guardian");
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    let killed = maker_was_killed(&mut || undo_brief(Path::new(&control), &run));
    Some(if killed {
        undo(Path::new(&control), &run)
    } else {
        ExitCode::SUCCESS
    })
}

/// Sleeps until the maker ends. One that ends in order sends a byte before it closes its end. Calls `late` when a
/// change was not undone in its time.
fn maker_was_killed(late: &mut dyn FnMut()) -> bool {
    let stdin = io::stdin();
    let mut due: Option<Instant> = None;
    loop {
        if let Some(at) = due {
            let ready = wait::any(
                &[stdin.as_fd()],
                at.saturating_duration_since(Instant::now()),
            );
            // A signal ends the wait early.
            if ready.is_ok_and(|ready| !ready[0]) {
                if Instant::now() >= at {
                    late();
                    due = None;
                }
                continue;
            }
        }
        // A byte at a time and past the buffer of the standard library, so that poll sees what is left.
        let mut byte = [0];
        match rustix::io::read(&stdin, &mut byte) {
            Ok(0) => return true,
            Ok(_) if byte[0] == CHANGED => {
                let mut limit = [0; 2];
                for part in &mut limit {
                    if rustix::io::read(&stdin, std::slice::from_mut(part)) != Ok(1) {
                        return true;
                    }
                }
                due = Some(
                    Instant::now() + Duration::from_millis(u64::from(u16::from_le_bytes(limit))),
                );
            }
            Ok(_) if byte[0] == UNDONE => due = None,
            Ok(_) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Undoes what is brief, without the lock, which the run holds, and leaves its entries: the run undoes them again when
/// it goes on.
fn undo_brief(control: &Path, run: &OsString) {
    let dir = Dir::open(control, Trust::Strict)
        .and_then(|dir| private(&dir))
        .and_then(|control| control.private(run));
    let Ok(Ok(log)) = dir.and_then(|dir| Log::open(&dir)) else {
        return;
    };
    for n in order(&log.entries) {
        if let Some(entry) = log.entries.get(&n).filter(|entry| entry.undo.is_brief()) {
            // What cannot be undone now is left to the run, or to us when it has gone.
            let _ = entry.undo.apply(&areas(&log.entries));
        }
    }
}

fn undo(control: &Path, run: &OsString) -> ExitCode {
    let Ok(control) = Dir::open(control, Trust::Strict).and_then(|dir| private(&dir)) else {
        return ExitCode::FAILURE;
    };
    let undone = || Ok(matches!(reclaim(&control, run, AT_WORK)?, Found::Left(_)).then_some(()));
    match child::look_until(Instant::now() + LOCK_PATIENCE, undone) {
        Ok(Some(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The same directory, refused unless it is ours alone.
fn private(dir: &Dir) -> io::Result<Dir> {
    let (Some(parent), Some(name)) = (dir.path().parent(), dir.path().file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    Dir::open(parent, Trust::Strict)?.private(name)
}
