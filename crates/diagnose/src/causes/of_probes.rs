//! Causes that the rows of a family of probes point to, a row of this table each: their `probes`, or a group that
//! [`crate::probes`] has a rule for.

use fingerpost_record::Layer;
use fingerpost_record::cause::id;

use crate::cause::{Cause, Words};
use crate::thresholds::{MOST_OF_GROUP, WORTH_NAMING};

/// Such a cause: nothing but its rows says anything of it.
pub(super) const fn row(name: &'static str, layer: Layer, words: &'static str) -> Cause {
    Cause {
        name,
        layer,
        words: Words {
            label: words,
            slower: words,
            takes: None,
            tells: "the rows of its probes change, and others do not",
            remedy: "compare the kernels' versions, settings and mitigations: no program can change it",
        },
        places: &[],
        moves: &[],
        probes: &[],
        needs: &[],
        follows: &[],
        told_from: &[],
        thresholds: &[WORTH_NAMING, MOST_OF_GROUP],
        one_side: None,
        two_sides: None,
        experiments: &[],
        fault: None,
    }
}

pub(super) static CAUSES: &[Cause] = &[
    row(id::KERNEL_CLOCK, Layer::Kernel, "reading the clock"),
    row(
        id::KERNEL_WORK,
        Layer::Kernel,
        "the kernel's work inside system calls",
    ),
    row(id::KERNEL_SIGNAL, Layer::Kernel, "signal handling"),
    row(id::KERNEL_PROCESS, Layer::Kernel, "process creation"),
    row(id::KERNEL_THREAD, Layer::Kernel, "thread creation"),
    row(
        id::SCHEDULER_SWITCH,
        Layer::Scheduler,
        "switching between tasks",
    ),
    row(
        id::KERNEL_IPC,
        Layer::Kernel,
        "local communication between processes",
    ),
    row(id::NETWORK_STACK, Layer::Network, "the network stack"),
    row(
        id::MEMORY_FAULT,
        Layer::Memory,
        "memory mapping and page faults",
    ),
    row(
        id::MEMORY_MAPPING,
        Layer::Memory,
        "the call that maps memory",
    ),
    row(
        id::MEMORY_FIRST_TOUCH,
        Layer::Memory,
        "page faults with their zero-filling",
    ),
    row(
        id::MEMORY_BANDWIDTH,
        Layer::Memory,
        "memory latency and bandwidth",
    ),
    Cause {
        probes: &["sync.*"],
        ..row(id::KERNEL_FUTEX, Layer::Kernel, "locks between threads")
    },
    Cause {
        probes: &["parallel.*"],
        ..row(
            id::KERNEL_LOCKING,
            Layer::Kernel,
            "the kernel's own locking",
        )
    },
    row(
        id::KERNEL_SCALING,
        Layer::Kernel,
        "locks or threads below the program",
    ),
    row(id::MEMORY_PAGING, Layer::Memory, "paging"),
];
