//! Loop devices: a file as a block device.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::procfs::Paths;
use crate::system::{done, unless};

// linux/loop.h
const LOOP_SET_FD: libc::Ioctl = 0x4C00;
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_SET_DIRECT_IO: libc::Ioctl = 0x4C08;
const LOOP_CTL_REMOVE: libc::Ioctl = 0x4C81;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;

/// Finds a free device, and tells whether asking made it, so that it should go again. When all are taken the kernel
/// makes one.
pub fn find_free() -> io::Result<(PathBuf, bool)> {
    let before = numbers();
    let number = control(LOOP_CTL_GET_FREE, 0)?;
    Ok((
        PathBuf::from(format!("/dev/loop{number}")),
        !before.contains(&number),
    ))
}

/// Puts a file behind a device. Fails with `EBUSY` when somebody else took the device meanwhile.
pub fn put_behind(device: &Path, backing: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(backing)?;
    let device = OpenOptions::new().read(true).write(true).open(device)?;
    // SAFETY: both descriptors are open; the kernel takes its own reference to the file.
    done(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD, file.as_raw_fd()) })?;
    // Past the page cache of the file below: a device that answers from memory would be no device. Where the file
    // system cannot, the device works on without. SAFETY: the descriptor is open and the argument a plain number.
    unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_DIRECT_IO, 1 as libc::c_ulong) };
    Ok(())
}

/// Takes the file away from a device, if it is this file. A device that is free, gone or somebody else's is no error.
/// `remove` also removes the device itself, as is right when asking for it made it.
pub fn detach(device: &Path, backing: &Path, remove: bool) -> io::Result<()> {
    let Some(number) = number_of(device) else {
        return Ok(());
    };
    if backing_of(number).is_some_and(|held| held == backing) {
        let file = File::open(device)?;
        // SAFETY: the descriptor is open.
        let taken = done(unsafe { libc::ioctl(file.as_raw_fd(), LOOP_CLR_FD, 0) });
        unless(taken, &[libc::ENXIO])?;
    }
    if remove && numbers().contains(&number) && backing_of(number).is_none() {
        // Somebody may just have opened it, and then it is theirs.
        unless(
            control(LOOP_CTL_REMOVE, number),
            &[libc::EBUSY, libc::ENODEV],
        )?;
    }
    Ok(())
}

/// The major and minor number of a block device, by which control groups name it.
pub fn device_number(device: &Path) -> io::Result<(u32, u32)> {
    let number = fs::metadata(device)?.rdev();
    Ok((libc::major(number) as u32, libc::minor(number) as u32))
}

/// The file behind a device; `None` when it is free.
fn backing_of(number: i32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")).ok()?;
    let text = text.trim_end_matches('\n');
    Some(PathBuf::from(
        text.strip_suffix(" (deleted)").unwrap_or(text),
    ))
}

fn number_of(device: &Path) -> Option<i32> {
    device.to_str()?.strip_prefix("/dev/loop")?.parse().ok()
}

fn numbers() -> Vec<i32> {
    let names = Paths::system().names("sys/block");
    names
        .iter()
        .filter_map(|name| name.strip_prefix("loop")?.parse().ok())
        .collect()
}

fn control(request: libc::Ioctl, argument: i32) -> io::Result<i32> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/loop-control")?;
    // SAFETY: the descriptor is open and the argument a plain number.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request, libc::c_long::from(argument)) };
    done(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loop_devices_have_a_number() {
        assert_eq!(number_of(Path::new("/dev/loop12")), Some(12));
        assert_eq!(number_of(Path::new("/dev/loop-control")), None);
        assert_eq!(number_of(Path::new("/dev/sda1")), None);
    }

    #[test]
    fn a_device_that_is_not_ours_is_left_alone() {
        assert!(detach(Path::new("/dev/loop99999"), Path::new("/nonexistent"), true).is_ok());
        assert!(detach(Path::new("/dev/sda"), Path::new("/nonexistent"), true).is_ok());
    }
}
