//! What a child process used until its end.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// What a child, with those of its own children that it waited for, used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user and kernel mode.
    pub cpu: Duration,
    /// The most bytes that were resident at a time in one process. Not below what *this* process held when it started
    /// the child: the kernel carries the figure over `exec`.
    pub peak_bytes: u64,
}

/// Waits for a child until a deadline and gives its status and what it used; `None` when it still runs then.
///
/// After `Some` the child has been waited for: do not use its id any more.
///
/// # Errors
/// When the kernel has no descriptors of processes (before Linux 5.3), or the child was waited for elsewhere.
pub fn wait_usage(child: &Child, deadline: Instant) -> io::Result<Option<(ExitStatus, Usage)>> {
    let pid = child.id() as i32;
    if !ended(&descriptor(pid)?, deadline)? {
        return Ok(None);
    }
    let mut status = 0;
    // SAFETY: a rusage is plain numbers, and the kernel writes exactly one, and one status.
    let (rc, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage), usage)
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    let usage = Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    };
    Ok(Some((ExitStatus::from_raw(status), usage)))
}

/// A descriptor that is readable once the process has ended.
fn descriptor(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers, and what it gives is a descriptor that nobody else owns.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, pid, 0) {
            rc if rc < 0 => Err(io::Error::last_os_error()),
            rc => Ok(OwnedFd::from_raw_fd(rc as i32)),
        }
    }
}

/// Waits for the end of a process until a deadline; false when it still runs then.
fn ended(descriptor: &OwnedFd, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fd = libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd, as the count says.
        let ready = unsafe { libc::poll(&mut fd, 1, left.as_millis().min(1 << 30) as i32) };
        match ready {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => {
                return Err(io::Error::last_os_error());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    // Clippy does not know that this waits.
    #[allow(clippy::zombie_processes)]
    fn a_childs_end_and_use_are_told_and_a_deadline_is_kept() {
        let soon = || Instant::now() + Duration::from_secs(240);
        let busy = Command::new("sh")
            .args([
                "-c",
                "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7",
            ])
            .spawn()
            .unwrap();
        let (status, usage) = wait_usage(&busy, soon()).unwrap().expect("it ends");
        assert_eq!(status.code(), Some(7));
        assert!(
            usage.cpu > Duration::ZERO && usage.peak_bytes > 100_000,
            "{usage:?}"
        );
        let mut idle = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait_usage(&idle, Instant::now()).unwrap(), None);
        idle.kill().unwrap();
        let (status, _) = wait_usage(&idle, soon()).unwrap().expect("it was killed");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
}
