//! Paths: names with slashes between. A path that a file system would take elsewhere is none.

use crate::{Error, Result};

/// The longest name in bytes, which is that of the usual file systems.
pub const MAX_NAME: usize = 255;
/// The longest path in bytes.
pub const MAX_PATH: usize = 4095;
/// The most tables on the way to a cell.
pub const MAX_DEPTH: usize = 128;

/// A path without the slash before and after it, so that the path of a URL can be given as it is.
pub(crate) fn trimmed(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.strip_suffix(b"/").unwrap_or(path)
}

/// The same, where it is a path.
pub(crate) fn checked(path: &[u8]) -> Result<&[u8]> {
    let path = trimmed(path);
    check(path).map(|()| path)
}

/// Refuses what is no path. `path` is trimmed.
pub(crate) fn check(path: &[u8]) -> Result<()> {
    if is_fine(path) {
        return Ok(());
    }
    let refuse = |why| {
        Err(Error::Path(
            String::from_utf8_lossy(&path[..path.len().min(200)]).into_owned(),
            why,
        ))
    };
    if path.len() > MAX_PATH {
        return refuse("it is longer than 4095 bytes");
    }
    if path.split(|&b| b == b'/').count() > MAX_DEPTH {
        return refuse("it goes through more than 128 tables");
    }
    refuse(
        path.split(|&b| b == b'/')
            .find_map(bad_name)
            .unwrap_or("it is no path"),
    )
}

/// The same in one pass, because every look-up asks it.
#[inline]
fn is_fine(path: &[u8]) -> bool {
    let name_is_fine =
        |name: &[u8]| !name.is_empty() && name.len() <= MAX_NAME && name != b"." && name != b"..";
    let (mut start, mut names) = (0, 1);
    for (at, &byte) in path.iter().enumerate() {
        match byte {
            0 => return false,
            b'/' if !name_is_fine(&path[start..at]) => return false,
            b'/' => (start, names) = (at + 1, names + 1),
            _ => {}
        }
    }
    path.is_empty()
        || (name_is_fine(&path[start..]) && names <= MAX_DEPTH && path.len() <= MAX_PATH)
}

/// What is wrong with a name; also asked of names that come out of a file, before anything is written in their place.
fn bad_name(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("one of its names is empty"),
        b"." | b".." => Some("“.” and “..” are no names"),
        _ if name.len() > MAX_NAME => Some("one of its names is longer than 255 bytes"),
        _ if name.contains(&0) => Some("it holds a zero byte"),
        _ if name.contains(&b'/') => Some("one of its names holds a slash"),
        _ => None,
    }
}

/// Refuses a table's name that comes out of a file and is none.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    bad_name(name).map_or(Ok(()), |why| {
        Err(Error::Damaged(format!(
            "a table holds “{}”: {why}",
            shown(name)
        )))
    })
}

/// The characters of a path that a sentence quotes: a damaged file may claim a name of a megabyte.
const MOST_SHOWN: usize = 100;

/// A path for a sentence.
pub(crate) fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_quotes_no_more_than_the_beginning_of_a_long_name() {
        assert_eq!(shown(b"a/b"), "a/b");
        assert_eq!(
            shown("ä".repeat(5000).as_bytes()).chars().count(),
            MOST_SHOWN + 1
        );
    }

    #[test]
    fn hostile_paths_are_refused() {
        let long = [b'a'; 256];
        let deep = "a/".repeat(129);
        for path in [
            &b".."[..],
            b"a/../b",
            b"a//b",
            b"./a",
            b"a\0b",
            b"//etc",
            b"a//",
            &long,
            &[b'a'; 5000],
            deep.as_bytes(),
        ] {
            assert!(check(trimmed(path)).is_err(), "{}", shown(path));
        }
        for path in [
            &b""[..],
            b"/",
            b"a",
            b"/a/b.html",
            b"a/b/",
            b"...",
            b"a b/\xff",
        ] {
            assert!(check(trimmed(path)).is_ok(), "{}", shown(path));
        }
    }
}
