//! Writing a file in one step.
//!
//! The file may lie in a directory that others write to. So its first form has a random name and is made anew
//! (`O_EXCL`), and what has the name already is never written to but replaced. A symbolic link of ours or root's is
//! followed, as a user expects of `-o latest.json`; a link of anybody else is replaced like a file, because its maker
//! chose where it points.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::ArchiveError;

/// What the names of files begin and end with while they are written.
pub(super) const PREFIX: &str = ".fingerpost-";
pub(super) const SUFFIX: &str = ".tmp";
/// As many links as the kernel follows.
const LINKS: usize = 40;

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone, whatever the umask: runs hold command lines and names of files.
    Owner,
    /// The same for a new file; a file of ours keeps the readers that its owner gave it.
    AsBefore,
    /// All whom the umask lets: what holds nothing of a user's.
    All,
}

/// Writes a file in one step: a reader sees the old one or the new one, whole. A pipe, a device, and a symbolic
/// link of ours or root's stay what they are; another user's link is replaced. A new file is its owner's alone.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    replaced(path, bytes, false, Readers::AsBefore)
}

/// As [`write_whole`], of what holds nothing of a user's: who may read it is the umask's to say.
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    replaced(path, bytes, false, Readers::All)
}

/// Puts a file in place of another ([`replace`]).
pub(super) fn replaced(
    path: &Path,
    bytes: &[u8],
    durable: bool,
    readers: Readers,
) -> Result<(), ArchiveError> {
    replace(path, bytes, durable, readers).map_err(|e| ArchiveError::io("write", path, e))
}

/// Puts a file in place of another in one step; where that is no regular file (`/dev/stdout`, a FIFO), writes into it.
/// `durable` waits until it is on the disk.
pub fn replace(path: &Path, bytes: &[u8], durable: bool, readers: Readers) -> io::Result<()> {
    if let Some(descriptor) = own_descriptor(path) {
        return to_descriptor(descriptor, path, bytes);
    }
    let target = follow(path)?;
    match fs::symlink_metadata(&target) {
        Ok(there) if !there.is_file() && !there.is_symlink() && !there.is_dir() => {
            into_special(&target, bytes)
        }
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        there => beside(&target, bytes, durable, mode(readers, there.ok())),
    }
}

/// The permissions of a file that takes the place of what was there, if something was. Nobody but its owner ever writes
/// to it.
fn mode(readers: Readers, there: Option<Metadata>) -> Mode {
    let me = rustix::process::geteuid().as_raw();
    match readers {
        Readers::All => Mode::Umask(0o644),
        Readers::AsBefore => {
            let ours = there.filter(|meta| meta.is_file() && meta.uid() == me);
            Mode::Exactly(0o600 | ours.map_or(0, |meta| meta.mode() & 0o644))
        }
        Readers::Owner => Mode::Exactly(0o600),
    }
}

enum Mode {
    Exactly(u32),
    /// Of which the umask takes its part, as for any other file.
    Umask(u32),
}

/// Whether a path is no file that can be replaced: a pipe, a device, a descriptor of ours.
pub fn is_special(path: &Path) -> bool {
    own_descriptor(path).is_some() || fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

fn beside(target: &Path, bytes: &[u8], durable: bool, mode: Mode) -> io::Result<()> {
    if target.file_name().is_none() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    let dir = target
        .parent()
        .filter(|dir| *dir != Path::new(""))
        .unwrap_or(Path::new("."));
    let (Mode::Exactly(first) | Mode::Umask(first)) = mode;
    let mut file = tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        .rand_bytes(16)
        .permissions(Permissions::from_mode(first))
        .tempfile_in(dir)
        .map_err(plain)?;
    if matches!(mode, Mode::Exactly(_)) {
        file.as_file()
            .set_permissions(Permissions::from_mode(first))?;
    }
    file.write_all(bytes)?;
    if durable {
        file.as_file().sync_all()?;
    }
    file.persist(target).map(drop).map_err(|e| e.error)
}

/// The kernel's error alone: the path of the file that was to be there is of no use to anybody. The crate that makes it
/// keeps no more than the error's kind, whose own words (“entity not found”) are not the system's.
fn plain(error: io::Error) -> io::Error {
    use rustix::io::Errno;
    let number = match error.kind() {
        io::ErrorKind::NotFound => Some(Errno::NOENT),
        io::ErrorKind::PermissionDenied => Some(Errno::ACCESS),
        io::ErrorKind::NotADirectory => Some(Errno::NOTDIR),
        io::ErrorKind::ReadOnlyFilesystem => Some(Errno::ROFS),
        io::ErrorKind::StorageFull => Some(Errno::NOSPC),
        _ => None,
    };
    let number = error.raw_os_error().or(number.map(Errno::raw_os_error));
    number.map_or_else(
        || io::Error::from(error.kind()),
        io::Error::from_raw_os_error,
    )
}

/// The path behind links that we may follow.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_symlink() && trusted(&meta) => {
                let target = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("/")).join(target);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(
        rustix::io::Errno::LOOP.raw_os_error(),
    ))
}

fn trusted(meta: &Metadata) -> bool {
    meta.uid() == 0 || meta.uid() == rustix::process::geteuid().as_raw()
}

/// Writes into a device, or a FIFO or socket of ours. Those of others would read what is written, or never read it.
fn into_special(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let others = || io::Error::new(io::ErrorKind::PermissionDenied, "it is another user's pipe");
    let allowed = |meta: &Metadata| {
        meta.file_type().is_char_device() || meta.file_type().is_block_device() || trusted(meta)
    };
    if !allowed(&fs::symlink_metadata(target)?) {
        return Err(others());
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32;
    let mut file = File::options()
        .write(true)
        .custom_flags(flags)
        .open(target)?;
    // It may have been exchanged meanwhile.
    let opened = file.metadata()?;
    if opened.is_file() || !allowed(&opened) {
        return Err(others());
    }
    file.write_all(bytes)
}

/// The number in `/dev/fd/N`, `/proc/self/fd/N`, and those of `/dev/stdout` and `/dev/stderr`.
fn own_descriptor(path: &Path) -> Option<u32> {
    match path.to_str()? {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        text => ["/dev/fd/", "/proc/self/fd/"]
            .iter()
            .find_map(|dir| text.strip_prefix(dir)?.parse().ok()),
    }
}

/// Writes to what a descriptor of ours leads to, behind what is there already where that is a file.
fn to_descriptor(descriptor: u32, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match descriptor {
        1 => io::stdout()
            .write_all(bytes)
            .and_then(|()| io::stdout().flush()),
        2 => io::stderr().write_all(bytes),
        _ => File::options().append(true).open(path)?.write_all(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_of_ours_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs::write(&real, "old").unwrap();
        symlink("real.json", &link).unwrap();
        replace(&link, b"new", false, Readers::AsBefore).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["link.json", "real.json"]);
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(replace(&dir.path().join("loop"), b"x", false, Readers::AsBefore).is_err());
    }

    #[test]
    fn a_link_of_another_user_is_replaced_and_leads_nowhere() {
        fingerpost_testing::require!(root);
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("out.html"));
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, &link).unwrap();
        lchown(&link, Some(65534), Some(65534)).unwrap();
        replace(&link, b"new", true, Readers::AsBefore).unwrap();
        assert!(link.is_file() && !link.is_symlink());
        assert_eq!(
            (fs::read(&victim).unwrap(), fs::read(&link).unwrap()),
            (b"kept".to_vec(), b"new".to_vec())
        );
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        lchown(&fifo, Some(65534), Some(65534)).unwrap();
        assert!(
            replace(&fifo, b"x", false, Readers::AsBefore)
                .unwrap_err()
                .to_string()
                .contains("another user")
        );
    }

    #[test]
    fn a_pipe_of_ours_is_written_into() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(
            is_special(&fifo)
                && is_special(Path::new("/dev/stdout"))
                && is_special(Path::new("/dev/fd/9"))
        );
        let from = fifo.clone();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            File::open(from).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        replace(&fifo, b"through", false, Readers::AsBefore).unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert_eq!(names(dir.path()), ["fifo"]);
    }

    #[test]
    fn a_failure_leaves_what_was_there_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in the way")).unwrap();
        assert!(
            replace(
                &dir.path().join("in the way"),
                b"x",
                false,
                Readers::AsBefore
            )
            .is_err()
        );
        assert!(
            replace(
                &dir.path().join("none/file"),
                b"x",
                false,
                Readers::AsBefore
            )
            .is_err()
        );
        assert_eq!(names(dir.path()), ["in the way"]);
    }

    #[test]
    fn a_file_is_its_owners_alone_until_its_owner_says_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("run.json");
        let mode = || fs::metadata(&file).unwrap().mode() & 0o7777;
        write_whole(&file, b"{}").unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        write_whole(&file, b"{}").unwrap();
        assert_eq!(mode(), 0o644);
        replace(&file, b"{}", false, Readers::Owner).unwrap();
        assert_eq!(mode(), 0o600);
    }
}
