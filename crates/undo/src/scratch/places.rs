//! Where the directories of a run lie.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fingerpost_sys::random::{is_random_name, random_name};
use fingerpost_sys::system::{is_root, unless};

use crate::owned::{Dir, Trust};

/// The name of the control directory below a directory of ours.
pub const CONTROL: &str = "control";
/// What its name begins with where only a temporary directory is left.
const TEMPORARY: &str = "fingerpost-control-";
/// What the names of the directories of one run begin with, in the control directory.
pub const RUN: &str = "run-";
/// The name of the file that is locked.
pub const LOCK: &str = "lock";

/// The control directory, made where there is none: the first place that is there and that nobody else could change.
///
/// Root's is `/run/fingerpost`, else `/var/lib/fingerpost`. A user's is in `$XDG_RUNTIME_DIR` if that is theirs alone,
/// else in `$XDG_CACHE_HOME` or `~/.cache`. Where none of these can be used it has a random name in the temporary
/// directory.
pub fn control() -> io::Result<Dir> {
    match existing_or(true)? {
        Some(dir) => Ok(dir),
        None => temporary()?.make(&random_name(TEMPORARY)?, 0o700),
    }
}

/// Every control directory of this user that there is.
pub fn controls() -> Vec<Dir> {
    let usual = existing_or(false).ok().flatten();
    usual
        .into_iter()
        .chain(
            temporary()
                .map(|dir| in_temporary(&dir))
                .unwrap_or_default(),
        )
        .collect()
}

/// The directory for work directories: `$TMPDIR` or `/tmp`.
pub fn temporary() -> io::Result<Dir> {
    Dir::open(&std::env::temp_dir(), Trust::Strict)
}

/// A directory of ours with this path.
pub fn root(path: &Path) -> io::Result<Dir> {
    unless(DirBuilder::new().mode(0o711).create(path), &[libc::EEXIST])?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    Dir::open(parent, Trust::Strict)?.own(name)
}

fn existing_or(make: bool) -> io::Result<Option<Dir>> {
    for (place, own) in candidates() {
        let Ok(place) = Dir::open(&place, Trust::Strict) else {
            continue;
        };
        // A runtime directory is its user's alone by definition (XDG Base Directory Specification).
        if own && !place.is_private().unwrap_or(false) {
            continue;
        }
        let opened = if make {
            place.private_or_new("fingerpost")
        } else {
            place.private("fingerpost")
        };
        match opened {
            Ok(dir) => return Ok(Some(dir)),
            // In a directory that only we can change, this is a mistake of ours or the user's, to be told.
            Err(e) if make && e.to_string().contains("remove it") => return Err(e),
            Err(_) => {}
        }
    }
    if !make {
        return Ok(None);
    }
    Ok(temporary()
        .ok()
        .and_then(|dir| in_temporary(&dir).into_iter().next()))
}

/// Directories in which the control directory may lie, and whether they must be this user's alone.
fn candidates() -> Vec<(PathBuf, bool)> {
    if is_root() {
        return vec![("/run".into(), false), ("/var/lib".into(), false)];
    }
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let runtime = absolute("XDG_RUNTIME_DIR").map(|path| (path, true));
    runtime
        .into_iter()
        .chain(cache.map(|path| (path, false)))
        .collect()
}

/// The control directories in a temporary directory. Others cannot make one that is ours.
fn in_temporary(dir: &Dir) -> Vec<Dir> {
    let mut names = dir.names().unwrap_or_default();
    names.retain(|name| is_random_name(name, TEMPORARY));
    names
        .iter()
        .filter_map(|name| dir.private(name).ok())
        .collect()
}
