//! What `/proc` tells about one process or thread at one moment.
//!
//! Parsers take text; readers beside them open the files below `/proc/PID` or `/proc/PID/task/TID`. A task that has
//! ended is `None`.

use std::fs;
use std::path::Path;

use crate::procfs::bounded;
use crate::procfs::process::{Schedstat, Stat, Status};

/// Reads and parses `stat` below a task's directory.
pub fn stat(dir: &Path) -> Option<Stat> {
    Stat::parse(&text(dir, "stat")?)
}

/// The same of a process, by its id.
pub fn process(pid: i32) -> Option<Stat> {
    stat(Path::new(&format!("/proc/{pid}")))
}

/// Reads and parses `schedstat` below a task's directory; absent where the kernel keeps no account.
pub fn schedstat(dir: &Path) -> Option<Schedstat> {
    Schedstat::parse(&text(dir, "schedstat")?)
}

/// Reads and parses `status` below a task's directory.
pub fn status(dir: &Path) -> Option<Status> {
    Some(Status::parse(&text(dir, "status")?))
}

/// A file of `/proc` as text; a name in it may be any bytes.
fn text(dir: &Path, name: &str) -> Option<String> {
    bounded::text(dir.join(name)).ok()
}

/// What a thread is doing, as `/proc/PID/task/TID/syscall` tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doing {
    /// It runs, or waits for a CPU.
    Running,
    /// It is blocked outside any system call: a page fault.
    Faulting,
    /// It is blocked in this system call with these first two arguments.
    Call(i64, [u64; 2]),
}

/// Parses `syscall`.
pub fn parse_syscall(text: &str) -> Option<Doing> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Doing::Running);
    }
    let number: i64 = first.parse().ok()?;
    if number < 0 {
        return Some(Doing::Faulting);
    }
    let mut hex = || {
        words
            .next()
            .and_then(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16).ok())
    };
    Some(Doing::Call(number, [hex()?, hex()?]))
}

/// Reads `syscall` below a thread's directory. `None` also where it is not permitted.
pub fn doing(dir: &Path) -> Option<Doing> {
    parse_syscall(&text(dir, "syscall")?)
}

/// The kernel function that a blocked thread waits in; empty where it runs or the kernel does not tell.
pub fn wchan(dir: &Path) -> String {
    text(dir, "wchan")
        .map(|s| if s == "0" { String::new() } else { s })
        .unwrap_or_default()
}

/// Bytes that a process had devices read and write: `/proc/PID/io`. Needs the same user.
pub fn io_bytes(dir: &Path) -> Option<(u64, u64)> {
    parse_io(&text(dir, "io")?)
}

/// Parses `io`: bytes read from and written to devices.
pub fn parse_io(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
    };
    Some((field("read_bytes")?, field("write_bytes")?))
}

/// Bytes of this process's address space.
pub fn mapped_bytes() -> Option<u64> {
    let pages: u64 = fs::read_to_string("/proc/self/statm")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    Some(pages * crate::system::page_bytes())
}

/// The numbers that name directories below a directory, such as processes below `/proc` or threads below
/// `/proc/PID/task`.
pub fn numbers(dir: &Path) -> Vec<i32> {
    bounded::numbers(dir, bounded::MOST_ENTRIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_is_doing() {
        assert_eq!(parse_syscall("running\n"), Some(Doing::Running));
        assert_eq!(parse_syscall("-1 0x7ffd 0x7f19\n"), Some(Doing::Faulting));
        assert_eq!(
            parse_syscall("202 0x55d0 0x80 0x0 0x0 0x0 0x0 0x7ff 0x7f1\n"),
            Some(Doing::Call(202, [0x55d0, 0x80]))
        );
        assert_eq!(parse_syscall("202"), None);
        assert_eq!(parse_syscall(""), None);
    }

    #[test]
    fn bytes_that_devices_moved() {
        assert_eq!(
            parse_io("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n"),
            Some((4096, 8192))
        );
        assert_eq!(parse_io("rchar: 1\n"), None);
    }

    #[test]
    fn our_own_process_can_be_read() {
        let dir = Path::new("/proc/self");
        assert!(stat(dir).is_some());
        assert!(status(dir).unwrap().cpus_allowed.is_some());
        assert!(numbers(&dir.join("task")).contains(&(std::process::id() as i32)));
        assert_eq!(stat(Path::new("/proc/0")), None);
    }
}
