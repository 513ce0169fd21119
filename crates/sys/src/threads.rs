//! Nice value and allowed CPUs of threads that run, changed for a while and given back.
//!
//! A thread is known by its number and the time when it started. Threads and child processes that are made meanwhile
//! inherit the change: giving back finds them below the processes that were changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::procfs::parse_list;
use crate::system::unless;
use crate::{affinity, child, sample};

/// Threads that are changed at most: what a journal has room for.
pub const MOST: usize = 2000;
/// Processes above one another that are gone up.
const DEEPEST: usize = 16;

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    /// The nice value, −20 to 19.
    Nice(i32),
    /// The allowed CPUs.
    Cpus(Vec<usize>),
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

/// Threads as they were before a change: what gives it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// The boot in which it was.
    boot: String,
    /// What they are changed to.
    to: To,
    /// The threads.
    pub(crate) was: Vec<Was>,
}

impl Before {
    /// Looks at all threads of these processes and of their descendants.
    ///
    /// # Errors
    /// A sentence, where there are none or more than [`MOST`].
    pub fn look(pids: &[i32], to: To) -> Result<Before, String> {
        let all = with_descendants(pids);
        let threads = all
            .iter()
            .flat_map(|&pid| tids(pid).into_iter().map(move |tid| (pid, tid)));
        let was: Vec<Was> = threads
            .filter_map(|(pid, tid)| was(pid, tid, &to))
            .take(MOST + 1)
            .collect();
        match was.len() {
            0 => Err("the server's threads could not be looked at".to_owned()),
            n if n > MOST => Err(format!("the server has more than {MOST} threads")),
            _ => Ok(Before {
                boot: child::boot_id(),
                to,
                was,
            }),
        }
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
        if self.boot != child::boot_id() {
            return Ok(());
        }
        let known = self
            .was
            .iter()
            .filter(|w| w.lives())
            .map(|w| set(w.tid, &w.had))
            .fold(Ok(()), io::Result::and);
        self.made_meanwhile()
            .iter()
            .map(|(tid, had)| set(*tid, had))
            .fold(known, io::Result::and)
    }

    /// Threads that were made meanwhile, with what their process or its nearest ancestor had.
    fn made_meanwhile(&self) -> Vec<(i32, To)> {
        let known: BTreeSet<i32> = self.was.iter().map(|w| w.tid).collect();
        let mains: BTreeMap<i32, &Was> = self
            .was
            .iter()
            .filter(|w| w.tid == w.pid && w.lives())
            .map(|w| (w.pid, w))
            .collect();
        let roots: Vec<i32> = mains.keys().copied().collect();
        let parents = parents();
        let of = |pid: i32| {
            let mut above =
                std::iter::successors(Some(pid), |at| parents.get(at).copied()).take(DEEPEST);
            above.find_map(|at| mains.get(&at)).map(|w| w.had.clone())
        };
        let new = |pid: i32| {
            tids(pid)
                .into_iter()
                .filter(|tid| !known.contains(tid))
                .collect::<Vec<i32>>()
        };
        let changed =
            |pid: i32, tid: i32| was(pid, tid, &self.to).is_some_and(|now| now.had == self.to);
        let all = with_descendants(&roots)
            .into_iter()
            .flat_map(|pid| new(pid).into_iter().map(move |tid| (pid, tid)));
        all.filter(|(pid, tid)| changed(*pid, *tid))
            .filter_map(|(pid, tid)| Some((tid, of(pid)?)))
            .collect()
    }

    /// Whether it is one that [`Before::look`] can have made.
    pub(crate) fn is_plausible(&self) -> bool {
        let plausible = |to: &To| match to {
            To::Nice(n) => (-20..=19).contains(n),
            To::Cpus(cpus) => !cpus.is_empty() && cpus.len() <= libc::CPU_SETSIZE as usize,
        };
        let same = |a: &To, b: &To| std::mem::discriminant(a) == std::mem::discriminant(b);
        let thread =
            |w: &Was| w.pid > 1 && w.tid > 1 && plausible(&w.had) && same(&w.had, &self.to);
        self.boot.len() <= 64
            && self.was.len() <= MOST
            && plausible(&self.to)
            && self.was.iter().all(thread)
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

fn parents() -> BTreeMap<i32, i32> {
    let parent = |pid: i32| Some((pid, sample::process(pid)?.parent));
    sample::numbers(Path::new("/proc"))
        .into_iter()
        .filter_map(parent)
        .collect()
}

/// These processes and all that descend from them.
pub fn with_descendants(pids: &[i32]) -> BTreeSet<i32> {
    let mut parents = parents();
    let mut all: BTreeSet<i32> = pids.iter().copied().filter(|pid| *pid > 1).collect();
    loop {
        let more: Vec<i32> = parents
            .extract_if(.., |_, parent| all.contains(parent))
            .map(|(pid, _)| pid)
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Shell(Child);

    impl Shell {
        /// A shell that makes a child when it is told to, and says so.
        fn new() -> Shell {
            let script = "read x; sleep 60 & echo $!; read y; kill $!";
            let mut command = Command::new("sh");
            Shell(
                command
                    .args(["-c", script])
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
    fn a_change_is_given_back_also_by_children_that_were_made_meanwhile() {
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
