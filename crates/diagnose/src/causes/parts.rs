//! Parts of a budget that several causes move.

use fingerpost_record::place::Kind;

/// The server's threads, ready to run, whoever has the CPUs: what holds the server back alone leaves the load generator
/// its own.
pub(super) const HELD_BACK: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::CpuOthers,
    Kind::CpuServer,
    Kind::CpuClient,
    Kind::CpuFree,
];

/// All that a CPU does for a request.
pub(super) const ON_CPU: &[Kind] = &[
    Kind::UserCode,
    Kind::Kernel,
    Kind::Faults,
    Kind::Syncs,
    Kind::Host,
];

/// The kernel on the server's behalf.
pub(super) const KERNEL: &[Kind] = &[Kind::Kernel, Kind::Faults, Kind::Syncs];

/// Disks, and the kernel's work on the way to them.
pub(super) const DISKS: &[Kind] = &[Kind::Storage, Kind::Syncs];
