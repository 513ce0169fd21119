//! Files read through a mapping, and through io_uring: two ways to read whole files that the standard library does not have.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// Maps a whole file, hands its bytes over, unmaps it. `length` is the file's length as its caller has just seen it.
///
/// Pages are populated at once: faulting them in one by one is dearer for a file that is read whole. A file that becomes shorter
/// meanwhile ends the process with SIGBUS, so map only files that nobody else changes.
pub fn with_mapped<R>(file: &File, length: usize, job: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
    if length == 0 {
        return Ok(job(&[]));
    }
    // SAFETY: a new private mapping at an address of the kernel's choice.
    let start =
        unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_POPULATE, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mapping = Mapping { start, length };
    // SAFETY: the mapping is `length` bytes long, readable, and lives until the end of this function.
    let result = job(unsafe { std::slice::from_raw_parts(start.cast(), length) });
    drop(mapping);
    Ok(result)
}

/// Unmaps also when the job panics.
struct Mapping {
    start: *mut libc::c_void,
    length: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, unmapped once.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
