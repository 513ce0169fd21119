//! A database's file while it is made.
//!
//! The directory that it will stand in may be one that others write to. So it is made in a directory of ours (0700, with
//! a name that nobody can foresee) beside its place, under a name that nobody else can read, and everything is reached
//! through open descriptors: whoever moves our directory away, or puts a link in its place, moves nothing that is
//! written. An engine is given the open file, or a path through a descriptor; SQLite, which resolves every path to names,
//! is given a path that leads nowhere in another's directory, and makes no file itself.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

use fingerpost_sys::random::{is_random_name, random_name};
use fingerpost_undo::owned::{self, Dir};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::owner::directory_of;
use crate::{Error, Result};

/// What the names of our directories begin with, and those of the files in them.
const DIRECTORY: &str = ".fingerpost-import-";
const FILE: &str = "odb-";
/// The finished file's permissions, of which the umask takes its part: nobody but its owner ever writes to it.
const MODE: u32 = 0o644;
/// The files that engines keep beside theirs.
const COMPANIONS: [&str; 4] = ["-lock", "-wal", "-shm", "-journal"];

/// The file. Dropped before [`New::finish`], it leaves nothing.
pub(crate) struct New {
    /// Where the finished file will stand, and under which name.
    parent: Dir,
    name: OsString,
    /// Ours, with its name. Its lock says that somebody is at work in it.
    dir: Dir,
    dir_name: String,
    inner: String,
    file: File,
}

impl New {
    /// Makes an empty file for the place of another one, and clears away what killed imports left there.
    pub(crate) fn beside(file: &Path) -> Result<New> {
        let failed = || Error::io("cannot make", file);
        let Some(name) = file.file_name() else {
            return Err(Error::Engine(format!("{} names no file", file.display())));
        };
        let parent = Dir::named(directory_of(file)).map_err(failed())?;
        clear_leftovers(&parent);
        let dir_name = random_name(DIRECTORY).map_err(failed())?;
        let inner = random_name(FILE).map_err(failed())?;
        let dir = parent.make(&dir_name, 0o700).map_err(failed())?;
        let made = owned::try_lock(&dir).and_then(|_| make(&dir, &inner));
        match made {
            Ok(file) => Ok(New {
                parent,
                name: name.to_owned(),
                dir,
                dir_name,
                inner,
                file,
            }),
            Err(e) => {
                let _ = parent.remove_empty(&dir_name);
                Err(failed()(e))
            }
        }
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Its path through our open directory, which leads to it whatever becomes of names.
    pub(crate) fn through_descriptor(&self) -> PathBuf {
        let fd = self.dir.as_fd().as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{fd}")).join(&self.inner)
    }

    /// Its path by names. Others may make it lead elsewhere, but to nothing that has the file's name.
    pub(crate) fn by_names(&self) -> PathBuf {
        self.dir.path().join(&self.inner)
    }

    /// Gives the file its name, and takes away what belonged to an old one of this name. All of it is on disk then.
    pub(crate) fn finish(self, replace: bool) -> io::Result<()> {
        self.file.sync_all()?;
        let (from, to) = (&*self.inner, &*self.name);
        let is_free = || match rustix::fs::statat(&self.parent, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Ok(_) => Err(Errno::EXIST),
            Err(e) => Err(e),
        };
        if !replace {
            is_free()?;
        }
        // What belongs to an old file must not be taken for the new one's.
        self.remove_companions();
        let flags = if replace {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        match rustix::fs::renameat_with(&self.dir, from, &self.parent, to, flags) {
            // A kernel or a file system that cannot look and rename in one step.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if !replace {
                    is_free()?;
                }
                rustix::fs::renameat(&self.dir, from, &self.parent, to)?;
            }
            other => other?,
        }
        let parent = rustix::fs::openat(
            &self.parent,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(rustix::fs::fsync(parent)?)
    }

    fn remove_companions(&self) {
        for suffix in COMPANIONS {
            let mut name = self.name.clone();
            name.push(suffix);
            let _ = rustix::fs::unlinkat(&self.parent, &*name, AtFlags::empty());
        }
    }
}

impl Drop for New {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(&self.dir, &*self.inner, AtFlags::empty());
        let _ = self.parent.remove_empty(&self.dir_name);
    }
}

fn make(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(MODE))?;
    Ok(made.into())
}

/// Removes what imports left that were killed: directories of ours that nobody is at work in. Nothing is removed that an
/// import does not make, because a directory that others write to can hold anything under such a name.
fn clear_leftovers(parent: &Dir) {
    let names = parent.names().unwrap_or_default();
    for name in names.iter().filter(|name| is_random_name(name, DIRECTORY)) {
        let Ok(dir) = parent.private(name) else {
            continue;
        };
        if !owned::try_lock(&dir).unwrap_or(false) {
            continue;
        }
        let inside: Vec<OsString> = dir.names().unwrap_or_default();
        if inside
            .iter()
            .all(|name: &OsString| is_random_name(OsStr::new(name), FILE))
        {
            for file in inside {
                let _ = rustix::fs::unlinkat(&dir, &*file, AtFlags::empty());
            }
            let _ = parent.remove_empty(name);
        }
    }
}
