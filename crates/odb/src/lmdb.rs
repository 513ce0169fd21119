//! LMDB: one read transaction per request, renewed rather than begun; values handed over in place.

use std::sync::Arc;

use fingerpost_sys::lmdb::{Env, Snapshot, Write};

use crate::Result;
use crate::engine::{Change, View};
use crate::value::HEAD;

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
    fn get<R>(&mut self, key: &[u8], _whole: bool, take: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        Ok(self.0.get(key)?.map(|value| {
            let (head, body) = value.split_at(HEAD.min(value.len()));
            take(head, body)
        }))
    }

    fn lower_bound<R>(&mut self, key: &[u8], take: impl FnOnce(&[u8], &[u8], u64) -> R) -> Result<Option<R>> {
        Ok(self.0.lower_bound(key)?.map(|(key, value)| take(key, &value[..HEAD.min(value.len())], value.len() as u64)))
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
        let last = if write.key_from(&[])?.is_none() { Some(Vec::new()) } else { last };
        Ok(LmdbChange { write, max_key: env.max_key(), last })
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
