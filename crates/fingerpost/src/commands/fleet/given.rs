//! A sweep and a list of nodes as they are given.

use std::path::Path;

use fingerpost_fleet::{nodes, sweep::Sweep};

use crate::exit::usage;

/// Opens a sweep, or says what is wrong with it.
pub fn open(dir: &Path) -> anyhow::Result<Sweep> {
    Sweep::open(dir).or_else(|e| usage(e.to_string()))
}

/// The names of a list, or what is wrong with it.
pub fn names(list: &str) -> anyhow::Result<Vec<String>> {
    nodes::parse(list).or_else(usage)
}
