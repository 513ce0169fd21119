//! LMDB: one read transaction per request, renewed rather than begun; values handed over in place.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use fingerpost_sys::lmdb::{Env, Mode, Snapshot, Write};
use fingerpost_sys::map;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::Result;
use crate::engine::{Change, View};
use crate::value::HEAD;

/// Address space that is set aside for the map, largest first: it costs nothing until it is used, but a limit may
/// refuse it.
const MAPS: [usize; 4] = [1 << 38, 1 << 35, 1 << 32, 1 << 30];
/// Readers at a time, in all processes.
const READERS: u32 = 512;

/// Bytes of the file of locks: 64 for each reader, and what comes before them.
const LOCKS: i64 = (READERS as i64 + 64) * 64;

/// Opens a file.
pub(crate) fn open(path: &Path, mode: Mode) -> io::Result<Arc<Env>> {
    if mode == Mode::Write || matches!(mode, Mode::Read | Mode::ReadWithin) && path.exists() {
        make_locks(path)?;
    }
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

/// Makes the file of locks, with its blocks. LMDB makes it with a hole in it and maps it: on a full disk its first
/// touch would end the process with a signal.
fn make_locks(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(name);
    let file = match opened {
        Ok(file) => file,
        // LMDB reads without locks where it can write nothing, and says what is wrong elsewhere.
        Err(e)
            if matches!(
                Errno::from_io_error(&e),
                Some(Errno::ROFS | Errno::ACCESS | Errno::PERM)
            ) =>
        {
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("its file of locks is no regular file"));
    }
    map::allocate(&file, LOCKS)
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
