//! The scheduler's group of a session (sched(7), *The autogroup feature*): nice values of threads count within it
//! alone, and it has one itself.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::child;

/// The group of a process's session as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autogroup {
    pid: i32,
    started: u64,
    boot: String,
    /// Its nice value.
    nice: i32,
}

impl Autogroup {
    /// That of a process; nothing where the kernel makes no such groups.
    pub fn of(pid: i32) -> Option<Autogroup> {
        let enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
            .is_ok_and(|text| text.trim() == "1");
        let nice = parse(
            &enabled
                .then(|| fs::read_to_string(file(pid)).ok())
                .flatten()?,
        )?;
        Some(Autogroup {
            pid,
            started: child::start_time(pid)?,
            boot: child::boot_id(),
            nice,
        })
    }

    /// Gives the group a nice value, −20 to 19.
    ///
    /// # Errors
    /// The kernel's: lowering it needs root.
    pub fn set(&self, nice: i32) -> io::Result<()> {
        fs::write(file(self.pid), nice.to_string())
    }

    /// Gives it back what it had. Nothing is to be done where the process has ended.
    pub fn restore(&self) -> io::Result<()> {
        let same =
            self.boot == child::boot_id() && child::start_time(self.pid) == Some(self.started);
        if same { self.set(self.nice) } else { Ok(()) }
    }

    pub(crate) fn is_plausible(&self) -> bool {
        self.pid > 1 && (-20..=19).contains(&self.nice) && self.boot.len() <= 64
    }
}

fn file(pid: i32) -> String {
    format!("/proc/{pid}/autogroup")
}

/// The nice value in `/autogroup-57 nice 0`.
fn parse(text: &str) -> Option<i32> {
    let (_, nice) = text.trim().rsplit_once(" nice ")?;
    nice.parse().ok().filter(|nice| (-20..=19).contains(nice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_nice_value_is_read_and_nothing_else() {
        assert_eq!(parse("/autogroup-57 nice 0\n"), Some(0));
        assert_eq!(parse("/autogroup-57 nice -20\n"), Some(-20));
        for text in ["", "/autogroup-57", "/ nice 40", "nice", " nice x"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let mut group = Autogroup {
            pid: 42,
            started: 7,
            boot: child::boot_id(),
            nice: 3,
        };
        assert!(group.is_plausible());
        group.started = u64::MAX;
        assert!(
            group.restore().is_ok(),
            "whoever has that number now is somebody else"
        );
        group.pid = 1;
        assert!(!group.is_plausible());
    }
}
