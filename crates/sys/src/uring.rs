//! Reading whole files through io_uring: open, read and close as one chain of requests, with one system call.

use std::ffi::CStr;
use std::io;
use std::time::Duration;

use io_uring::types::{DestinationSlot, Fixed};
use io_uring::{IoUring, opcode, squeue, types};

/// A ring that reads one file at a time.
pub struct FileReader {
    ring: IoUring,
    /// Why it can be used no more: it holds requests on memory that was given back.
    broken: Option<i32>,
}

const OPEN: u64 = 1;
const READ: u64 = 2;
const CLOSE: u64 = 3;
/// Between two looks for what a ring that cannot be waited for has completed.
const RETRY: Duration = Duration::from_millis(1);

impl FileReader {
    /// A ring with one place for an open file of its own, which never gets a descriptor number.
    pub fn new() -> io::Result<FileReader> {
        let ring: IoUring = IoUring::builder().build(8)?;
        ring.submitter().register_files_sparse(1)?;
        Ok(FileReader { ring, broken: None })
    }

    /// Reads a file from its beginning, as much as fits, and tells how much that was.
    ///
    /// # Errors
    /// What opening, reading or the ring itself said; after an error of the ring every further read has the same.
    pub fn read(&mut self, path: &CStr, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(code) = self.broken {
            return Err(io::Error::from_raw_os_error(code));
        }
        let slot =
            DestinationSlot::try_from_slot_target(0).map_err(|_| io::Error::other("no slot"))?;
        let open = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), path.as_ptr())
            .flags(libc::O_RDONLY)
            .file_index(Some(slot));
        let read = opcode::Read::new(
            Fixed(0),
            buffer.as_mut_ptr(),
            u32::try_from(buffer.len()).unwrap_or(u32::MAX),
        );
        // A read that is shorter than the buffer breaks an ordinary chain; a hard link goes on.
        let chain = [
            open.build().user_data(OPEN).flags(squeue::Flags::IO_LINK),
            read.build()
                .user_data(READ)
                .flags(squeue::Flags::IO_HARDLINK),
            opcode::Close::new(Fixed(0)).build().user_data(CLOSE),
        ];
        // SAFETY: path and buffer outlive the requests, because all three completions are waited for below.
        unsafe { self.ring.submission().push_multiple(&chain) }
            .map_err(|e| io::Error::other(e.to_string()))?;
        self.wait(chain.len())
    }

    /// Waits for so many completions. Does not return before, since requests use memory of the caller.
    fn wait(&mut self, mut wanted: usize) -> io::Result<usize> {
        let (mut opened, mut read, mut seen) = (0, 0, 0);
        while seen < wanted {
            if self.broken.is_some() {
                std::thread::sleep(RETRY);
            } else if let Err(e) = self.ring.submit_and_wait(wanted - seen)
                && e.kind() != io::ErrorKind::Interrupted
            {
                // What the kernel has not taken it never will, as this ring is given up. What it has taken uses the
                // caller's memory until it is complete, and completes by itself.
                self.broken = Some(e.raw_os_error().unwrap_or(libc::EIO));
                wanted -= self.ring.submission().len().min(wanted);
            }
            for done in self.ring.completion() {
                seen += 1;
                match done.user_data() {
                    OPEN => opened = done.result().min(0),
                    READ => read = done.result(),
                    _ => {}
                }
            }
        }
        if let Some(code) = self.broken {
            return Err(io::Error::from_raw_os_error(code));
        }
        result(opened)?;
        result(read)
    }
}

fn result(code: i32) -> io::Result<usize> {
    usize::try_from(code).map_err(|_| io::Error::from_raw_os_error(-code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn files_are_read_whole_and_errors_told() {
        let mut reader = match FileReader::new() {
            Ok(reader) => reader,
            // Forbidden by a seccomp filter or a sysctl, or unknown to an old kernel: nothing to test.
            Err(e) => return eprintln!("skipped: io_uring is not available here: {e}"),
        };
        let dir = tempfile::tempdir().unwrap();
        let mut buffer = vec![0; 1 << 16];
        for (i, text) in ["", "hello", &"x".repeat(40_000)].iter().enumerate() {
            let path = dir.path().join(i.to_string());
            std::fs::write(&path, text).unwrap();
            let path = CString::new(path.to_str().unwrap()).unwrap();
            for _ in 0..3 {
                let n = reader.read(&path, &mut buffer).unwrap();
                assert_eq!(&buffer[..n], text.as_bytes());
            }
        }
        let none = CString::new(dir.path().join("none").to_str().unwrap()).unwrap();
        assert_eq!(
            reader.read(&none, &mut buffer).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
