//! What can go wrong with the archive.

use std::io;
use std::path::Path;

use thiserror::Error;

use crate::load::LoadError;
use crate::text::shown;

/// Why something could not be done with the archive. Each prints as one sentence.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// No environment variable says where the archive could be.
    #[error(
        "there is no place for the archive: set FINGERPOST_HOME to a directory (XDG_DATA_HOME and HOME are not set \
         either)"
    )]
    NoHome,
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
    /// Several runs are called that.
    #[error("“{wanted}” could be any of {count} runs ({examples}); give more of the id")]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// How many it could be.
        count: usize,
        /// The first few ids.
        examples: String,
    },
    /// Removing needs the whole id.
    #[error("“{wanted}” is not the whole id of a run; removing needs it whole{hint}")]
    NotWhole {
        /// What was asked for.
        wanted: String,
        /// The id that it may have meant.
        hint: String,
    },
    /// Another run is kept under the id.
    #[error(
        "{path} has the id {id}, and the archive keeps a different run under it; remove that one first, or leave this \
         one out"
    )]
    Conflict {
        /// The file that was to be imported.
        path: String,
        /// The id.
        id: String,
    },
    /// A label or note cannot be kept.
    #[error("{0}")]
    Words(String),
    /// The file is not a run.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl ArchiveError {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        ArchiveError::Io { doing, path: shown(path), source }
    }
}
