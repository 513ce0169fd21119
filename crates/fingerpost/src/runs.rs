//! From the word RUN on the command line to a run.

use std::path::Path;

use fingerpost_record::archive::Archive;
use fingerpost_record::{Run, load};

use crate::exit::usage;

/// What RUN may be, for the help of every command that takes one.
pub const HELP: &str =
    "A path, the start of a run's id, `latest`, `latest~1` (the one before), `ref:NAME` (a reference system), or `-` (standard input)";

/// The run that RUN names.
pub fn load(wanted: &str) -> anyhow::Result<Run> {
    if let Some(name) = wanted.strip_prefix("ref:") {
        return reference(name);
    }
    if wanted == "-" {
        return Ok(load::from_reader(std::io::stdin().lock(), "standard input")?);
    }
    // A path needs no archive, and so no home.
    if wanted.contains('/') {
        return Ok(load::from_path(Path::new(wanted))?);
    }
    Ok(load::from_path(&Archive::open(None)?.resolve(wanted)?)?)
}

/// A reference system, from the data that the binary carries.
fn reference(name: &str) -> anyhow::Result<Run> {
    usage(format!("there is no reference system “{name}”"))
}
