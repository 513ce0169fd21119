//! Which rows belong together, and which cause they point at.

use crate::cause::Cause;
use crate::causes::{self as registry, cause, of_probe};
use fingerpost_record::cause::id;
use fingerpost_record::descriptor::Exercises;

/// Rows that one cause moves together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// What exercises this part of the system.
    Part(Exercises),
    /// What points to a cause that names its own probes, and has no rule here: by the cause's name.
    Of(&'static str),
    /// A server or program under load.
    Workload,
}

impl Group {
    /// User-mode arithmetic.
    pub const CPU: Group = Group::Part(Exercises::Cpu);

    /// That of a row of this probe, which exercises this part: a cause that names the probe comes before it.
    pub fn of(probe: &str, exercises: Option<Exercises>) -> Group {
        of_probe(probe).map_or_else(
            || exercises.map_or(Group::Workload, Group::Part),
            |cause| Group::Of(cause.name),
        )
    }

    /// Its number, in the order above.
    pub fn number(self) -> u8 {
        let all = [Group::CPU]
            .into_iter()
            .chain(causes().map(|(group, _)| group))
            .chain([Group::Workload]);
        all.take_while(|group| *group != self).count() as u8
    }

    /// The cause that it points at; none for those that have their own rules.
    pub fn cause(self) -> Option<&'static Cause> {
        causes()
            .find(|(group, _)| *group == self)
            .and_then(|(_, name)| cause(name))
    }

    /// What a headline calls its rows: what it calls their cause, but that of files, whose cause is the disk alone.
    pub fn words(self) -> Option<&'static str> {
        if self == Group::Part(Exercises::Storage) {
            Some("files and storage")
        } else {
            Some(self.cause()?.words.slower)
        }
    }
}

/// The causes' names by group, and after them those that name their probes. Arithmetic and workloads have their own
/// rules.
pub fn causes() -> impl Iterator<Item = (Group, &'static str)> {
    let named = registry::all()
        .filter(|c| !c.probes.is_empty())
        .map(|c| (Group::Of(c.name), c.name));
    OF_PARTS
        .iter()
        .map(|(part, name)| (Group::Part(*part), *name))
        .chain(named)
}

const OF_PARTS: &[(Exercises, &str)] = &[
    (Exercises::Clock, id::KERNEL_CLOCK),
    (Exercises::Syscall, id::KERNEL_WORK),
    (Exercises::Signal, id::KERNEL_SIGNAL),
    (Exercises::Process, id::KERNEL_PROCESS),
    (Exercises::Thread, id::KERNEL_THREAD),
    (Exercises::Switch, id::SCHEDULER_SWITCH),
    (Exercises::LocalIpc, id::KERNEL_IPC),
    (Exercises::Network, id::NETWORK_STACK),
    (Exercises::Fault, id::MEMORY_FAULT),
    (Exercises::Memory, id::MEMORY_BANDWIDTH),
    (Exercises::Storage, id::STORAGE_LATENCY),
];
