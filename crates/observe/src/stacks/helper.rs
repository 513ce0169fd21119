//! The two processes beside this one that touch what a watched service made: one that opens its files, and one without
//! any rights that reads them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fingerpost_sys::packets::Packets;
use fingerpost_sys::system::ticks_per_second;
use fingerpost_sys::{child, sample};
use rustix::io::fcntl_dupfd_cloexec;

use super::{opener, reader};

/// The first arguments of such processes.
pub const OPENER: &str = "__opener";
pub const READER: &str = "__reader";

/// A process beside this one, at the other end of these packets.
pub struct Helper {
    pub packets: Packets,
    child: Option<Child>,
}

impl Helper {
    /// Starts one, which ends with the thread that calls this.
    pub fn start(which: &'static str) -> io::Result<Helper> {
        let (ours, theirs) = Packets::pair()?;
        if cfg!(test) {
            // The program of a test knows of no such process: the same code runs beside it, with its rights.
            let serve = if which == OPENER {
                opener::serve
            } else {
                reader::serve
            };
            std::thread::Builder::new().spawn(move || serve(&theirs))?;
            return Ok(Helper {
                packets: ours,
                child: None,
            });
        }
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("fingerpost")
            .arg(which)
            .env_clear()
            .current_dir("/");
        command
            .stdin(Stdio::from(theirs.into_fd()))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = child::die_with_parent(&mut command).spawn()?;
        Ok(Helper {
            packets: ours,
            child: Some(child),
        })
    }
}

impl Helper {
    /// Whether it waits for something; one that only waits for a CPU will go on.
    pub fn is_blocked(&self) -> bool {
        let stat = self
            .child
            .as_ref()
            .and_then(|child| sample::process(child.id() as i32));
        stat.is_none_or(|stat| stat.state != 'R')
    }

    /// The CPU time that it has used.
    pub fn cpu(&self) -> Duration {
        let stat = self
            .child
            .as_ref()
            .and_then(|child| sample::process(child.id() as i32));
        let ticks = stat.map_or(0, |stat| stat.user + stat.system);
        Duration::from_millis(ticks * 1_000 / ticks_per_second().max(1))
    }
}

#[cfg(test)]
impl Helper {
    /// Somebody at the other end of these packets.
    pub fn over(packets: Packets) -> Helper {
        Helper {
            packets,
            child: None,
        }
    }
}

impl Drop for Helper {
    /// Ends it. One that waits for a file system that does not answer ends when that does: it is not waited for.
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let _ = child.kill();
        let soon = Instant::now() + Duration::from_millis(20);
        let _ = child::wait_deadline(&mut child, soon);
    }
}

/// Runs such a process when this one was started as one; `None` when it is an ordinary invocation.
pub fn dispatch() -> Option<ExitCode> {
    let word = std::env::args_os().nth(1)?;
    let is = |name: &str| word == OsStr::new(name);
    if is(OPENER) {
        fingerpost_sys::jail::close_others();
        return Some(opener::main(standard_input()?));
    }
    if is(READER) {
        fingerpost_sys::jail::close_others();
        return Some(reader::main(standard_input()?));
    }
    None
}

/// The packets that came as standard input, under a number of their own.
fn standard_input() -> Option<Packets> {
    let copy = fcntl_dupfd_cloexec(std::io::stdin(), 3).ok()?;
    Some(Packets::over(copy))
}
