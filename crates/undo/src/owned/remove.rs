//! Removing by descriptor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

use fingerpost_sys::beneath;
use fingerpost_sys::random::random_name;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::identity::{Identity, identity};

/// How long writers that were killed, or that have just lost their server, may take to end.
const WRITERS_END: Duration = Duration::from_secs(10);
/// Directories deeper than this are moved up before they are emptied: whoever wrote into the tree chose its depth, and
/// each level costs a descriptor.
const DEEPEST: usize = 64;
/// What the names of directories that were moved up begin with.
const MOVED: &str = "removed-";

/// What became of what was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, or was before.
    Gone,
    /// Something else has its name, and was left alone.
    Replaced,
}

/// Removes what has this name in the directory, with all that is in it.
///
/// A process that was killed is not gone when the signal is sent, and what PostgreSQL's server leaves when it is killed
/// ends by itself a little later: files can appear behind the removal. It begins again then, for ten seconds at most.
pub fn remove(parent: BorrowedFd, name: &OsStr, expected: Option<Identity>) -> io::Result<Removal> {
    let deadline = Instant::now() + WRITERS_END;
    loop {
        match once(parent, name, expected) {
            Err(Errno::NOTEMPTY) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5))
            }
            Err(Errno::NOENT) => return Ok(Removal::Gone),
            Err(Errno::XDEV) => return Err(io::Error::other("a file system is mounted in it")),
            other => return Ok(other?),
        }
    }
}

fn once(parent: BorrowedFd, name: &OsStr, expected: Option<Identity>) -> Result<Removal, Errno> {
    let found = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_dir = FileType::from_raw_mode(found.st_mode).is_dir();
    if expected.is_some_and(|expected| !is_dir || expected != identity(&found)) {
        return Ok(Removal::Replaced);
    }
    if !is_dir {
        fs::unlinkat(parent, name, AtFlags::empty())?;
        return Ok(Removal::Gone);
    }
    let dir = open(parent, name)?;
    let opened = identity(&fs::fstat(&dir)?);
    // Between the look and the opening it can have become another one.
    if opened != identity(&found) {
        return Ok(Removal::Replaced);
    }
    empty(dir.as_fd(), dir.as_fd(), opened.dev, 0)?;
    fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(Removal::Gone)
}

/// Opens a directory for reading, if its name is no link.
pub fn open(parent: BorrowedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    fs::openat(
        parent,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Removes what is in a directory on this device; `top` takes what lies too deep.
fn empty(dir: BorrowedFd, top: BorrowedFd, dev: u64, depth: usize) -> Result<(), Errno> {
    for name in names(dir).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))? {
        match fs::unlinkat(dir, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            // POSIX has EPERM for what Linux calls EISDIR.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(e) => return Err(e),
        }
        let inner = match open(dir, &name) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        if identity(&fs::fstat(&inner)?).dev != dev {
            return Err(Errno::XDEV);
        }
        if depth >= DEEPEST {
            let moved = random_name(MOVED).map_err(|_| Errno::IO)?;
            fs::renameat(dir, &name, top, &moved)?;
            continue;
        }
        empty(inner.as_fd(), top, dev, depth + 1)?;
        match fs::unlinkat(dir, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
    }
    // What was moved up came behind the reading of the names.
    let moved_up = depth == 0
        && names(dir).is_ok_and(|names| {
            names
                .iter()
                .any(|name| name.as_bytes().starts_with(MOVED.as_bytes()))
        });
    if moved_up {
        empty(dir, top, dev, 0)
    } else {
        Ok(())
    }
}

/// The names in a directory.
pub fn names(dir: BorrowedFd) -> io::Result<Vec<OsString>> {
    Ok(beneath::entries(dir)?
        .into_iter()
        .map(|(name, _)| OsString::from_vec(name))
        .collect())
}
