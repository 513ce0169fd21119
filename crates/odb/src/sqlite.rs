//! SQLite: statements prepared once for each reader, one read transaction per request, the file mapped, a log ahead of
//! writes.
//!
//! The row of a table with nested keys has the table's number, negated, as its row id, which the index on the keys
//! holds too: a walk goes through the index alone, and the row itself is read for the cell at the end.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use fingerpost_lmdb::Mode;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Statement, params};
use self_cell::self_cell;

use crate::engine::{Change, Piece, View};
use crate::value::{self, Read};
use crate::{Error, Result, beside};

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(10);
/// The most of the file that is mapped; SQLite's own limit is a little below 2 GiB.
const MAPPED: i64 = 0x7fff_0000;

/// Where the header says whether a file has a log: two bytes, each 2 where it has.
pub(crate) const HAS_LOG: usize = 18;
/// The file of the memory that connections share, and so many bytes that SQLite leaves its permissions alone.
const SHARED: &str = "-shm";
const SHARED_BYTES: u64 = 3;

/// The row that is there from the beginning has the number 0, so that those which SQLite numbers itself, the cells, are
/// above it: it gives a new row the number after the greatest.
const SCHEMA: &str =
    "CREATE TABLE entry (id INTEGER PRIMARY KEY, key BLOB NOT NULL, head BLOB NOT NULL, body BLOB NOT NULL);
     CREATE UNIQUE INDEX entry_key ON entry (key);
     INSERT INTO entry (id, key, head, body) VALUES (0, CAST('/format' AS BLOB), x'', x'');";

/// How a file is opened.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) mode: Mode,
    /// Whether it has a log ahead of writes, and so a file of shared memory.
    pub(crate) log: bool,
}

/// Opens a file for reading in one of the ways.
fn open_as(path: &Path, how: How) -> Result<Connection> {
    match how.mode {
        Mode::ReadAlone => open_alone(path),
        // Not mapped, as what the kernel reads ahead of a map may be more than the memory that the process has; SQLite
        // keeps what its own cache does by default.
        Mode::ReadWithin => {
            let connection = open(path, false, how.log)?;
            connection.pragma_update(None, "mmap_size", 0)?;
            Ok(connection)
        }
        _ => open(path, false, how.log),
    }
}

/// Opens a file that exists. Without the right to write to it, it is taken to be one that nobody writes to.
///
/// Of the database itself SQLite locks, beside its log, only what it shares with everybody who may read. The other locks
/// are on the file of its shared memory, which must be its owner's alone. It is there from the first read on.
pub(crate) fn open(path: &Path, write: bool, log: bool) -> Result<Connection> {
    if !write && !beside::is_writable(path) {
        return open_alone(path);
    }
    let _turn = beside::OPENING
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for _ in 0..beside::ATTEMPTS {
        let shared = if log {
            beside::ensure(path, SHARED, SHARED_BYTES)
                .map_err(Error::io("cannot make a file of locks beside", path))?
        } else {
            None
        };
        if log && shared.is_none() && !write {
            return open_alone(path);
        }
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = ready(Connection::open_with_flags(path, flags)?)?;
        connection.pragma_update(None, "mmap_size", MAPPED)?;
        connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        if shared.is_none_or(|shared| beside::is_still(path, SHARED, shared)) {
            return Ok(connection);
        }
    }
    Err(Error::Engine(
        "SQLite: the file of its shared memory changes all the time".to_owned(),
    ))
}

/// Opens a file that nobody writes to, without the log and the journal that may stand beside it. It is not mapped: one
/// that is cut short meanwhile is an error then, not a signal.
fn open_alone(path: &Path) -> Result<Connection> {
    let name = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let uri = format!("file:{name}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI;
    ready(Connection::open_with_flags(uri, flags)?)
}

fn ready(connection: Connection) -> Result<Connection> {
    connection.busy_timeout(BUSY)?;
    // FULL: a commit is on disk when it returns, also with the log.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What the schema of a file from elsewhere calls is not run.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// Refuses a file that SQLite finds damaged, or whose schema is another than ours.
pub(crate) fn check(path: &Path, how: How) -> Result<()> {
    let connection = open_as(path, how)?;
    let mut found = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY rootpage, sql")?;
    let found: Vec<String> = found
        .query_map([], |row| row.get(0))?
        .collect::<std::result::Result<_, _>>()?;
    let same = found.len() == 2
        && found
            .iter()
            .all(|sql| SCHEMA.split(';').any(|ours| ours.trim() == sql));
    if !same {
        return Err(Error::Damaged(
            "its schema is not that of an object database".to_owned(),
        ));
    }
    let verdict: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Error::Damaged(format!(
            "SQLite: {}",
            verdict.replace('\n', "; ")
        )));
    }
    Ok(())
}

/// Begins a bulk of writes into an empty file that nobody else knows of. SQLite makes no file here, neither this one nor
/// one beside it.
pub(crate) fn create(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Gives a finished file its log, which from now on makes writes safe and lets readers read meanwhile: the two bytes of
/// the header that say so are all that `PRAGMA journal_mode = WAL` changes for good, and the pragma would make the log.
pub(crate) fn finish(connection: Connection, file: &File) -> Result<()> {
    connection.close().map_err(|(_, e)| e)?;
    Ok(file.write_all_at(&[2, 2], HAS_LOG as u64)?)
}

struct Statements<'c> {
    begin: Statement<'c>,
    end: Statement<'c>,
    id: Statement<'c>,
    head: Statement<'c>,
    whole: Statement<'c>,
    from: Statement<'c>,
    place: Statement<'c>,
}

self_cell!(
    struct Prepared {
        owner: Connection,
        #[not_covariant]
        dependent: Statements,
    }
);

/// A reader with a connection of its own.
pub(crate) struct SqliteView(Prepared);

impl SqliteView {
    pub(crate) fn open(path: &Path, how: How) -> Result<Self> {
        Prepared::try_new(open_as(path, how)?, |c| {
            Ok(Statements {
                begin: c.prepare("BEGIN")?,
                end: c.prepare("COMMIT")?,
                id: c.prepare("SELECT id FROM entry INDEXED BY entry_key WHERE key = ?1")?,
                head: c.prepare("SELECT head FROM entry INDEXED BY entry_key WHERE key = ?1")?,
                whole: c.prepare("SELECT head, body FROM entry INDEXED BY entry_key WHERE key = ?1")?,
                from: c.prepare(
                    "SELECT key, head, length(head) + length(body) FROM entry INDEXED BY entry_key WHERE key >= ?1 \
                     ORDER BY key LIMIT 1",
                )?,
                place: c.prepare("SELECT id, head, typeof(body) FROM entry INDEXED BY entry_key WHERE key = ?1")?,
            })
        })
        .map(SqliteView)
    }
}

/// The number in the first column of the row of a key. Parameters are bound by hand here and below: the usual way
/// counts them anew each time, which a walk of several look-ups feels.
#[inline]
fn first_integer(statement: &mut Statement, key: &[u8]) -> Result<Option<i64>> {
    statement.raw_bind_parameter(1, key)?;
    let mut rows = statement.raw_query();
    Ok(rows
        .next()?
        .and_then(|row| row.get_ref(0).ok()?.as_i64().ok()))
}

impl View for SqliteView {
    fn begin(&mut self) -> Result<()> {
        self.0.with_dependent_mut(|_, s| s.begin.raw_execute())?;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.0.with_dependent_mut(|_, s| s.end.raw_execute())?;
        Ok(())
    }

    fn get<R>(
        &mut self,
        key: &[u8],
        whole: bool,
        take: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>> {
        self.0.with_dependent_mut(|_, s| {
            if !whole {
                match first_integer(&mut s.id, key)? {
                    None => return Ok(None),
                    Some(id) if id < 0 => {
                        return Ok(Some(take(&value::table_value(id.unsigned_abs()), &[])));
                    }
                    Some(_) => {}
                }
            }
            let statement = if whole { &mut s.whole } else { &mut s.head };
            statement.raw_bind_parameter(1, key)?;
            let mut rows = statement.raw_query();
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let head = row.get_ref(0)?.as_blob().unwrap_or_default();
            let body = if whole {
                row.get_ref(1)?.as_blob().unwrap_or_default()
            } else {
                &[]
            };
            Ok(Some(take(head, body)))
        })
    }

    /// The body is read in place: a value that SQLite hands over whole is in memory whole.
    fn part(&mut self, key: &[u8], offset: u64, room: &mut [u8]) -> Result<Option<Piece>> {
        self.0.with_dependent_mut(|connection, s| {
            let mut rows = s.place.query([key])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let head = row.get_ref(1)?.as_blob().unwrap_or_default().to_vec();
            if row.get_ref(2)?.as_str() != Ok("blob") {
                return Err(Error::Damaged(
                    "a body is not of the type that it should have".to_owned(),
                ));
            }
            let blob =
                connection.blob_open(rusqlite::MAIN_DB, "entry", "body", row.get(0)?, true)?;
            let size = blob.len();
            let from = usize::try_from(offset).map_or(size, |at| at.min(size));
            let read = room.len().min(size - from);
            blob.read_at_exact(&mut room[..read], from)?;
            Ok(Some(Piece {
                head,
                size: size as u64,
                read,
            }))
        })
    }

    fn lower_bound<R>(
        &mut self,
        key: &[u8],
        take: impl FnOnce(&[u8], &[u8], u64) -> R,
    ) -> Result<Option<R>> {
        self.0.with_dependent_mut(|_, s| {
            let mut rows = s.from.query([key])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let blob = |i| {
                row.get_ref(i)
                    .ok()
                    .and_then(|v| v.as_blob().ok())
                    .unwrap_or_default()
            };
            Ok(Some(take(
                blob(0),
                blob(1),
                row.get::<_, i64>(2)?.max(0) as u64,
            )))
        })
    }
}

/// A writer, within a transaction of its owner.
pub(crate) struct SqliteChange<'c>(pub(crate) &'c Connection);

impl Change for SqliteChange<'_> {
    fn head(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut statement = self
            .0
            .prepare_cached("SELECT head FROM entry WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    fn put(&mut self, key: &[u8], head: &[u8], body: &[u8]) -> Result<()> {
        // A table never changes once it is made, so its row id never does.
        let id = match value::read(head, body) {
            Ok(Read::Table(number)) if number > 0 => Some(-(number as i64)),
            _ => None,
        };
        let sql = "INSERT INTO entry (id, key, head, body) VALUES (?4, ?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET \
            head = ?2, body = ?3";
        self.0
            .prepare_cached(sql)?
            .execute(params![key, head, body, id])?;
        Ok(())
    }
}
