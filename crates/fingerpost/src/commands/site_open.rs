//! Opening an object database that a person names, and what is said where that fails.

use std::path::Path;

use fingerpost_odb::{Database, Engine, Error, Standing, standing};

use crate::exit::{Usage, usage};

/// Opens a database for reading: one that others can have arranged so that no file beside it is looked at, and none of LMDB's at all.
pub fn open(file: &Path, trust: bool) -> anyhow::Result<Database> {
    let engine = Database::engine_of(file).map_err(mend)?;
    match standing(file).map_err(mend)? {
        _ if trust => Database::open(file),
        Standing::Ours => Database::open(file),
        Standing::Strange if engine == Engine::Lmdb => return usage(strange(file)),
        Standing::OpenDirectory | Standing::Strange => Database::open_alone(file),
    }
    .map_err(mend)
}

/// What is said of a database that is not opened because others may change it.
pub fn strange(file: &Path) -> String {
    let name = file.display();
    format!(
        "{name} is not opened: others own or may change it or its directory; copy it to a directory of yours and check it with `fingerpost site verify`, or add --trust"
    )
}

/// An error that the user can mend is bad input; others are failures.
pub fn mend(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => anyhow::anyhow!("interrupted; nothing was made"),
        other => Usage(other.to_string()).into(),
    }
}
