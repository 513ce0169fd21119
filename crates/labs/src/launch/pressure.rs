//! Memory pressure: a control group with a limit, or, where there is no controller, a reserve that cannot be paged out.

use std::path::PathBuf;

use fingerpost_sys::cgroup::{Controller, Group, Hierarchies, Throttle};
use fingerpost_sys::memory::Pinned;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::memory::{Meminfo, parse_counters};
use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::{Scratch, Ticket};

/// Less than this and no application starts.
const LEAST: u64 = 16 << 20;
/// A reserve is taken away from everybody, so it leaves this much however little the applications need: below, the
/// kernel starts to kill, and not only what is ours.
const LEAST_FOR_ALL: u64 = 128 << 20;

/// Who makes the pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A limit on the applications' control group.
    Limit,
    /// Memory that is taken away from everybody.
    Reserve,
}

impl Means {
    /// Its name, as `--set pressure_by=` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Means::Limit => "limit",
            Means::Reserve => "reserve",
        }
    }
}

/// The bytes that a share of what the applications need is: of what they hold once all of them run, the files that they
/// have read included.
pub fn share_of(need: u64, share: f64) -> u64 {
    ((need as f64 * share) as u64).max(LEAST)
}

/// How much must be taken away so that a share of the need is left of what is available.
pub fn reserve(need: u64, share: f64, available: u64) -> u64 {
    available.saturating_sub(share_of(need, share).max(LEAST_FOR_ALL))
}

/// Where the applications of one sequence are put, and what is held while they are.
#[derive(Debug, Default)]
pub struct MemoryGroup {
    group: Option<Group>,
    tickets: Vec<Ticket>,
    _reserve: Option<Pinned>,
}

impl MemoryGroup {
    /// A group for the applications of this lab. `slow` are devices that it may use only so fast.
    ///
    /// # Errors
    /// A sentence that says why there is no group.
    pub fn make(
        lab: &str,
        scratch: &mut Scratch,
        slow: &[(u32, u32)],
        throttle: Throttle,
    ) -> Result<MemoryGroup, String> {
        let hierarchies = Hierarchies::of_self(&Paths::system());
        let in_group = !slow.is_empty() && hierarchies.block_root_v1().is_none();
        let controllers: &[Controller] = if in_group {
            &[Controller::Memory, Controller::Io]
        } else {
            &[Controller::Memory]
        };
        let name = format!("fingerpost-{lab}-{}", std::process::id());
        let mut group = Group::plan(&hierarchies, &name, controllers).map_err(|e| e.to_string())?;
        let mut memory_group = MemoryGroup::default();
        for place in group.places() {
            for undo in [
                Undo::RemoveGroup {
                    place: place.clone(),
                },
                Undo::KillMembers {
                    directory: place.directory.clone(),
                },
            ] {
                memory_group.tickets.push(
                    scratch
                        .record(undo)
                        .map_err(|e| format!("cannot write the journal: {e}"))?,
                );
            }
        }
        group.make().map_err(|e| e.to_string())?;
        if in_group {
            slow.iter()
                .try_for_each(|device| group.set_io_limit(*device, throttle))
                .map_err(|e| e.to_string())?;
        }
        memory_group.group = Some(group);
        Ok(memory_group)
    }

    /// Allows the applications so many bytes of memory, or all of it.
    pub fn limit(&self, bytes: Option<u64>) -> Result<(), String> {
        self.group.as_ref().map_or(Ok(()), |group| {
            group.set_memory_limit(bytes).map_err(|e| e.to_string())
        })
    }

    /// Moves a process in, with what it will start.
    pub fn add(&self, pid: u32) -> Result<(), String> {
        self.group.as_ref().map_or(Ok(()), |group| {
            group.add_pid(pid).map_err(|e| e.to_string())
        })
    }

    /// Takes memory away from everybody.
    pub fn hold(&mut self, bytes: u64) -> Result<(), String> {
        let bytes = usize::try_from(bytes)
            .map_err(|_| "a reserve of that size does not fit the address space".to_owned())?;
        let pinned = Pinned::take(bytes)
            .map_err(|e| format!("cannot pin a reserve of {} MiB: {e}", bytes >> 20))?;
        self._reserve = Some(pinned);
        Ok(())
    }

    /// The directories of the group.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.group
            .iter()
            .flat_map(|group| group.places())
            .map(|place| place.directory.clone())
            .collect()
    }

    /// What the applications hold; `None` without a group.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.group.as_ref()?.memory_bytes()
    }

    /// How often the limit was met so far, and something had to be given up for what was asked for; `None` where the
    /// kernel does not count.
    pub fn met(&self) -> Option<u64> {
        let paths = Paths::system();
        let count = |dir: &PathBuf| {
            let events = paths
                .read(dir.join("memory.events"))
                .ok()
                .and_then(|text| parse_counters(&text).get("max").copied());
            events.or_else(|| {
                paths
                    .read(dir.join("memory.failcnt"))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            })
        };
        self.directories().iter().find_map(count)
    }

    /// How many processes the limit has killed so far.
    pub fn killed(&self) -> u64 {
        let paths = Paths::system();
        let count = |dir: &PathBuf| {
            let events = ["memory.events", "memory.oom_control"];
            events.iter().find_map(|file| {
                parse_counters(&paths.read(dir.join(file)).ok()?)
                    .get("oom_kill")
                    .copied()
            })
        };
        self.directories().iter().find_map(count).unwrap_or(0)
    }

    /// Kills what is left in the group and removes it.
    pub fn take_down(mut self, scratch: &mut Scratch) -> Result<(), String> {
        // The tickets kill what is in the group before they remove it; the group's own way would set it free.
        undo_all(&mut self.tickets, scratch)
    }
}

/// Undoes all of it, newest first, and goes on where something fails.
pub fn undo_all(tickets: &mut Vec<Ticket>, scratch: &mut Scratch) -> Result<(), String> {
    let failures: Vec<String> = tickets
        .drain(..)
        .rev()
        .filter_map(|ticket| scratch.undo(ticket).err())
        .collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("; "))
    }
}

/// Memory that could be had without swapping.
pub fn available() -> u64 {
    let info = Paths::system()
        .read("/proc/meminfo")
        .ok()
        .and_then(|text| Meminfo::parse(&text))
        .unwrap_or_default();
    info.available.or(info.free).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_and_reserve_leave_the_same() {
        let need = 1000 << 20;
        assert_eq!(share_of(need, 0.6), 600 << 20);
        assert_eq!(reserve(need, 0.6, 4000 << 20), 3400 << 20);
        assert_eq!(reserve(need, 0.6, 100 << 20), 0);
        assert_eq!(reserve(need, 0.01, 4000 << 20), (4000 - 128) << 20);
        // However little is asked for, an application can start.
        assert_eq!(share_of(need, 0.0001), 16 << 20);
        assert_eq!(share_of(0, 1.0), 16 << 20);
    }
}
