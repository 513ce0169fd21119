//! What `/proc` tells of a thread that is blocked: its system call with all arguments, the kernel's functions that it is
//! in, the descriptors that it waits for, locks on files and who holds them. Parsers take text or bytes; what they do
//! not expect is `None` or left out.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::procfs::mounts::{Mount, parse_mountinfo};

/// Functions of the kernel that are kept of one stack.
const MOST_FUNCTIONS: usize = 32;
/// Descriptors that one call may wait for, as far as they are looked at.
const MOST_DESCRIPTORS: usize = 4_096;
/// Bytes of a program's memory that are read at once at most.
const MOST_MEMORY: usize = 64 << 10;
/// Characters of the text of a stack, of descriptors or of locks that are looked at.
const MOST_TEXT: usize = 1 << 20;

/// What a thread is at, by `/proc/PID/task/TID/syscall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It runs, or is ready to.
    Running,
    /// It is blocked outside of any system call: in a page fault.
    Fault(Registers),
    /// It is blocked in this system call with these arguments.
    Call(i64, [u64; 6], Registers),
}

/// A blocked thread's registers, as far as the kernel tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Stack pointer.
    pub stack: u64,
    /// Instruction pointer.
    pub instruction: u64,
}

/// Parses `syscall`.
pub fn parse_at(text: &str) -> Option<At> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(At::Running);
    }
    let number: i64 = first.parse().ok()?;
    let mut hex = || {
        let word = words.next()?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    };
    if number < 0 {
        return Some(At::Fault(Registers {
            stack: hex()?,
            instruction: hex()?,
        }));
    }
    let mut args = [0; 6];
    for arg in &mut args {
        *arg = hex()?;
    }
    Some(At::Call(
        number,
        args,
        Registers {
            stack: hex()?,
            instruction: hex()?,
        },
    ))
}

/// Reads `syscall` of a thread; `None` also where it is not permitted.
pub fn at(pid: i32, tid: i32) -> Option<At> {
    parse_at(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?)
}

/// Parses `stack`: the kernel's functions, innermost first.
pub fn parse_stack(text: &str) -> Vec<String> {
    let function = |line: &str| {
        let (_, rest) = line.split_once("] ")?;
        let name = rest.split(['+', ' ']).next()?;
        let named = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
        named.then(|| name.to_owned())
    };
    text.lines()
        .filter_map(function)
        .take(MOST_FUNCTIONS)
        .collect()
}

/// The kernel's functions that a blocked thread is in, innermost first; none where only root may see them.
pub fn kernel_stack(pid: i32, tid: i32) -> Vec<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{tid}/stack"))
        .map(|text| parse_stack(&text))
        .unwrap_or_default()
}

/// Parses `sched`: when the thread was last on a CPU, in nanoseconds of the scheduler's clock, which begins with the
/// machine. Kernels without `CONFIG_SCHED_DEBUG` have no such file.
pub fn parse_last_ran(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("se.exec_start")?.trim().strip_prefix(':'))?;
    let (ms, fraction) = line.trim().split_once('.')?;
    let ns: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    ms.parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(ns)
}

/// When a thread was last on a CPU: see [`parse_last_ran`].
pub fn last_ran(pid: i32, tid: i32) -> Option<u64> {
    parse_last_ran(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/sched")).ok()?)
}

/// Parses `fdinfo` of an epoll descriptor: the descriptors that were added to it.
pub fn parse_epoll(text: &str) -> Vec<i32> {
    text.lines()
        .filter_map(|l| {
            l.strip_prefix("tfd:")?
                .split_ascii_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .take(MOST_DESCRIPTORS)
        .collect()
}

/// A line of `fdinfo`: the number behind this name.
pub fn parse_fdinfo_number(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

/// `fdinfo` of a descriptor.
pub fn fdinfo(pid: i32, fd: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()
}

/// A lock on a file, or a process that waits for one: a line of `/proc/locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// The kernel's number of the lock: who waits for it has the same.
    pub number: u64,
    /// Whether this process waits for it.
    pub waits: bool,
    /// `FLOCK`, `POSIX`, `OFDLCK`, `LEASE`.
    pub kind: String,
    /// The process; 0 or less where it is not of this name space, or the lock is of an open file.
    pub pid: i32,
    /// Device and inode, as `major:minor:inode` with hexadecimal device numbers.
    pub file: String,
}

/// Parses `/proc/locks`.
pub fn parse_locks(text: &str) -> Vec<FileLock> {
    let lock = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.strip_suffix(':')?.parse().ok()?;
        let mut kind = words.next()?;
        let waits = kind == "->";
        if waits {
            kind = words.next()?;
        }
        let mut rest = words.skip(2);
        Some(FileLock {
            number,
            waits,
            kind: kind.to_owned(),
            pid: rest.next()?.parse().ok()?,
            file: rest.next()?.to_owned(),
        })
    };
    text.lines().filter_map(lock).collect()
}

/// All locks on files of this machine.
pub fn file_locks() -> Vec<FileLock> {
    fs::read_to_string("/proc/locks")
        .map(|mut text| {
            let most = (0..=MOST_TEXT.min(text.len()))
                .rev()
                .find(|at| text.is_char_boundary(*at));
            text.truncate(most.unwrap_or(0));
            parse_locks(&text)
        })
        .unwrap_or_default()
}

/// The descriptors of an array of `struct pollfd` that wait for something; those that a program switched off are
/// negative.
pub fn parse_pollfds(bytes: &[u8]) -> Vec<i32> {
    bytes
        .chunks_exact(8)
        .map(|c| i32::from_ne_bytes([c[0], c[1], c[2], c[3]]))
        .filter(|fd| *fd >= 0)
        .collect()
}

/// The descriptors of a `fd_set`, below `count`.
pub fn parse_fd_set(bytes: &[u8], count: usize) -> Vec<i32> {
    (0..count.min(bytes.len() * 8))
        .filter(|n| bytes[n / 8] >> (n % 8) & 1 == 1)
        .map(|n| n as i32)
        .collect()
}

/// The mount with this number, of `/proc/PID/mountinfo`.
pub fn parse_mount(text: &str, number: u64) -> Option<Mount> {
    let line = text.lines().find(|l| {
        l.split_once(' ')
            .is_some_and(|(n, _)| n.parse() == Ok(number))
    })?;
    parse_mountinfo(line).pop()
}

/// The file that a descriptor leads to, as the kernel writes it: a path, `socket:[1]`, `pipe:[2]`.
pub fn descriptor(pid: i32, fd: i32) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// The mount that an open file of a process lies in.
pub fn mount_of(pid: i32, fd: i32) -> Option<Mount> {
    let number = parse_fdinfo_number(&fdinfo(pid, fd)?, "mnt_id")?;
    parse_mount(
        &fs::read_to_string(format!("/proc/{pid}/mountinfo")).ok()?,
        number,
    )
}

/// Bytes of a process's memory, as many as can be read; `None` where it is not permitted.
pub fn memory(pid: i32, address: u64, length: usize) -> Option<Vec<u8>> {
    let file = File::open(Path::new("/proc").join(pid.to_string()).join("mem")).ok()?;
    let mut bytes = vec![0; length.min(MOST_MEMORY)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], address.checked_add(read as u64)?) {
            Ok(n @ 1..) => read += n,
            // What lies beyond the end of a mapping is an error, and what lies before it was read.
            _ => break,
        }
    }
    bytes.truncate(read);
    (read > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "232 0x5 0x7ffc2a80 0x200 0xffffffff 0x0 0x8 0x7ffc2a70 0x7f1122334455\n";
    const STACK: &str = "[<0>] ep_poll+0x37a/0x3a0\n[<0>] do_epoll_wait+0xab/0xc0\n\
        [<0>] __x64_sys_epoll_wait+0x60/0x100 [mod]\n[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n";
    const SCHED: &str = "head (5714, #threads: 1)\n-----\n\
        se.exec_start                                :        722198.347972\nnr_switches : 0\n";
    const EPOLL: &str = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t99\n\
        tfd:        7 events:       19 data:                7  pos:0 ino:5d sdev:9\n\
        tfd:       12 events: 8000201d data: ffffffff0000000c  pos:0 ino:5e sdev:9\n";
    const LOCKS: &str = "1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF\n\
        1: -> FLOCK  ADVISORY  WRITE 4712 fe:00:123 0 EOF\n\
        2: POSIX  ADVISORY  READ  12 00:1b:7 128 128\n3: OFDLCK ADVISORY  WRITE -1 fe:00:9 0 EOF\n";
    const MOUNTS: &str = "1 0 254:0 / / rw - ext4 /dev/vda rw\n\
        41 1 0:52 / /mnt/a\\040b rw,nosuid - fuse.s3 s3 rw,user_id=0\n";

    #[test]
    fn what_a_blocked_thread_is_at() {
        let registers = Registers {
            stack: 0x7ffc_2a70,
            instruction: 0x7f11_2233_4455,
        };
        let args = [5, 0x7ffc_2a80, 0x200, 0xffff_ffff, 0, 8];
        assert_eq!(parse_at(CALL), Some(At::Call(232, args, registers)));
        assert_eq!(parse_at("running\n"), Some(At::Running));
        assert_eq!(
            parse_at("-1 0x10 0x20\n"),
            Some(At::Fault(Registers {
                stack: 16,
                instruction: 32
            }))
        );
        assert_eq!(
            parse_stack(STACK),
            [
                "ep_poll",
                "do_epoll_wait",
                "__x64_sys_epoll_wait",
                "entry_SYSCALL_64_after_hwframe"
            ]
        );
        assert_eq!(parse_last_ran(SCHED), Some(722_198_347_972));
        assert_eq!(parse_epoll(EPOLL), [7, 12]);
        assert_eq!(parse_fdinfo_number(EPOLL, "mnt_id"), Some(15));
    }

    #[test]
    fn who_holds_a_lock_has_the_number_of_who_waits_for_it() {
        let locks = parse_locks(LOCKS);
        assert_eq!(locks.len(), 4);
        assert_eq!(
            (locks[0].pid, locks[0].waits, locks[1].pid, locks[1].waits),
            (4711, false, 4712, true)
        );
        assert_eq!(
            (locks[0].number, locks[0].file.as_str()),
            (locks[1].number, "fe:00:123")
        );
        assert_eq!((locks[3].kind.as_str(), locks[3].pid), ("OFDLCK", -1));
    }

    #[test]
    fn descriptors_of_poll_and_select() {
        let pollfds: Vec<u8> = [(5_i32, 1_u32), (-1, 1), (9, 1)]
            .iter()
            .flat_map(|(fd, events)| [fd.to_ne_bytes(), events.to_ne_bytes()].concat())
            .collect();
        assert_eq!(parse_pollfds(&pollfds), [5, 9]);
        assert_eq!(parse_pollfds(&pollfds[..15]), [5]);
        assert_eq!(parse_fd_set(&[0b1000_0001, 0b10], 16), [0, 7, 9]);
        assert_eq!(parse_fd_set(&[0xff], 3), [0, 1, 2]);
        assert_eq!(parse_fd_set(&[], 3), [0_i32; 0]);
    }

    #[test]
    fn a_mount_is_found_by_its_number() {
        let mount = parse_mount(MOUNTS, 41).unwrap();
        assert_eq!(
            (mount.kind.as_str(), mount.point.to_str().unwrap()),
            ("fuse.s3", "/mnt/a b")
        );
        assert_eq!(parse_mount(MOUNTS, 4), None);
    }

    #[test]
    fn no_changed_byte_makes_a_parser_panic_or_invent() {
        for text in [CALL, STACK, SCHED, EPOLL, LOCKS, MOUNTS, "-1 0x10 0x20\n"] {
            let good = text.as_bytes();
            for at in 0..good.len() {
                for value in [0, b' ', b'\n', b'-', b'9', b'x', b':', 0x7f, 0xff] {
                    let mut bad = good.to_vec();
                    bad[at] = value;
                    for bytes in [&bad[..], &bad[..at]] {
                        let text = String::from_utf8_lossy(bytes);
                        _ = parse_at(&text);
                        assert!(parse_stack(&text).iter().all(|f| !f.contains(' ')));
                        _ = parse_last_ran(&text);
                        assert!(parse_epoll(&text).len() <= 2);
                        _ = parse_fdinfo_number(&text, "mnt_id");
                        assert!(parse_locks(&text).len() <= 5);
                        _ = (parse_mount(&text, 41), parse_pollfds(bytes));
                        assert!(parse_fd_set(bytes, 64).len() <= 64);
                    }
                }
            }
        }
        assert_eq!(
            parse_last_ran("se.exec_start : 99999999999999999999.5"),
            None
        );
        assert_eq!(parse_at("202 0x1 0x2"), None);
        assert_eq!(parse_at(""), None);
    }

    #[test]
    fn a_thread_of_ours_that_sleeps_can_be_looked_at() {
        let (tell, tid) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_pid()).unwrap();
            _ = ends.recv();
        });
        let (pid, tid) = (std::process::id() as i32, tid.recv().unwrap());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let registers = loop {
            match at(pid, tid) {
                Some(At::Call(libc::SYS_futex, _, registers)) => break registers,
                _ if std::time::Instant::now() > deadline => panic!("it does not wait"),
                _ => std::thread::yield_now(),
            }
        };
        assert!(memory(pid, registers.stack, 512).is_some_and(|m| m.len() == 512));
        assert_eq!(memory(pid, 0, 8), None, "nothing lies at 0");
        drop(end);
        thread.join().unwrap();
    }
}
