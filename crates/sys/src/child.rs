//! Child processes that die with their parent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Puts the child into a process group of its own and has the kernel kill it when the *thread* that starts it ends, however it ends.
///
/// Call [`Command::spawn`] from a thread that lives as long as the child should.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec and calls only prctl, getppid and _exit, all async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            // After the change of user that `Command::uid` asks for, which would clear the setting.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the setting took effect.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
            Ok(())
        })
    }
}

/// The start time of a process in clock ticks since boot, which with its id names it for good; `None` when there is no such process.
pub fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_start_time(&stat)
}

/// Field 22 of `/proc/PID/stat`. The name in parentheses may itself hold spaces and parentheses.
pub fn parse_start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Sends a signal to a whole process group. A group that is gone is no error.
pub fn signal_group(pgid: i32, signal: i32) -> io::Result<()> {
    // A group of 0 or 1 would be our own or everybody's.
    if pgid <= 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a process group of ours"));
    }
    // SAFETY: killpg takes plain numbers.
    if unsafe { libc::killpg(pgid, signal) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        e => Err(e),
    }
}

/// Waits for a child until a deadline; `None` when it still runs then.
pub fn wait_deadline(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 18446744073709551615";
        assert_eq!(parse_start_time(stat), Some(98765));
        assert_eq!(parse_start_time("42 (a"), None);
        assert_eq!(parse_start_time(""), None);
    }

    #[test]
    fn a_group_that_could_be_everybody_is_never_signalled() {
        assert!(signal_group(0, libc::SIGKILL).is_err());
        assert!(signal_group(1, libc::SIGKILL).is_err());
        assert!(signal_group(-1, libc::SIGKILL).is_err());
    }

    #[test]
    fn a_child_that_does_not_end_is_given_up_at_the_deadline_and_can_be_ended_by_its_group() {
        let mut child = die_with_parent(Command::new("sleep").arg("600")).spawn().unwrap();
        assert!(wait_deadline(&mut child, Instant::now() + Duration::from_millis(5)).unwrap().is_none());
        signal_group(child.id() as i32, libc::SIGKILL).unwrap();
        assert!(wait_deadline(&mut child, Instant::now() + Duration::from_secs(10)).unwrap().is_some());
    }
}
