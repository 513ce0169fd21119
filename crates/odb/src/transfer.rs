//! Whole directory trees in and out, byte for byte.
//!
//! An import makes the file under another name, puts it on disk, and only then gives it its name: whatever happens
//! meanwhile, the file is either the old one or the whole new one. Links and devices are not followed and not taken;
//! they are told.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::database::Database;
use crate::ending::kind_of;
use crate::engine::{Reader, Store, Writer};
use crate::owner::directory_of;
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
    remove_leftovers(file);
    // The name tells whose the file is, so that a later import can clear away what a killed one left.
    let part = with_suffix(file, &format!(".part-{}", std::process::id()));
    let done = fill(dir, &part, store, stop).and_then(|done| {
        // What belongs to an old file of this name must not be taken for the new one's.
        remove_companions(file);
        fs::rename(&part, file).map_err(Error::io("cannot rename to", file))?;
        sync_directory_of(file)?;
        Ok(done)
    });
    let _ = fs::remove_file(&part);
    remove_companions(&part);
    done.map_err(|e| match e {
        // An engine does not say with which file.
        Error::Engine(text) if !text.contains(&*dir.to_string_lossy()) => {
            Error::Engine(format!("{} cannot be made: {text}", file.display()))
        }
        other => other,
    })
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The files that engines keep beside theirs.
fn remove_companions(file: &Path) {
    for suffix in ["-lock", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(with_suffix(file, suffix));
    }
}

/// Removes what imports into this file left that were killed.
fn remove_leftovers(file: &Path) {
    let Some(name) = file.file_name() else { return };
    let prefix = [name.as_bytes(), b".part-"].concat();
    for entry in fs::read_dir(directory_of(file))
        .into_iter()
        .flatten()
        .flatten()
    {
        let found = entry.file_name();
        let Some(rest) = found.as_bytes().strip_prefix(&prefix[..]) else {
            continue;
        };
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let pid = String::from_utf8_lossy(&rest[..digits]).into_owned();
        if digits > 0 && !Path::new("/proc").join(&pid).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Puts the directory's entry for a file on disk.
fn sync_directory_of(file: &Path) -> Result<()> {
    let directory = directory_of(file);
    File::open(directory)
        .and_then(|d| d.sync_all())
        .map_err(Error::io("cannot sync", directory))
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
    file: &Path,
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
        let built = Database::build(file, store, &mut |writer| {
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
    match fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(Error::Engine(format!(
                    "{} is not empty; name a new directory",
                    dir.display()
                )));
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir(dir).map_err(Error::io("cannot make", dir))?
        }
        Err(e) => return Err(Error::io("cannot use", dir)(e)),
    }
    let mut done = Transferred::default();
    let mut open = vec![Vec::new()];
    while let Some(table) = open.pop() {
        // Every name was checked by the reader: none of them leads out of the directory.
        let entries = reader
            .list(&table)?
            .ok_or_else(|| Error::Damaged(format!("the table “{}” went away", shown(&table))))?;
        for (name, entry) in entries {
            let path = if table.is_empty() {
                name
            } else {
                [&table, &b"/"[..], &name].concat()
            };
            match entry {
                Entry::Table => {
                    let to = dir.join(OsStr::from_bytes(&path));
                    fs::create_dir(&to).map_err(Error::io("cannot make", to))?;
                    done.tables += 1;
                    open.push(path);
                }
                Entry::Cell { .. } => export_cell(reader, dir, &path, &mut done)?,
            }
        }
    }
    sync_directory_of(&dir.join("x"))?;
    Ok(done)
}

fn export_cell(
    reader: &mut dyn Reader,
    dir: &Path,
    path: &[u8],
    done: &mut Transferred,
) -> Result<()> {
    let to = dir.join(OsStr::from_bytes(path));
    let mut written = Ok(());
    let found = reader.cell(path, &mut |cell| {
        written = write_file(&to, &cell);
        done.bytes += cell.body.len() as u64;
    })?;
    if !found {
        return Err(Error::Damaged(format!(
            "the cell “{}” went away",
            shown(path)
        )));
    }
    done.cells += 1;
    written.map_err(Error::io("cannot write", to))
}

fn write_file(to: &Path, cell: &Cell) -> std::io::Result<()> {
    let mut file = File::create_new(to)?;
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
