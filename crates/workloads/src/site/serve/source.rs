//! Where a site comes from.

use std::path::Path;

use fingerpost_odb::Database;
use fingerpost_sys::beneath::{Links, Root};

/// What is served.
pub enum Source {
    /// A directory.
    Files(Root),
    /// An object database.
    Odb(Database),
}

impl Source {
    /// Opens a directory, with what is done about symbolic links in it.
    pub fn directory(from: &Path, links: Links) -> Result<Source, String> {
        Root::open(from, links).map(Source::Files).map_err(|e| format!("{} cannot be served: {e}", from.display()))
    }
}
