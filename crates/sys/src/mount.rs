//! Mounts, for file systems made only to be measured. Root only.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::system::{done, unless};

/// Mounts a file system, without devices and set-user-id programs.
pub fn mount(source: &Path, on: &Path, kind: &str, options: &str) -> io::Result<()> {
    let [source, on] = [source, on].map(|p| CString::new(p.as_os_str().as_bytes()));
    let (source, on, kind, options) = (source?, on?, CString::new(kind)?, CString::new(options)?);
    // SAFETY: four strings that end in a zero byte.
    let rc = unsafe {
        libc::mount(
            source.as_ptr(),
            on.as_ptr(),
            kind.as_ptr(),
            libc::MS_NODEV | libc::MS_NOSUID,
            options.as_ptr().cast(),
        )
    };
    done(rc).map(drop)
}

/// Unmounts a directory. One that is not a mount point, or is gone, is no error.
pub fn unmount(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a string that ends in a zero byte.
    let by = |flags| done(unsafe { libc::umount2(name.as_ptr(), flags | libc::UMOUNT_NOFOLLOW) }).map(drop);
    match by(0) {
        // A process that is being killed may still have a file open: the mount goes when it does.
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => by(libc::MNT_DETACH),
        other => unless(other, &[libc::EINVAL, libc::ENOENT]),
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
        assert_eq!(unmount(&dir.path().join("none")).is_ok(), crate::system::is_root());
    }

    #[test]
    fn a_mount_is_made_and_undone() {
        if !crate::system::is_root() {
            assert!(std::env::var_os("CI").is_none(), "needs root");
            return eprintln!("skipped: needs root");
        }
        let dir = tempfile::tempdir().unwrap();
        mount(Path::new("none"), dir.path(), "tmpfs", "size=1m").unwrap();
        let mounted = || fs::read_to_string("/proc/self/mounts").unwrap().contains(dir.path().to_str().unwrap());
        assert!(mounted());
        unmount(dir.path()).unwrap();
        assert!(!mounted());
    }
}
