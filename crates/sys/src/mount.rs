//! Mounts, for file systems made only to be measured. Root only.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

/// Mounts a file system, without devices and set-user-id programs.
pub fn mount(source: &Path, on: &Path, kind: &str, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(
        source,
        on,
        kind,
        MountFlags::NODEV | MountFlags::NOSUID,
        options.as_c_str(),
    )?)
}

/// Unmounts a directory. One that is not a mount point, or is gone, is no error.
pub fn unmount(path: &Path) -> io::Result<()> {
    let by = |flags| rustix::mount::unmount(path, flags | UnmountFlags::NOFOLLOW);
    match by(UnmountFlags::empty()) {
        // A process that is being killed may still have a file open: the mount goes when it does.
        Err(Errno::BUSY) => Ok(by(UnmountFlags::DETACH)?),
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn unmounting_what_was_never_mounted_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        if crate::system::is_root() {
            assert!(unmount(dir.path()).is_ok());
        }
        assert_eq!(
            unmount(&dir.path().join("none")).is_ok(),
            crate::system::is_root()
        );
    }

    #[test]
    fn a_mount_is_made_and_undone() {
        fingerpost_testing::require!(root);
        let dir = tempfile::tempdir().unwrap();
        mount(Path::new("none"), dir.path(), "tmpfs", "size=1m").unwrap();
        let mounted = || {
            fs::read_to_string("/proc/self/mounts")
                .unwrap()
                .contains(dir.path().to_str().unwrap())
        };
        assert!(mounted());
        unmount(dir.path()).unwrap();
        assert!(!mounted());
    }
}
