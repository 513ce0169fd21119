//! The way to a directory, step by step, with a look at each.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use fingerpost_sys::system::uid;
use rustix::fs::{self, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// As many links as the kernel follows.
const LINKS: usize = 40;
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whose directories may lie on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Root's and our own.
    Strict,
    /// Also those of the user who became root by `sudo`: a directory that the user named is likely to be theirs, and
    /// they can do as root what they want.
    Caller,
}

/// Opens the directory (for searching only), and gives its path without links.
pub fn walk(path: &Path, trust: Trust) -> io::Result<(OwnedFd, PathBuf)> {
    let root = || fs::openat(CWD, "/", STEP | OFlags::DIRECTORY, Mode::empty());
    let mut at = root()?;
    check(&fs::fstat(&at)?, Path::new("/"), trust)?;
    let mut passed = PathBuf::from("/");
    let mut todo = steps(path);
    let mut links = 0;
    while let Some(name) = todo.pop() {
        let next = fs::openat(&at, &name, STEP, Mode::empty())?;
        let stat = fs::fstat(&next)?;
        let here = if name == ".." {
            passed.parent().unwrap_or(&passed).to_owned()
        } else {
            passed.join(&name)
        };
        if FileType::from_raw_mode(stat.st_mode).is_symlink() {
            links += 1;
            if links > LINKS {
                return Err(Errno::LOOP.into());
            }
            if !trusted(stat.st_uid, trust) {
                return Err(changeable(&here, &stat));
            }
            let target = PathBuf::from(OsString::from_vec(
                fs::readlinkat(&next, "", Vec::new())?.into_bytes(),
            ));
            if target.is_absolute() {
                (at, passed) = (root()?, PathBuf::from("/"));
            }
            todo.extend(steps(&target));
            continue;
        }
        check(&stat, &here, trust)?;
        (at, passed) = (next, here);
    }
    Ok((at, passed))
}

/// The steps of a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let named = path
        .components()
        .rev()
        .filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir));
    named.map(|c| c.as_os_str().to_owned()).collect()
}

/// Refuses a directory in which somebody else could replace what we put there.
fn check(stat: &Stat, path: &Path, trust: Trust) -> io::Result<()> {
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    // A user's private group has the user's number; root's group is root.
    let harmless_group = stat.st_gid == 0 || stat.st_gid == stat.st_uid;
    let writable = stat.st_mode & 0o002 != 0 || (stat.st_mode & 0o020 != 0 && !harmless_group);
    let sticky = stat.st_mode & 0o1000 != 0;
    if trusted(stat.st_uid, trust) && (!writable || sticky) {
        Ok(())
    } else {
        Err(changeable(path, stat))
    }
}

pub(super) fn trusted(owner: u32, trust: Trust) -> bool {
    let caller = || {
        std::env::var("SUDO_UID")
            .ok()
            .and_then(|text| text.parse().ok())
    };
    owner == 0
        || owner == uid()
        || (trust == Trust::Caller && uid() == 0 && caller() == Some(owner))
        || Some(owner) == outsider()
}

/// In a user namespace, root outside of it has no number of its own: all who are not in its map share the overflow
/// number. Nobody within can act as that user, and the directories of the system would otherwise belong to a stranger.
fn outsider() -> Option<u32> {
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let overflow: u32 = std::fs::read_to_string("/proc/sys/kernel/overflowuid")
        .ok()?
        .trim()
        .parse()
        .ok()?;
    unmapped(&map, overflow).then_some(overflow)
}

/// Whether a user has no number in a map (`/proc/self/uid_map`: first inside, first outside, how many).
pub(super) fn unmapped(map: &str, user: u32) -> bool {
    let holds = |line: &str| {
        let mut numbers = line
            .split_ascii_whitespace()
            .map(|n| n.parse::<u64>().unwrap_or(0));
        let (inside, _, count) = (
            numbers.next().unwrap_or(0),
            numbers.next(),
            numbers.next().unwrap_or(0),
        );
        (inside..inside + count).contains(&u64::from(user))
    };
    !map.trim().is_empty() && !map.lines().any(holds)
}

fn changeable(path: &Path, stat: &Stat) -> io::Error {
    let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
    let sentence = format!(
        "another user can change what lies in {} (owner {owner}, mode {mode:04o}): name a directory of your own \
         (TMPDIR for temporary files)",
        path.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, sentence)
}
