//! redb: one read transaction per request; values handed over from its cache.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ::redb::{
    Database, Durability, ReadOnlyDatabase, ReadOnlyTable, ReadableDatabase, ReadableTable, Table,
    TableDefinition, WriteTransaction,
};

use crate::engine::{Change, Piece, View};
use crate::value::HEAD;
use crate::{Error, Result};

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

/// An open file. redb lets either one writer or any number of readers have it.
pub(crate) enum File {
    /// With a lock for reading parts: readers that miss the cache at once would each load the same value.
    Read(ReadOnlyDatabase, Mutex<()>),
    Write(Database),
}

impl File {
    pub(crate) fn open(path: &Path, write: bool) -> Result<File> {
        let opened = if write {
            Database::open(path).map(File::Write)
        } else {
            ReadOnlyDatabase::open(path).map(|db| File::Read(db, Mutex::new(())))
        };
        opened.map_err(|e| match e {
            ::redb::DatabaseError::DatabaseAlreadyOpen => Error::Engine(format!(
                "{} is in use by another process; redb lets one writer or several readers have it",
                path.display()
            )),
            // Its writer was killed: only a writer may put it right.
            ::redb::DatabaseError::RepairAborted if !write => Error::Engine(format!(
                "{} must be repaired first; open it for writing",
                path.display()
            )),
            other => other.into(),
        })
    }

    /// Opens a file for reading, with a cache of so many bytes.
    pub(crate) fn open_within(path: &Path, cache: usize) -> Result<File> {
        let db = Database::builder()
            .set_cache_size(cache)
            .open_read_only(path)?;
        Ok(File::Read(db, Mutex::new(())))
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
