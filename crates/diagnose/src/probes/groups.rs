//! Which part of the system each probe exercises.

use fingerpost_record::Layer;
use fingerpost_record::cause::{CAUSES, of_probe};

/// Probes that one cause moves together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Arithmetic in user mode, within the caches.
    Cpu,
    /// Reading the clock.
    Clock,
    /// System calls that do little besides entering the kernel.
    Syscall,
    /// Installing and handling signals.
    Signal,
    /// Creating processes.
    Process,
    /// Creating threads.
    Thread,
    /// Switching between tasks.
    Switch,
    /// Pipes and local sockets.
    LocalIpc,
    /// UDP and TCP.
    Network,
    /// Mappings and faults.
    Fault,
    /// Latency and bandwidth of memory.
    Memory,
    /// Files and flushes.
    Storage,
    /// What points to a cause that names its own probes, and has no rule here: by the cause's name.
    Of(&'static str),
    /// A server or program under load.
    Workload,
}

impl Group {
    /// Its number, in the order above.
    pub fn number(self) -> u8 {
        let all = [Group::Cpu].into_iter().chain(group_causes().map(|c| c.group)).chain([Group::Workload]);
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

/// The causes by group, and after them those that name their probes. `Cpu` and `Workload` have their own rules.
pub fn group_causes() -> impl Iterator<Item = GroupCause> {
    let named = CAUSES.iter().filter(|c| !c.probes.is_empty());
    let named = named.map(|c| GroupCause { group: Group::Of(c.name), cause: c.name, layer: c.layer, words: c.words });
    GROUP_CAUSES.iter().copied().chain(named)
}

const GROUP_CAUSES: &[GroupCause] = &[
    GroupCause { group: Group::Clock, cause: "kernel.clock", layer: Layer::Kernel, words: "reading the clock" },
    GroupCause { group: Group::Syscall, cause: "kernel.work", layer: Layer::Kernel, words: "the kernel's work inside system calls" },
    GroupCause { group: Group::Signal, cause: "kernel.signal", layer: Layer::Kernel, words: "signal handling" },
    GroupCause { group: Group::Process, cause: "kernel.process", layer: Layer::Kernel, words: "process creation" },
    GroupCause { group: Group::Thread, cause: "kernel.thread", layer: Layer::Kernel, words: "thread creation" },
    GroupCause { group: Group::Switch, cause: "scheduler.switch", layer: Layer::Scheduler, words: "switching between tasks" },
    GroupCause { group: Group::LocalIpc, cause: "kernel.ipc", layer: Layer::Kernel, words: "local communication between processes" },
    GroupCause { group: Group::Network, cause: "network.stack", layer: Layer::Network, words: "the network stack" },
    GroupCause { group: Group::Fault, cause: "memory.fault", layer: Layer::Memory, words: "memory mapping and page faults" },
    GroupCause { group: Group::Memory, cause: "memory.bandwidth", layer: Layer::Memory, words: "memory latency and bandwidth" },
    GroupCause { group: Group::Storage, cause: "storage.latency", layer: Layer::Storage, words: "files and storage" },
];

/// The group of a probe, by its name: a cause that names it comes before its family. Labs' own rows count as workloads.
pub fn group(probe: &str) -> Group {
    of_probe(probe).map_or_else(|| of_family(probe), |cause| Group::Of(cause.name))
}

fn of_family(probe: &str) -> Group {
    let (family, name) = probe.split_once('.').unwrap_or((probe, ""));
    match family {
        "cpu" => Group::Cpu,
        // The instrument's empty loop is user-mode arithmetic.
        "clock" if name == "loop" => Group::Cpu,
        "clock" => Group::Clock,
        "syscall" | "lmbench" => Group::Syscall,
        "signal" if name == "fault" => Group::Fault,
        "signal" => Group::Signal,
        "process" => Group::Process,
        "thread" => Group::Thread,
        "switch" => Group::Switch,
        "ipc" | "bandwidth" if name.starts_with("tcp") || name.starts_with("udp") => Group::Network,
        "bandwidth" if name.ends_with("reread") => Group::Memory,
        "ipc" | "bandwidth" => Group::LocalIpc,
        "vm" | "zerofill" => Group::Fault,
        "memory" => Group::Memory,
        "fs" => Group::Storage,
        _ => Group::Workload,
    }
}

/// Whether a probe waits for a device, so that its time does not follow the CPU's.
pub fn waits_for_device(probe: &str) -> bool {
    matches!(probe, "fs.fsync" | "fs.fdatasync" | "fs.append")
}

/// How many times one operation of a probe enters the kernel, where its definition says so.
pub fn entries(probe: &str) -> Option<f64> {
    Some(match probe {
        "syscall.open_close" => 2.0,
        _ if probe.starts_with("syscall.") => 1.0,
        "lmbench.null_io" | "signal.install" | "vm.mprotect" => 1.0,
        // Sending oneself a signal, and returning from its handler.
        "signal.handle" => 2.0,
        // A round trip: each side writes and reads.
        "ipc.pipe" | "ipc.unix" | "ipc.udp" | "ipc.tcp" | "ipc.eventfd" | "ipc.futex" => 4.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_fall_into_the_group_that_their_cost_comes_from() {
        for (probe, expected) in [
            ("syscall.null", Group::Syscall),
            ("signal.fault", Group::Fault),
            ("signal.handle", Group::Signal),
            ("ipc.tcp_connect", Group::Network),
            ("bandwidth.tcp", Group::Network),
            ("bandwidth.pipe", Group::LocalIpc),
            ("bandwidth.mmap_reread", Group::Memory),
            ("vm.fault_anon", Group::Fault),
            ("database.throughput", Group::Workload),
            ("clock.loop", Group::Cpu),
            ("clock.gettime", Group::Clock),
            ("nonsense", Group::Workload),
        ] {
            assert_eq!(group(probe), expected, "{probe}");
        }
    }
}
