//! What the probes share around raw system calls.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::session::Stop;

/// Turns a system call's negative answer into its error. Inlined into the loops; the branch is never taken there.
#[inline(always)]
pub fn check(rc: i64) -> io::Result<i64> {
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc)
    }
}

/// A path as the C library wants it.
pub fn c_path(path: &Path) -> Result<CString, Stop> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| Stop::Fail(format!("the name {} has a zero byte", path.display())))
}

/// Bytes in a page.
pub fn page_size() -> usize {
    fingerpost_sys::system::page_bytes() as usize
}

/// Bytes that one page of the lowest table maps: 2 MiB for pages of 4 KiB.
pub fn table_reach() -> usize {
    page_size() * page_size() / size_of::<usize>()
}

/// The rights of a mapping that is read and written, and the kind of one that is the process's own and of no file.
pub const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
pub const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Maps, with the arguments of mmap.
#[inline(always)]
pub fn map(at: usize, bytes: usize, prot: i32, flags: i32, fd: i32) -> io::Result<usize> {
    // SAFETY: callers pass either no address or a mere wish, so that the kernel chooses, or one inside their own
    // reserved range.
    let address = unsafe { libc::mmap(at as *mut libc::c_void, bytes, prot, flags, fd, 0) };
    if address == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(address as usize)
    }
}

/// The same of new memory, wherever the kernel likes, while a probe is set up.
pub fn new_mapping(bytes: usize, prot: i32, flags: i32, fd: i32) -> Result<usize, Stop> {
    map(0, bytes, prot, flags, fd).map_err(|_| Stop::call("mmap"))
}

/// Unmaps a mapping that nothing points into any more.
#[inline(always)]
pub fn unmap(at: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: callers pass a mapping of theirs that nothing points into.
    check(i64::from(unsafe {
        libc::munmap(at as *mut libc::c_void, bytes)
    }))
    .map(drop)
}

/// Runs `chunk` for at most `most` operations at a time until all are done, and adds up its nanoseconds.
pub fn in_chunks(
    ops: u64,
    most: usize,
    mut chunk: impl FnMut(usize) -> io::Result<u64>,
) -> io::Result<u64> {
    let (mut left, mut ns) = (ops, 0);
    while left > 0 {
        let count = left.min(most as u64);
        ns += chunk(count as usize)?;
        left -= count;
    }
    Ok(ns)
}

/// Sets an option of a socket to a value as the kernel wants it.
#[inline(always)]
pub fn set_option<T>(socket: &impl AsRawFd, which: i32, value: &T) -> io::Result<()> {
    let (value, size) = ((&raw const *value).cast(), size_of::<T>() as u32);
    // SAFETY: the value is as long as the size says, and is only read.
    check(i64::from(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, which, value, size)
    }))
    .map(drop)
}

/// What the kernel has counted of this thread or process.
pub fn usage(of: libc::c_int) -> libc::rusage {
    // SAFETY: a rusage is plain numbers, and the kernel writes exactly one.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    }
}
