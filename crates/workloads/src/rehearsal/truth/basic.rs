//! What stages, locks and the peer do alike: computing, and writing to a disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use fingerpost_sys::trace::monotonic_ns;
use rustix::fs::{Mode, OFlags};

use crate::closed_loop::work;

/// Turns of the loop between two looks at the clock: a few microseconds.
const TURNS: u32 = 2000;
/// Bytes of a write before a sync.
const WRITE: usize = 4096;

/// A place where threads leave things for others, which sleep until then. Nothing but a futex below, as a lock has it.
#[derive(Debug)]
pub struct Post<T>(Mutex<VecDeque<T>>, Condvar);

impl<T> Default for Post<T> {
    fn default() -> Self {
        Post(Mutex::default(), Condvar::new())
    }
}

impl<T> Post<T> {
    /// Leaves something.
    pub fn leave(&self, what: T) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(what);
        self.1.notify_one();
    }

    /// Waits for what was left first.
    pub fn take(&self) -> T {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut place = self
            .1
            .wait_while(place, |left| left.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        place.pop_front().expect("it was waited for")
    }
}

/// Computes until this time on the monotonic clock.
pub fn compute_until(until: u64) {
    while monotonic_ns() < until {
        work(TURNS);
    }
}

/// A file of one page that is written and synced. It has no name, so that nothing is left behind however the process
/// ends.
#[derive(Debug)]
pub struct SyncedFile {
    file: File,
    page: [u8; WRITE],
}

impl SyncedFile {
    /// A new one in this directory.
    pub fn new(dir: &Path) -> io::Result<SyncedFile> {
        Ok(SyncedFile {
            file: nameless(dir, "truth", OFlags::empty())?,
            page: [b'x'; WRITE],
        })
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

/// A file of this process in this directory, to be read and written, that has no name any more.
pub fn nameless(dir: &Path, whose: &str, flags: OFlags) -> io::Result<File> {
    let path = dir.join(format!(
        "{whose}-{}-{}",
        std::process::id(),
        fastrand::u64(..)
    ));
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    std::fs::remove_file(&path)?;
    Ok(file.into())
}
