//! redb: one read transaction per request; values handed over from its cache.

use std::io;
use std::ops::Bound;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::redb::backends::FileBackend;
use ::redb::{
    BackendError, Database, DatabaseError, Durability, ReadOnlyDatabase, ReadOnlyTable,
    ReadableDatabase, ReadableTable, StorageBackend, Table, TableDefinition, WriteTransaction,
};
use rustix::fs::OFlags;

use crate::beside::Inode;
use crate::engine::{Change, Piece, View};
use crate::value::HEAD;
use crate::{Error, Result, beside};

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

/// An open file. redb lets either one writer or any number of readers have it.
pub(crate) enum File {
    /// With a lock for reading parts: readers that miss the cache at once would each load the same value.
    Read(ReadOnlyDatabase, Mutex<()>),
    Write(Database),
}

impl File {
    /// Opens a file, with the locks of those who may write to it.
    pub(crate) fn open(path: &Path, write: bool) -> Result<File> {
        Self::open_with(path, write, true, None)
    }

    /// Opens a file for reading, without any lock and without a look at what stands beside it.
    pub(crate) fn open_alone(path: &Path) -> Result<File> {
        Self::open_with(path, false, false, None)
    }

    /// Opens a file for reading, with a cache of so many bytes.
    pub(crate) fn open_within(path: &Path, cache: usize) -> Result<File> {
        Self::open_with(path, false, true, Some(cache))
    }

    fn open_with(path: &Path, write: bool, locks: bool, cache: Option<usize>) -> Result<File> {
        let mut builder = Database::builder();
        if let Some(cache) = cache {
            builder.set_cache_size(cache);
        }
        for attempt in 0..beside::ATTEMPTS {
            let (backend, lock) =
                Backend::open(path, write, locks).map_err(Error::io("cannot open", path))?;
            let opened = if write {
                // Only a file that is there was opened, and one that is empty is no database of ours.
                builder.create_with_backend(backend).map(File::Write)
            } else {
                builder
                    .open_read_only_with_backend(backend)
                    .map(|db| File::Read(db, Mutex::new(())))
            };
            let file = match opened {
                // Who replaces the file of locks has it locked for a moment.
                Err(DatabaseError::DatabaseAlreadyOpen) if attempt < BUSY => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                other => other.map_err(|e| refused(path, write, e))?,
            };
            if lock.is_none_or(|lock| beside::is_still(path, LOCK, lock)) {
                return Ok(file);
            }
        }
        Err(Error::Engine(format!(
            "{} cannot be opened: its file of locks changes all the time",
            path.display()
        )))
    }

    /// A write transaction; `Immediate` is on disk when it is committed, `None` with the next that is.
    pub(crate) fn write(&self, durability: Durability) -> Result<WriteTransaction> {
        match self {
            File::Read(..) => Err(Error::Engine(
                "the database was opened for reading".to_owned(),
            )),
            File::Write(db) => {
                let mut transaction = db.begin_write()?;
                transaction.set_durability(durability)?;
                Ok(transaction)
            }
        }
    }
}

/// Why a file is not opened.
fn refused(path: &Path, write: bool, error: DatabaseError) -> Error {
    let name = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            let inode = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.ino());
            let holders = [inode(path), inode(&beside::path(path, LOCK))].map(beside::holders);
            let by = match holders.concat().first() {
                Some(pid) => format!("process {pid}"),
                None => "another process".to_owned(),
            };
            Error::Engine(format!(
                "{name} is in use by {by}; redb lets one writer or several readers have it"
            ))
        }
        // Its writer was killed: only a writer may put it right.
        DatabaseError::RepairAborted if !write => Error::Engine(format!(
            "{name} must be repaired first; open it for writing"
        )),
        other => other.into(),
    }
}

/// Makes a database of an empty file that nobody else knows of.
pub(crate) fn create(file: std::fs::File) -> Result<File> {
    let backend = FileBackend::new(file)?;
    Ok(File::Write(
        Database::builder().create_with_backend(backend)?,
    ))
}

/// How often a file that is in use is tried again.
const BUSY: usize = 10;
/// The file of locks.
const LOCK: &str = "-lock";

/// A file whose locks count on another one: everybody who may read a database can lock it, and redb would refuse to open
/// it then.
///
/// Other programs with redb know the database's own locks only. So these are taken too, and refused where a process of
/// ours or root's has them; a stranger's are passed over.
#[derive(Debug)]
struct Backend {
    data: FileBackend,
    inode: u64,
    lock: Option<FileBackend>,
}

type Locked = std::result::Result<bool, BackendError>;

impl Backend {
    /// The file, and which file of locks it has. Without one, its reader takes no lock at all.
    fn open(path: &Path, write: bool, locks: bool) -> io::Result<(Backend, Option<Inode>)> {
        let open = |path: &Path, write: bool| {
            // A pipe must not be waited for.
            let flags = OFlags::NONBLOCK.bits() as i32;
            std::fs::File::options()
                .read(true)
                .write(write)
                .custom_flags(flags)
                .open(path)
        };
        let data = open(path, write)?;
        let inode = data.metadata()?.ino();
        let which = if locks && (write || beside::is_writable(path)) {
            beside::ensure(path, LOCK, 0)?
        } else {
            None
        };
        let lock = match which {
            Some(_) => Some(open(&beside::path(path, LOCK), true)?),
            None => None,
        };
        let backend = |file| FileBackend::new(file).map_err(io::Error::other);
        let this = Backend {
            data: backend(data)?,
            inode,
            lock: lock.map(backend).transpose()?,
        };
        Ok((this, which))
    }

    fn both(&self, take: impl Fn(&FileBackend) -> Locked) -> Locked {
        let Some(lock) = &self.lock else {
            return Ok(true);
        };
        if matches!(take(&self.data), Ok(false)) && beside::others_of_ours(self.inode) {
            return Ok(false);
        }
        take(lock)
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.data.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.data.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.data.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.data.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.data.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        let closed = self.data.close();
        self.lock.as_ref().map_or(Ok(()), FileBackend::close)?;
        closed
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.both(|file| file.try_lock_range(start, end))
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.both(|file| file.try_lock_shared_range(start, end))
    }

    fn unlock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<(), BackendError> {
        // Where a stranger's lock was in the way, there is nothing to be released.
        let _ = self.data.unlock_range(start, end);
        self.lock
            .as_ref()
            .map_or(Ok(()), |lock| lock.unlock_range(start, end))
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.lock
            .as_ref()
            .map_or(Ok(false), |lock| lock.query_lock_range(start, end))
    }
}

/// A reader.
pub(crate) struct RedbView {
    file: Arc<File>,
    table: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

impl RedbView {
    pub(crate) fn new(file: Arc<File>) -> Self {
        RedbView { file, table: None }
    }

    fn table(&self) -> Result<&ReadOnlyTable<&'static [u8], &'static [u8]>> {
        self.table
            .as_ref()
            .ok_or_else(|| Error::Engine("no read transaction was begun".to_owned()))
    }
}

impl View for RedbView {
    fn begin(&mut self) -> Result<()> {
        let transaction = match &*self.file {
            File::Read(db, _) => db.begin_read()?,
            File::Write(db) => db.begin_read()?,
        };
        self.table = Some(transaction.open_table(ENTRIES)?);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.table = None;
        Ok(())
    }

    fn get<R>(
        &mut self,
        key: &[u8],
        _whole: bool,
        take: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        Ok(self.table()?.get(key)?.map(|guard| {
            let (head, body) = guard.value().split_at(HEAD.min(guard.value().len()));
            take(head, body)
        }))
    }

    fn part(&mut self, key: &[u8], offset: u64, room: &mut [u8]) -> Result<Option<Piece>> {
        let file = self.file.clone();
        let _turn = match &*file {
            File::Read(_, turn) => Some(turn.lock().unwrap_or_else(PoisonError::into_inner)),
            File::Write(_) => None,
        };
        self.get(key, true, |head, body| Piece::of(head, body, offset, room))
    }

    fn lower_bound<R>(
        &mut self,
        key: &[u8],
        take: impl FnOnce(&[u8], &[u8], u64) -> R,
    ) -> Result<Option<R>> {
        let Some((key, value)) = self.table()?.range(key..)?.next().transpose()? else {
            return Ok(None);
        };
        let value = value.value();
        Ok(Some(take(
            key.value(),
            &value[..HEAD.min(value.len())],
            value.len() as u64,
        )))
    }
}

/// A writer, within a transaction of its owner.
pub(crate) struct RedbChange<'t>(Table<'t, &'static [u8], &'static [u8]>);

impl<'t> RedbChange<'t> {
    pub(crate) fn new(transaction: &'t WriteTransaction) -> Result<Self> {
        Ok(RedbChange(transaction.open_table(ENTRIES)?))
    }
}

impl Change for RedbChange<'_> {
    fn head(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self
            .0
            .get(key)?
            .map(|guard| guard.value()[..HEAD.min(guard.value().len())].to_vec()))
    }

    fn put(&mut self, key: &[u8], head: &[u8], body: &[u8]) -> Result<()> {
        let mut room = self.0.insert_reserve(key, head.len() + body.len())?;
        let (front, back) = room.as_mut().split_at_mut(head.len());
        front.copy_from_slice(head);
        back.copy_from_slice(body);
        Ok(())
    }
}
