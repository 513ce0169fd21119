//! Results of other tools as runs. The files come from elsewhere: bounded, validated, never trusted.

mod bounded;
mod hyperfine;
mod lmbench;

use fingerpost_record::run::Tool;
use fingerpost_record::text::{clean_short, misleads};
use fingerpost_record::{
    Better, Estimate, Measurement, Outcome, Params, Process, Profile, Run, SCHEMA, Unit, load,
};
use thiserror::Error;

pub use hyperfine::hyperfine;
pub use lmbench::lmbench;

/// The largest file that is imported. Those that the tools write are some hundred KiB.
pub const MAX_BYTES: usize = 16 << 20;
/// The most repetitions in one file: each becomes a process of a record, a hundred times the bytes that it has in the
/// file.
const MAX_REPETITIONS: usize = 100_000;

/// Why a file could not be imported. Each prints as one sentence.
#[derive(Debug, Error, PartialEq)]
pub enum ImportError {
    /// More than [`MAX_BYTES`].
    #[error("the file is {0} bytes, more than the {MAX_BYTES} that are imported")]
    TooLarge(usize),
    /// Not the format that was asked for.
    /// The format, and what is wrong, and where.
    #[error("this is not a {0} result: {1}")]
    Syntax(&'static str, String),
    /// Well-formed, and says something that cannot be: the format, and what cannot be, and where.
    #[error("this {0} result is not valid: {1}")]
    Invalid(&'static str, String),
}

/// A run with these rows, named after its content, so that importing a file twice gives the same id.
fn run(
    format: &'static str,
    bytes: &[u8],
    host: fingerpost_record::Host,
    rows: Vec<Measurement>,
) -> Result<Run, ImportError> {
    if rows.is_empty() {
        return Err(ImportError::Syntax(
            format,
            "it holds no result that is known here".into(),
        ));
    }
    let run = Run {
        schema: SCHEMA.into(),
        id: format!("{format}-{:016x}", fnv(bytes)),
        started: "1970-01-01T00:00:00Z".into(),
        profile: Profile::Imported,
        complete: true,
        source: Some(format!("imported from a {format} result")),
        tool: Tool {
            version: format.into(),
            commit: "unknown".into(),
        },
        host,
        measurements: rows,
        ..Run::default()
    };
    load::validate(&run).map_err(|message| ImportError::Invalid(format, message))?;
    Ok(run)
}

/// A row from repetitions or from one figure.
pub(crate) fn row(
    probe: &str,
    params: Params,
    unit: Unit,
    better: Better,
    estimate: Estimate,
    repetitions: &[f64],
) -> Measurement {
    Measurement {
        probe: probe.to_owned(),
        descriptor: None,
        // That of our probe that does what an imported figure's program did: the latest, since imported figures stand
        // for the operation.
        version: if probe == "memory.latency" { 2 } else { 1 },
        params,
        unit,
        better,
        outcome: Outcome::Measured,
        reason: None,
        estimate: Some(estimate),
        percentiles: None,
        processes: repetitions.iter().map(|v| Process::of_one(*v, 1)).collect(),
    }
}

/// Fowler–Noll–Vo, 64 bit, variant 1a: a name for the content, no protection against anybody.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
        (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The first characters of a text from elsewhere, without those that mislead.
fn clean(text: &str, most: usize) -> String {
    text.chars().filter(|c| !misleads(*c)).take(most).collect()
}

/// The refusal of a file that is not of this format. The parser quotes what it did not expect, at any length.
fn syntax(format: &'static str, error: &serde_json::Error) -> ImportError {
    ImportError::Syntax(format, clean_short(&error.to_string(), 300))
}
