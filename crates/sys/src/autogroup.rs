//! The scheduler's group of a session (sched(7), *The autogroup feature*): nice values of threads count within it
//! alone, and it has one itself.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::procfs::bounded;
use crate::{child, sample};

/// The group of a process's session as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autogroup {
    pid: i32,
    boot: String,
    /// Its nice value.
    nice: i32,
    /// Its number, which no other gets in this boot. The process may end, or go to a session of its own, and others be
    /// in the group still.
    number: u64,
}

impl Autogroup {
    /// That of a process; nothing where the kernel makes no such groups.
    pub fn of(pid: i32) -> Option<Autogroup> {
        let enabled = bounded::text("/proc/sys/kernel/sched_autogroup_enabled")
            .is_ok_and(|text| text.trim() == "1");
        let (number, nice) = enabled.then(|| read(pid)).flatten()?;
        Some(Autogroup {
            pid,
            boot: child::boot_id(),
            nice,
            number,
        })
    }

    /// Gives the group a nice value, −20 to 19.
    ///
    /// # Errors
    /// The kernel's: lowering it needs root.
    pub fn set(&self, nice: i32) -> io::Result<()> {
        write(self.pid, nice)
    }

    /// Gives it back what it had, through any process that is in it. Nothing is to be done where there is none.
    ///
    /// # Errors
    /// The kernel's.
    pub fn restore(&self) -> io::Result<()> {
        if self.boot != child::boot_id() {
            return Ok(());
        }
        let is_in = |pid: &i32| read(*pid).is_some_and(|(number, _)| number == self.number);
        let member = || sample::numbers("/proc".as_ref()).into_iter().find(is_in);
        while let Some(pid) = Some(self.pid).filter(is_in).or_else(member) {
            match write(pid, self.nice) {
                // It ended meanwhile: the next one then.
                Err(_) if !is_in(&pid) => {}
                other => return other,
            }
        }
        Ok(())
    }

    /// Whether it is one that a look can have made.
    pub fn is_plausible(&self) -> bool {
        self.pid > 1 && (-20..=19).contains(&self.nice) && self.boot.len() <= 64
    }
}

fn file(pid: i32) -> String {
    format!("/proc/{pid}/autogroup")
}

fn read(pid: i32) -> Option<(u64, i32)> {
    parse(&bounded::text(file(pid)).ok()?)
}

fn write(pid: i32, nice: i32) -> io::Result<()> {
    fs::write(file(pid), nice.to_string())
}

/// The number and the nice value in `/autogroup-57 nice 0`.
fn parse(text: &str) -> Option<(u64, i32)> {
    let (name, nice) = text.trim().rsplit_once(" nice ")?;
    let number = name.strip_prefix("/autogroup-")?.parse().ok()?;
    let nice = nice.parse().ok()?;
    (-20..=19).contains(&nice).then_some((number, nice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_nice_value_is_read_and_nothing_else() {
        assert_eq!(parse("/autogroup-57 nice 0\n"), Some((57, 0)));
        assert_eq!(parse("/autogroup-57 nice -20\n"), Some((57, -20)));
        for text in [
            "",
            "/autogroup-57",
            "/autogroup-5 nice 40",
            "nice",
            " nice x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let mut group = Autogroup {
            pid: 42,
            boot: child::boot_id(),
            nice: 3,
            number: u64::MAX,
        };
        assert!(group.is_plausible());
        assert!(group.restore().is_ok(), "nobody is in it");
        group.pid = 1;
        assert!(!group.is_plausible());
    }
}
