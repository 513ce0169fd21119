//! The simple system calls: the price of going into the kernel, and of its cheapest services.

use std::ffi::CString;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use fingerpost_record::{Better, Unit};

use crate::call::{c_path, check};
use crate::probe::{Nature, Probe, plain};
use crate::session::{Session, Stop};

fn null(s: &mut Session) -> Result<(), Stop> {
    s.batches(|ops| {
        for _ in 0..ops {
            // SAFETY: getppid takes nothing and touches nothing. The raw number keeps the C library from caching the answer.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        Ok(())
    })
}

fn read(s: &mut Session) -> Result<(), Stop> {
    let file = File::open("/dev/zero")?;
    let fd = file.as_raw_fd();
    let mut byte = 0u8;
    s.batches(|ops| {
        for _ in 0..ops {
            // SAFETY: the buffer is one byte, as the count says.
            check(unsafe { libc::read(fd, (&raw mut byte).cast(), 1) } as i64)?;
        }
        Ok(())
    })
}

fn write(s: &mut Session) -> Result<(), Stop> {
    let file = File::options().write(true).open("/dev/null")?;
    let fd = file.as_raw_fd();
    let byte = 0u8;
    s.batches(|ops| {
        for _ in 0..ops {
            // SAFETY: the buffer is one byte, as the count says.
            check(unsafe { libc::write(fd, (&raw const byte).cast(), 1) } as i64)?;
        }
        Ok(())
    })
}

/// An empty file in the probe's directory, by path.
fn file_path(s: &Session) -> Result<CString, Stop> {
    let path = s.dir().join("file");
    File::create(&path).map_err(|e| Stop::Fail(format!("cannot create {}: {e}", path.display())))?;
    c_path(&path)
}

fn stat(s: &mut Session) -> Result<(), Stop> {
    let path = file_path(s)?;
    let mut buffer = MaybeUninit::<libc::stat>::uninit();
    s.batches(|ops| {
        for _ in 0..ops {
            // SAFETY: the path ends in a zero byte and the kernel writes one stat.
            check(i64::from(unsafe { libc::stat(path.as_ptr(), buffer.as_mut_ptr()) }))?;
        }
        Ok(())
    })
}

fn fstat(s: &mut Session) -> Result<(), Stop> {
    file_path(s)?;
    let file = File::open(s.dir().join("file"))?;
    let fd = file.as_raw_fd();
    let mut buffer = MaybeUninit::<libc::stat>::uninit();
    s.batches(|ops| {
        for _ in 0..ops {
            // SAFETY: the descriptor is open and the kernel writes one stat.
            check(i64::from(unsafe { libc::fstat(fd, buffer.as_mut_ptr()) }))?;
        }
        Ok(())
    })
}

fn open_close(s: &mut Session) -> Result<(), Stop> {
    let path = file_path(s)?;
    s.batches(|ops| {
        for _ in 0..ops {
            // SAFETY: the path ends in a zero byte; the descriptor that is closed is the one just opened.
            unsafe {
                let fd = check(i64::from(libc::open(path.as_ptr(), libc::O_RDONLY)))?;
                libc::close(fd as i32);
            }
        }
        Ok(())
    })
}

const fn probe(
    name: &'static str,
    lmbench: &'static str,
    summary: &'static str,
    timed: &'static str,
    pitfalls: &'static str,
    run: fn(&mut Session) -> Result<(), Stop>,
) -> Probe {
    Probe {
        name,
        version: 1,
        lmbench: Some(lmbench),
        summary,
        timed,
        pitfalls,
        unit: Unit::Nanoseconds,
        better: Better::Lower,
        nature: Nature::Computes,
        cpus: 1,
        lab: None,
        variants: plain,
        run,
    }
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    probe(
        "syscall.null",
        "null call",
        "the cheapest system call: getppid",
        "getppid by its raw number: entry, a field of the task, exit.",
        "a seccomp filter (containers) and speculation mitigations show here first.",
        null,
    ),
    probe(
        "syscall.read",
        "null I/O",
        "read one byte from /dev/zero",
        "read of one byte from /dev/zero: entry, descriptor, the driver's read, one byte stored, exit.",
        "lmbench's “null I/O” is the mean of this and syscall.write.",
        read,
    ),
    probe(
        "syscall.write",
        "null I/O",
        "write one byte to /dev/null",
        "write of one byte to /dev/null: entry, descriptor, the driver's write, exit.",
        "lmbench's “null I/O” is the mean of this and syscall.read.",
        write,
    ),
    probe(
        "syscall.stat",
        "stat",
        "stat of a file by its path",
        "stat of an empty file in the work directory by its absolute path: path walk in the cache, attributes, exit.",
        "each component of the work directory's path costs a step of the walk.",
        stat,
    ),
    probe(
        "syscall.fstat",
        "fstat",
        "stat of an open file",
        "fstat of an open empty file in the work directory: descriptor, attributes, exit.",
        "",
        fstat,
    ),
    probe(
        "syscall.open_close",
        "open/close",
        "open a file and close it",
        "open of an empty file in the work directory read-only by its absolute path, and close of the descriptor.",
        "each component of the work directory's path costs a step of the walk.",
        open_close,
    ),
];
