//! Whole directory trees in and out, byte for byte.
//!
//! An import makes the file in a directory of its own, puts it on disk, and only then gives it its name: whatever happens
//! meanwhile, the file is either the old one or the whole new one. Links and devices are not followed and not taken;
//! they are told. An export reaches every directory that it made through an open descriptor, and no link in them leads
//! it elsewhere.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fingerpost_undo::owned::Dir;
use rustix::fs::{Mode, OFlags};

use crate::database::Database;
use crate::ending::kind_of;
use crate::engine::{Reader, Store, Writer};
use crate::making::New;
use crate::path::shown;
use crate::room::{Held, Room};
use crate::value::{Cell, Entry};
use crate::walk::{Found, Met, Walk};
use crate::{Error, Result};

/// Bytes of content in one transaction of an import: large enough that the commit does not matter, small beside any
/// memory.
const PART: usize = 32 << 20;
/// Bytes of content that are read ahead of the writer. A larger file is read when nothing else is held.
const AHEAD: u64 = 64 << 20;
/// Entries that are read ahead of the writer, whatever their size.
const ENTRIES_AHEAD: usize = 1024;
/// What was left out is told by name so many times; the rest is counted.
const LEFT_OUT: usize = 100;
/// The largest file that can be a cell.
const MAX_CELL: u64 = 512 << 20;

/// What was transferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Cells, or files.
    pub cells: u64,
    /// Tables, or directories, without the root.
    pub tables: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// What was left out, as sentences: the first hundred, then how many more.
    pub left_out: Vec<String>,
    more_left_out: u64,
}

impl Transferred {
    fn leave_out(&mut self, sentence: String) {
        if self.left_out.len() < LEFT_OUT {
            self.left_out.push(sentence);
        } else {
            self.more_left_out += 1;
        }
    }
}

/// Makes a database of a directory. `stop` is asked now and then.
pub fn import(
    dir: &Path,
    file: &Path,
    store: Store,
    replace: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Transferred> {
    if !replace && fs::symlink_metadata(file).is_ok() {
        return Err(Error::Engine(format!(
            "{} exists; name another file, or replace it with --replace",
            file.display()
        )));
    }
    let new = New::beside(file)?;
    let done = fill(dir, &new, store, stop).and_then(|done| {
        new.finish(replace)
            .map_err(Error::io("cannot rename to", file))?;
        Ok(done)
    });
    done.map_err(|e| match e {
        // An engine does not say with which file.
        Error::Engine(text) if !text.contains(&*dir.to_string_lossy()) => {
            Error::Engine(format!("{} cannot be made: {text}", file.display()))
        }
        // Its name while it was made is of use to nobody.
        Error::Io { what, error, path } if path != dir && !path.starts_with(dir) => Error::Io {
            what,
            path: file.to_owned(),
            error,
        },
        other => other,
    })
}

/// What the reading thread hands to the writing one: content, with its time of change and its share of the room; or why
/// something was left out.
enum Loaded<'r> {
    Entry {
        item: Found,
        body: Vec<u8>,
        modified: i64,
        _held: Held<'r>,
    },
    LeftOut(String),
}

fn fill(
    dir: &Path,
    new: &New,
    store: Store,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Transferred> {
    let mut done = Transferred::default();
    let walk = Walk::new(dir, store.keys)?;
    let room = Room::new(AHEAD);
    // One thread reads while the other writes.
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel::<Result<Loaded>>(ENTRIES_AHEAD);
        let room = &room;
        std::thread::Builder::new()
            .spawn_scoped(scope, move || read_ahead(walk, room, &sender))
            .map_err(Error::io("cannot start a thread that reads", dir))?;
        let built = Database::build(new, store, &mut |writer| {
            let mut size = 0;
            while size < PART {
                if stop() {
                    return Err(Error::Interrupted);
                }
                let Ok(loaded) = receiver.recv() else {
                    return Ok(false);
                };
                match loaded? {
                    Loaded::LeftOut(sentence) => done.leave_out(sentence),
                    Loaded::Entry {
                        item,
                        body,
                        modified,
                        _held,
                    } => {
                        size += body.len() + item.path.len();
                        write_one(writer, &item, &body, modified, &mut done)?;
                    }
                }
            }
            Ok(true)
        });
        // The reader may wait for room that nobody gives back any more.
        room.close();
        drop(receiver);
        built
    })?;
    if done.more_left_out > 0 {
        done.left_out
            .push(format!("{} more were left out", done.more_left_out));
    }
    Ok(done)
}

/// Reads files for as long as there is room for them.
fn read_ahead<'r>(mut walk: Walk, room: &'r Room, sender: &mpsc::SyncSender<Result<Loaded<'r>>>) {
    while let Some(met) = walk.next() {
        let loaded = met.and_then(|met| match met {
            Met::LeftOut(sentence) => Ok(Some(Loaded::LeftOut(sentence))),
            Met::Taken(item) => load(&walk, room, item),
        });
        let failed = loaded.is_err();
        // The writer has given up, or is told to.
        let Some(loaded) = loaded.transpose() else {
            return;
        };
        if sender.send(loaded).is_err() || failed {
            return;
        }
    }
}

fn write_one(
    writer: &mut dyn Writer,
    item: &Found,
    body: &[u8],
    modified: i64,
    done: &mut Transferred,
) -> Result<()> {
    if item.is_table {
        done.tables += 1;
        return writer.table(&item.path);
    }
    let name = item.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    done.cells += 1;
    done.bytes += body.len() as u64;
    writer.put(
        &item.path,
        &Cell {
            kind: kind_of(name, body),
            modified,
            body,
        },
    )
}

/// Reads one file; `None` when the writer has given up.
fn load<'r>(walk: &Walk, room: &'r Room, item: Found) -> Result<Option<Loaded<'r>>> {
    if item.is_table {
        return Ok(room.take(0).map(|held| Loaded::Entry {
            item,
            body: Vec::new(),
            modified: 0,
            _held: held,
        }));
    }
    let path = walk.name(&item.path);
    let Some(mut file) = walk
        .root
        .file(&item.path)
        .map_err(Error::io("cannot open", &path))?
    else {
        return Err(Error::Engine(format!(
            "{} may not be read, or is no file any more",
            path.display()
        )));
    };
    let meta = file
        .metadata()
        .map_err(Error::io("cannot look at", &path))?;
    if meta.len() > MAX_CELL {
        return Err(Error::Engine(format!(
            "{} is larger than 512 MiB, which no cell may be",
            path.display()
        )));
    }
    let Some(held) = room.take(meta.len()) else {
        return Ok(None);
    };
    let mut body = Vec::with_capacity(meta.len() as usize + 1);
    (&mut file)
        .take(meta.len() + 1)
        .read_to_end(&mut body)
        .map_err(Error::io("cannot read", &path))?;
    if body.len() as u64 > meta.len() {
        return Err(Error::Engine(format!(
            "{} grew while it was read",
            path.display()
        )));
    }
    Ok(Some(Loaded::Entry {
        item,
        body,
        modified: modified(&meta),
        _held: held,
    }))
}

/// When a file was last changed, in seconds since 1970.
pub fn modified(meta: &Metadata) -> i64 {
    std::os::unix::fs::MetadataExt::mtime(meta)
}

/// Writes everything in a database into a directory, which must be new or empty. Everything is on disk when this
/// returns.
pub fn export(reader: &mut dyn Reader, dir: &Path) -> Result<Transferred> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(Error::io("cannot make", dir)(e));
        }
        _ => {}
    }
    let root = Dir::named(dir).map_err(Error::io("cannot use", dir))?;
    if !root
        .names()
        .map_err(Error::io("cannot use", dir))?
        .is_empty()
    {
        return Err(Error::Engine(format!(
            "{} is not empty; name a new directory",
            dir.display()
        )));
    }
    let mut done = Transferred::default();
    let mut open = vec![Vec::new()];
    while let Some(table) = open.pop() {
        let to = Target {
            at: below(&root, &table).map_err(Error::io("cannot use", shown_in(dir, &table)))?,
            dir,
        };
        // Every name was checked by the reader: none of them leads out of the directory.
        let entries = reader
            .list(&table)?
            .ok_or_else(|| Error::Damaged(format!("the table “{}” went away", shown(&table))))?;
        for (name, entry) in entries {
            let path = if table.is_empty() {
                name.clone()
            } else {
                [&table, &b"/"[..], &name].concat()
            };
            match entry {
                Entry::Table => {
                    rustix::fs::mkdirat(&to.at, &name[..], Mode::from_raw_mode(0o777))
                        .map_err(|e| Error::io("cannot make", shown_in(dir, &path))(e.into()))?;
                    done.tables += 1;
                    open.push(path);
                }
                Entry::Cell { .. } => export_cell(reader, &to, &name, &path, &mut done)?,
            }
        }
    }
    let synced = rustix::fs::openat(
        &root,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .and_then(rustix::fs::fsync);
    synced.map_err(|e| Error::io("cannot sync", dir)(e.into()))?;
    Ok(done)
}

/// A directory that is being filled.
struct Target<'d> {
    at: OwnedFd,
    /// The whole export's, for sentences.
    dir: &'d Path,
}

fn shown_in(dir: &Path, path: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(path))
}

/// Opens a directory of the export. Who may write to the directory that the user named can put a link in the place of
/// one that was just made: no link is followed.
fn below(root: &Dir, table: &[u8]) -> std::io::Result<OwnedFd> {
    let path = if table.is_empty() { b"." } else { table };
    root.below(
        Path::new(OsStr::from_bytes(path)),
        OFlags::PATH | OFlags::DIRECTORY,
    )
}

fn export_cell(
    reader: &mut dyn Reader,
    to: &Target,
    name: &[u8],
    path: &[u8],
    done: &mut Transferred,
) -> Result<()> {
    let mut written = Ok(());
    let found = reader.cell(path, &mut |cell| {
        written = write_file(&to.at, name, &cell);
        done.bytes += cell.body.len() as u64;
    })?;
    if !found {
        return Err(Error::Damaged(format!(
            "the cell “{}” went away",
            shown(path)
        )));
    }
    done.cells += 1;
    written.map_err(Error::io("cannot write", shown_in(to.dir, path)))
}

fn write_file(to: &OwnedFd, name: &[u8], cell: &Cell) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(to, name, flags, Mode::from_raw_mode(0o666))?;
    let mut file = File::from(made);
    file.write_all(cell.body)?;
    let since = Duration::from_secs(cell.modified.unsigned_abs());
    let time: Option<SystemTime> = if cell.modified < 0 {
        UNIX_EPOCH.checked_sub(since)
    } else {
        UNIX_EPOCH.checked_add(since)
    };
    if let Some(time) = time {
        // A time that the file system does not know is no reason to lose the content.
        let _ = file.set_modified(time);
    }
    file.sync_data()
}
