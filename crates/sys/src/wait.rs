//! Waiting for one of several things to happen, to the microsecond.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;

/// A descriptor that becomes readable when the file is written to, and stays so until [`drain`]ed.
pub fn writes(path: &Path) -> io::Result<OwnedFd> {
    let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&fd, path, inotify::WatchFlags::MODIFY)?;
    Ok(fd)
}

/// Reads away what made a descriptor readable.
pub fn drain(fd: BorrowedFd) {
    let mut buffer = [0u8; 4096];
    while rustix::io::read(fd, &mut buffer).is_ok_and(|n| n > 0) {}
}

/// Waits until one of the descriptors is readable or the time is over, and tells which are. A signal ends the wait
/// early.
pub fn any(fds: &[BorrowedFd], time: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd> = fds
        .iter()
        .map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let time = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&time)) {
        Err(Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(e) => Err(e.into()),
        Ok(_) => Ok(polled.iter().map(|p| !p.revents().is_empty()).collect()),
    }
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
        assert_eq!(
            any(&[fd.as_fd()], Duration::from_millis(1)).unwrap(),
            [false]
        );
        std::fs::write(&path, "x").unwrap();
        assert_eq!(any(&[fd.as_fd()], Duration::from_secs(20)).unwrap(), [true]);
        drain(fd.as_fd());
        assert_eq!(
            any(&[fd.as_fd()], Duration::from_millis(1)).unwrap(),
            [false]
        );
        assert!(writes(Path::new("/nonexistent/x")).is_err());
    }
}
