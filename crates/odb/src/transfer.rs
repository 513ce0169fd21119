//! Whole directory trees in and out, byte for byte.
//!
//! An import makes the file under another name, puts it on disk, and only then gives it its name: whatever happens meanwhile, the file is
//! either the old one or the whole new one. Links and devices are not followed and not taken; they are told.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::database::{Database, Reader, Writer};
use crate::engine::{Keys, Store};
use crate::path::{MAX_DEPTH, shown};
use crate::value::{Cell, Entry, kind_of};
use crate::{Error, Result};

/// Bytes of content in one transaction of an import: large enough that the commit does not matter, small beside any memory.
const PART: usize = 32 << 20;
/// Files that are read ahead of the writer.
const AHEAD: usize = 64;
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
    /// What was left out, as sentences.
    pub left_out: Vec<String>,
}

/// Something found in a directory tree.
struct Found {
    path: Vec<u8>,
    is_table: bool,
}

/// Makes a database of a directory. `stop` is asked now and then.
pub fn import(dir: &Path, file: &Path, store: Store, replace: bool, stop: &(dyn Fn() -> bool + Sync)) -> Result<Transferred> {
    if !replace && fs::symlink_metadata(file).is_ok() {
        return Err(Error::Engine(format!("{} exists; name another file, or replace it with --replace", file.display())));
    }
    remove_leftovers(file);
    let part = part_name(file);
    let done = fill(dir, &part, store, stop).and_then(|done| {
        // What belongs to an old file of this name must not be taken for the new one's.
        remove_companions(file);
        fs::rename(&part, file).map_err(Error::io("cannot rename to", file))?;
        sync_directory_of(file)?;
        Ok(done)
    });
    let _ = fs::remove_file(&part);
    remove_companions(&part);
    done
}

/// The name under which a file is made: it tells whose it is, so that a later import can clear away what a killed one left.
fn part_name(file: &Path) -> PathBuf {
    with_suffix(file, &format!(".part-{}", std::process::id()))
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
    let directory = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = file.file_name() else { return };
    let prefix = [name.as_bytes(), b".part-"].concat();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let Some(rest) = found.as_bytes().strip_prefix(&prefix[..]) else { continue };
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let pid = String::from_utf8_lossy(&rest[..digits]).into_owned();
        if digits > 0 && !Path::new("/proc").join(&pid).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Puts the directory's entry for a file on disk.
fn sync_directory_of(file: &Path) -> Result<()> {
    let directory = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|d| d.sync_all()).map_err(Error::io("cannot sync", directory))
}

/// A file that was read, on its way to the writer.
type Loaded = Result<(Found, Vec<u8>, i64)>;

fn fill(dir: &Path, file: &Path, store: Store, stop: &(dyn Fn() -> bool + Sync)) -> Result<Transferred> {
    let mut done = Transferred::default();
    let found = survey(dir, store.keys, &mut done)?;
    // One thread reads while the other writes.
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel::<Loaded>(AHEAD);
        scope.spawn(move || {
            for item in found {
                if sender.send(load(dir, item)).is_err() {
                    return;
                }
            }
        });
        let built = Database::build(file, store, &mut |writer| {
            let mut size = 0;
            while size < PART {
                if stop() {
                    return Err(Error::Interrupted);
                }
                let Ok(loaded) = receiver.recv() else { return Ok(false) };
                let (item, body, modified) = loaded?;
                size += body.len() + item.path.len();
                write_one(writer, &item, &body, modified, &mut done)?;
            }
            Ok(true)
        });
        drop(receiver);
        built
    })?;
    Ok(done)
}

fn write_one(writer: &mut dyn Writer, item: &Found, body: &[u8], modified: i64, done: &mut Transferred) -> Result<()> {
    if item.is_table {
        done.tables += 1;
        return writer.table(&item.path);
    }
    let name = item.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    done.cells += 1;
    done.bytes += body.len() as u64;
    writer.put(&item.path, &Cell { kind: kind_of(name, body), modified, body })
}

fn load(dir: &Path, item: Found) -> Loaded {
    let path = dir.join(OsStr::from_bytes(&item.path));
    if item.is_table {
        return Ok((item, Vec::new(), 0));
    }
    let mut file = File::open(&path).map_err(Error::io("cannot open", &path))?;
    let meta = file.metadata().map_err(Error::io("cannot look at", &path))?;
    if meta.len() > MAX_CELL {
        return Err(Error::Engine(format!("{} is larger than 512 MiB, which no cell may be", path.display())));
    }
    let mut body = Vec::with_capacity(meta.len() as usize + 1);
    file.read_to_end(&mut body).map_err(Error::io("cannot read", &path))?;
    Ok((item, body, modified(&meta)))
}

/// When a file was last changed, in seconds since 1970.
pub fn modified(meta: &Metadata) -> i64 {
    std::os::unix::fs::MetadataExt::mtime(meta)
}

/// Everything below a directory, in the order in which the keys will be: with nested keys table after table, with flat keys by path.
fn survey(dir: &Path, keys: Keys, done: &mut Transferred) -> Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    let mut next = 0;
    let mut at: Option<Vec<u8>> = Some(Vec::new());
    while let Some(table) = at {
        let path = dir.join(OsStr::from_bytes(&table));
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(Error::io("cannot list", &path))? {
            let entry = entry.map_err(Error::io("cannot list", &path))?;
            names.push((entry.file_name(), entry.file_type().map_err(Error::io("cannot look at", entry.path()))?));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in names {
            let own = if table.is_empty() { name.as_bytes().to_vec() } else { [&table, &b"/"[..], name.as_bytes()].concat() };
            if own.iter().filter(|&&b| b == b'/').count() >= MAX_DEPTH {
                return Err(Error::Path(shown(&own), "it goes through more than 128 directories"));
            }
            if kind.is_dir() || kind.is_file() {
                found.push(Found { path: own, is_table: kind.is_dir() });
            } else {
                let what = if kind.is_symlink() { "a symbolic link" } else { "neither a file nor a directory" };
                done.left_out.push(format!("{} is {what} and was left out", path.join(&name).display()));
            }
        }
        at = None;
        while at.is_none() && next < found.len() {
            at = found[next].is_table.then(|| found[next].path.clone());
            next += 1;
        }
    }
    if keys == Keys::Flat {
        // A table's key ends in a slash.
        found.sort_by(|a, b| key_order(a).cmp(key_order(b)));
    }
    Ok(found)
}

fn key_order(found: &Found) -> impl Iterator<Item = u8> + '_ {
    found.path.iter().copied().chain(found.is_table.then_some(b'/'))
}

/// Writes everything in a database into a directory, which must be new or empty. Everything is on disk when this returns.
pub fn export(reader: &mut dyn Reader, dir: &Path) -> Result<Transferred> {
    match fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(Error::Engine(format!("{} is not empty; name a new directory", dir.display())));
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => fs::create_dir(dir).map_err(Error::io("cannot make", dir))?,
        Err(e) => return Err(Error::io("cannot use", dir)(e)),
    }
    let mut done = Transferred::default();
    let mut open = vec![Vec::new()];
    while let Some(table) = open.pop() {
        // Every name was checked by the reader: none of them leads out of the directory.
        let entries = reader.list(&table)?.ok_or_else(|| Error::Damaged(format!("the table “{}” went away", shown(&table))))?;
        for (name, entry) in entries {
            let path = if table.is_empty() { name } else { [&table, &b"/"[..], &name].concat() };
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

fn export_cell(reader: &mut dyn Reader, dir: &Path, path: &[u8], done: &mut Transferred) -> Result<()> {
    let to = dir.join(OsStr::from_bytes(path));
    let mut written = Ok(());
    let found = reader.cell(path, &mut |cell| {
        written = write_file(&to, &cell);
        done.bytes += cell.body.len() as u64;
    })?;
    if !found {
        return Err(Error::Damaged(format!("the cell “{}” went away", shown(path))));
    }
    done.cells += 1;
    written.map_err(Error::io("cannot write", to))
}

fn write_file(to: &Path, cell: &Cell) -> std::io::Result<()> {
    let mut file = File::create_new(to)?;
    file.write_all(cell.body)?;
    let since = Duration::from_secs(cell.modified.unsigned_abs());
    let time: Option<SystemTime> = if cell.modified < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
    if let Some(time) = time {
        // A time that the file system does not know is no reason to lose the content.
        let _ = file.set_modified(time);
    }
    file.sync_data()
}
