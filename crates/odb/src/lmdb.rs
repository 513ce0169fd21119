//! LMDB: one read transaction per request, renewed rather than begun; values handed over in place.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use fingerpost_lmdb::{Env, Mode, Snapshot, Write};
use rustix::io::Errno;

use crate::engine::{Change, View};
use crate::value::HEAD;
use crate::{Result, beside};

/// Address space that is set aside for the map, largest first: it costs nothing until it is used, but a limit may
/// refuse it.
const MAPS: [usize; 4] = [1 << 38, 1 << 35, 1 << 32, 1 << 30];
/// Readers at a time, in all processes.
const READERS: u32 = 512;

/// Bytes of the file of locks: 64 for each reader, and what comes before them. All of them have their blocks before LMDB
/// maps it: on a full disk the first touch of a hole would end the process with a signal.
const LOCKS: u64 = (READERS as u64 + 64) * 64;
const SUFFIX: &str = "-lock";

/// Opens a file that exists. Where we may not write, no commit of ours can change what is read, and it is read without
/// locks: those of the owner could not be shared.
pub(crate) fn open(path: &Path, mode: Mode) -> io::Result<Arc<Env>> {
    if mode == Mode::ReadAlone {
        return with_room(path, mode);
    }
    let _turn = beside::OPENING
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for _ in 0..beside::ATTEMPTS {
        let locks = if mode == Mode::Write || beside::is_writable(path) {
            beside::ensure(path, SUFFIX, LOCKS)?
        } else {
            None
        };
        let env = match locks {
            None if mode != Mode::Write => return with_room(path, Mode::ReadAlone),
            _ => with_room(path, mode)?,
        };
        if locks.is_none_or(|locks| beside::is_still(path, SUFFIX, locks)) {
            return Ok(env);
        }
    }
    Err(io::Error::other("its file of locks changes all the time"))
}

/// Makes a database of an empty file that nobody else knows of.
pub(crate) fn create(path: &Path) -> io::Result<Arc<Env>> {
    with_room(path, Mode::Bulk)
}

/// Opens a file with the most address space that can be had.
fn with_room(path: &Path, mode: Mode) -> io::Result<Arc<Env>> {
    let mut last = io::Error::other("no address space");
    for size in MAPS {
        match Env::open(path, mode, size, READERS) {
            Ok(env) => return Ok(Arc::new(env)),
            Err(e) if Errno::from_io_error(&e) == Some(Errno::NOMEM) => last = e,
            Err(e) => return Err(e),
        }
    }
    Err(last)
}

/// A reader.
pub(crate) struct LmdbView(Snapshot);

impl LmdbView {
    pub(crate) fn new(env: Arc<Env>) -> Result<Self> {
        let mut snapshot = Snapshot::new(env)?;
        snapshot.end();
        Ok(LmdbView(snapshot))
    }
}

impl View for LmdbView {
    #[inline]
    fn begin(&mut self) -> Result<()> {
        Ok(self.0.begin()?)
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        self.0.end();
        Ok(())
    }

    #[inline]
    fn get<R>(
        &mut self,
        key: &[u8],
        _whole: bool,
        take: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        Ok(self.0.get(key)?.map(|value| {
            let (head, body) = value.split_at(HEAD.min(value.len()));
            take(head, body)
        }))
    }

    fn lower_bound<R>(
        &mut self,
        key: &[u8],
        take: impl FnOnce(&[u8], &[u8], u64) -> R,
    ) -> Result<Option<R>> {
        Ok(self
            .0
            .lower_bound(key)?
            .map(|(key, value)| take(key, &value[..HEAD.min(value.len())], value.len() as u64)))
    }
}

/// A writer. Keys that come in order are appended, which packs the pages full.
pub(crate) struct LmdbChange<'e> {
    write: Write<'e>,
    max_key: usize,
    /// The greatest key of the file, if it is known: of a file that was empty, the last one written.
    last: Option<Vec<u8>>,
}

impl<'e> LmdbChange<'e> {
    pub(crate) fn new(env: &'e Env, last: Option<Vec<u8>>) -> Result<Self> {
        let write = env.write()?;
        let last = if write.key_from(&[])?.is_none() {
            Some(Vec::new())
        } else {
            last
        };
        Ok(LmdbChange {
            write,
            max_key: env.max_key(),
            last,
        })
    }

    /// Commits, and tells the greatest key for the next transaction.
    pub(crate) fn commit(self) -> Result<Option<Vec<u8>>> {
        self.write.commit()?;
        Ok(self.last)
    }
}

impl Change for LmdbChange<'_> {
    fn head(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.write.get(key, HEAD)?)
    }

    fn put(&mut self, key: &[u8], head: &[u8], body: &[u8]) -> Result<()> {
        let append = self.last.as_deref().is_some_and(|last| key > last);
        self.write.put(key, head, body, append)?;
        if let Some(last) = self.last.as_mut().filter(|_| append) {
            last.clear();
            last.extend_from_slice(key);
        }
        Ok(())
    }

    fn max_key(&self) -> usize {
        self.max_key
    }
}
