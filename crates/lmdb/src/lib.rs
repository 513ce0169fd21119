//! The binding to LMDB's library, and nothing else, with what a reader needs to be fast: a transaction that is renewed
//! instead of begun anew, and places in the map that stay known for as long as their snapshot lasts. How a file of ours
//! is opened is the object database's to say.
//!
//! A file that another program changes while it is mapped, or one that was damaged on purpose, can end the process with
//! a signal: LMDB trusts its pages. Open files that you made.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use lmdb_master_sys as ffi;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For reading only; it must exist.
    Read,
    /// The same with little memory: the kernel reads nothing ahead, which would drive out what is there.
    ReadWithin,
    /// As [`Mode::Read`], without the file of locks that LMDB keeps beside its own, for a directory where others could
    /// put one, and for who may not open it: no writer may change the file meanwhile.
    ReadAlone,
    /// For reading and writing; each commit is on disk when it returns.
    Write,
    /// A new file, or an empty one, for writing that nobody else knows of; nothing is on disk before [`Env::sync`].
    Bulk,
}

/// An open file.
#[derive(Debug)]
pub struct Env {
    env: *mut ffi::MDB_env,
    dbi: ffi::MDB_dbi,
}

// SAFETY: an environment may be used by many threads; it is opened with MDB_NOTLS, so read transactions are bound to no
// thread.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}

/// An LMDB status as a result.
fn check(code: i32) -> io::Result<()> {
    if code == 0 {
        return Ok(());
    }
    if code > 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    // SAFETY: for its own codes LMDB gives a string constant.
    let text = unsafe { CStr::from_ptr(ffi::mdb_strerror(code)) }.to_string_lossy();
    Err(io::Error::other(format!("LMDB: {text}")))
}

fn value(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val {
        mv_size: bytes.len(),
        mv_data: bytes.as_ptr().cast_mut().cast(),
    }
}

impl Env {
    /// Opens a file, with so many bytes of address space for its map and so many readers at a time in all processes.
    ///
    /// # Errors
    /// `ENOMEM` where a limit refuses the address space; what LMDB or the system said.
    pub fn open(path: &Path, mode: Mode, map: usize, readers: u32) -> io::Result<Env> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let flags = ffi::MDB_NOSUBDIR
            | ffi::MDB_NOTLS
            | match mode {
                Mode::Read => ffi::MDB_RDONLY,
                Mode::ReadWithin => ffi::MDB_RDONLY | ffi::MDB_NORDAHEAD,
                Mode::ReadAlone => ffi::MDB_RDONLY | ffi::MDB_NOLOCK,
                Mode::Write => 0,
                Mode::Bulk => ffi::MDB_NOSYNC | ffi::MDB_NOLOCK,
            };
        let mut env = ptr::null_mut();
        // SAFETY: the pointer is valid for writing; the environment it receives is closed by Drop, also when opening
        // fails, as LMDB asks.
        let mut this = unsafe {
            check(ffi::mdb_env_create(&mut env))?;
            Env { env, dbi: 0 }
        };
        // SAFETY: the environment is created and not open yet, `name` ends in a zero byte.
        unsafe {
            check(ffi::mdb_env_set_mapsize(this.env, map))?;
            check(ffi::mdb_env_set_maxreaders(this.env, readers))?;
            check(ffi::mdb_env_open(this.env, name.as_ptr(), flags, 0o644))?;
        }
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open; the transaction ends here, with the handle of the unnamed database kept by
        // the environment.
        unsafe {
            check(ffi::mdb_txn_begin(
                this.env,
                ptr::null_mut(),
                ffi::MDB_RDONLY,
                &mut txn,
            ))?;
            let opened = check(ffi::mdb_dbi_open(txn, ptr::null(), 0, &mut this.dbi));
            if let Err(e) = opened {
                ffi::mdb_txn_abort(txn);
                return Err(e);
            }
            check(ffi::mdb_txn_commit(txn))?;
        }
        Ok(this)
    }

    /// The longest key in bytes.
    pub fn max_key(&self) -> usize {
        // SAFETY: the environment is open.
        unsafe { ffi::mdb_env_get_maxkeysize(self.env) as usize }
    }

    /// Puts all that was committed on disk.
    pub fn sync(&self) -> io::Result<()> {
        // SAFETY: the environment is open.
        check(unsafe { ffi::mdb_env_sync(self.env, 1) })
    }

    /// The number of the newest committed transaction.
    fn newest(&self) -> usize {
        // SAFETY: plain numbers and pointers, for which zero is valid; LMDB fills it.
        unsafe {
            let mut info: ffi::MDB_envinfo = std::mem::zeroed();
            ffi::mdb_env_info(self.env, &mut info);
            info.me_last_txnid
        }
    }

    /// Begins the one write transaction that there can be; waits for another process's to end.
    pub fn write(&self) -> io::Result<Write<'_>> {
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open.
        check(unsafe { ffi::mdb_txn_begin(self.env, ptr::null_mut(), 0, &mut txn) })?;
        Ok(Write {
            env: self,
            txn,
            _thread: PhantomData,
        })
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: every transaction holds a reference to or a count of the environment, so none is left.
        unsafe { ffi::mdb_env_close(self.env) }
    }
}

/// A view of the file as it was at one commit.
#[derive(Debug)]
pub struct Snapshot {
    env: Arc<Env>,
    txn: *mut ffi::MDB_txn,
    /// The commit that is seen; `None` between [`Snapshot::end`] and [`Snapshot::begin`].
    seen: Option<usize>,
}

// SAFETY: with MDB_NOTLS a read transaction may be used by any one thread at a time.
unsafe impl Send for Snapshot {}

/// Where a value lies, known for as long as the snapshot is of the same commit.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    start: *const u8,
    len: usize,
    txn: *mut ffi::MDB_txn,
    seen: usize,
}

// SAFETY: a place is only looked at through its snapshot.
unsafe impl Send for Place {}

impl Snapshot {
    /// A snapshot of the newest commit.
    pub fn new(env: Arc<Env>) -> io::Result<Snapshot> {
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open, and outlives the transaction because it is counted.
        check(unsafe { ffi::mdb_txn_begin(env.env, ptr::null_mut(), ffi::MDB_RDONLY, &mut txn) })?;
        // SAFETY: the transaction has just begun.
        let seen = Some(unsafe { ffi::mdb_txn_id(txn) });
        Ok(Snapshot { env, txn, seen })
    }

    /// Moves to the newest commit if it has been ended.
    pub fn begin(&mut self) -> io::Result<()> {
        if self.seen.is_none() {
            // SAFETY: the transaction was reset.
            unsafe {
                check(ffi::mdb_txn_renew(self.txn))?;
                self.seen = Some(ffi::mdb_txn_id(self.txn));
            }
        }
        Ok(())
    }

    /// Gives the commit up; its pages may be used again by a writer.
    pub fn end(&mut self) {
        if self.seen.take().is_some() {
            // SAFETY: the transaction is active.
            unsafe { ffi::mdb_txn_reset(self.txn) }
        }
    }

    /// Moves to the newest commit where there is a newer one; true when it moved.
    pub fn refresh(&mut self) -> io::Result<bool> {
        if self.seen == Some(self.env.newest()) {
            return Ok(false);
        }
        self.end();
        self.begin()?;
        Ok(true)
    }

    fn active(&self) -> io::Result<usize> {
        self.seen
            .ok_or_else(|| io::Error::other("the snapshot is not begun"))
    }

    /// The value of a key, in the map itself.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<&[u8]>> {
        self.active()?;
        let (mut key, mut data) = (value(key), value(&[]));
        // SAFETY: the transaction is active, and LMDB does not write to the key.
        match unsafe { ffi::mdb_get(self.txn, self.env.dbi, &mut key, &mut data) } {
            ffi::MDB_NOTFOUND | ffi::MDB_BAD_VALSIZE => Ok(None),
            // SAFETY: what LMDB gave stays in place until the transaction ends, which needs `&mut self`.
            code => check(code).map(|()| Some(unsafe { bytes(&data) })),
        }
    }

    /// The first key from this one on, with its value.
    pub fn lower_bound(&self, key: &[u8]) -> io::Result<Option<(&[u8], &[u8])>> {
        self.active()?;
        // SAFETY: the transaction is active, and what it gave stays in place until it ends, which needs `&mut self`.
        unsafe { lower_bound(self.txn, self.env.dbi, key) }
    }

    /// Where the value of a key lies, without its first `skip` bytes.
    pub fn locate(&self, key: &[u8], skip: usize) -> io::Result<Option<Place>> {
        let seen = self.active()?;
        // Only slices of the map become places, which is what makes `at` sound.
        let part = self
            .get(key)?
            .map(|value| value.get(skip..).unwrap_or_default());
        Ok(part.map(|part| Place {
            start: part.as_ptr(),
            len: part.len(),
            txn: self.txn,
            seen,
        }))
    }

    /// What lies at a place; `None` once the snapshot has moved on.
    #[inline]
    pub fn at(&self, place: Place) -> Option<&[u8]> {
        if place.txn != self.txn || Some(place.seen) != self.seen {
            return None;
        }
        // SAFETY: the place was made by `locate` from a slice of this transaction's map while it saw the same commit. A
        // commit's pages stay as they are while a reader sees it, and the map does not move: its size is set once,
        // before it is opened.
        Some(unsafe { std::slice::from_raw_parts(place.start, place.len) })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: the transaction is active or reset; either may be aborted, once.
        unsafe { ffi::mdb_txn_abort(self.txn) }
    }
}

/// # Safety
/// The value must come from LMDB, and its transaction must not end while the slice is in use.
unsafe fn bytes<'a>(val: &ffi::MDB_val) -> &'a [u8] {
    if val.mv_size == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(val.mv_data.cast(), val.mv_size) }
}

/// The first key from this one on, with its value, in the map itself.
///
/// # Safety
/// The transaction must be active, and must neither end nor write while the slices are in use.
unsafe fn lower_bound<'a>(
    txn: *mut ffi::MDB_txn,
    dbi: ffi::MDB_dbi,
    key: &[u8],
) -> io::Result<Option<(&'a [u8], &'a [u8])>> {
    let mut cursor = ptr::null_mut();
    // LMDB knows no empty key.
    let from = if key.is_empty() {
        ffi::MDB_FIRST
    } else {
        ffi::MDB_SET_RANGE
    };
    let (mut key, mut data) = (value(key), value(&[]));
    // SAFETY: the transaction is active, as the caller promises; the cursor is closed here, and what it gave outlives
    // it.
    unsafe {
        check(ffi::mdb_cursor_open(txn, dbi, &mut cursor))?;
        let code = ffi::mdb_cursor_get(cursor, &mut key, &mut data, from);
        ffi::mdb_cursor_close(cursor);
        match code {
            ffi::MDB_NOTFOUND => Ok(None),
            code => check(code).map(|()| Some((bytes(&key), bytes(&data)))),
        }
    }
}

/// A write transaction. Dropped without [`Write::commit`], it changes nothing.
#[derive(Debug)]
pub struct Write<'e> {
    env: &'e Env,
    txn: *mut ffi::MDB_txn,
    /// A write transaction belongs to the thread that began it.
    _thread: PhantomData<*mut ()>,
}

impl Write<'_> {
    /// The first bytes of a key's value, as this transaction has it.
    pub fn get(&self, key: &[u8], at_most: usize) -> io::Result<Option<Vec<u8>>> {
        let (mut key, mut data) = (value(key), value(&[]));
        // SAFETY: the transaction is active; the value is copied before anything changes.
        unsafe {
            match ffi::mdb_get(self.txn, self.env.dbi, &mut key, &mut data) {
                ffi::MDB_NOTFOUND | ffi::MDB_BAD_VALSIZE => Ok(None),
                code => {
                    check(code).map(|()| Some(bytes(&data)[..at_most.min(data.mv_size)].to_vec()))
                }
            }
        }
    }

    /// The first key from this one on.
    pub fn key_from(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        // SAFETY: the transaction is active; the key is copied before anything changes.
        let found = unsafe { lower_bound(self.txn, self.env.dbi, key) }?;
        Ok(found.map(|(key, _)| key.to_vec()))
    }

    /// Sets the value of a key, given in two parts. `append` says that the key is above all others, which packs the
    /// pages full.
    pub fn put(&mut self, key: &[u8], head: &[u8], body: &[u8], append: bool) -> io::Result<()> {
        let mut key = value(key);
        let mut data = ffi::MDB_val {
            mv_size: head.len() + body.len(),
            mv_data: ptr::null_mut(),
        };
        let flags = ffi::MDB_RESERVE | if append { ffi::MDB_APPEND } else { 0 };
        // SAFETY: the transaction is active; with MDB_RESERVE LMDB gives room for exactly `mv_size` bytes, which is
        // filled at once.
        unsafe {
            check(ffi::mdb_put(
                self.txn,
                self.env.dbi,
                &mut key,
                &mut data,
                flags,
            ))?;
            let room: *mut u8 = data.mv_data.cast();
            ptr::copy_nonoverlapping(head.as_ptr(), room, head.len());
            ptr::copy_nonoverlapping(body.as_ptr(), room.add(head.len()), body.len());
        }
        Ok(())
    }

    /// Makes all changes at once and for good.
    pub fn commit(self) -> io::Result<()> {
        let txn = self.txn;
        std::mem::forget(self);
        // SAFETY: the transaction is active, and is freed by this call only.
        check(unsafe { ffi::mdb_txn_commit(txn) })
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction is active; `commit` forgets what it ends.
        unsafe { ffi::mdb_txn_abort(self.txn) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, mode: Mode) -> io::Result<Env> {
        Env::open(path, mode, 1 << 30, 8)
    }

    fn put(env: &Env, key: &str, text: &str) {
        let mut w = env.write().unwrap();
        w.put(key.as_bytes(), b"", text.as_bytes(), false).unwrap();
        w.commit().unwrap();
    }

    #[test]
    fn a_place_is_known_until_the_snapshot_moves() {
        let dir = tempfile::tempdir().unwrap();
        let env = Arc::new(open(&dir.path().join("db"), Mode::Write).unwrap());
        put(&env, "a", "one");
        let mut snapshot = Snapshot::new(env.clone()).unwrap();
        let place = snapshot.locate(b"a", 0).unwrap().unwrap();
        put(&env, "a", "two");
        assert_eq!(
            snapshot.at(place),
            Some(&b"one"[..]),
            "a reader sees its own commit"
        );
        assert!(snapshot.refresh().unwrap());
        assert_eq!(snapshot.at(place), None);
        assert_eq!(snapshot.get(b"a").unwrap(), Some(&b"two"[..]));
        assert!(!snapshot.refresh().unwrap());
        snapshot.end();
        assert!(snapshot.get(b"a").is_err());
        let other = Snapshot::new(env).unwrap();
        assert_eq!(other.at(place), None);
    }

    #[test]
    fn what_is_not_committed_never_was() {
        let dir = tempfile::tempdir().unwrap();
        let env = Arc::new(open(&dir.path().join("db"), Mode::Write).unwrap());
        let mut w = env.write().unwrap();
        w.put(b"k", b"he", b"llo", false).unwrap();
        assert_eq!(w.get(b"k", 9).unwrap().unwrap(), b"hello");
        drop(w);
        let snapshot = Snapshot::new(env).unwrap();
        assert_eq!(snapshot.get(b"k").unwrap(), None);
        assert_eq!(snapshot.lower_bound(b"").unwrap(), None);
        assert_eq!(
            snapshot.get(&[b'x'; 4000]).unwrap(),
            None,
            "a key that is too long is not there"
        );
    }

    #[test]
    fn a_file_that_is_no_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        std::fs::write(&path, vec![7; 8192]).unwrap();
        assert!(open(&path, Mode::Read).is_err());
        assert!(open(&dir.path().join("none"), Mode::Read).is_err());
    }
}
