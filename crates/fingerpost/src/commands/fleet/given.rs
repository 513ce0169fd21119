//! A sweep and a list of nodes as they are given.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fingerpost_fleet::nodes;
use fingerpost_fleet::sweep::{Manifest, SCHEMA, Sweep, SweepError};
use fingerpost_record::archive::{ArchiveError, new_id, rfc3339};
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

/// The words of a sweep by which its hosts were measured. A sweep may be anybody's: words that do more than to measure
/// are taken where the user has `given` the same ones.
pub fn words<'a>(sweep: &'a Sweep, given: &[String]) -> anyhow::Result<&'a [String]> {
    let kept = sweep.manifest.args.as_slice();
    if !given.is_empty() && given != kept {
        return usage(
            "the words after -- are not those of the sweep, and rows of both would not be comparable: leave them out, or \
             make another sweep",
        );
    }
    match crate::commands::run::only_measures(kept) {
        Err(why) if given.is_empty() => usage(format!(
            "a sweep may not choose all that its manifest.json names ({why}); if you trust it, give the same words \
             yourself, after --"
        )),
        _ => Ok(kept),
    }
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
    let sweeps = entries
        .take(MOST_BESIDE)
        .flatten()
        .filter(|entry| entry.path().join(MANIFEST).is_file());
    let names: Vec<String> = sweeps
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let found = suggest::nearest(
        name,
        names
            .iter()
            .map(String::as_str)
            .filter(|other| *other != name),
    )?;
    Some(
        clean(
            &parent
                .map_or(Path::new(found).to_owned(), |parent| parent.join(found))
                .display()
                .to_string(),
        )
        .into_owned(),
    )
}

/// Makes a sweep of these nodes in this directory, else in one by its id here; or says what to do where that is there.
pub fn create(
    dir: Option<PathBuf>,
    engine: &str,
    nodes: &[String],
    args: &[String],
) -> anyhow::Result<Sweep> {
    let now = jiff::Timestamp::now();
    let (id, started) = (new_id(now, fastrand::u32(..)), rfc3339(now));
    let dir = dir.unwrap_or_else(|| PathBuf::from(format!("sweep-{id}")));
    let manifest = Manifest {
        schema: SCHEMA.into(),
        id,
        started,
        engine: engine.into(),
        nodes: nodes::fold(nodes),
        args: args.to_vec(),
    };
    Sweep::create(&dir, manifest).or_else(|e| match &e {
        SweepError::Write(ArchiveError::Io { path, source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
            usage(format!(
                "{path} is there already: name another directory by -o, or go on with the sweep in it by `fingerpost \
                 fleet run --resume {path}`"
            ))
        }
        _ => usage(e.to_string()),
    })
}

/// The names of a list, or what is wrong with it.
pub fn names(list: &str) -> anyhow::Result<Vec<String>> {
    nodes::parse(list).or_else(usage)
}
