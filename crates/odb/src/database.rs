//! An open database, its readers and its writer.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fingerpost_lmdb::{Env, Mode, Snapshot};

use crate::engine::{
    Change, Engine, FORMAT_KEY, Keys, Layout, Reader, Store, Tables, View, Writer,
};
use crate::lmdb::{self, LmdbChange, LmdbView};
use crate::making::New;
use crate::redb::{RedbChange, RedbView};
use crate::sqlite::{SqliteChange, SqliteView};
use crate::value::{Cell, Entry, Listing, Part};
use crate::verify::{self, Verified};
use crate::{Error, Result, flat, loaded, nested, path, redb, sqlite};

/// An open file.
pub struct Database {
    store: Store,
    path: PathBuf,
    inner: Inner,
}

enum Inner {
    Lmdb(Arc<Env>),
    /// Each reader has a connection of its own.
    Sqlite(sqlite::How),
    Redb(Arc<redb::File>),
}

impl Database {
    /// Opens a file for reading.
    pub fn open(file: &Path) -> Result<Database> {
        Self::open_as(file, Mode::Read, |real| redb::File::open(real, false))
    }

    /// Opens a file for reading and writing.
    pub fn open_for_writing(file: &Path) -> Result<Database> {
        Self::open_as(file, Mode::Write, |real| redb::File::open(real, true))
    }

    /// Opens a file for reading by a process that may have so many bytes of memory, page cache included, and perhaps
    /// fewer than the file has: nothing is read ahead, and an engine with a cache of its own keeps that within half of
    /// it.
    pub fn open_within(file: &Path, memory: u64) -> Result<Database> {
        let cache = usize::try_from(memory / 2).unwrap_or(usize::MAX);
        Self::open_as(file, Mode::ReadWithin, |real| {
            redb::File::open_within(real, cache)
        })
    }

    fn open_as(
        file: &Path,
        mode: Mode,
        redb: impl FnOnce(&Path) -> Result<redb::File>,
    ) -> Result<Database> {
        let (engine, start) = beginning(file)?;
        // Locks stand beside the file itself: those of a link to it would be others.
        let real = &std::fs::canonicalize(file).map_err(Error::io("cannot open", file))?;
        let inner = match engine {
            Engine::Lmdb => {
                Inner::Lmdb(lmdb::open(real, mode).map_err(Error::io("cannot open", file))?)
            }
            Engine::Sqlite => Inner::Sqlite(sqlite::How {
                mode,
                log: start[sqlite::HAS_LOG] == 2,
            }),
            Engine::Redb => Inner::Redb(Arc::new(redb(real)?)),
        };
        let mut database = Database {
            store: Store {
                engine,
                keys: Keys::Nested,
            },
            path: real.to_owned(),
            inner,
        };
        let keys = database.mark().map_err(|e| {
            if engine == Engine::Sqlite {
                Error::Foreign(file.to_owned())
            } else {
                e
            }
        })?;
        database.store.keys = keys.ok_or_else(|| Error::Foreign(file.to_owned()))?;
        Ok(database)
    }

    /// The engine of a file, from how it begins; nothing of the engine runs.
    pub fn engine_of(file: &Path) -> Result<Engine> {
        Ok(beginning(file)?.0)
    }

    /// Opens a file for reading that stands in a directory where others could put an engine's further files: none of
    /// those is looked at, and no lock is taken, so nobody may write to the file meanwhile.
    pub fn open_alone(file: &Path) -> Result<Database> {
        Self::open_as(file, Mode::ReadAlone, redb::File::open_alone)
    }

    /// Reads everything in the file and tells whether all of it is as an import makes it.
    pub fn verify(&self) -> Result<Verified> {
        let most = std::fs::metadata(&self.path)
            .map_err(Error::io("cannot look at", &self.path))?
            .len();
        match &self.inner {
            Inner::Lmdb(env) => {
                verify::scan(&mut LmdbView::new(env.clone())?, self.store.keys, most)
            }
            Inner::Sqlite(how) => {
                sqlite::check(&self.path, *how)?;
                verify::scan(
                    &mut SqliteView::open(&self.path, *how)?,
                    self.store.keys,
                    most,
                )
            }
            Inner::Redb(file) => {
                verify::scan(&mut RedbView::new(file.clone()), self.store.keys, most)
            }
        }
    }

    /// Which keys the file says that it has.
    fn mark(&self) -> Result<Option<Keys>> {
        fn of<V: View>(mut view: V) -> Result<Option<Keys>> {
            view.begin()?;
            let keys = view.get(FORMAT_KEY, true, |head, body| {
                Keys::from_mark(&[head, body].concat())
            })?;
            view.end()?;
            Ok(keys.flatten())
        }
        match &self.inner {
            Inner::Lmdb(env) => of(LmdbView::new(env.clone())?),
            Inner::Sqlite(how) => of(SqliteView::open(&self.path, *how)?),
            Inner::Redb(file) => of(RedbView::new(file.clone())),
        }
    }

    /// Its engine and keys.
    pub fn store(&self) -> Store {
        self.store
    }

    /// A reader, for one thread.
    pub fn reader(&self) -> Result<Box<dyn Reader>> {
        Ok(match &self.inner {
            Inner::Lmdb(env) => walker(self.store.keys, LmdbView::new(env.clone())?),
            Inner::Sqlite(how) => walker(self.store.keys, SqliteView::open(&self.path, *how)?),
            Inner::Redb(file) => walker(self.store.keys, RedbView::new(file.clone())),
        })
    }

    /// A reader that keeps the tables it has walked through in memory, as Frontier did. LMDB with nested keys
    /// only, whose values stay in place as long as nothing was committed; nothing otherwise.
    pub fn loaded_reader(&self) -> Result<Option<Box<dyn Reader>>> {
        match (&self.inner, self.store.keys) {
            (Inner::Lmdb(env), Keys::Nested) => Ok(Some(Box::new(loaded::Loaded::new(
                Snapshot::new(env.clone())?,
            )))),
            _ => Ok(None),
        }
    }

    /// Makes changes in one transaction, which is on disk when this returns. An error of the job undoes all of it.
    pub fn write(&self, job: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        match &self.inner {
            Inner::Lmdb(env) => {
                let mut change = LmdbChange::new(env, None)?;
                run(&mut change, self.store.keys, job)?;
                change.commit().map(drop)
            }
            Inner::Sqlite(how) => {
                let mut connection = sqlite::open(&self.path, true, how.log)?;
                let transaction = connection
                    .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                run(&mut SqliteChange(&transaction), self.store.keys, job)?;
                Ok(transaction.commit()?)
            }
            Inner::Redb(file) => {
                let transaction = file.write(::redb::Durability::Immediate)?;
                run(&mut RedbChange::new(&transaction)?, self.store.keys, job)?;
                Ok(transaction.commit()?)
            }
        }
    }

    /// Fills a new file with what `fill` puts into it, part by part until it says that there is no more. Before this
    /// returns the file is good for nothing, and only [`New::finish`] has all of it on disk.
    pub(crate) fn build(
        new: &New,
        store: Store,
        fill: &mut dyn FnMut(&mut dyn Writer) -> Result<bool>,
    ) -> Result<()> {
        let mut parts = Parts {
            keys: store.keys,
            nested: nested::Tables::default(),
            flat: flat::Tables::default(),
            fill,
        };
        match store.engine {
            Engine::Lmdb => {
                let file = new.through_descriptor();
                let env = lmdb::create(&file).map_err(Error::io("cannot make", &file))?;
                let mut last = None;
                let mut more = true;
                while more {
                    let mut change = LmdbChange::new(&env, last)?;
                    more = parts.next(&mut change)?;
                    last = change.commit()?;
                }
                env.sync().map_err(Error::io("cannot sync", file))
            }
            Engine::Sqlite => {
                let mut connection = sqlite::create(&new.by_names())?;
                let mut more = true;
                while more {
                    let transaction = connection.transaction()?;
                    more = parts.next(&mut SqliteChange(&transaction))?;
                    transaction.commit()?;
                }
                sqlite::finish(connection, new.file())
            }
            Engine::Redb => {
                let database = redb::create(new.file().try_clone()?)?;
                let mut more = true;
                while more {
                    let transaction = database.write(::redb::Durability::None)?;
                    more = parts.next(&mut RedbChange::new(&transaction)?)?;
                    transaction.commit()?;
                }
                Ok(database.write(::redb::Durability::Immediate)?.commit()?)
            }
        }
    }
}

/// The engine of a file, and how the file begins; nothing of the engine runs.
fn beginning(file: &Path) -> Result<(Engine, [u8; 24])> {
    let mut start = [0; 24];
    // A FIFO must not be waited for.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut open = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(file)
        .map_err(Error::io("cannot open", file))?;
    let foreign = || Error::Foreign(file.to_owned());
    if !open
        .metadata()
        .map_err(Error::io("cannot look at", file))?
        .is_file()
    {
        return Err(foreign());
    }
    open.read_exact(&mut start).map_err(|_| foreign())?;
    let engine = match &start {
        [
            b'S',
            b'Q',
            b'L',
            b'i',
            b't',
            b'e',
            b' ',
            b'f',
            b'o',
            b'r',
            b'm',
            b'a',
            b't',
            b' ',
            b'3',
            0,
            ..,
        ] => Engine::Sqlite,
        [b'r', b'e', b'd', b'b', 0x1a, 0x0a, 0xa9, 0x0d, 0x0a, ..] => Engine::Redb,
        // The page's header, then LMDB's magic number in the machine's byte order.
        [.., a, b, c, d, _, _, _, _] if u32::from_ne_bytes([*a, *b, *c, *d]) == 0xBEEF_C0DE => {
            Engine::Lmdb
        }
        _ => return Err(foreign()),
    };
    Ok((engine, start))
}

/// A file that is being made in several transactions. What the writer knows of its tables stays known.
struct Parts<'f> {
    keys: Keys,
    nested: nested::Tables,
    flat: flat::Tables,
    fill: &'f mut dyn FnMut(&mut dyn Writer) -> Result<bool>,
}

impl Parts<'_> {
    /// One transaction; the last one marks the file as finished. Our own keys, which are above all others, are written
    /// there too: what comes in order before them can be appended.
    fn next<C: Change>(&mut self, change: &mut C) -> Result<bool> {
        let more = match self.keys {
            Keys::Nested => (self.fill)(&mut Writing {
                change,
                tables: &mut self.nested,
            })?,
            Keys::Flat => (self.fill)(&mut Writing {
                change,
                tables: &mut self.flat,
            })?,
        };
        if !more {
            let (head, body) = self.keys.mark().split_at(crate::value::HEAD);
            change.put(FORMAT_KEY, head, body)?;
            self.nested.finish(change)?;
        }
        Ok(more)
    }
}

fn run<C: Change>(
    change: &mut C,
    keys: Keys,
    job: &mut dyn FnMut(&mut dyn Writer) -> Result<()>,
) -> Result<()> {
    match keys {
        Keys::Nested => {
            let mut tables = nested::Tables::default();
            job(&mut Writing {
                change,
                tables: &mut tables,
            })?;
            tables.finish(change)
        }
        Keys::Flat => job(&mut Writing {
            change,
            tables: &mut flat::Tables::default(),
        }),
    }
}

/// Writes through what knows the tables of one kind of keys.
struct Writing<'c, C, T> {
    change: &'c mut C,
    tables: &'c mut T,
}

impl<C: Change, T: Tables> Writer for Writing<'_, C, T> {
    fn table(&mut self, path: &[u8]) -> Result<()> {
        self.tables.table(self.change, path::checked(path)?)
    }

    fn put(&mut self, path: &[u8], cell: &Cell) -> Result<()> {
        self.tables.put(self.change, path::checked(path)?, cell)
    }
}

fn walker<V: View + 'static>(keys: Keys, view: V) -> Box<dyn Reader> {
    match keys {
        Keys::Nested => Box::new(Walker {
            view,
            layout: nested::Key::new(),
        }),
        Keys::Flat => Box::new(Walker {
            view,
            layout: flat::Whole,
        }),
    }
}

/// One request as one read transaction, which ends however the request does.
fn request<V: View, R>(view: &mut V, job: impl FnOnce(&mut V) -> Result<R>) -> Result<R> {
    view.begin()?;
    let result = job(view);
    view.end()?;
    result
}

/// Reads keys of one kind.
struct Walker<V, L> {
    view: V,
    layout: L,
}

impl<V: View, L: Layout> Reader for Walker<V, L> {
    fn cell(&mut self, path: &[u8], take: &mut dyn FnMut(Cell<'_>)) -> Result<bool> {
        request(&mut self.view, |view| self.layout.cell(view, path, take))
    }

    fn part(&mut self, path: &[u8], offset: u64, room: &mut [u8]) -> Result<Option<Part>> {
        request(&mut self.view, |view| {
            self.layout.part(view, path, offset, room)
        })
    }

    fn entry(&mut self, path: &[u8]) -> Result<Option<Entry>> {
        request(&mut self.view, |view| self.layout.entry(view, path))
    }

    fn list(&mut self, path: &[u8]) -> Result<Option<Listing>> {
        request(&mut self.view, |view| self.layout.list(view, path))
    }
}
