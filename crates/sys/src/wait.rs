//! Waiting for one of several things to happen, to the microsecond.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use crate::system::{c_path, done, made};

/// A descriptor that becomes readable when the file is written to, and stays so until [`drain`]ed.
pub fn writes(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    // SAFETY: inotify_init1 returns a new descriptor that nobody else owns; the path ends in a zero byte.
    unsafe {
        let fd = made(libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC))?;
        done(libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), libc::IN_MODIFY)).map(|_| fd)
    }
}

/// Reads away what made a descriptor readable.
pub fn drain(fd: BorrowedFd) {
    let mut buffer = [0u8; 4096];
    // SAFETY: the buffer is as long as told; the descriptor does not block.
    while unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// Waits until one of the descriptors is readable or the time is over, and tells which are. A signal ends the wait
/// early.
pub fn any(fds: &[BorrowedFd], time: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the array holds as many entries as told, the time outlives the call, and no signal mask is given.
    let rc = unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &time, std::ptr::null()) };
    if rc < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(vec![false; fds.len()]) } else { Err(error) };
    }
    Ok(polled.iter().map(|p| p.revents != 0).collect())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_write_is_seen_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, "").unwrap();
        let fd = writes(&path).unwrap();
        assert_eq!(any(&[fd.as_fd()], Duration::from_millis(1)).unwrap(), [false]);
        std::fs::write(&path, "x").unwrap();
        assert_eq!(any(&[fd.as_fd()], Duration::from_secs(20)).unwrap(), [true]);
        drain(fd.as_fd());
        assert_eq!(any(&[fd.as_fd()], Duration::from_millis(1)).unwrap(), [false]);
        assert!(writes(Path::new("/nonexistent/x")).is_err());
    }
}
