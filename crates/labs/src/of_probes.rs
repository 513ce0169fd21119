//! The labs that are made of probes alone.

use crate::listed::OfProbes;

/// What memory costs.
pub static ZEROFILL: OfProbes = OfProbes {
    name: "zerofill",
    summary: "what memory costs: every way to get it, touch by touch; zero-filling taken apart; faulting in ahead",
};

/// Floating point by instruction mix and compiler.
pub static FLOPS: OfProbes = OfProbes {
    name: "flops",
    summary: "floating-point rates by instruction mix and compiler, beside the limits of the core",
};

/// The memory hierarchy.
pub static MEMORY: OfProbes = OfProbes {
    name: "memory",
    summary: "latency by size, stride and page; bandwidth by size and threads; the caches that the curves show",
};
