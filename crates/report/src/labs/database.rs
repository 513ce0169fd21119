//! The database lab.

use super::lab::{LabView, Loaded};
use super::{desktop, scaling};

/// The lab.
pub static LAB: LabView = LabView {
    name: "database",
    loaded: Some(Loaded {
        called: "database",
        curves: "Database: scaling with clients",
        counted: "queries or transactions a second",
    }),
    analyses: &[&scaling::ANALYSIS, &desktop::ANALYSIS],
};
