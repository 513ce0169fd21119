//! Undoing what processes that are gone have left.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fingerpost_sys::child;
use fingerpost_sys::random::is_random_name;
use fingerpost_sys::system::there;

use super::places::{self, LOCK, RUN};
use crate::journal::log::{Log, order};
use crate::journal::{Areas, PREFIXES, Undo};
use crate::owned::{self, Dir, Trust};

/// A directory without a journal is being made, or its maker was killed meanwhile. Making takes milliseconds.
const MAKING: Duration = Duration::from_secs(60);
/// How long a sweep waits for a guardian that is at work.
const GUARDIAN_PATIENCE: Duration = Duration::from_secs(5);

/// How long after each other it is looked again for processes that inherited a change; all of it is less than a second.
const AGAIN: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(80),
    Duration::from_millis(200),
    Duration::from_millis(400),
];

/// What a look at the directory of a run found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Its owner lives, or is just making it.
    InUse,
    /// Its owner is gone, and somebody has its lock for a moment more: a guardian that is undoing it, another sweep, or
    /// what the owner was about to start.
    Guarded,
    /// Its owner is gone: what was done, one sentence each.
    Left(Vec<String>),
}

/// What the owner writes into its lock: its number, and when it started. A process that it forked has the lock as well
/// until it has become another program, or ends.
pub(super) fn owner() -> String {
    let pid = std::process::id() as i32;
    format!("{pid} {}\n", child::start_time(pid).unwrap_or(0))
}

/// Whether the owner that a lock tells lives.
fn lives(holder: &str) -> bool {
    let mut numbers = holder.lines().next().unwrap_or_default().split(' ');
    let owner = numbers
        .next()
        .and_then(|pid| pid.parse().ok())
        .zip(numbers.next().and_then(|start| start.parse().ok()));
    owner.is_some_and(|(pid, start): (i32, u64)| child::start_time(pid) == Some(start))
}

/// Removes what runs that were killed left behind, and says what it did, one sentence each.
pub fn sweep() -> Vec<String> {
    let mut told: Vec<String> = places::controls().iter().flat_map(sweep_control).collect();
    if let Ok(temporary) = places::temporary() {
        sweep_unlisted(&temporary, &mut told);
    }
    told
}

/// As [`sweep`], for what [`Scratch::create_in`](super::Scratch::create_in) made below this directory.
pub fn sweep_in(root: &Path) -> Vec<String> {
    let control = Dir::open(root, Trust::Strict).and_then(|dir| dir.private(places::CONTROL));
    control.map(|dir| sweep_control(&dir)).unwrap_or_default()
}

fn sweep_control(control: &Dir) -> Vec<String> {
    let mut told = Vec::new();
    for name in control
        .names()
        .unwrap_or_default()
        .iter()
        .filter(|name| is_random_name(name, RUN))
    {
        let look = || {
            reclaim(control, name, "")
                .map(|found| Some(found).filter(|found| *found != Found::Guarded))
        };
        match child::look_until(Instant::now() + GUARDIAN_PATIENCE, look) {
            Ok(Some(Found::Left(mut sentences))) => told.append(&mut sentences),
            Ok(_) => {}
            // Its owner, another sweep or its guardian was faster.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => told.push(format!(
                "could not clean up {}: {e}",
                control.path().join(name).display()
            )),
        }
    }
    told
}

/// Cleans up after one run. Root directory, run directory, lock and journal must all be our own; they are asked by
/// descriptor. `who` is left in the lock, so that others know who is at work.
pub fn reclaim(control: &Dir, name: &OsStr, who: &str) -> io::Result<Found> {
    let run = control.private(name)?;
    let Some(mut lock) = there(run.file(LOCK))? else {
        return without_journal(control, name, &run, who);
    };
    if !owned::try_lock(&lock)? {
        let mut holder = String::new();
        (&lock).take(64).read_to_string(&mut holder)?;
        return Ok(if holder.is_empty() || lives(&holder) {
            Found::InUse
        } else {
            Found::Guarded
        });
    }
    lock.write_all(who.as_bytes())?;
    let place = run.path().display();
    let mut log = match there(Log::open(&run))? {
        Some(Ok(log)) if !log.entries.is_empty() => log,
        Some(Ok(_)) | None => return without_journal(control, name, &run, who),
        Some(Err(sentence)) => {
            let left = format!(
                "{place} of a killed run is left alone: {sentence}; look at it and remove it"
            );
            return Ok(Found::Left(vec![left]));
        }
    };
    let (mut sentences, mut undone) = (Vec::new(), Vec::new());
    for n in order(&log.entries) {
        let Some(undo) = log.entries.get(&n).map(|entry| entry.undo.clone()) else {
            continue;
        };
        let told = log.undo(n);
        if told.is_ok() && matches!(undo, Undo::Threads { .. } | Undo::Inherited { .. }) {
            undone.push(undo.clone());
        }
        match told {
            // That there was anything to kill or to find is not known, and mostly there was not: servers die with their maker.
            Ok(()) if matches!(undo, Undo::KillMarked { .. } | Undo::Inherited { .. }) => {}
            Ok(()) => sentences.push(format!("undid what a killed run left: {undo}")),
            Err(sentence) => sentences.push(sentence),
        }
    }
    look_again(&undone);
    if log.entries.is_empty() {
        control.remove(name, None)?;
        sentences.push("removed the work directory of a killed run".to_owned());
    }
    Ok(Found::Left(sentences))
}

/// Looks once more for processes that inherited a change of threads: one that began to fork before the change was undone
/// has its child seen by nobody until that is whole, which takes a while on a busy machine.
fn look_again(undone: &[Undo]) {
    for pause in AGAIN.iter().filter(|_| !undone.is_empty()) {
        std::thread::sleep(*pause);
        for undo in undone {
            // What cannot be undone was told the first time.
            let _ = undo.apply(&Areas::default());
        }
    }
}

/// The directory of a run that wrote no journal yet: it changed nothing.
fn without_journal(control: &Dir, name: &OsStr, run: &Dir, who: &str) -> io::Result<Found> {
    // A guardian knows that the owner is gone.
    if who.is_empty() && age(run)? < MAKING {
        return Ok(Found::InUse);
    }
    control.remove(name, None)?;
    Ok(Found::Left(vec![
        "removed the empty directory of a killed run".to_owned(),
    ]))
}

/// Removes work directories of ours that no process holds and that have been so for a while: those of runs whose
/// journal went with the power. (Others cannot make a directory that is ours, nor lock one that they cannot read.)
fn sweep_unlisted(temporary: &Dir, told: &mut Vec<String>) {
    for name in temporary
        .names()
        .unwrap_or_default()
        .iter()
        .filter(|name| is_random_name(name, PREFIXES[0]))
    {
        let Ok(dir) = temporary.own(name) else {
            continue;
        };
        let free =
            age(&dir).is_ok_and(|age| age >= MAKING) && owned::try_lock(&dir).unwrap_or(false);
        if let (true, Ok(identity)) = (free, dir.identity()) {
            match temporary.remove(name, Some(identity)) {
                Ok(_) => told.push(format!(
                    "removed the work directory {} of a killed run",
                    dir.path().display()
                )),
                Err(e) => told.push(format!("could not remove {}: {e}", dir.path().display())),
            }
        }
    }
}

fn age(dir: &Dir) -> io::Result<Duration> {
    let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(dir.changed()?).unwrap_or(0));
    Ok(SystemTime::now()
        .duration_since(changed)
        .unwrap_or_default())
}
