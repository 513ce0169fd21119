//! Which directory one is.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// Which directory it is, whatever its name: a name can be given to another one, the pair cannot while the file system
/// is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The device's number.
    pub dev: u64,
    /// The inode's number.
    pub ino: u64,
}

/// Which directory a look at it was of.
pub fn identity(stat: &Stat) -> Identity {
    // The width of both differs between architectures.
    #[allow(clippy::unnecessary_cast)]
    Identity {
        dev: stat.st_dev as u64,
        ino: stat.st_ino as u64,
    }
}
