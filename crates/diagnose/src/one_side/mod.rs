//! What the rules for one side share where several of them look at the same: CPUs, disks, the network, pages, filters.

pub(crate) mod cpus;
pub(crate) mod disks;
pub(crate) mod filters;
pub(crate) mod network;
pub(crate) mod pages;
