//! From the word RUN on the command line to a run, and from a list of such words to one side of a comparison.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fingerpost_compare::{Side, references, select};
use fingerpost_diagnose::fleet::by_every_cpu;
use fingerpost_record::archive::{Archive, ArchiveError};
use fingerpost_record::{Params, Run, lean, load};

use crate::exit::usage;

/// What RUN may be, for the help of every command that takes one.
pub const HELP: &str = "A path, the start of a run's id, `latest`, `latest~1` (the one before), `ref:NAME` (a \
    reference system), or `-` (standard input)";

/// Runs that are read at a time: enough to keep the CPUs busy, few enough to need little memory.
const BATCH: usize = 64;

/// The run that RUN names.
pub fn load(wanted: &OsStr) -> anyhow::Result<Run> {
    match source(wanted)? {
        From::File(path) => Ok(load::from_path(&path)?),
        From::Other(word) => other(&word),
    }
}

/// A reference system, from the data that the binary carries, or standard input.
fn other(word: &str) -> anyhow::Result<Run> {
    let Some(name) = word.strip_prefix("ref:") else {
        return Ok(load::from_reader(
            std::io::stdin().lock(),
            "standard input",
        )?);
    };
    references::load(name).map_or_else(|| usage(references::unknown(name)), Ok)
}

/// The file of the run that RUN names.
///
/// # Errors
/// It is none: a reference system, or standard input.
pub fn file(wanted: &OsStr) -> anyhow::Result<PathBuf> {
    match source(wanted)? {
        From::File(path) => Ok(path),
        From::Other(word) => usage(format!(
            "“{word}” is no file that could be written; name one with -o FILE"
        )),
    }
}

/// One run as a word that a shell takes as it is; nothing for several, a part of one, or standard input, which cannot
/// be read again.
pub fn plain(run: &OsStr) -> Option<&str> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "._~:/@+-".contains(c);
    run.to_str()
        .filter(|run| *run != "-" && !run.is_empty() && run.chars().all(safe))
}

/// The file of the archive that a word names. A reference system's name without `ref:` is told as such.
fn kept(wanted: &str) -> anyhow::Result<PathBuf> {
    let found = Archive::open(None)?.resolve(wanted);
    match found {
        Err(ArchiveError::NotFound { dir, .. })
            if references::names().iter().any(|name| name == wanted) =>
        {
            usage(format!(
                "there is no run “{wanted}” in {dir}; the reference system of that name is “ref:{wanted}”"
            ))
        }
        other => Ok(other?),
    }
}

/// One run of a side: where it comes from, and which rows of it are wanted.
struct Wanted {
    from: From,
    part: Params,
}

enum From {
    File(PathBuf),
    Other(String),
}

/// The two sides of a comparison, each as [`side`] reads it.
pub fn sides(base: &OsStr, new: &OsStr) -> anyhow::Result<(Side, Side)> {
    let piped = |word: &&str| select::parse(word).is_ok_and(|(run, _)| run == "-");
    if [base, new]
        .into_iter()
        .filter_map(OsStr::to_str)
        .flat_map(select::list)
        .filter(piped)
        .count()
        > 1
    {
        return usage(
            "standard input (“-”) can be one run only; write the other to a file and name its path",
        );
    }
    let (mut base, mut new) = (side(base)?, side(new)?);
    Side::share_a_run(&mut base, &mut new);
    Ok((base, new))
}

/// The side that a comma-separated list names. Each word is a RUN, may be a directory (every run file in it), and may
/// be followed by `[KEY=VALUE]` for the rows with that parameter. The samples are not read.
pub fn side(words: &OsStr) -> anyhow::Result<Side> {
    let mut wanted = Vec::new();
    let Some(words) = words.to_str() else {
        // What is no UTF-8 can only be one path.
        let mut side = Side::default();
        side.add_part(&lean::figures_from_path(Path::new(words))?, &Params::new());
        return Ok(side);
    };
    for word in select::list(words) {
        let (run, part) = select::parse(word).or_else(usage)?;
        wanted.extend(sources(run)?.into_iter().map(|from| Wanted {
            from,
            part: part.clone(),
        }));
    }
    if wanted.is_empty() {
        return usage(format!(
            "“{words}” names no run: write a path, the start of an id, latest, or ref:NAME"
        ));
    }
    let mut side = Side::default();
    for batch in wanted.chunks(BATCH) {
        for (wanted, run) in batch.iter().zip(by_every_cpu(batch, read)) {
            side.add_part(&run?, &wanted.part);
        }
    }
    Ok(side)
}

/// Where the run that RUN names comes from. A path needs no archive, and so no home; what is no UTF-8 can only be one.
fn source(wanted: &OsStr) -> anyhow::Result<From> {
    Ok(match wanted.to_str() {
        Some(word) if word == "-" || word.starts_with("ref:") => From::Other(word.to_owned()),
        Some(word) if !word.contains('/') => From::File(kept(word)?),
        _ => From::File(PathBuf::from(wanted)),
    })
}

fn sources(word: &str) -> anyhow::Result<Vec<From>> {
    let path = Path::new(word);
    if word.contains('/') && !word.starts_with("ref:") && path.is_dir() {
        return run_files(path);
    }
    Ok(vec![source(OsStr::new(word))?])
}

/// The run files of a directory in the order of their names, which for ids is that of time.
fn run_files(dir: &Path) -> anyhow::Result<Vec<From>> {
    let mut files = std::fs::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "json"));
    files.sort();
    if files.is_empty() {
        return usage(format!("{} holds no run file (*.json)", dir.display()));
    }
    Ok(files.into_iter().map(From::File).collect())
}

fn read(wanted: &Wanted) -> anyhow::Result<Run> {
    let run = match &wanted.from {
        From::File(path) => lean::figures_from_path(path)?,
        From::Other(word) => other(word)?,
    };
    select::part(run, &wanted.part).or_else(usage)
}
