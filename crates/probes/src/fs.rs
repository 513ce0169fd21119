//! File system operations in the probe's directory: names made, changed and taken away; data appended and brought to
//! the disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::call::{check, in_chunks};
use crate::probe::{Exercises, HostDependence, Nature, Probe, latency, rows, table};
use crate::session::{Session, Stop, now_ns};

/// Files that exist at once: enough for the clock's cost not to count, and few, because what is deleted makes the
/// region slower for those that come later ([`spread_directories`]).
const FILES: u64 = 32;

/// The length of a batch where more time goes to what is outside of it: shorter, so that a slice still holds enough of
/// them.
const MORE_OUTSIDE_NS: u64 = 100_000;

/// How far the appended file grows before it is emptied, in bytes.
const APPENDED_MOST: u64 = 4 << 20;

/// Names `f000` to `f031`, as the C library wants them; made without allocating.
#[derive(Clone, Copy)]
struct Name([u8; 5]);

impl Name {
    #[inline(always)]
    fn new(prefix: u8, i: u64) -> Name {
        let digit = |n: u64| b'0' + (n % 10) as u8;
        Name([prefix, digit(i / 100), digit(i / 10), digit(i), 0])
    }

    fn as_ptr(&self) -> *const libc::c_char {
        self.0.as_ptr().cast()
    }
}

/// A new directory in the probe's, opened: names are looked up in it, so that the length of its own path costs nothing.
struct Dir(File);

impl Dir {
    fn open(s: &Session) -> Result<Dir, Stop> {
        let path = new_directory(s.dir())?;
        let dir = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(&path);
        dir.map(Dir)
            .map_err(|e| Stop::Fail(format!("cannot open the directory {}: {e}", path.display())))
    }

    #[inline(always)]
    fn create(&self, name: Name, content: &[u8]) -> io::Result<()> {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
        // SAFETY: the name ends in a zero byte; the buffer is as long as the count says; the descriptor is the one just
        // opened.
        unsafe {
            let fd = check(i64::from(libc::openat(
                self.0.as_raw_fd(),
                name.as_ptr(),
                flags,
                0o600,
            )))? as i32;
            let written = if content.is_empty() {
                0
            } else {
                libc::write(fd, content.as_ptr().cast(), content.len())
            };
            check(i64::from(libc::close(fd)))?;
            all_written(written as i64, content.len())
        }
    }

    #[inline(always)]
    fn delete(&self, name: Name) -> io::Result<()> {
        // SAFETY: the name ends in a zero byte.
        check(i64::from(unsafe {
            libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), 0)
        }))
        .map(drop)
    }

    #[inline(always)]
    fn rename(&self, from: Name, to: Name) -> io::Result<()> {
        let fd = self.0.as_raw_fd();
        // SAFETY: both names end in a zero byte.
        check(i64::from(unsafe {
            libc::renameat(fd, from.as_ptr(), fd, to.as_ptr())
        }))
        .map(drop)
    }
}

/// A new directory in the probe's, in a region of the disk of its own.
pub fn new_directory(dir: &Path) -> io::Result<PathBuf> {
    spread_directories(dir);
    // The region follows from the name: one that is used again would lead to the same one.
    let path = dir.join(format!("{}-{}", std::process::id(), now_ns()));
    match std::fs::create_dir(&path) {
        Ok(()) => Ok(path),
        Err(e) => Err(io::Error::other(format!(
            "cannot make the directory {}: {e}",
            path.display()
        ))),
    }
}

/// Marks the directory as one whose subdirectories belong apart (`chattr +T`), so that ext4 gives each a region of the
/// disk of its own.
///
/// Without a journal, ext4 steps over every inode of the region that was deleted in one of the last seconds, up to six
/// minutes, 16 ns each here, so that each process would find file creation slower than the one before: 12 us after a
/// few hundred thousand deletions, 2 us in a region of its own. File systems without the mark refuse it, and lose
/// nothing.
fn spread_directories(dir: &Path) {
    const GET_FLAGS: libc::Ioctl = libc::_IOR::<libc::c_long>(b'f' as u32, 1);
    const SET_FLAGS: libc::Ioctl = libc::_IOW::<libc::c_long>(b'f' as u32, 2);
    const TOP_DIRECTORY: libc::c_int = 0x2_0000;
    let Ok(file) = File::open(dir) else { return };
    // The calls are declared with a long, and read and write an int. Two ints hold either.
    let mut flags = [0 as libc::c_int; 2];
    // SAFETY: the kernel reads or writes at most the eight bytes of `flags`.
    unsafe {
        if libc::ioctl(file.as_raw_fd(), GET_FLAGS, flags.as_mut_ptr()) == 0 {
            flags[0] |= TOP_DIRECTORY;
            libc::ioctl(file.as_raw_fd(), SET_FLAGS, flags.as_ptr());
        }
    }
}

/// A write that was cut short is an error, not a cheap write.
#[inline(always)]
fn all_written(written: i64, wanted: usize) -> io::Result<()> {
    match check(written)? {
        n if n == wanted as i64 => Ok(()),
        n => Err(io::Error::other(format!(
            "{n} of {wanted} bytes were written: the file system is full, or a file size limit was met"
        ))),
    }
}

/// Runs `create` and `delete` for every name, in chunks; returns what `of` takes of the nanoseconds of both.
fn make_and_remove(
    dir: &Dir,
    ops: u64,
    content: &[u8],
    of: fn((u64, u64)) -> u64,
) -> io::Result<u64> {
    in_chunks(ops, FILES as usize, |count| {
        let begin = now_ns();
        for i in 0..count as u64 {
            dir.create(Name::new(b'f', i), content)?;
        }
        let between = now_ns();
        for i in 0..count as u64 {
            dir.delete(Name::new(b'f', i))?;
        }
        Ok(of((between - begin, now_ns() - between)))
    })
}

fn content(s: &Session, least: i64) -> Result<Vec<u8>, Stop> {
    match s.int("size", least)? {
        n if n <= 1 << 20 => Ok(vec![b'x'; n as usize]),
        _ => Err(Stop::Fail("parameter size must be at most 1M".into())),
    }
}

fn create(s: &mut Session) -> Result<(), Stop> {
    let (dir, content) = (Dir::open(s)?, content(s, 0)?);
    s.timed_batches(|ops| make_and_remove(&dir, ops, &content, |ns| ns.0))
}

fn delete(s: &mut Session) -> Result<(), Stop> {
    let (dir, content) = (Dir::open(s)?, content(s, 0)?);
    s.batch_target_ns(MORE_OUTSIDE_NS);
    s.timed_batches(|ops| make_and_remove(&dir, ops, &content, |ns| ns.1))
}

fn rename(s: &mut Session) -> Result<(), Stop> {
    let dir = Dir::open(s)?;
    let (mut from, mut to) = (Name::new(b'a', 0), Name::new(b'b', 0));
    dir.create(from, b"")?;
    s.repeat(|| {
        dir.rename(from, to)?;
        std::mem::swap(&mut from, &mut to);
        Ok(())
    })
}

/// A file of the probe's, opened for writing.
fn open_file(s: &Session, flags: i32) -> Result<File, Stop> {
    let path = s.dir().join("data");
    // Truncation and appending do not go together in the standard library, so O_APPEND comes as a flag of the system's.
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(&path);
    file.map_err(|e| Stop::Fail(format!("cannot create {}: {e}", path.display())))
}

/// Appends blocks, with `after` behind each; the file is emptied now and then, outside of the time: rarely, because the
/// blocks that it gives back make the next flush slow.
fn appending(s: &mut Session, after: impl Fn(i32) -> i32) -> Result<(), Stop> {
    let (file, block) = (open_file(s, libc::O_APPEND)?, content(s, 1)?);
    let fd = file.as_raw_fd();
    let most = (APPENDED_MOST / block.len() as u64).max(1);
    let mut blocks = 0;
    s.timed_batches(|ops| {
        let (mut left, mut ns) = (ops, 0);
        while left > 0 {
            if blocks == most {
                file.set_len(0)?;
                blocks = 0;
            }
            let count = left.min(most - blocks);
            let begin = now_ns();
            for _ in 0..count {
                // SAFETY: the buffer is as long as the count says.
                let written = unsafe { libc::write(fd, block.as_ptr().cast(), block.len()) };
                all_written(written as i64, block.len())?;
                check(i64::from(after(fd)))?;
            }
            ns += now_ns() - begin;
            blocks += count;
            left -= count;
        }
        Ok(ns)
    })
}

/// The file is on the disk already, and only its first block's content changes: as with the log of a database, written
/// in advance.
fn fdatasync(s: &mut Session) -> Result<(), Stop> {
    let (file, block) = (open_file(s, 0)?, content(s, 1)?);
    file.write_all_at(&block, 0)?;
    file.sync_all()?;
    let fd = file.as_raw_fd();
    s.repeat(|| {
        // SAFETY: the buffer is as long as the count says, and the descriptor is open.
        unsafe {
            let written = libc::pwrite(fd, block.as_ptr().cast(), block.len(), 0);
            all_written(written as i64, block.len())?;
            check(i64::from(libc::fdatasync(fd))).map(drop)
        }
    })
}

const FAMILY: Probe = latency(&table::FS, Exercises::Storage);

/// What those share that bring data to the disk.
const DURABLE: Probe = Probe {
    nature: Nature::Blocks,
    waits_for_device: true,
    depends_on_host: Some(HostDependence::Disk),
    pitfalls: "costs next to nothing on a file system in memory, or where the device or the hypervisor only says that \
        it has written.",
    variants: || rows("size", [4096]),
    ..FAMILY
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "fs.create",
        bounds: [500.0, 1e7],
        version: 2,
        lmbench: Some("{size}K File Create"),
        summary: "create a file",
        timed: "openat of a new name in an open directory of at most 32 files, one write of `size` bytes (none for 0), \
            close.",
        pitfalls: "nothing reaches the disk in the time measured: this is the file system's work in memory. ext4 \
            without a journal steps over \
                   what was deleted in the last minutes: after much deletion by others wait six minutes.",
        variants: || rows("size", [0, 10240]),
        run: create,
        ..FAMILY
    },
    Probe {
        name: "fs.delete",
        bounds: [300.0, 1e7],
        version: 2,
        lmbench: Some("{size}K File Delete"),
        summary: "delete a file",
        timed: "unlinkat of a file of `size` bytes that was just written, in an open directory.",
        pitfalls: "the file's data has mostly not reached the disk yet, and now never will; deleting an old file costs \
            more.",
        variants: || rows("size", [0, 10240]),
        run: delete,
        ..FAMILY
    },
    Probe {
        name: "fs.rename",
        bounds: [300.0, 1e7],
        summary: "rename a file",
        timed: "renameat of an empty file within an open directory to a name that is free.",
        run: rename,
        ..FAMILY
    },
    Probe {
        name: "fs.append",
        bounds: [100.0, 1e7],
        waits_for_device: true,
        depends_on_host: Some(HostDependence::Pages),
        summary: "append to a file",
        timed: "one write of `size` bytes at the end of a file that is open with O_APPEND; it is emptied, outside of \
            the time, every 4 MiB.",
        pitfalls: "nothing reaches the disk in the time measured, unless the kernel has too much unwritten data and \
            makes the writer wait.",
        variants: || rows("size", [4096]),
        run: |s| appending(s, |_| 0),
        ..FAMILY
    },
    Probe {
        name: "fs.fsync",
        bounds: [500.0, 1e9],
        calls: &["fsync"],
        summary: "append a block and make it durable",
        timed: "one write of `size` bytes at the end of a file, and fsync: data, the file's new length and its \
            allocation reach the disk; the file is emptied, outside of the time, every 4 MiB.",
        // SAFETY: the descriptor is open as long as the loop runs.
        run: |s| appending(s, |fd| unsafe { libc::fsync(fd) }),
        ..DURABLE
    },
    Probe {
        name: "fs.fdatasync",
        bounds: [500.0, 1e9],
        calls: &["fdatasync"],
        summary: "overwrite a block and make it durable",
        timed: "pwrite of `size` bytes over the start of a file that is on the disk already, and fdatasync: only data \
            reaches the disk.",
        run: fdatasync,
        ..DURABLE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_end_in_a_zero_byte() {
        let names: std::collections::BTreeSet<_> =
            (0..FILES).map(|i| Name::new(b'f', i).0).collect();
        assert_eq!(names.len() as u64, FILES);
        assert_eq!(&Name::new(b'f', 205).0, b"f205\0");
    }

    #[test]
    fn a_short_write_is_an_error() {
        assert!(all_written(4096, 4096).is_ok());
        assert!(
            all_written(100, 4096)
                .unwrap_err()
                .to_string()
                .starts_with("100 of 4096 bytes")
        );
    }
}
