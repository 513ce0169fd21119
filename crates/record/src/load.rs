//! Reading run files. They may be truncated, huge, edited by hand or hostile.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use thiserror::Error;

use crate::measurement::{Measurement, Outcome};
use crate::run::{Run, SCHEMA};

/// The largest run file that is read. A thorough run of everything is some ten MiB.
pub const MAX_BYTES: u64 = 256 << 20;
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
    let name = path.display().to_string();
    let io = |source| LoadError::Io { path: name.clone(), source };
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(|source| LoadError::Io { path: name.clone(), source })?;
    if meta.is_dir() {
        return Err(LoadError::Invalid { path: name, message: "it is a directory".into() });
    }
    if meta.len() > MAX_BYTES {
        return Err(LoadError::TooLarge { path: name, bytes: meta.len() });
    }
    from_reader(file, &name)
}

/// Reads and validates a run from anywhere; `name` is what errors call it.
pub fn from_reader(reader: impl Read, name: &str) -> Result<Run, LoadError> {
    let mut text = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(|source| LoadError::Io { path: name.into(), source })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(LoadError::TooLarge { path: name.into(), bytes: text.len() as u64 });
    }
    from_slice(&text, name)
}

/// Reads and validates a run from memory; `name` is what errors call it.
pub fn from_slice(text: &[u8], name: &str) -> Result<Run, LoadError> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let syntax = |e: serde_json::Error| LoadError::Syntax { path: name.into(), message: e.to_string() };
    let head: Head = serde_json::from_slice(text).map_err(syntax)?;
    match head.schema {
        Some(schema) if schema == SCHEMA => {}
        Some(schema) => return Err(LoadError::Schema { path: name.into(), found: schema.chars().take(60).collect() }),
        None => return Err(LoadError::Syntax { path: name.into(), message: "it has no “schema” field".into() }),
    }
    let run: Run = serde_json::from_slice(text).map_err(syntax)?;
    validate(&run).map_err(|message| LoadError::Invalid { path: name.into(), message })?;
    Ok(run)
}

/// Says what in a run cannot be, if anything.
pub fn validate(run: &Run) -> Result<(), String> {
    valid_id(&run.id)?;
    if !run.duration_s.is_finite() || run.duration_s < 0.0 {
        return Err(format!("“duration_s” is {}", run.duration_s));
    }
    if run.measurements.len() > MAX_ROWS {
        return Err(format!("it has {} measurements, more than {MAX_ROWS}", run.measurements.len()));
    }
    for (i, m) in run.measurements.iter().enumerate() {
        validate_row(m).map_err(|what| format!("measurements[{i}] ({}): {what}", m.probe.chars().take(60).collect::<String>()))?;
    }
    for (i, b) in run.budgets.iter().enumerate() {
        let finite = b.parts.iter().all(|p| p.seconds_per_transaction.is_finite() && p.share.is_finite());
        if !finite || !b.unexplained.is_finite() {
            return Err(format!("budgets[{i}] has a part that is not a number"));
        }
    }
    Ok(())
}

/// An id becomes a file name, so it may hold letters, digits, `-`, `_`, `.` and `:` only and must start with a letter or digit.
pub fn valid_id(id: &str) -> Result<(), String> {
    let ok = !id.is_empty()
        && id.len() <= 100
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
        && id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if ok {
        Ok(())
    } else {
        Err(format!("its id “{}” has characters that an id cannot have", id.chars().take(40).collect::<String>().escape_debug()))
    }
}

fn validate_row(m: &Measurement) -> Result<(), String> {
    if m.probe.is_empty() || m.probe.len() > 200 {
        return Err("the probe's name is empty or too long".into());
    }
    if m.reason.as_ref().is_some_and(|r| r.len() > MAX_TEXT) {
        return Err("the reason is too long".into());
    }
    if let Some(e) = &m.estimate {
        if ![e.value, e.low, e.high, e.confidence].iter().all(|v| v.is_finite()) {
            return Err("the estimate is not a number".into());
        }
        if e.low > e.value || e.value > e.high {
            return Err(format!("the estimate {} lies outside its interval {} to {}", e.value, e.low, e.high));
        }
        if !(e.confidence > 0.0 && e.confidence < 1.0) {
            return Err(format!("a confidence of {} is not between 0 and 1", e.confidence));
        }
    }
    match m.outcome {
        Outcome::Measured if m.estimate.is_none() => return Err("it is “measured” and has no estimate".into()),
        Outcome::Untrusted | Outcome::Skipped | Outcome::Failed if m.reason.is_none() => {
            return Err("it is not “measured” and gives no reason".into());
        }
        _ => {}
    }
    for p in &m.processes {
        if p.samples.iter().chain(p.value.iter()).chain(p.counters.values()).any(|v| !v.is_finite()) {
            return Err("a sample is not a number".into());
        }
        if p.disturbed.iter().any(|i| *i as usize >= p.samples.len()) {
            return Err("a disturbed sample does not exist".into());
        }
    }
    Ok(())
}
