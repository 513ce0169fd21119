//! Directories and files that are ours: the only place that makes, opens and checks what privileged code relies on.
//!
//! Other users share the machine, and root works in directories such as `/tmp` that they write to. So a directory is
//! opened once, each step from `/` checked on the open descriptor ([`Dir::open`]), and everything below it is reached
//! through that descriptor: no symbolic link is followed and no name is looked up twice. What is made has a random name
//! and is made anew (`O_EXCL`).

mod identity;
mod remove;
mod walk;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use fingerpost_sys::beneath::{self, Links};
use fingerpost_sys::system::{uid, unless};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use identity::identity;

pub use identity::Identity;
pub use remove::{Removal, remove as remove_in};
pub use walk::Trust;

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl Dir {
    /// Opens a directory from `/` on. Each directory and each symbolic link on the way must belong to root, to us or to
    /// whom `trust` adds, and none may be written to by others, unless it is sticky.
    ///
    /// # Errors
    /// `PermissionDenied` with a sentence that names the directory that others could change; else the kernel's.
    pub fn open(path: &Path, trust: Trust) -> io::Result<Dir> {
        let (fd, path) = walk::walk(&std::path::absolute(path)?, trust)?;
        Ok(Dir { fd, path })
    }

    /// Opens a directory that the user named, whoever can change what lies in it. Only for what needs no trust in it: a
    /// directory of ours with a random name is made in it ([`Dir::make`]), and what is finished there is given its name
    /// by these descriptors.
    ///
    /// # Errors
    /// The kernel's.
    pub fn named(path: &Path) -> io::Result<Dir> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::openat(fs::CWD, path, flags, Mode::empty())?;
        let path = path.to_owned();
        Ok(Dir { fd, path })
    }

    /// Its path: without links where it was opened by [`Dir::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which directory it is.
    pub fn identity(&self) -> io::Result<Identity> {
        Ok(identity(&fs::fstat(&self.fd)?))
    }

    /// Makes a directory of ours with this name, which must be free, and these permissions whatever the umask.
    pub fn make(&self, name: &str, mode: u32) -> io::Result<Dir> {
        fs::mkdirat(&self.fd, name, Mode::from_raw_mode(mode))?;
        let dir = self.own(name)?;
        fs::fchmod(&dir.fd, Mode::from_raw_mode(mode))?;
        Ok(dir)
    }

    /// Opens the directory with this name; refuses one that is not ours.
    pub fn own(&self, name: impl AsRef<OsStr>) -> io::Result<Dir> {
        let name = name.as_ref();
        let path = self.path.join(name);
        let fd = remove::open(self.fd.as_fd(), name)?;
        let stat = fs::fstat(&fd)?;
        if stat.st_uid != uid() || stat.st_mode & 0o022 != 0 {
            return Err(not_ours(&path, &stat));
        }
        Ok(Dir { fd, path })
    }

    /// As [`Dir::own`], for one that only its owner may enter.
    pub fn private(&self, name: impl AsRef<OsStr>) -> io::Result<Dir> {
        let dir = self.own(name)?;
        let stat = fs::fstat(&dir.fd)?;
        if stat.st_mode & 0o077 != 0 {
            Err(not_ours(&dir.path, &stat))
        } else {
            Ok(dir)
        }
    }

    /// Whether it is ours, and closed to everybody else.
    pub fn is_private(&self) -> io::Result<bool> {
        let stat = fs::fstat(&self.fd)?;
        Ok(stat.st_uid == uid() && stat.st_mode & 0o077 == 0)
    }

    /// Opens a private directory, and makes it where there is none.
    pub fn private_or_new(&self, name: &str) -> io::Result<Dir> {
        unless(
            fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o700)).map_err(io::Error::from),
            &[libc::EEXIST],
        )?;
        self.private(name)
    }

    /// Makes a file of ours with this name, which must be free. Others cannot open it.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC
            | OFlags::RDWR
            | OFlags::APPEND;
        Ok(File::from(fs::openat(
            &self.fd,
            name,
            flags,
            Mode::from_raw_mode(0o600),
        )?))
    }

    /// Opens a file that [`Dir::new_file`] made, to be read and appended to. Refuses what is not ours, not a plain
    /// file, or open to others.
    pub fn file(&self, name: &str) -> io::Result<File> {
        // Without O_NONBLOCK, opening a FIFO would wait for its other end.
        let flags =
            OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = fs::openat(&self.fd, name, flags, Mode::empty())?;
        let stat = fs::fstat(&fd)?;
        let plain = FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink == 1;
        if !plain || stat.st_uid != uid() || stat.st_mode & 0o077 != 0 {
            return Err(not_ours(&self.path.join(name), &stat));
        }
        Ok(File::from(fd))
    }

    /// Opens what lies below, by a path of several steps in directories that may belong to others. No link is followed
    /// and no step leads out.
    pub fn below(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(beneath::open_below(
            self.fd.as_fd(),
            path,
            flags,
            Links::None,
        )?)
    }

    /// The names of what is in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        remove::names(remove::open(self.fd.as_fd(), ".".as_ref())?.as_fd())
    }

    /// Removes what has this name, with all that is in it. Links are removed, not followed.
    pub fn remove(
        &self,
        name: impl AsRef<OsStr>,
        expected: Option<Identity>,
    ) -> io::Result<Removal> {
        remove::remove(self.fd.as_fd(), name.as_ref(), expected)
    }

    /// Removes an empty directory; one that is not there is no error.
    pub fn remove_empty(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        unless(
            fs::unlinkat(&self.fd, name.as_ref(), AtFlags::REMOVEDIR).map_err(io::Error::from),
            &[libc::ENOENT],
        )
    }

    /// When it was changed last, in seconds since 1970.
    pub fn changed(&self) -> io::Result<i64> {
        Ok(fs::fstat(&self.fd)?.st_mtime)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether what a user owns is taken at its word: root, this user, and the user who became root by `sudo`.
pub fn is_trusted(user: u32) -> bool {
    walk::trusted(user, Trust::Caller)
}

/// Takes an exclusive lock without waiting; false when another process has it.
pub fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match fs::flock(file, fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Reads a file to its end, which must come within so many bytes.
pub fn read_bounded(file: impl Read, most: u64) -> io::Result<String> {
    let mut text = String::new();
    if file.take(most + 1).read_to_string(&mut text)? as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        ));
    }
    Ok(text)
}

fn not_ours(path: &Path, stat: &Stat) -> io::Error {
    let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
    let sentence = format!(
        "{} is not this user's alone (owner {owner}, mode {mode:04o}): remove it",
        path.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, sentence)
}

#[cfg(test)]
mod tests;
