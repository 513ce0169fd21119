//! The lab: floating point by instruction mix and compiler. It is made of the probes that name it.

pub mod analysis;
mod shown;

use crate::Lab;

/// The descriptor.
pub static LAB: Lab = Lab {
    name: "flops",
    summary: "floating-point rates by instruction mix and compiler, beside the limits of the core",
    analyses: &[&shown::ANALYSIS],
    ..Lab::USUAL
};
