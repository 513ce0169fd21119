//! The web lab.

use super::lab::{LabView, Loaded};
use super::{desktop, scaling};

/// The lab.
pub static LAB: LabView = LabView {
    name: "web",
    loaded: Some(Loaded {
        called: "web server",
        curves: "Web server: scaling with connections",
        counted: "requests a second",
    }),
    analyses: &[&scaling::ANALYSIS, &desktop::ANALYSIS],
};
