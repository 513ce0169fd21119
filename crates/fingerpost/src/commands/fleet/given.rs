//! A sweep and a list of nodes as they are given.

use std::io::ErrorKind;
use std::path::Path;

use fingerpost_fleet::nodes;
use fingerpost_fleet::sweep::{Manifest, Sweep, SweepError};

use crate::exit::usage;

/// Opens a sweep, or says what is wrong with it.
pub fn open(dir: &Path) -> anyhow::Result<Sweep> {
    Sweep::open(dir).or_else(|e| {
        let makes = if dir.join("manifest.json").exists() { "" } else { "; `fleet run` and `fleet gather` make one" };
        usage(format!("{e}{makes}"))
    })
}

/// Makes a sweep's directory, or says what to do where it is there.
pub fn create(dir: &Path, manifest: Manifest) -> anyhow::Result<Sweep> {
    Sweep::create(dir, manifest).or_else(|e| match &e {
        SweepError::Io { path, source, .. } if source.kind() == ErrorKind::AlreadyExists => usage(format!(
            "{path} is there already: name another directory by -o, or go on with the sweep in it by `fingerpost fleet run --resume {path}`"
        )),
        _ => usage(e.to_string()),
    })
}

/// The names of a list, or what is wrong with it.
pub fn names(list: &str) -> anyhow::Result<Vec<String>> {
    nodes::parse(list).or_else(usage)
}
