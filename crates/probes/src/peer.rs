//! Partner processes of a probe: forked from it, on a CPU of their own, gone with it.

use std::io;

use crate::session::Stop;

/// A forked partner. Killed and reaped when dropped.
pub struct Peer {
    pid: libc::pid_t,
}

impl Peer {
    /// Forks a process that is confined to `cpu`, runs `body` and exits. The probe process has one thread, so the child may do anything.
    pub fn fork(cpu: usize, body: impl FnOnce() -> io::Result<()>) -> Result<Peer, Stop> {
        // SAFETY: the process has a single thread, so the child inherits no lock that nobody will release.
        match unsafe { libc::fork() } {
            -1 => Err(Stop::call("fork")),
            0 => {
                // SAFETY: prctl takes plain numbers; _exit ends the child without running the parent's destructors.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let status = fingerpost_sys::affinity::pin(&[cpu]).and_then(|()| body());
                unsafe { libc::_exit(i32::from(status.is_err())) }
            }
            pid => Ok(Peer { pid }),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: the process is our own unreaped child, so the id cannot be another's.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}
