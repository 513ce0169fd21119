//! Which user we are, which directory one is, and names that nobody can foresee.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// Characters of a random name: 36^16 names, more than 2^80.
const RANDOM: usize = 16;
const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

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

/// A name that nobody can foresee.
pub fn random_name(prefix: &str) -> io::Result<String> {
    let mut bytes = [0; RANDOM];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // 256 is no multiple of 36, so that some characters come up an eighth more often: nothing that helps guessing.
    let letters = bytes
        .iter()
        .map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()]));
    Ok(prefix.chars().chain(letters).collect())
}

/// Whether [`random_name`] could have made this name.
pub fn is_random_name(name: &OsStr, prefix: &str) -> bool {
    let letters = name.to_str().and_then(|name| name.strip_prefix(prefix));
    letters.is_some_and(|l| l.len() == RANDOM && l.bytes().all(|b| ALPHABET.contains(&b)))
}

/// The user as whom we work.
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
