//! Memory that a probe shares with its partners, and the descriptors that they talk through.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::call::{READ_WRITE, new_mapping};
use crate::session::Stop;

/// A value in a page of its own that stays shared across fork. Unmapped when dropped.
pub struct Shared<T> {
    at: *mut T,
}

impl<T: Sync + Default> Shared<T> {
    /// Maps it and puts the default value there.
    pub fn new() -> Result<Shared<T>, Stop> {
        let at = new_mapping(
            size_of::<T>(),
            READ_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
        )? as *mut T;
        // SAFETY: an anonymous mapping of the value's size, page-aligned, is valid memory for it; it is written before
        // any use.
        unsafe { at.write(T::default()) };
        Ok(Shared { at })
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: mapped and written in `new`, unmapped only in `drop`; `T: Sync` makes shared access sound.
        unsafe { &*self.at }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this size; nothing borrows from it any more.
        unsafe { libc::munmap(self.at.cast(), size_of::<T>()) };
    }
}

/// A word alone on its cache line (two lines: prefetchers fetch pairs).
#[derive(Default)]
#[repr(align(128))]
pub struct Word(pub AtomicU32);

/// Places of what two CPUs want, for an operation that goes from one to the next.
///
/// How far a cache line travels depends on where its home is: on the slice of the last cache that its address belongs
/// to, and on the node of its memory, which in a guest can be another one for each page. One place would make each
/// process a draw of its own.
pub const PLACES: usize = 32;

/// A value on a page of its own and, in an array, in another place of its page than its neighbours, which would evict
/// each other from one set of a cache.
#[repr(align(128))]
pub struct Place<T> {
    /// What is there.
    pub value: T,
    _rest: [u8; 4096],
}

impl<T: Default> Default for Place<T> {
    fn default() -> Self {
        Place {
            value: T::default(),
            _rest: [0; 4096],
        }
    }
}

impl<T> std::ops::Deref for Place<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl Word {
    /// Sleeps while the word holds `value` (futex wait). Returns at once when it does not.
    #[inline(always)]
    pub fn wait_while(&self, value: u32, flags: i32) -> io::Result<()> {
        while self.0.load(Ordering::Acquire) == value {
            // SAFETY: the word is valid for the call, and the kernel only reads it.
            let rc = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    libc::FUTEX_WAIT | flags,
                    value,
                    std::ptr::null::<u8>(),
                )
            };
            if rc < 0 {
                match io::Error::last_os_error() {
                    e if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {}
                    e => return Err(e),
                }
            }
        }
        Ok(())
    }

    /// Sets the word and wakes one sleeper (futex wake).
    #[inline(always)]
    pub fn set_and_wake(&self, value: u32, flags: i32) -> io::Result<()> {
        self.0.store(value, Ordering::Release);
        // SAFETY: the address is only a key here.
        match unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAKE | flags,
                1,
            )
        } {
            rc if rc < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A pipe: the end to read from, the end to write to.
pub fn pipe() -> Result<(File, File), Stop> {
    let (from, to) = io::pipe().map_err(|_| Stop::call("pipe"))?;
    Ok((as_file(from), as_file(to)))
}

/// A pair of connected Unix stream sockets.
pub fn socket_pair() -> Result<(File, File), Stop> {
    let (one, other) = UnixStream::pair().map_err(|_| Stop::call("socketpair"))?;
    Ok((as_file(one), as_file(other)))
}

/// A descriptor as a file to read and write, whatever it is.
pub fn as_file(fd: impl Into<OwnedFd>) -> File {
    File::from(fd.into())
}

/// Reads exactly one byte; the end of the stream is an error.
#[inline(always)]
pub fn take_byte(mut from: &File) -> io::Result<u8> {
    let mut byte = [0u8];
    match from.read(&mut byte)? {
        1 => Ok(byte[0]),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes exactly one byte.
#[inline(always)]
pub fn give_byte(mut to: &File, byte: u8) -> io::Result<()> {
    match to.write(&[byte])? {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn places_share_neither_a_page_nor_a_place_in_it() {
        let places = Shared::<[Place<Word>; PLACES]>::new().unwrap();
        let addresses: Vec<usize> = places
            .iter()
            .map(|place| std::ptr::from_ref(&place.value).addr())
            .collect();
        let apart = |by: &dyn Fn(usize) -> usize| {
            addresses
                .iter()
                .map(|a| by(*a))
                .collect::<BTreeSet<_>>()
                .len()
        };
        assert_eq!(apart(&|address| address / 4096), PLACES);
        assert_eq!(apart(&|address| address % 4096), PLACES);
    }
}
