//! The simple system calls: the cost of going into the kernel, and of its cheapest services.

use std::ffi::CString;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use fingerpost_record::descriptor::NULL_CALL;

use crate::call::{c_path, check};
use crate::probe::{Exercises, Probe, latency, table};
use crate::session::{Session, Stop};

fn null(s: &mut Session) -> Result<(), Stop> {
    s.repeat(|| {
        // SAFETY: getppid takes nothing and touches nothing. The raw number keeps the C library from caching the
        // answer.
        unsafe { libc::syscall(libc::SYS_getppid) };
        Ok(())
    })
}

fn read(s: &mut Session) -> Result<(), Stop> {
    let file = File::open("/dev/zero")?;
    let fd = file.as_raw_fd();
    let mut byte = 0u8;
    s.repeat(|| {
        // SAFETY: the buffer is one byte, as the count says.
        check(unsafe { libc::read(fd, (&raw mut byte).cast(), 1) } as i64)?;
        Ok(())
    })
}

fn write(s: &mut Session) -> Result<(), Stop> {
    let file = File::options().write(true).open("/dev/null")?;
    let fd = file.as_raw_fd();
    let byte = 0u8;
    s.repeat(|| {
        // SAFETY: the buffer is one byte, as the count says.
        check(unsafe { libc::write(fd, (&raw const byte).cast(), 1) } as i64)?;
        Ok(())
    })
}

/// An empty file in the probe's directory, by path.
fn file_path(s: &Session) -> Result<CString, Stop> {
    let path = s.dir().join("file");
    File::create(&path)
        .map_err(|e| Stop::Fail(format!("cannot create {}: {e}", path.display())))?;
    c_path(&path)
}

fn stat(s: &mut Session) -> Result<(), Stop> {
    let path = file_path(s)?;
    let mut buffer = MaybeUninit::<libc::stat>::uninit();
    s.repeat(|| {
        // SAFETY: the path ends in a zero byte and the kernel writes one stat.
        check(i64::from(unsafe {
            libc::stat(path.as_ptr(), buffer.as_mut_ptr())
        }))?;
        Ok(())
    })
}

fn fstat(s: &mut Session) -> Result<(), Stop> {
    file_path(s)?;
    let file = File::open(s.dir().join("file"))?;
    let fd = file.as_raw_fd();
    let mut buffer = MaybeUninit::<libc::stat>::uninit();
    s.repeat(|| {
        // SAFETY: the descriptor is open and the kernel writes one stat.
        check(i64::from(unsafe { libc::fstat(fd, buffer.as_mut_ptr()) }))?;
        Ok(())
    })
}

fn open_close(s: &mut Session) -> Result<(), Stop> {
    let path = file_path(s)?;
    s.repeat(|| {
        // SAFETY: the path ends in a zero byte; the descriptor that is closed is the one just opened.
        unsafe {
            let fd = check(i64::from(libc::open(path.as_ptr(), libc::O_RDONLY)))?;
            libc::close(fd as i32);
        }
        Ok(())
    })
}

/// What the probes of system calls share.
pub(crate) const FAMILY: Probe = Probe {
    entries: Some(1.0),
    ..latency(&table::SYSCALLS, Exercises::Syscall)
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: NULL_CALL,
        bounds: [15.0, 1e4],
        lmbench: Some("null call"),
        calls: &["futex", "fcntl", "lseek"],
        summary: "a system call that does next to nothing: getppid",
        timed: "getppid by its raw number: entry, a field of the task, exit.",
        pitfalls: "a seccomp filter (containers) and speculation mitigations show here first. Others can be cheaper: \
            on one guest with Linux 6.18 getuid took a quarter less.",
        run: null,
        ..FAMILY
    },
    Probe {
        name: "syscall.read",
        bounds: [20.0, 1e4],
        lmbench: Some("null I/O"),
        calls: &["read", "pread64", "recvfrom"],
        summary: "read one byte from /dev/zero",
        timed: "read of one byte from /dev/zero: entry, descriptor, the driver's read, one byte stored, exit.",
        pitfalls: "lmbench's “null I/O” is the mean of this and syscall.write.",
        run: read,
        ..FAMILY
    },
    Probe {
        name: "syscall.write",
        bounds: [20.0, 1e4],
        lmbench: Some("null I/O"),
        calls: &["write", "pwrite64", "sendto"],
        summary: "write one byte to /dev/null",
        timed: "write of one byte to /dev/null: entry, descriptor, the driver's write, exit.",
        pitfalls: "lmbench's “null I/O” is the mean of this and syscall.read.",
        run: write,
        ..FAMILY
    },
    Probe {
        name: "syscall.stat",
        bounds: [100.0, 1e5],
        lmbench: Some("stat"),
        calls: &["stat", "newfstatat"],
        summary: "stat of a file by its path",
        timed: "stat of an empty file in the work directory by its absolute path: path walk in the cache, attributes, \
            exit.",
        pitfalls: "each component of the work directory's path costs a step of the walk.",
        run: stat,
        ..FAMILY
    },
    Probe {
        name: "syscall.fstat",
        bounds: [40.0, 2e4],
        lmbench: Some("fstat"),
        calls: &["fstat"],
        summary: "stat of an open file",
        timed: "fstat of an open empty file in the work directory: descriptor, attributes, exit.",
        run: fstat,
        ..FAMILY
    },
    Probe {
        name: "syscall.open_close",
        bounds: [300.0, 2e5],
        entries: Some(2.0),
        lmbench: Some("open clos"),
        calls: &["openat"],
        summary: "open a file and close it",
        timed: "open of an empty file in the work directory read-only by its absolute path, and close of the \
            descriptor.",
        pitfalls: "each component of the work directory's path costs a step of the walk.",
        run: open_close,
        ..FAMILY
    },
];
