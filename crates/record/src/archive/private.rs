//! An archive is its owner's alone: runs hold command lines, names of files and descriptions of hosts.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// What others may do with a file or a directory.
const OTHERS: u32 = 0o077;

/// Makes an archive's directory, with those on the way, for its owner alone whatever the umask; closes one that is
/// there ([`close`]).
pub(super) fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    close(dir);
    Ok(())
}

/// Closes an archive that others can enter, as former versions made it, and the files in it. Only what belongs to us is
/// changed, by descriptor, and no file with a second name: whoever could write to the directory can have put it there.
/// What cannot be changed stays as it is, as on a file system that is read-only.
pub(super) fn close(dir: &Path) {
    let _ = closed(dir);
}

fn closed(dir: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = File::from(rustix::fs::open(dir, flags, Mode::empty())?);
    let meta = open.metadata()?;
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me || meta.mode() & OTHERS == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().ends_with(b".json") {
            continue;
        }
        // A pipe must not be waited for, and a link leads elsewhere.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&open, &*name, flags, Mode::empty()) else {
            continue;
        };
        let file = File::from(file);
        let meta = file.metadata()?;
        if meta.is_file() && meta.nlink() == 1 && meta.uid() == me && meta.mode() & OTHERS != 0 {
            file.set_permissions(without_others(meta.mode()))?;
        }
    }
    // Last, so that files are looked at again after a run that was killed before.
    open.set_permissions(without_others(meta.mode()))
}

fn without_others(mode: u32) -> Permissions {
    Permissions::from_mode(mode & 0o7777 & !OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn an_archive_of_ours_is_closed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("a/runs");
        make(&dir).unwrap();
        assert_eq!((mode(&dir), mode(&base.path().join("a"))), (0o700, 0o700));
        let outside = base.path().join("outside.json");
        let write = |path: &Path| {
            fs::write(path, "{}").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        };
        write(&outside);
        write(&dir.join("run.json"));
        write(&dir.join("words.txt"));
        std::os::unix::fs::symlink(&outside, dir.join("link.json")).unwrap();
        let second = base.path().join("second.json");
        write(&second);
        fs::hard_link(&second, dir.join("second.json")).unwrap();
        // Whoever it is that cannot enter the directory cannot reach what is in it.
        close(&dir);
        assert_eq!(mode(&dir.join("run.json")), 0o644);
        fs::set_permissions(&dir, Permissions::from_mode(0o777)).unwrap();
        close(&dir);
        assert_eq!((mode(&dir), mode(&dir.join("run.json"))), (0o700, 0o600));
        assert_eq!(
            [&outside, &second, &dir.join("words.txt")].map(|path| mode(path)),
            [0o644; 3]
        );
    }
}
