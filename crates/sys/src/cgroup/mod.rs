//! Control groups of version 1 and 2 behind one interface: [`Hierarchies`] reads what limits us, [`Group`] makes new
//! limits.
//!
//! A machine may mix the versions: every controller is in exactly one hierarchy, and version 2 holds those that no
//! version 1 hierarchy took.

mod group;
pub mod members;
mod read;
mod setting;
pub mod units;
pub mod usage;

pub use group::{CgroupError, Group, Place, Throttle, remove_directory};
pub use read::{Hierarchies, Limits, Throttling, Throttlings};
pub use setting::{Setting, Weights, is_of_groups, is_setting, write_setting};

/// The version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// One tree per controller.
    V1 = 1,
    /// One tree for all.
    V2 = 2,
}

impl Version {
    /// `1` or `2`.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// What belongs to it of two.
    fn either<T>(self, v1: T, v2: T) -> T {
        if self == Self::V1 { v1 } else { v2 }
    }
}

/// What a control group can limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Controller {
    /// CPU time: quota and weight.
    Cpu,
    /// Which CPUs.
    Cpuset,
    /// Memory.
    Memory,
    /// Block I/O.
    Io,
    /// How many processes.
    Pids,
    /// Halting all its processes: a controller in version 1, always there in version 2.
    Freezer,
}

impl Controller {
    /// All that we know.
    pub const ALL: [Self; 6] = [
        Self::Cpu,
        Self::Cpuset,
        Self::Memory,
        Self::Io,
        Self::Pids,
        Self::Freezer,
    ];

    /// The kernel's name for it.
    pub fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Cpu, _) => "cpu",
            (Self::Cpuset, _) => "cpuset",
            (Self::Memory, _) => "memory",
            (Self::Io, Version::V1) => "blkio",
            (Self::Io, Version::V2) => "io",
            (Self::Pids, _) => "pids",
            (Self::Freezer, _) => "freezer",
        }
    }
}

/// `cpu.weight` of version 2 (1 to 10 000, 100 is usual) as `cpu.shares` of version 1 (2 to 262 144, 1024 is usual).
///
/// The proportional rule: the usual values meet, and so does every ratio between two groups, which is all that either
/// means.
pub fn shares_of_weight(weight: u64) -> u64 {
    (weight.clamp(1, 10_000) * 1024 / 100).clamp(2, 262_144)
}
