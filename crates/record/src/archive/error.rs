//! What can go wrong with the archive.

use std::io;
use std::path::Path;

use thiserror::Error;

use crate::load::LoadError;
use crate::text::shown;

/// Why something could not be done with the archive. Each prints as one sentence.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The system refused.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing is called that.
    #[error("there is no run “{wanted}” in {dir}{hint}")]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// The archive's directory.
        dir: String,
        /// What may have been meant, or where to look.
        hint: String,
    },
    /// It is not known where the archive is or which run is meant, or another run is kept under the id.
    #[error("{0}")]
    Refused(String),
    /// A label or note cannot be kept.
    #[error("{0}")]
    Words(String),
    /// The file is not a run.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl ArchiveError {
    /// The system refused to do this with a file or directory.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        ArchiveError::Io {
            doing,
            path: shown(path),
            source,
        }
    }
}
