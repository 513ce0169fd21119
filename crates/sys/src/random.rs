//! Names that nobody can foresee.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};

/// Characters of a random name: 36^16 names, more than 2^80.
const RANDOM: usize = 16;
const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A name that nobody can foresee, behind a prefix.
///
/// # Errors
/// The kernel's, where it has no random numbers to read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_names_are_known_again_and_differ() {
        let (one, two) = (random_name("run-").unwrap(), random_name("run-").unwrap());
        assert_ne!(one, two);
        assert!(is_random_name(OsStr::new(&one), "run-"));
        for wrong in [
            "run-1-0",
            "run-",
            "run-0123456789ABCDEF",
            "x0123456789abcdef",
            "run-0123456789abcde/",
        ] {
            assert!(!is_random_name(OsStr::new(wrong), "run-"), "{wrong}");
        }
    }
}
