//! Partner processes of a probe: forked from it, on a CPU of their own, gone with it.
//!
//! A partner that ends early must never leave the probe waiting for an answer. Most ways of waiting (a futex, an event
//! counter, a shared word) do not notice that the other side is gone, and a timeout in the loop would be measured too.
//! So the death of a partner is taken as a signal: the handler gives the probe's answer, a failure, and ends the
//! process.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::session::Stop;

/// A forked partner. Killed and reaped when dropped.
///
/// Declare it after what it talks through (pipes, sockets), so that it is dropped first and does not see them close.
pub struct Peer {
    pid: libc::pid_t,
}

/// The partners of this process; 0 is a free place. The handler can only read what is static.
static PARTNERS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

impl Peer {
    /// Forks a process that is confined to `cpu`, runs `body` and exits. The probe process has one thread, so the child
    /// may do anything.
    pub fn fork(cpu: usize, body: impl FnOnce() -> io::Result<()>) -> Result<Peer, Stop> {
        watch_partners()?;
        let place = PARTNERS.iter().find(|p| p.load(Ordering::Relaxed) == 0);
        let place = place
            .ok_or_else(|| Stop::Fail(format!("more than {} partner processes", PARTNERS.len())))?;
        // The handler waits until the child's id is in its place: a child that dies at once must not be missed.
        let held = HeldSignal::hold()?;
        let parent = std::process::id();
        // SAFETY: the process has a single thread, so the child inherits no lock that nobody will release.
        match unsafe { libc::fork() } {
            -1 => Err(Stop::call("fork")),
            0 => {
                PARTNERS.iter().for_each(|p| p.store(0, Ordering::Relaxed));
                // SAFETY: prctl takes plain numbers; the default disposition needs no handler. A parent that died
                // before the prctl is no longer our parent.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::signal(libc::SIGCHLD, libc::SIG_DFL);
                    if std::os::unix::process::parent_id() != parent {
                        libc::_exit(255);
                    }
                }
                drop(held);
                // A panic ends the process at once in the program; in tests it must not unwind into the parent's
                // frames.
                let pinned = fingerpost_sys::affinity::pin(&[cpu]);
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    pinned.and_then(|()| body())
                }));
                let status = match done {
                    Ok(Ok(())) => 0,
                    Ok(Err(e)) => e.raw_os_error().unwrap_or(255).clamp(1, 255),
                    Err(_) => 255,
                };
                // SAFETY: _exit ends the child without running the parent's destructors.
                unsafe { libc::_exit(status) }
            }
            pid => {
                place.store(pid, Ordering::Relaxed);
                Ok(Peer { pid })
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        for place in PARTNERS
            .iter()
            .filter(|p| p.load(Ordering::Relaxed) == self.pid)
        {
            place.store(0, Ordering::Relaxed);
        }
        // SAFETY: the process is our own unreaped child, so the id cannot be another's.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), 0) < 0
                && *libc::__errno_location() == libc::EINTR
            {}
        }
    }
}

/// SIGCHLD, kept back from this thread while the value lives.
struct HeldSignal(libc::sigset_t);

impl HeldSignal {
    fn hold() -> Result<HeldSignal, Stop> {
        // SAFETY: both sets are initialised by the calls that write them.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut old = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            match libc::sigprocmask(libc::SIG_BLOCK, &set, &mut old) {
                0 => Ok(HeldSignal(old)),
                _ => Err(Stop::call("sigprocmask")),
            }
        }
    }
}

impl Drop for HeldSignal {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was in force before.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

fn watch_partners() -> Result<(), Stop> {
    // SAFETY: the action is fully initialised; the handler only does what a signal handler may.
    let rc = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_child as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_NOCLDSTOP | libc::SA_RESTART;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut())
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(Stop::call("sigaction"))
    }
}

/// Ends the probe with a failure when one of its partners is dead. Children that are no partners are not its business.
extern "C" fn on_child(_: libc::c_int) {
    // SAFETY: waitid, kill, waitpid, write and _exit may be called in a signal handler; the memory is on the stack or
    // static.
    unsafe {
        let errno = *libc::__errno_location();
        for pid in PARTNERS
            .iter()
            .map(|p| p.load(Ordering::Relaxed))
            .filter(|&pid| pid != 0)
        {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let rc = libc::waitid(
                libc::P_PID,
                pid as libc::id_t,
                &mut info,
                libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
            );
            if rc == 0 && info.si_pid() == pid {
                fail_for(info.si_code == libc::CLD_EXITED, info.si_status());
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// Answers with a failure, takes the other partners along, and ends the process.
///
/// # Safety
/// For the signal handler only: it ends the process without unwinding.
unsafe fn fail_for(exited: bool, status: i32) -> ! {
    for pid in PARTNERS
        .iter()
        .map(|p| p.load(Ordering::Relaxed))
        .filter(|&pid| pid != 0)
    {
        // SAFETY: these are our own unreaped children.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
    let mut line = [0u8; 96];
    let length = sentence(&mut line, exited, status);
    // SAFETY: the buffer is initialised up to the length.
    unsafe {
        libc::write(1, line.as_ptr().cast(), length);
        libc::_exit(0)
    }
}

/// Writes the failure's line into a buffer, without allocating, and returns its length.
fn sentence(line: &mut [u8], exited: bool, status: i32) -> usize {
    let what: &[u8] = match (exited, status) {
        (true, 0) => b"fail the partner process ended early, status ",
        (true, _) => b"fail the partner process met system error number ",
        (false, _) => b"fail the partner process was killed by signal ",
    };
    let number = status.unsigned_abs();
    let digits = [number / 100 % 10, number / 10 % 10, number % 10].map(|d| b'0' + d as u8);
    let digits = &digits[if number < 10 {
        2
    } else {
        usize::from(number < 100)
    }..];
    let mut n = 0;
    for byte in what.iter().chain(digits).chain(b"\n") {
        line[n] = *byte;
        n += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handlers_sentence_names_status_error_or_signal() {
        let say = |exited, status| {
            let mut line = [0; 96];
            let n = sentence(&mut line, exited, status);
            String::from_utf8(line[..n].to_vec()).unwrap()
        };
        assert_eq!(
            say(true, 0),
            "fail the partner process ended early, status 0\n"
        );
        assert_eq!(
            say(true, 104),
            "fail the partner process met system error number 104\n"
        );
        assert_eq!(
            say(false, 9),
            "fail the partner process was killed by signal 9\n"
        );
        assert_eq!(
            say(false, 11),
            "fail the partner process was killed by signal 11\n"
        );
    }
}
