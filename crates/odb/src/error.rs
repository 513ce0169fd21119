//! What can go wrong.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why something could not be done.
#[derive(Debug, Error)]
pub enum Error {
    /// A path that cannot be one of this database.
    #[error("“{0}” cannot be a path here: {1}")]
    Path(String, &'static str),
    /// A table stands where a cell was meant, or a cell where a table was.
    #[error("“{0}” is {1}")]
    Mismatch(String, &'static str),
    /// The file holds something that no database of ours holds.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The file is not a database of ours.
    #[error("{0} is no object database; make one with `fingerpost site import`")]
    Foreign(PathBuf),
    /// The engine refused.
    #[error("{0}")]
    Engine(String),
    /// The file system refused.
    #[error("{what} {path}: {error}", path = .path.display())]
    Io {
        /// What was tried, as `cannot read`.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The person asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An error of the file system, for `map_err`.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| Error::Io { what, path, error }
    }
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::Engine(e.to_string())
    }
}

impl From<rusqlite::Error> for Error {
    fn from(e: rusqlite::Error) -> Self {
        Error::Engine(format!("SQLite: {e}"))
    }
}

macro_rules! from_redb {
    ($($kind:ident),*) => {$(
        impl From<redb::$kind> for Error {
            fn from(e: redb::$kind) -> Self {
                Error::Engine(format!("redb: {e}"))
            }
        }
    )*};
}
from_redb!(
    DatabaseError,
    TransactionError,
    TableError,
    StorageError,
    CommitError,
    SetDurabilityError
);
