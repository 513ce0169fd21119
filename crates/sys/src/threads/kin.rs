//! Who inherited a change of threads, though nobody knows their parent any more.
//!
//! A service that forks twice and lets the process between end (a daemon) has a process that descends from none of its
//! own. It is found by a mark that children inherit, whatever they do, and that has no effect: the soft limit on file
//! locks (getrlimit(2)), set on the service's processes for as long as there is something changed. A process can take
//! that mark off. It gains nothing by it but where its nice value was lowered, which it could not do itself: whoever
//! started since then, has a lower nice value than it had before, and is of the same session, control group or user
//! (but root) as the service, has it from the change.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::{LookError, MOST, To, changed_threads, processes, until_none};
use crate::cgroup::members;
use crate::procfs::process::{Stat, Status};
use crate::random::random_name;
use crate::{child, sample, system};

/// Marks begin here; nobody sets such a limit by hand ([`child::mark_limit`]).
const LEAST_MARK: u64 = 1 << 61;
/// No limit.
const NONE: u64 = u64::MAX;
/// Users and control groups that a service has at most.
const MOST_GROUPS: usize = 64;

/// What those have in common that inherit a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kin {
    /// When it was about to be made, in clock ticks after boot.
    since: u64,
    /// Limits on file locks that tell them.
    marks: BTreeSet<u64>,
    /// The mark of those that have none yet; one of `marks`.
    mark: u64,
    /// Real users, without root.
    users: BTreeSet<u32>,
    /// Sessions.
    sessions: BTreeSet<i32>,
    /// Control groups, without the first one, in which everybody may be.
    groups: BTreeSet<String>,
}

impl Kin {
    /// Those of these processes, beginning now.
    ///
    /// # Errors
    /// No random number could be had.
    pub(super) fn of(pids: &BTreeSet<i32>) -> Result<Kin, LookError> {
        let name = random_name("").map_err(LookError::NoMark)?;
        let mark = child::mark_limit(name.as_ref());
        let mut kin = Kin {
            since: ticks_now(),
            marks: BTreeSet::from([mark]),
            mark,
            ..Kin::default()
        };
        for &pid in pids {
            let marks = child::lock_limits(pid).map(|(soft, _)| soft);
            kin.marks.extend(marks.filter(|soft| is_mark(*soft)));
            kin.users.extend(real_user(pid).filter(|user| *user != 0));
            kin.sessions
                .extend(sample::process(pid).map(|stat| stat.session));
            kin.groups.extend(members::group_of(pid));
        }
        // Session 0 is that of all who have none here.
        kin.sessions.retain(|session| *session > 1);
        kin.users = kin.users.into_iter().take(MOST_GROUPS).collect();
        kin.groups = kin.groups.into_iter().take(MOST_GROUPS).collect();
        Ok(kin)
    }

    /// The processes that may have inherited a change of `had` to `to`.
    pub(super) fn among<'a>(
        &'a self,
        all: &'a BTreeMap<i32, Stat>,
        had: &'a To,
        to: &'a To,
    ) -> impl Iterator<Item = i32> + 'a {
        let new = all
            .iter()
            .filter(|(pid, stat)| **pid > 1 && stat.started >= self.since);
        // Most are left out by what has been read already.
        let looked = new.filter(move |(_, stat)| match to {
            To::Nice(_) => To::Nice(stat.nice).is_from(had, to),
            To::Cpus(_) => true,
        });
        looked
            .filter(move |(pid, stat)| self.has(**pid, stat, gains(had, to)))
            .map(|(pid, _)| *pid)
    }

    fn has(&self, pid: i32, stat: &Stat, gains: bool) -> bool {
        child::lock_limits(pid).is_some_and(|(soft, _)| self.marks.contains(&soft))
            || gains
                && (self.sessions.contains(&stat.session)
                    || real_user(pid).is_some_and(|user| self.users.contains(&user))
                    || members::group_of(pid).is_some_and(|group| self.groups.contains(&group)))
    }

    /// Sets the nice value of all threads of the service's users in one call a user, and gives back to those that had
    /// another one what they had: a process that forks and ends at once is gone when its number has been read.
    pub(super) fn all_at_once(&self, had: &To, to: &To) {
        let &To::Nice(nice) = had else { return };
        if !gains(had, to) {
            return;
        }
        for user in &self.users {
            let others: Vec<(i32, i32)> = processes()
                .into_iter()
                .filter(|(pid, stat)| {
                    !To::Nice(stat.nice).is_from(had, to) && real_user(*pid) == Some(*user)
                })
                .flat_map(|(pid, _)| super::tids(pid).into_iter().map(move |tid| (pid, tid)))
                .filter_map(|(pid, tid)| Some((tid, sample::stat(&super::task(pid, tid))?.nice)))
                .filter(|(_, now)| *now != nice)
                .collect();
            let user = rustix::process::Uid::from_raw(*user);
            let _ = rustix::process::setpriority_user(user, nice);
            for (tid, nice) in others {
                let _ = super::set(tid, &To::Nice(nice));
            }
        }
    }

    pub(super) fn is_plausible(&self) -> bool {
        self.marks.len() <= MOST + 1
            && self.marks.iter().all(|mark| is_mark(*mark))
            && self.users.len() <= MOST_GROUPS
            && !self.users.contains(&0)
            && self.sessions.len() <= MOST
            && self.sessions.iter().all(|session| *session > 1)
            && self.groups.len() <= MOST_GROUPS
            && self
                .groups
                .iter()
                .all(|group| (2..4096).contains(&group.len()))
    }
}

/// What is looked for once more when all experiments are over, and the marks that are taken off then. A process that
/// begins to fork while something is changed has its child seen by nobody until it is whole, which takes some tenths of
/// a second where it has much memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    boot: String,
    to: To,
    had: To,
    kin: Kin,
    /// Processes that are marked, each with the time when it started.
    marked: Vec<(i32, u64)>,
}

impl Left {
    pub(super) fn new(boot: &str, to: &To, had: &To, kin: &Kin, pids: &BTreeSet<i32>) -> Left {
        // Who is marked already, as the private servers are, or has a limit of its own, keeps it.
        let bare = pids
            .iter()
            .filter(|pid| child::lock_limits(**pid) == Some((NONE, NONE)));
        Left {
            boot: boot.to_owned(),
            to: to.clone(),
            had: had.clone(),
            kin: kin.clone(),
            marked: bare
                .filter_map(|pid| Some((*pid, child::start_time(*pid)?)))
                .collect(),
        }
    }

    /// Marks the processes. One that may not be marked is found by what else it has in common with its children.
    pub fn mark(&self) {
        for (pid, started) in &self.marked {
            if child::start_time(*pid) == Some(*started) {
                set_limit(*pid, self.kin.mark);
            }
        }
    }

    /// Gives back what is left of the change, and takes the marks off.
    ///
    /// # Errors
    /// The kernel's, after all was tried.
    pub fn restore(&self) -> io::Result<()> {
        if self.boot != child::boot_id() {
            return Ok(());
        }
        let none = BTreeSet::new();
        let find = || {
            let pids = self.kin.among(&processes(), &self.had, &self.to).collect();
            changed_threads(pids, |_| &self.had, &self.to, &none)
        };
        let result = until_none(find, || self.kin.all_at_once(&self.had, &self.to));
        // By the mark, as children have it too. One that forks meanwhile is met the next time round.
        let carries =
            |pid: &i32| child::lock_limits(*pid).is_some_and(|(soft, _)| soft == self.kin.mark);
        for _ in 0..MOST_GROUPS {
            let mut left = sample::numbers("/proc".as_ref());
            left.retain(carries);
            if left.is_empty() {
                break;
            }
            left.into_iter().for_each(|pid| set_limit(pid, NONE));
        }
        result
    }

    /// Whether it is one that [`super::Before::left`] can have left.
    pub fn is_plausible(&self) -> bool {
        self.boot.len() <= 64
            && self.to.is_plausible()
            && self.had.is_plausible()
            && self.had.is_like(&self.to)
            && self.kin.is_plausible()
            && self.kin.marks.contains(&self.kin.mark)
            && self.marked.len() <= MOST
            && self.marked.iter().all(|(pid, _)| *pid > 1)
    }
}

/// Whether the change gives what the processes could not have taken themselves.
fn gains(had: &To, to: &To) -> bool {
    matches!((had, to), (To::Nice(had), To::Nice(to)) if to < had)
}

fn is_mark(limit: u64) -> bool {
    (LEAST_MARK..NONE).contains(&limit)
}

/// Sets the soft limit on file locks, which has no effect, of a process; where that is not allowed it stays.
fn set_limit(pid: i32, soft: u64) {
    let limit = Rlimit {
        current: Some(soft).filter(|soft| *soft != NONE),
        maximum: None,
    };
    let _ = prlimit(Pid::from_raw(pid), Resource::Locks, limit);
}

fn real_user(pid: i32) -> Option<u32> {
    let status: Status = sample::status(format!("/proc/{pid}").as_ref())?;
    status.users.map(|users| users[0])
}

/// Now, in clock ticks after boot, as processes' start times are.
fn ticks_now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let hz = system::ticks_per_second();
    now.tv_sec as u64 * hz + now.tv_nsec as u64 * hz / 1_000_000_000
}
