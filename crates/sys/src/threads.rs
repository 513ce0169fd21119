//! Nice value and allowed CPUs of threads that run, changed for a while and given back.
//!
//! A thread is known by its number and the time when it started. Threads and child processes that are made meanwhile
//! inherit the change: [`kin`] finds them, also those whose parent has ended.

pub mod kin;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::procfs::parse_list;
use crate::procfs::process::Stat;
use crate::system::unless;
use crate::{affinity, child, sample};
use kin::{Kin, Left};

/// Threads that are changed at most: what a journal has room for.
pub const MOST: usize = 2000;
/// Processes above one another that are gone up.
const DEEPEST: usize = 16;
/// How long those that inherited a change are looked for again and again, where each look finds new ones.
const PATIENCE: Duration = Duration::from_secs(2);
/// After this time they are made faster than they can be found, one by one.
const ONE_BY_ONE: Duration = Duration::from_millis(200);

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    /// The nice value, −20 to 19.
    Nice(i32),
    /// The allowed CPUs.
    Cpus(Vec<usize>),
}

impl To {
    fn is_plausible(&self) -> bool {
        match self {
            To::Nice(n) => (-20..=19).contains(n),
            To::Cpus(cpus) => !cpus.is_empty() && cpus.len() <= libc::CPU_SETSIZE as usize,
        }
    }

    fn is_like(&self, other: &To) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Whether a thread that has this now has it from a change of `had` to `to`. A lower nice value can be raised by
    /// whoever has it, and is still lower than it was.
    fn is_from(&self, had: &To, to: &To) -> bool {
        match (self, had, to) {
            (To::Nice(now), To::Nice(had), To::Nice(to)) if to < had => (*to..*had).contains(now),
            _ => self == to && to != had,
        }
    }
}

/// One thread as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Was {
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// When it started, in clock ticks after boot.
    pub started: u64,
    /// What it had.
    pub had: To,
}

/// Why threads cannot be looked at to be given back what they had.
#[derive(Debug, Error)]
pub enum LookError {
    /// None was there.
    #[error("the server's threads could not be looked at")]
    None,
    /// There are more than [`MOST`].
    #[error("the server has more than {MOST} threads")]
    TooMany,
    /// No random number could be had.
    #[error("no mark could be made: {0}")]
    NoMark(io::Error),
}

/// Threads as they were before a change: what gives it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// The boot in which it was.
    boot: String,
    /// What they are changed to.
    to: To,
    /// The threads.
    pub(crate) was: Vec<Was>,
    /// How those are known that inherit it.
    #[serde(default)]
    kin: Kin,
}

impl Before {
    /// Looks at all threads of these processes and of their descendants.
    ///
    /// # Errors
    /// There are none, or more than [`MOST`].
    pub fn look(pids: &[i32], to: To) -> Result<Before, LookError> {
        let all = with_descendants(pids);
        let threads = all
            .iter()
            .flat_map(|&pid| tids(pid).into_iter().map(move |tid| (pid, tid)));
        let was: Vec<Was> = threads
            .filter_map(|(pid, tid)| was(pid, tid, &to))
            .take(MOST + 1)
            .collect();
        match was.len() {
            0 => Err(LookError::None),
            n if n > MOST => Err(LookError::TooMany),
            _ => Ok(Before {
                boot: child::boot_id(),
                kin: Kin::of(&was.iter().map(|w| w.pid).collect())?,
                to,
                was,
            }),
        }
    }

    /// What must be looked for when all is over, and first what marks it: see [`Left`].
    pub fn left(&self) -> Left {
        let pids: BTreeSet<i32> = self.was.iter().map(|w| w.pid).collect();
        Left::new(&self.boot, &self.to, self.usual(), &self.kin, &pids)
    }

    /// What most of the processes had.
    fn usual(&self) -> &To {
        let mains = self.was.iter().filter(|w| w.tid == w.pid);
        let count = |w: &&Was| self.was.iter().filter(|other| other.had == w.had).count();
        &mains.max_by_key(count).unwrap_or(&self.was[0]).had
    }

    /// Changes them. Threads that have ended meanwhile are left out.
    ///
    /// # Errors
    /// The first that the kernel did not allow.
    pub fn change(&self) -> io::Result<()> {
        self.was
            .iter()
            .filter(|w| w.lives())
            .try_for_each(|w| set(w.tid, &self.to))
    }

    /// Gives back what they had, to those as well that inherited the change and have not changed it themselves.
    ///
    /// # Errors
    /// The first of the kernel's, after all were tried.
    pub fn restore(&self) -> io::Result<()> {
        if self.boot != child::boot_id() || self.was.is_empty() {
            return Ok(());
        }
        let known = self
            .was
            .iter()
            .filter(|w| w.lives())
            .map(|w| set(w.tid, &w.had))
            .fold(Ok(()), io::Result::and);
        until_none(
            || self.made_meanwhile(),
            || self.kin.all_at_once(self.usual(), &self.to),
        )
        .and(known)
    }

    /// Threads that were made meanwhile, with what their process or its nearest ancestor had, or most had.
    fn made_meanwhile(&self) -> Vec<(i32, To)> {
        let known: BTreeSet<i32> = self.was.iter().map(|w| w.tid).collect();
        let mains: BTreeMap<i32, &Was> = self
            .was
            .iter()
            .filter(|w| w.tid == w.pid && w.lives())
            .map(|w| (w.pid, w))
            .collect();
        let roots: Vec<i32> = mains.keys().copied().collect();
        let all = processes();
        let of = |pid: i32| {
            let parent = |at: &i32| all.get(at).map(|stat| stat.parent);
            let mut above = std::iter::successors(Some(pid), parent).take(DEEPEST);
            above
                .find_map(|at| mains.get(&at))
                .map_or_else(|| self.usual(), |w| &w.had)
        };
        let mut found = descendants(&roots, &all);
        found.extend(self.kin.among(&all, self.usual(), &self.to));
        changed_threads(found, |pid| of(pid), &self.to, &known)
    }

    /// How many threads it is of.
    pub fn threads(&self) -> usize {
        self.was.len()
    }

    /// Whether it is one that [`Before::look`] can have made.
    pub fn is_plausible(&self) -> bool {
        let thread =
            |w: &Was| w.pid > 1 && w.tid > 1 && w.had.is_plausible() && w.had.is_like(&self.to);
        self.boot.len() <= 64
            && self.was.len() <= MOST
            && self.to.is_plausible()
            && self.kin.is_plausible()
            && self.was.iter().all(thread)
    }
}

/// The threads of these processes, but the known ones, that have it from the change, with what they should have.
fn changed_threads<'a>(
    pids: BTreeSet<i32>,
    had: impl Fn(i32) -> &'a To,
    to: &To,
    known: &BTreeSet<i32>,
) -> Vec<(i32, To)> {
    let mut found = Vec::new();
    for pid in pids.into_iter().filter(|pid| *pid > 1) {
        let had = had(pid);
        let new = tids(pid).into_iter().filter(|tid| !known.contains(tid));
        let changed =
            new.filter(|tid| was(pid, *tid, to).is_some_and(|now| now.had.is_from(had, to)));
        found.extend(changed.map(|tid| (tid, had.clone())));
    }
    found
}

/// Gives back what is found until nothing is found: what forks while it is looked for is found the next time.
fn until_none(find: impl Fn() -> Vec<(i32, To)>, all_at_once: impl Fn()) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let found = find();
        if found.is_empty() {
            return Ok(());
        }
        found.iter().try_for_each(|(tid, had)| set(*tid, had))?;
        if began.elapsed() > PATIENCE {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "new processes are started faster than they can be found",
            ));
        }
        if began.elapsed() > ONE_BY_ONE {
            all_at_once();
        }
    }
}

impl Was {
    fn lives(&self) -> bool {
        sample::stat(&task(self.pid, self.tid)).is_some_and(|s| s.started == self.started)
    }
}

fn task(pid: i32, tid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/task/{tid}"))
}

fn tids(pid: i32) -> Vec<i32> {
    sample::numbers(Path::new(&format!("/proc/{pid}/task")))
}

fn was(pid: i32, tid: i32, like: &To) -> Option<Was> {
    let dir = task(pid, tid);
    let stat = sample::stat(&dir)?;
    let had = match like {
        To::Nice(_) => To::Nice(stat.nice),
        To::Cpus(_) => To::Cpus(parse_list(&sample::status(&dir)?.cpus_allowed?)?),
    };
    Some(Was {
        pid,
        tid,
        started: stat.started,
        had,
    })
}

/// A thread that has ended meanwhile needs nothing.
fn set(tid: i32, to: &To) -> io::Result<()> {
    let result = match to {
        To::Nice(n) => {
            let pid = rustix::process::Pid::from_raw(tid).ok_or(io::ErrorKind::InvalidInput)?;
            // On Linux the nice value is a thread's own, and the number may be any thread's.
            rustix::process::setpriority_process(Some(pid), *n).map_err(io::Error::from)
        }
        To::Cpus(cpus) => affinity::pin_task(tid, cpus),
    };
    unless(result, &[libc::ESRCH])
}

/// All processes but the kernel's own.
fn processes() -> BTreeMap<i32, Stat> {
    sample::numbers(Path::new("/proc"))
        .into_iter()
        .filter_map(|pid| Some((pid, sample::process(pid)?)))
        .filter(|(_, stat)| !stat.kernel)
        .collect()
}

/// These processes and all that descend from them.
pub fn with_descendants(pids: &[i32]) -> BTreeSet<i32> {
    descendants(pids, &processes())
}

fn descendants(pids: &[i32], all: &BTreeMap<i32, Stat>) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut todo: Vec<i32> = pids.iter().copied().filter(|pid| *pid > 1).collect();
    let mut found = BTreeSet::new();
    while let Some(pid) = todo.pop() {
        if found.insert(pid) {
            todo.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Shell(Child);

    impl Shell {
        /// A shell that makes a child when it is told to, and says so.
        fn new() -> Shell {
            Shell::with("sleep 60 & echo $!", Shell::ordinary)
        }

        fn ordinary(_: &mut Command) {}

        /// One that runs this when it is told to.
        fn with(what: &str, prepare: impl Fn(&mut Command)) -> Shell {
            let script = format!("read x; {what}; read y; kill $! 2>&-");
            let mut command = Command::new("sh");
            prepare(&mut command);
            Shell(
                command
                    .args(["-c", &script])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap(),
            )
        }

        fn pid(&self) -> i32 {
            self.0.id() as i32
        }

        fn fork(&mut self) -> i32 {
            use std::io::{BufRead, Write};
            self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
            let mut line = String::new();
            io::BufReader::new(self.0.stdout.as_mut().unwrap())
                .read_line(&mut line)
                .unwrap();
            line.trim().parse().unwrap()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            use std::io::Write;
            let _ = self.0.stdin.as_mut().unwrap().write_all(b"end\n");
            let _ = self.0.wait();
        }
    }

    fn nice(pid: i32) -> i32 {
        sample::process(pid).unwrap().nice
    }

    #[test]
    fn a_change_is_given_back_by_children_made_meanwhile_too() {
        let mut shell = Shell::new();
        let own = nice(shell.pid());
        // Upwards, which everybody may.
        let before = Before::look(&[shell.pid()], To::Nice(19)).unwrap();
        assert!(before.is_plausible() && before.was.len() == 1);
        before.change().unwrap();
        let child = shell.fork();
        assert_eq!((nice(shell.pid()), nice(child)), (19, 19));
        let restored = before.restore();
        if crate::system::is_root() {
            restored.unwrap();
            assert_eq!(
                (nice(shell.pid()), nice(child)),
                (own, own),
                "the child inherited it"
            );
            before.restore().unwrap();
        }
    }

    /// Starts a process whose parent ends, in a session of its own, and says its number.
    const TWICE: &str = "(setsid sleep 60 & echo $!)";

    fn gone_from(child: i32, parent: i32) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let of = |pid| sample::process(pid).unwrap();
        while of(child).parent == parent || of(child).session != child || of(child).name != "sleep"
        {
            assert!(Instant::now() < deadline, "{:?}", of(child));
            std::thread::yield_now();
        }
        assert!(!with_descendants(&[parent]).contains(&child));
    }

    #[test]
    fn cpus_of_who_forked_twice_are_given_back_and_no_mark_stays() {
        let mut shell = Shell::with(TWICE, Shell::ordinary);
        let all = affinity::allowed_cpus().unwrap();
        let cpus = |pid: i32| affinity::allowed_cpus_of(pid).unwrap();
        let before = Before::look(&[shell.pid()], To::Cpus(vec![all[0]])).unwrap();
        let limits = child::lock_limits(shell.pid());
        let left = before.left();
        assert!(before.is_plausible() && left.is_plausible());
        left.mark();
        before.change().unwrap();
        let child = shell.fork();
        gone_from(child, shell.pid());
        assert_eq!(cpus(child), [all[0]]);
        before.restore().unwrap();
        assert_eq!((cpus(shell.pid()), cpus(child)), (all.clone(), all.clone()));
        // Once more, as if it had been seen by nobody until then.
        affinity::pin_task(child, &all[..1]).unwrap();
        left.restore().unwrap();
        assert_eq!(cpus(child), all);
        assert_eq!(child::lock_limits(shell.pid()), limits);
        assert_eq!(child::lock_limits(child), limits);
        child::signal(child, libc::SIGKILL).unwrap();
    }

    #[test]
    fn a_nice_value_that_another_user_would_keep_is_taken_away() {
        fingerpost_testing::require!(root);
        use std::os::unix::process::CommandExt;
        // It takes the mark off, and raises its nice value, so that it is none that we set.
        let hostile =
            "(ulimit -S -w 7; renice -n 1 $$ >/dev/null; setsid nice -n 1 sleep 60 & echo $!)";
        let mut shell = Shell::with(hostile, |command| _ = command.uid(65534).gid(65534));
        let own = nice(shell.pid());
        let before = Before::look(&[shell.pid()], To::Nice(-20)).unwrap();
        let left = before.left();
        left.mark();
        before.change().unwrap();
        let child = shell.fork();
        gone_from(child, shell.pid());
        assert!(nice(child) < 0, "{}", nice(child));
        before.restore().unwrap();
        assert_eq!((nice(shell.pid()), nice(child)), (own, own));
        rustix::process::setpriority_process(rustix::process::Pid::from_raw(child), -19).unwrap();
        left.restore().unwrap();
        assert_eq!(nice(child), own);
        child::signal(child, libc::SIGKILL).unwrap();
    }

    #[test]
    fn who_had_a_lower_nice_value_before_or_starts_later_keeps_it() {
        let (had, to) = (To::Nice(0), To::Nice(-20));
        assert!(To::Nice(-20).is_from(&had, &to) && To::Nice(-1).is_from(&had, &to));
        assert!(!To::Nice(0).is_from(&had, &to) && !To::Nice(5).is_from(&had, &to));
        let (had, to) = (To::Nice(0), To::Nice(19));
        assert!(To::Nice(19).is_from(&had, &to) && !To::Nice(18).is_from(&had, &to));
        let (had, to) = (To::Cpus(vec![0]), To::Cpus(vec![0, 1]));
        assert!(To::Cpus(vec![0, 1]).is_from(&had, &to) && !To::Cpus(vec![1]).is_from(&had, &to));
    }

    #[test]
    fn cpus_are_given_back() {
        let shell = Shell::new();
        let all = affinity::allowed_cpus().unwrap();
        let cpus = |pid: i32| {
            parse_list(
                &sample::status(Path::new(&format!("/proc/{pid}")))
                    .unwrap()
                    .cpus_allowed
                    .unwrap(),
            )
            .unwrap()
        };
        let before = Before::look(&[shell.pid()], To::Cpus(vec![all[0]])).unwrap();
        before.change().unwrap();
        assert_eq!(cpus(shell.pid()), [all[0]]);
        before.restore().unwrap();
        assert_eq!(cpus(shell.pid()), all);
    }

    #[test]
    fn who_is_somebody_else_by_now_is_left_alone() {
        let shell = Shell::new();
        let mut before = Before::look(&[shell.pid()], To::Nice(19)).unwrap();
        before.was[0].started += 1;
        before.change().unwrap();
        assert_ne!(nice(shell.pid()), 19);
        before.was[0].tid = 1;
        assert!(!before.is_plausible());
        assert!(
            Before::look(&[1], To::Nice(19)).is_err(),
            "the first process is nobody's to change"
        );
    }
}
