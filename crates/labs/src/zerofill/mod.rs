//! The lab: what memory costs, zero-filling taken apart. It is made of the probes that name it.

pub mod analysis;
pub mod shown;

use crate::Lab;

/// The descriptor.
pub static LAB: Lab = Lab {
    name: "zerofill",
    summary: "what memory costs: every way to get it, touch by touch; zero-filling taken apart; faulting in ahead",
    analyses: &[&shown::ANALYSIS],
    ..Lab::USUAL
};
