//! Threads' states by sampling `/proc`: the way that needs no privilege for one's own processes.
//!
//! Every look counts, for each thread that is blocked, one for what it is blocked in. Shares of looks estimate shares
//! of time; with n looks a share p is known to about √(p(1−p)/n).

use std::collections::HashMap;
use std::path::PathBuf;

use fingerpost_sys::sample;

use crate::calls::{self, Role, Wait, Waits};
use crate::population::{Budget, Descriptors, Population};

/// What looks at one thread's state counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Looks {
    pub all: u64,
    /// Looks that found it on a CPU or ready.
    pub running: u64,
    /// Looks that found it blocked, by cause, as a number of looks.
    pub blocked: Waits,
}

#[derive(Default)]
pub struct States {
    pub threads: HashMap<i32, Looks>,
    /// Looks at a thread whose call could not be read, so that only the kernel function told.
    pub unreadable: u64,
}

impl States {
    /// Looks once at every thread of the population.
    pub fn look(&mut self, population: &Population, descriptors: &mut Descriptors) {
        let mut budget = Budget::new();
        for (&tid, thread) in &population.threads {
            if budget.is_spent() {
                return;
            }
            let looks = self.threads.entry(tid).or_default();
            match state(
                thread.pid,
                tid,
                thread.role,
                descriptors,
                &mut self.unreadable,
            ) {
                Some(Some(wait)) => looks.blocked[wait as usize] += 1.0,
                Some(None) => looks.running += 1,
                None => continue,
            }
            looks.all += 1;
        }
    }
}

/// What a thread does now: `None` when it has ended, `Some(None)` when it runs or is ready, else what it waits for.
pub fn state(
    pid: i32,
    tid: i32,
    role: Role,
    descriptors: &mut Descriptors,
    unreadable: &mut u64,
) -> Option<Option<Wait>> {
    let dir = PathBuf::from(format!("/proc/{pid}/task/{tid}"));
    let stat = sample::stat(&dir)?;
    match stat.state {
        'R' => return Some(None),
        'Z' | 'X' => return None,
        _ => {}
    }
    let doing = sample::doing(&dir);
    let function = if doing.is_none() {
        sample::wchan(&dir)
    } else {
        String::new()
    };
    *unreadable += u64::from(doing.is_none());
    Some(calls::wait_of(doing, &function, stat.state, role, |fd| {
        descriptors.kind(pid, fd)
    }))
}
