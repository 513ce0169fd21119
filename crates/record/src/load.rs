//! Reading run files. They may be truncated, huge, edited by hand or hostile.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use thiserror::Error;

use crate::run::{Run, SCHEMA};
use crate::text::{clean, clean_short};
pub use crate::valid::{valid_id, validate};

/// The largest run file that is read. A thorough run of everything is some ten MiB, and a hostile file can make each of its bytes
/// cost up to eight in memory.
pub const MAX_BYTES: u64 = 64 << 20;
/// The most rows that one run may have.
pub const MAX_ROWS: usize = 20_000;
/// The longest string in a record, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

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
    /// The file is larger than [`MAX_BYTES`].
    #[error("{path} is {bytes} bytes, more than the {MAX_BYTES} that a run may have; it is not a run of this tool")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// The file is not JSON, ends too early, or lacks a field.
    #[error("{path} is not a complete run: {message}")]
    Syntax {
        /// The file.
        path: String,
        /// What the parser said, with line and column.
        message: String,
    },
    /// The file is of another format or a later version.
    #[error("{path} has the format “{found}”, this version reads “{SCHEMA}”; use a newer fingerpost or export it again")]
    Schema {
        /// The file.
        path: String,
        /// The format that it names.
        found: String,
    },
    /// The file is well-formed, and says something that cannot be.
    #[error("{path} cannot be a run: {message}")]
    Invalid {
        /// The file.
        path: String,
        /// What cannot be, and where.
        message: String,
    },
}

/// Reads and validates a run file.
pub fn from_path(path: &Path) -> Result<Run, LoadError> {
    from_slice(&bytes_of(path)?, &name_of(path))
}

/// Reads and validates a run from anywhere; `name` is what errors call it.
pub fn from_reader(reader: impl Read, name: &str) -> Result<Run, LoadError> {
    from_slice(&bounded(reader, name)?, name)
}

/// The bytes of a file that may be a run: no directory, not larger than [`MAX_BYTES`].
pub fn bytes_of(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = name_of(path);
    let io = |source| LoadError::Io { path: name.clone(), source };
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(|source| LoadError::Io { path: name.clone(), source })?;
    if meta.is_dir() {
        return Err(LoadError::Invalid { path: name, message: "it is a directory".into() });
    }
    if meta.len() > MAX_BYTES {
        return Err(LoadError::TooLarge { path: name, bytes: meta.len() });
    }
    bounded(file, &name)
}

fn name_of(path: &Path) -> String {
    clean(&path.display().to_string()).into_owned()
}

/// The size is bounded while reading too: a device or a growing file does not tell it beforehand.
fn bounded(reader: impl Read, name: &str) -> Result<Vec<u8>, LoadError> {
    let mut text = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(|source| LoadError::Io { path: name.into(), source })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(LoadError::TooLarge { path: name.into(), bytes: text.len() as u64 });
    }
    Ok(text)
}

/// Reads and validates a run from memory; `name` is what errors call it.
pub fn from_slice(text: &[u8], name: &str) -> Result<Run, LoadError> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    // The parser quotes what it did not expect, so its message is as hostile as the file.
    let syntax = |e: serde_json::Error| LoadError::Syntax { path: name.into(), message: clean_short(&e.to_string(), 300) };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(LoadError::Syntax { path: name.into(), message: "it is empty".into() });
    }
    if let Some(line) = line_of_long_text(text) {
        return Err(LoadError::Invalid { path: name.into(), message: format!("line {line} has a text of more than {MAX_TEXT} bytes") });
    }
    let head: Head = serde_json::from_slice(text).map_err(syntax)?;
    match head.schema {
        Some(schema) if schema == SCHEMA => {}
        Some(schema) => return Err(LoadError::Schema { path: name.into(), found: clean_short(&schema, 60) }),
        None => return Err(LoadError::Syntax { path: name.into(), message: "it has no “schema” field".into() }),
    }
    let mut run: Run = serde_json::from_slice(text).map_err(syntax)?;
    // Versions before this kept a command as it was typed.
    crate::secret::cut_run(&mut run);
    validate(&run).map_err(|message| LoadError::Invalid { path: name.into(), message: clean(&message).into_owned() })?;
    run.paths.iter_mut().for_each(crate::paths::valid::clean);
    Ok(run)
}

/// The line of the first JSON string longer than [`MAX_TEXT`]. Looked for in the bytes, before parsing, so that it holds for every
/// field, those included that this version does not know.
fn line_of_long_text(text: &[u8]) -> Option<usize> {
    let mut line = 1;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\n' => line += 1,
            b'"' => {
                let start = at + 1;
                at = start;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                if at - start > MAX_TEXT {
                    return Some(line);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}
