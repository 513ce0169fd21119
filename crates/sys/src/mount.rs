//! Loop devices and mounts, for file systems made only to be measured. Root only.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

// From <linux/loop.h>.
const LOOP_SET_FD: libc::Ioctl = 0x4C00;
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_SET_STATUS64: libc::Ioctl = 0x4C04;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
/// The device detaches itself when its last user is gone, which a kill -9 does too.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// Others may take the device that was free a moment ago.
const ATTEMPTS: usize = 16;

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// A loop device that is attached for as long as this, or a mount or swap area on it, lives.
#[derive(Debug)]
pub struct LoopDevice {
    /// The device, `/dev/loop3`.
    pub path: PathBuf,
    _open: File,
}

/// Attaches an image file to a free loop device.
pub fn attach(image: &Path) -> io::Result<LoopDevice> {
    let file = OpenOptions::new().read(true).write(true).open(image)?;
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    for _ in 0..ATTEMPTS {
        // SAFETY: takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        // SAFETY: takes a descriptor, which is open.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD, file.as_raw_fd()) } != 0 {
            match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::EBUSY) => continue,
                e => return Err(e),
            }
        }
        // SAFETY: plain numbers, for which zero is valid.
        let mut info: LoopInfo = unsafe { std::mem::zeroed() };
        info.flags = LO_FLAGS_AUTOCLEAR;
        // SAFETY: the kernel reads a whole `loop_info64`, which this is.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_STATUS64, &info) } != 0 {
            let error = io::Error::last_os_error();
            // SAFETY: takes no argument.
            unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) };
            return Err(error);
        }
        return Ok(LoopDevice { path, _open: device });
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "every free loop device was taken by another process"))
}

/// Detaches every loop device on this image. None is no error.
pub fn detach_image(image: &Path) -> io::Result<()> {
    let wanted = image.canonicalize().unwrap_or_else(|_| image.to_owned());
    for entry in fs::read_dir("/sys/block")?.flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        let backing = backing.trim_end_matches('\n');
        if Path::new(backing.strip_suffix(" (deleted)").unwrap_or(backing)) != wanted {
            continue;
        }
        let device = File::open(Path::new("/dev").join(entry.file_name()))?;
        // SAFETY: takes no argument.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) } != 0 {
            match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::ENXIO) => {}
                e => return Err(e),
            }
        }
    }
    Ok(())
}

/// Mounts a file system, without devices and set-user-id programs.
pub fn mount(source: &Path, on: &Path, kind: &str, options: &str) -> io::Result<()> {
    let [source, on] = [source, on].map(|p| CString::new(p.as_os_str().as_bytes()));
    let (source, on, kind, options) = (source?, on?, CString::new(kind)?, CString::new(options)?);
    // SAFETY: four strings that end in a zero byte.
    let done =
        unsafe { libc::mount(source.as_ptr(), on.as_ptr(), kind.as_ptr(), libc::MS_NODEV | libc::MS_NOSUID, options.as_ptr().cast()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Unmounts a directory. One that is not a mount point, or is gone, is no error.
pub fn unmount(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let by = |flags| {
        // SAFETY: a string that ends in a zero byte.
        if unsafe { libc::umount2(name.as_ptr(), flags | libc::UMOUNT_NOFOLLOW) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    match by(0) {
        // A process that is being killed may still have a file open: the mount goes when it does.
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => by(libc::MNT_DETACH),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Undo;

    #[test]
    fn undoing_what_was_never_done_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Undo::DetachImage { image: dir.path().join("image") }.apply(), Ok(()));
        if crate::system::is_root() {
            assert_eq!(Undo::Unmount { path: dir.path().to_owned() }.apply(), Ok(()));
        }
        assert_eq!(Undo::Unmount { path: dir.path().join("none") }.apply().is_ok(), crate::system::is_root());
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
        Undo::Unmount { path: dir.path().to_owned() }.apply().unwrap();
        assert!(!mounted());
    }
}
