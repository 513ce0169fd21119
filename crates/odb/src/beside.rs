//! The files that engines keep beside theirs for locks: LMDB's `-lock`, SQLite's `-shm`, and one for redb, which would
//! lock the database itself.
//!
//! A lock can be held by everybody who can open the file, for reading too. A database may be read by all, so nothing
//! of it is locked; the file beside it is its owner's alone (0600). Engines would make theirs with the permissions of
//! the database, so it is here before they look for it. One that others could have open, as former versions left it,
//! is replaced, unless a process of the same user's has it locked: both must go on sharing it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fingerpost_sys::map;
use fingerpost_sys::system::uid;
use fingerpost_undo::owned::{self, Dir};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::owner::directory_of;

/// How long another process may take to replace the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// What SQLite itself cuts its file to when it is the first to open it.
const SHORT: u64 = 3;
/// The kind of a file in its mode, and that of a regular file.
const FILE_KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
/// How often the file may be exchanged while it is opened.
pub(crate) const ATTEMPTS: usize = 20;

/// Held from the look at the file until an engine has it open: to close a file drops every lock that the process has on
/// it, so none may be open here that an engine has locked.
pub(crate) static OPENING: Mutex<()> = Mutex::new(());

/// Which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode(u64, u64);

impl Inode {
    // The width of both differs between architectures.
    #[allow(clippy::unnecessary_cast)]
    fn of(stat: &Stat) -> Inode {
        Inode(stat.st_dev as u64, stat.st_ino as u64)
    }
}

/// The path of a file beside a database.
pub(crate) fn path(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether we may write to a database. Who may not takes no part in its locks, and reads it without them.
pub(crate) fn is_writable(database: &Path) -> bool {
    rustix::fs::access(database, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Sees to it that the file is there, with so many bytes that have their blocks, and tells which it is: look again when
/// it is open, since it may have been exchanged. `None` where nothing can be written beside the database.
pub(crate) fn ensure(database: &Path, suffix: &str, bytes: u64) -> io::Result<Option<Inode>> {
    let name = database
        .file_name()
        .ok_or(io::ErrorKind::InvalidFilename)?
        .to_owned();
    let dir = Dir::named(directory_of(database))?;
    let stat = rustix::fs::statat(&dir, &*name, AtFlags::empty())?;
    let beside = Beside {
        owner: (stat.st_uid, stat.st_gid),
        dir,
        name: joined(&name, suffix),
        bytes,
    };
    if let Some(found) = beside.good()? {
        return Ok(Some(found));
    }
    match beside.replace() {
        Err(e) if may_not_write(&e) => Ok(None),
        other => other.map(Some),
    }
}

/// Whether it is still the same file.
pub(crate) fn is_still(database: &Path, suffix: &str, which: Inode) -> bool {
    fs::symlink_metadata(path(database, suffix))
        .is_ok_and(|meta| Inode(meta.dev(), meta.ino()) == which)
}

fn may_not_write(e: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(e),
        Some(Errno::ROFS | Errno::ACCESS | Errno::PERM)
    )
}

fn joined(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

/// What is wanted, in the directory in which the database was found.
struct Beside {
    dir: Dir,
    name: OsString,
    /// The database's user and group.
    owner: (u32, u32),
    bytes: u64,
}

impl Beside {
    /// The file, if it is there and needs nothing. It is looked at and not opened ([`OPENING`]).
    fn good(&self) -> io::Result<Option<Inode>> {
        let Some(stat) = self.look(&self.name)? else {
            return Ok(None);
        };
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            let path = self.dir.path().join(&self.name);
            return Err(io::Error::other(format!(
                "{} is no regular file: remove it",
                path.display()
            )));
        }
        let private = stat.st_mode & 0o077 == 0 && [uid(), 0, self.owner.0].contains(&stat.st_uid);
        if !private && others_of_ours(Inode::of(&stat).1) {
            return Ok(Some(Inode::of(&stat)));
        }
        // An engine may have made a shorter one than we would, and uses it.
        let whole = stat.st_size as u64 >= self.bytes.min(SHORT);
        Ok((private && stat.st_nlink == 1 && whole).then(|| Inode::of(&stat)))
    }

    fn look(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Makes a new one and puts it in the place of what is there. The new one has a name that all who do this share, and
    /// its lock lets one of them do it at a time.
    fn replace(&self) -> io::Result<Inode> {
        let deadline = Instant::now() + PATIENCE;
        let name = joined(&self.name, "-new");
        loop {
            let new = self.open_private(&name)?;
            let which = Inode::of(&rustix::fs::fstat(&new)?);
            let ours = owned::try_lock(&new)?;
            // Whoever had it before has given it its other name.
            let named = self
                .look(&name)?
                .is_some_and(|stat| Inode::of(&stat) == which);
            if ours && named {
                let done = self.put(&new, &name);
                if !matches!(&done, Ok(found) if *found == which) {
                    let _ = rustix::fs::unlinkat(&self.dir, &*name, AtFlags::empty());
                }
                return done;
            }
            drop(new);
            if Instant::now() > deadline {
                let name = self.dir.path().join(&name);
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    format!("{} is locked by another process", name.display()),
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Fills the new file and gives it its name, if that is still needed.
    fn put(&self, new: &File, name: &OsStr) -> io::Result<Inode> {
        if let Some(found) = self.good()? {
            return Ok(found);
        }
        if self.bytes > 0 {
            map::allocate(new, self.bytes as i64)?;
        }
        rustix::fs::renameat(&self.dir, name, &self.dir, &*self.name)?;
        Ok(Inode::of(&rustix::fs::fstat(new)?))
    }

    /// Opens a file that nobody else can open, and makes it where there is none. By root it is given to the database's
    /// owner, who could not open the database any more otherwise.
    fn open_private(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |more: OFlags| {
            rustix::fs::openat(&self.dir, name, flags | more, Mode::from_raw_mode(0o600))
                .map(File::from)
        };
        match open(OFlags::CREATE | OFlags::EXCL) {
            Ok(made) => {
                let (user, group) = self.owner;
                if uid() == 0 && user != 0 {
                    fchown(&made, Some(user), Some(group))?;
                }
                Ok(made)
            }
            // Another process is making it, or was killed while it did.
            Err(Errno::EXIST) => {
                let file = open(OFlags::empty())?;
                let stat = rustix::fs::fstat(&file)?;
                let mine = [uid(), 0, self.owner.0].contains(&stat.st_uid);
                if stat.st_mode & (FILE_KIND | 0o077) == REGULAR && stat.st_nlink <= 1 && mine {
                    return Ok(file);
                }
                let name = self.dir.path().join(name);
                Err(io::Error::other(format!(
                    "{} is no file of ours: remove it",
                    name.display()
                )))
            }
            Err(e) => Err(e.into()),
        }
    }
}

/// Whether a process of ours or root's has a lock on a file.
pub(crate) fn others_of_ours(inode: u64) -> bool {
    !holders(inode).is_empty()
}

/// The processes of ours and root's that have a lock on a file. Who holds one from another pid namespace, or through a
/// kernel without the list, is not seen.
pub(crate) fn holders(inode: u64) -> Vec<u32> {
    let list = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut pids: Vec<u32> = list
        .lines()
        .filter_map(|line| held(line, inode))
        .filter(|pid| is_ours(*pid))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The process that a line of `/proc/locks` names, if the line is of this file: `1: POSIX  ADVISORY  READ 1234
/// 08:01:5678 0 EOF`. One that waits for a lock (`->`) has none.
fn held(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, kind, _, _, pid, file, ..] = *words else {
        return None;
    };
    // The device is left out: what a file is said to be on may not be what its locks are listed under.
    let same = file.rsplit(':').next()?.parse() == Ok(inode);
    (kind != "->" && same).then(|| pid.parse().ok())?
}

/// Whether a process was started by us or root: by the real user, since a program that gives its caller root's rights
/// inherits its caller's locks. Its directory's owner would not do: it is root for every process that made itself
/// unreadable.
fn is_ours(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let real = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_ascii_whitespace().next()?.parse::<u32>().ok());
    real.is_some_and(|user| user == 0 || user == uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn setup() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("db");
        fs::write(&database, "x").unwrap();
        (dir, database)
    }

    #[test]
    fn the_file_is_its_owners_alone_and_stays_the_same() {
        let (dir, database) = setup();
        let made = ensure(&database, "-lock", 9000).unwrap().unwrap();
        let meta = fs::metadata(path(&database, "-lock")).unwrap();
        assert_eq!(meta.mode() & 0o7777, 0o600);
        assert!(meta.len() == 9000 && meta.blocks() * 512 >= 9000);
        assert_eq!(ensure(&database, "-lock", 9000).unwrap(), Some(made));
        assert!(is_still(&database, "-lock", made));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn one_that_others_could_open_is_replaced_unless_locked_by_us() {
        let (_dir, database) = setup();
        let file = path(&database, "-lock");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::metadata(&file).unwrap();
        let open = File::open(&file).unwrap();
        rustix::fs::flock(&open, rustix::fs::FlockOperation::LockShared).unwrap();
        if fs::read_to_string("/proc/locks").is_ok_and(|list| !list.is_empty()) {
            assert_eq!(holders(before.ino()), [std::process::id()]);
            let shared = ensure(&database, "-lock", 0).unwrap();
            assert_eq!(shared, Some(Inode(before.dev(), before.ino())));
        }
        drop(open);
        let after = ensure(&database, "-lock", 0).unwrap();
        assert!(after.is_some() && after != Some(Inode(before.dev(), before.ino())));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn all_who_make_it_at_once_have_the_same() {
        let (_dir, database) = setup();
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| ensure(&database, "-lock", 100).unwrap()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(
            made.iter()
                .all(|one| one.is_some_and(|one| is_still(&database, "-lock", one)))
        );
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let (_dir, database) = setup();
        std::os::unix::fs::symlink("elsewhere", path(&database, "-lock")).unwrap();
        let said = ensure(&database, "-lock", 0).unwrap_err().to_string();
        assert!(said.contains("no regular file"), "{said}");
    }

    #[test]
    fn lines_of_locks_are_read() {
        let line = "1: POSIX  ADVISORY  WRITE 1234 fe:01:5678 0 EOF";
        assert_eq!(held(line, 5678), Some(1234));
        assert_eq!(held(line, 678), None);
        let waits = "1: -> POSIX  ADVISORY  WRITE 99 fe:01:5678 0 EOF";
        assert_eq!(held(waits, 5678), None);
        assert_eq!(
            held("2: OFDLCK ADVISORY  READ -1 fe:01:5678 0 0", 5678),
            None
        );
        assert_eq!(held("", 5678), None);
    }
}
