//! What is wanted of the kernel, whichever way its events are had: one table of tracepoints and what each tells.

use crate::follow::event::{DiskStep, InterruptKind, MemoryWork};

/// What a tracepoint tells: the event of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Enter,
    Exit,
    Switch,
    Waking,
    Fork,
    Sent,
    Received,
    Arrived,
    State,
    /// Where a segment with bytes arrived.
    Ports,
    Disk(DiskStep),
    Memory(MemoryWork, bool),
    Interrupt(InterruptKind, bool),
    Fault,
}

impl Kind {
    /// Whether it comes so seldom, some thousand times a second at most, that a program may stay there between windows:
    /// to attach and detach it, the kernel rewrites its own code and has all CPUs wait, which costs a busy service
    /// more.
    pub fn is_seldom(self) -> bool {
        let interrupt = matches!(
            self,
            Kind::Interrupt(InterruptKind::Device | InterruptKind::Timer, _)
        );
        interrupt
            || matches!(
                self,
                Kind::Fork | Kind::State | Kind::Disk(_) | Kind::Memory(..)
            )
    }
}

/// A tracepoint that is wanted.
#[derive(Debug)]
pub struct Wanted {
    /// Its name in tracefs, with its group.
    pub name: &'static str,
    pub kind: Kind,
    /// Whether requests can be followed without it.
    pub optional: bool,
}

impl Wanted {
    /// Its name without the group, as a program is attached to it.
    pub fn point(&self) -> &'static str {
        self.name
            .split_once('/')
            .map_or(self.name, |(_, point)| point)
    }
}

const fn needed(name: &'static str, kind: Kind) -> Wanted {
    Wanted {
        name,
        kind,
        optional: false,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Wanted {
    Wanted {
        name,
        kind,
        optional: true,
    }
}

/// Everything that is wanted. The first two are what an event's cost is measured with.
pub static WANTED: [Wanted; 28] = [
    needed("raw_syscalls/sys_enter", Kind::Enter),
    needed("raw_syscalls/sys_exit", Kind::Exit),
    needed("sched/sched_switch", Kind::Switch),
    needed("sched/sched_waking", Kind::Waking),
    needed("sched/sched_process_fork", Kind::Fork),
    needed("sock/sock_send_length", Kind::Sent),
    needed("sock/sock_recv_length", Kind::Received),
    needed("sock/sk_data_ready", Kind::Arrived),
    needed("sock/inet_sock_set_state", Kind::State),
    optional("tcp/tcp_probe", Kind::Ports),
    optional("block/block_bio_queue", Kind::Disk(DiskStep::Submitted)),
    optional("block/block_rq_insert", Kind::Disk(DiskStep::Queued)),
    optional("block/block_rq_issue", Kind::Disk(DiskStep::Issued)),
    optional("block/block_rq_complete", Kind::Disk(DiskStep::Completed)),
    optional(
        "vmscan/mm_vmscan_direct_reclaim_begin",
        Kind::Memory(MemoryWork::Reclaim, true),
    ),
    optional(
        "vmscan/mm_vmscan_direct_reclaim_end",
        Kind::Memory(MemoryWork::Reclaim, false),
    ),
    optional(
        "vmscan/mm_vmscan_memcg_reclaim_begin",
        Kind::Memory(MemoryWork::Reclaim, true),
    ),
    optional(
        "vmscan/mm_vmscan_memcg_reclaim_end",
        Kind::Memory(MemoryWork::Reclaim, false),
    ),
    optional(
        "compaction/mm_compaction_begin",
        Kind::Memory(MemoryWork::Compaction, true),
    ),
    optional(
        "compaction/mm_compaction_end",
        Kind::Memory(MemoryWork::Compaction, false),
    ),
    optional(
        "irq/irq_handler_entry",
        Kind::Interrupt(InterruptKind::Device, true),
    ),
    optional(
        "irq/irq_handler_exit",
        Kind::Interrupt(InterruptKind::Device, false),
    ),
    optional(
        "irq/softirq_entry",
        Kind::Interrupt(InterruptKind::Soft, true),
    ),
    optional(
        "irq/softirq_exit",
        Kind::Interrupt(InterruptKind::Soft, false),
    ),
    optional(
        "irq_vectors/local_timer_entry",
        Kind::Interrupt(InterruptKind::Timer, true),
    ),
    optional(
        "irq_vectors/local_timer_exit",
        Kind::Interrupt(InterruptKind::Timer, false),
    ),
    optional("exceptions/page_fault_user", Kind::Fault),
    optional("exceptions/page_fault_kernel", Kind::Fault),
];
