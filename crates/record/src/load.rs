//! Reading run files. They may be truncated, huge, edited by hand or hostile.

use std::io::Read;
use std::path::Path;

use thiserror::Error;

use crate::bounds;
pub use crate::bounds::{MAX_ROWS, MAX_TEXT};
use crate::open;
use crate::run::{Run, SCHEMA, is_readable};
use crate::text::{clean, clean_short, shown};
pub use crate::valid::{valid_id, validate};

/// The largest run file that is read. A thorough run of everything is some ten MiB. What it may cost in memory:
/// [`crate::bounds`].
pub const MAX_BYTES: u64 = 64 << 20;

/// Why a file is not a run. Each prints as one sentence.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file could not be opened or read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than [`MAX_BYTES`]: its name and its size.
    #[error(
        "{0} is {1} bytes, more than the {MAX_BYTES} that a run may have; it is not a run of this tool"
    )]
    TooLarge(String, u64),
    /// The file is not JSON, ends too early, or lacks a field: its name, and what the parser said, with line and
    /// column.
    #[error("{0} is not a complete run: {1}")]
    Syntax(String, String),
    /// The file is of another format or a later version: its name, and the format that it names.
    #[error(
        "{0} has the format “{1}”, this version reads “{SCHEMA}”; use a newer fingerpost or export it again"
    )]
    Schema(String, String),
    /// The file is well-formed, and says something that cannot be: its name, and what, and where.
    #[error("{0} is not a valid run: {1}")]
    Invalid(String, String),
}

/// Reads and validates a run file.
pub fn from_path(path: &Path) -> Result<Run, LoadError> {
    from_slice(&bytes_of(path)?, &shown(path))
}

/// Reads and validates a run from anywhere; `name` is what errors call it.
pub fn from_reader(reader: impl Read, name: &str) -> Result<Run, LoadError> {
    from_slice(&bounded(reader, 0, name)?, name)
}

/// The bytes of a file that may be a run: no directory, pipe or device ([`open::regular`]), not larger than
/// [`MAX_BYTES`].
pub fn bytes_of(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = shown(path);
    let io = |source| LoadError::Io {
        path: name.clone(),
        source,
    };
    let opened = open::regular(path).map_err(io)?;
    if opened.bytes > MAX_BYTES {
        return Err(LoadError::TooLarge(name, opened.bytes));
    }
    bounded(opened.file, opened.bytes, &name)
}

/// The size is bounded while reading too: a device or a growing file does not tell it beforehand. `told` is what was
/// told.
fn bounded(reader: impl Read, told: u64, name: &str) -> Result<Vec<u8>, LoadError> {
    // One byte more, so that the end is seen without making room for what does not come.
    let mut text = Vec::with_capacity(told as usize + 1);
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|source| LoadError::Io {
            path: name.into(),
            source,
        })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(LoadError::TooLarge(name.into(), text.len() as u64));
    }
    Ok(text)
}

/// Reads and validates a run from memory; `name` is what errors call it.
pub fn from_slice(text: &[u8], name: &str) -> Result<Run, LoadError> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(LoadError::Syntax(name.into(), "it is empty".into()));
    }
    bounds::check(text).map_err(|message| LoadError::Invalid(name.into(), message))?;
    let mut run = parsed(text, name)?;
    // Versions before this kept a command as it was typed.
    crate::secret::cut_run(&mut run);
    validate(&run)
        .map_err(|message| LoadError::Invalid(name.into(), clean(&message).into_owned()))?;
    run.paths.iter_mut().for_each(crate::paths::valid::clean);
    run.under_way.iter_mut().for_each(crate::under_way::clean);
    crate::unstated::state(&mut run);
    Ok(run)
}

/// The run that a text says. What is no run of this version is looked at again for the format that it names, which
/// tells more than the field that a later version has not; what is one is parsed once.
fn parsed(text: &[u8], name: &str) -> Result<Run, LoadError> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    // The parser quotes what it did not expect, so its message is as hostile as the file.
    let syntax =
        |e: serde_json::Error| LoadError::Syntax(name.into(), clean_short(&e.to_string(), 300));
    let run = match serde_json::from_slice::<Run>(text) {
        Ok(run) if run.schema == SCHEMA => return Ok(run),
        Ok(mut run) if is_readable(&run.schema) => {
            SCHEMA.clone_into(&mut run.schema);
            crate::older::convert(&mut run);
            return Ok(run);
        }
        other => other,
    };
    let head: Head = serde_json::from_slice(text).map_err(syntax)?;
    match head.schema {
        Some(schema) if is_readable(&schema) => run.map_err(syntax),
        Some(schema) => Err(LoadError::Schema(name.into(), clean_short(&schema, 60))),
        None => Err(LoadError::Syntax(
            name.into(),
            "it has no “schema” field".into(),
        )),
    }
}
