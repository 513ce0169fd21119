//! Which rows belong together, and which cause they point at.

use fingerpost_record::Layer;
use fingerpost_record::cause::{CAUSES, of_probe};
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
        of_probe(probe).map_or_else(|| exercises.map_or(Group::Workload, Group::Part), |cause| Group::Of(cause.name))
    }

    /// Its number, in the order above.
    pub fn number(self) -> u8 {
        let all = [Group::CPU].into_iter().chain(group_causes().map(|c| c.group)).chain([Group::Workload]);
        all.take_while(|group| *group != self).count() as u8
    }

    /// The cause that it points at; none for those that have their own rules.
    pub fn cause(self) -> Option<GroupCause> {
        group_causes().find(|c| c.group == self)
    }
}

/// A cause that a whole group points at.
#[derive(Clone, Copy)]
pub struct GroupCause {
    /// The group.
    pub group: Group,
    /// The cause's name.
    pub cause: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// What a headline calls it.
    pub words: &'static str,
}

/// The causes by group, and after them those that name their probes. Arithmetic and workloads have their own rules.
pub fn group_causes() -> impl Iterator<Item = GroupCause> {
    let named = CAUSES.iter().filter(|c| !c.probes.is_empty());
    let named = named.map(|c| GroupCause { group: Group::Of(c.name), cause: c.name, layer: c.layer, words: c.words });
    GROUP_CAUSES.iter().copied().chain(named)
}

const GROUP_CAUSES: &[GroupCause] = &[
    GroupCause {
        group: Group::Part(Exercises::Clock),
        cause: "kernel.clock",
        layer: Layer::Kernel,
        words: "reading the clock",
    },
    GroupCause {
        group: Group::Part(Exercises::Syscall),
        cause: "kernel.work",
        layer: Layer::Kernel,
        words: "the kernel's work inside system calls",
    },
    GroupCause {
        group: Group::Part(Exercises::Signal),
        cause: "kernel.signal",
        layer: Layer::Kernel,
        words: "signal handling",
    },
    GroupCause {
        group: Group::Part(Exercises::Process),
        cause: "kernel.process",
        layer: Layer::Kernel,
        words: "process creation",
    },
    GroupCause {
        group: Group::Part(Exercises::Thread),
        cause: "kernel.thread",
        layer: Layer::Kernel,
        words: "thread creation",
    },
    GroupCause {
        group: Group::Part(Exercises::Switch),
        cause: "scheduler.switch",
        layer: Layer::Scheduler,
        words: "switching between tasks",
    },
    GroupCause {
        group: Group::Part(Exercises::LocalIpc),
        cause: "kernel.ipc",
        layer: Layer::Kernel,
        words: "local communication between processes",
    },
    GroupCause {
        group: Group::Part(Exercises::Network),
        cause: "network.stack",
        layer: Layer::Network,
        words: "the network stack",
    },
    GroupCause {
        group: Group::Part(Exercises::Fault),
        cause: "memory.fault",
        layer: Layer::Memory,
        words: "memory mapping and page faults",
    },
    GroupCause {
        group: Group::Part(Exercises::Memory),
        cause: "memory.bandwidth",
        layer: Layer::Memory,
        words: "memory latency and bandwidth",
    },
    GroupCause {
        group: Group::Part(Exercises::Storage),
        cause: "storage.latency",
        layer: Layer::Storage,
        words: "files and storage",
    },
];
