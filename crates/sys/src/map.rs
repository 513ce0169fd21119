//! Files read through a mapping, and through io_uring: two ways to read whole files that the standard library does not
//! have.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use crate::system::done;

/// Maps a whole file, hands its bytes over, unmaps it. `length` is the file's length as its caller has just seen it.
///
/// Pages are populated at once: faulting them in one by one is slower for a file that is read whole. A file that
/// becomes shorter meanwhile ends the process with SIGBUS, so map only files that nobody else changes.
pub fn with_mapped<R>(file: &File, length: usize, job: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
    if length == 0 {
        return Ok(job(&[]));
    }
    let mapping = Mapping::new(
        Some(file.as_fd()),
        length,
        libc::PROT_READ,
        libc::MAP_PRIVATE | libc::MAP_POPULATE,
        0,
    )?;
    // SAFETY: the mapping is `length` bytes long, readable, and lives until the end of this function.
    Ok(job(unsafe {
        std::slice::from_raw_parts(mapping.start, length)
    }))
}

/// Gives the first bytes of a file their blocks on the disk. In a mapping of a file with a hole in it, the first touch
/// on a full disk would end the process with a signal. Does nothing where the file system has no such thing.
///
/// # Errors
/// The kernel's; usually that the disk is full.
pub fn allocate(file: &File, bytes: i64) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 | libc::EOPNOTSUPP => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// A file whose pages are read by touching them, one at a time, and can be put out of memory again.
#[derive(Debug)]
pub struct Cold {
    file: File,
    mapping: Mapping,
}

impl Cold {
    /// Maps the first bytes of a file that nobody else has and that is at least so long.
    ///
    /// # Errors
    /// The file is shorter, or the kernel refuses.
    pub fn map(file: File, length: usize) -> io::Result<Cold> {
        if length == 0 || file.metadata()?.len() < length as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the file is shorter than what is to be mapped",
            ));
        }
        let mapping = Mapping::new(
            Some(file.as_fd()),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            0,
        )?;
        // A page touched is a page read, and none beside it.
        // SAFETY: advice on the mapping just made changes nothing in it.
        unsafe { libc::madvise(mapping.start.cast(), length, libc::MADV_RANDOM) };
        Ok(Cold { file, mapping })
    }

    /// Reads the byte at this place, which takes a fault that waits for the disk when its page is not in memory.
    ///
    /// # Panics
    /// When the place is beyond the end.
    pub fn touch(&self, at: usize) -> u8 {
        assert!(at < self.mapping.length, "beyond the end of the mapping");
        // SAFETY: the place is within the mapping, which is readable and as long as the file.
        unsafe { self.mapping.start.add(at).read_volatile() }
    }

    /// Puts all pages out of memory. What was written to the file must have been synced.
    pub fn forget(&self) -> io::Result<()> {
        let Mapping { start, length } = self.mapping;
        // SAFETY: the range is our own mapping of a file; pages that are taken out of it are read again when touched.
        done(unsafe { libc::madvise(start.cast(), length, libc::MADV_DONTNEED) })?;
        Ok(rustix::fs::fadvise(
            &self.file,
            0,
            None,
            rustix::fs::Advice::DontNeed,
        )?)
    }
}

/// A mapping at an address of the kernel's choice, unmapped when it is dropped. What may be read and written in it its
/// owner must know.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

/// Memory that is read and written.
pub(crate) const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

// SAFETY: a mapping belongs to its owner alone, and no thread has a mark in it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps so many bytes of a file from a place on, or of no file.
    pub(crate) fn new(
        file: Option<BorrowedFd>,
        length: usize,
        prot: i32,
        flags: i32,
        at: usize,
    ) -> io::Result<Self> {
        let file = file.map_or(-1, |file| file.as_raw_fd());
        // SAFETY: a new mapping, not at a fixed address, touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                prot,
                flags,
                file,
                at as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Mapping {
                start: start.cast(),
                length,
            })
        }
    }

    /// Memory of this process alone that is zero until it is touched; on request in huge pages, where the kernel gives
    /// them to those that ask. One without them refuses the advice, and all stays as it was.
    pub(crate) fn nameless(length: usize, huge: bool) -> io::Result<Mapping> {
        let mapping = Mapping::new(
            None,
            length,
            READ_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            0,
        )?;
        if huge {
            // SAFETY: advice on the mapping just made changes nothing in it.
            unsafe { libc::madvise(mapping.start.cast(), length, libc::MADV_HUGEPAGE) };
        }
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, unmapped once; references into it are bounded by its owner's life.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_file_is_read_again_after_it_was_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, [7; 8192]).unwrap();
        assert!(Cold::map(File::open(&path).unwrap(), 8193).is_err());
        let cold = Cold::map(File::open(&path).unwrap(), 8192).unwrap();
        assert_eq!([cold.touch(0), cold.touch(8191)], [7, 7]);
        cold.forget().unwrap();
        assert_eq!(cold.touch(4096), 7);
    }

    #[test]
    fn a_file_is_seen_whole_also_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "x", &"long ".repeat(5000)] {
            let path = dir.path().join("f");
            std::fs::write(&path, text).unwrap();
            let file = File::open(&path).unwrap();
            assert!(with_mapped(&file, text.len(), |b| b == text.as_bytes()).unwrap());
        }
    }
}
