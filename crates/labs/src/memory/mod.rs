//! The lab: the memory hierarchy. It is made of the probes that name it.

pub mod analysis;
mod shown;

use crate::Lab;

/// The descriptor.
pub static LAB: Lab = Lab {
    name: "memory",
    summary: "latency by size, stride and page; bandwidth by size and threads; the caches that the curves show",
    analyses: &[&shown::ANALYSIS],
    ..Lab::USUAL
};
