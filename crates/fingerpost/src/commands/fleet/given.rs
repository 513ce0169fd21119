//! A sweep and a list of nodes as they are given.

use std::io::ErrorKind;
use std::path::Path;

use fingerpost_fleet::nodes;
use fingerpost_fleet::sweep::{Manifest, Sweep, SweepError};
use fingerpost_record::suggest;
use fingerpost_record::text::clean;

use crate::exit::usage;

/// Opens a sweep, or says what is wrong with it.
pub fn open(dir: &Path) -> anyhow::Result<Sweep> {
    Sweep::open(dir).or_else(|e| {
        if dir.join(MANIFEST).exists() {
            return usage(e.to_string());
        }
        match near(dir) {
            Some(meant) => usage(format!("{e}; did you mean “{meant}”?")),
            None => usage(format!("{e}; `fleet run` and `fleet gather` make one")),
        }
    })
}

/// The file by which a directory is a sweep.
const MANIFEST: &str = "manifest.json";
/// Entries of a directory that are looked at for a sweep of a similar name.
const MOST_BESIDE: usize = 2000;

/// The sweep beside a directory that is none whose name is nearest to its own.
fn near(dir: &Path) -> Option<String> {
    let name = dir.file_name()?.to_str()?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let sweeps = entries.take(MOST_BESIDE).flatten().filter(|entry| entry.path().join(MANIFEST).is_file());
    let names: Vec<String> = sweeps.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let found = suggest::nearest(name, names.iter().map(String::as_str).filter(|other| *other != name))?;
    Some(clean(&parent.map_or(Path::new(found).to_owned(), |parent| parent.join(found)).display().to_string()).into_owned())
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
