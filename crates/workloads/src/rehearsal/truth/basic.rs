//! What stages, locks and the peer do alike: computing, and writing to a disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fingerpost_sys::trace::monotonic_ns;

use crate::closed_loop::work;

/// Turns of the loop between two looks at the clock: a few microseconds.
const TURNS: u32 = 2000;
/// Bytes of a write before a sync.
const WRITE: usize = 4096;

/// Computes until this time on the monotonic clock.
pub fn compute_until(until: u64) {
    while monotonic_ns() < until {
        work(TURNS);
    }
}

/// A file of one page that is written and synced. It has no name, so that nothing is left behind however the process ends.
#[derive(Debug)]
pub struct SyncedFile {
    file: File,
    page: [u8; WRITE],
}

impl SyncedFile {
    /// A new one in this directory.
    pub fn new(dir: &Path) -> io::Result<SyncedFile> {
        Ok(SyncedFile { file: nameless(dir)?, page: [b'x'; WRITE] })
    }

    /// Writes and syncs, at least once, until this time.
    pub fn write_until(&mut self, until: u64) -> io::Result<()> {
        loop {
            self.page[0] = self.page[0].wrapping_add(1);
            self.file.write_all_at(&self.page, 0)?;
            self.file.sync_data()?;
            if monotonic_ns() >= until {
                return Ok(());
            }
        }
    }
}

/// A file in this directory without a name.
pub fn nameless(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!("truth-{}-{}", std::process::id(), fastrand::u64(..)));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
