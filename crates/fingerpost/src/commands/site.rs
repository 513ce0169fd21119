//! `fingerpost site`: the object database, for real use: a web site in one file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fingerpost_odb::transfer::{self, Transferred};
use fingerpost_odb::{Cell, Database, Entry, Error, Store, kind_of};
use fingerpost_record::text::clean;

use crate::exit::{Done, Usage, say, usage};
use crate::{conduct, output};

/// Arguments of `site`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with an object database.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make an object database of a directory
    Import {
        /// The directory
        dir: PathBuf,
        /// The database's file, which must not exist
        file: PathBuf,
        /// Engine and keys: tables walked one by one, or whole paths (`-flat`)
        #[arg(long, default_value = "lmdb", value_parser = store_parser())]
        store: Store,
        /// Put the new database in the place of one that exists, all at once
        #[arg(long)]
        replace: bool,
    },
    /// Write everything in an object database into a directory
    Export {
        /// The database's file
        file: PathBuf,
        /// The directory, which must be new or empty
        dir: PathBuf,
    },
    /// What a table holds
    Ls {
        /// The database's file
        file: PathBuf,
        /// The table; the root when it is left out
        #[arg(default_value = "")]
        path: std::ffi::OsString,
    },
    /// Write a cell's content to standard output
    Get {
        /// The database's file
        file: PathBuf,
        /// The cell
        path: std::ffi::OsString,
    },
    /// Set a cell; it is on disk when this ends
    Put {
        /// The database's file
        file: PathBuf,
        /// The cell; tables on the way are made
        path: std::ffi::OsString,
        /// The file with its content; standard input when it is left out
        from: Option<PathBuf>,
    },
    /// Serve a directory or an object database on loopback
    Serve {
        /// The directory, or the database's file
        #[arg(long, value_name = "DIR|FILE")]
        from: PathBuf,
        /// The port; a free one when it is left out
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
}

fn store_parser() -> impl TypedValueParser<Value = Store> {
    PossibleValuesParser::new(Store::ALL.map(Store::name)).try_map(|name| name.parse::<Store>())
}

/// Cells larger than this are not taken from standard input.
const MAX_INPUT: u64 = 512 << 20;

/// Does what was asked for.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let done = match args.command {
        Command::Import { dir, file, store, replace } => {
            let stop = Arc::new(AtomicBool::new(false));
            conduct::stop_on_signals(&stop)?;
            let went = transfer::import(&dir, &file, store, replace, &|| stop.load(Ordering::Relaxed));
            went.map(|went| tell("imported", &went))
        }
        Command::Export { file, dir } => {
            Database::open(&file).and_then(|db| transfer::export(&mut *db.reader()?, &dir)).map(|went| tell("exported", &went))
        }
        Command::Ls { file, path } => return list(&file, path.as_bytes()),
        Command::Get { file, path } => return get(&file, path.as_bytes()),
        Command::Put { file, path, from } => return put(&file, path.as_bytes(), from),
        Command::Serve { from, port } => return super::site_serve::run(&from, port),
    };
    done.map_err(mend)?;
    Ok(Done::Well)
}

/// An error that the user can mend is bad input; others are failures.
pub fn mend(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => anyhow::anyhow!("interrupted; nothing was made"),
        other => Usage(other.to_string()).into(),
    }
}

fn tell(what: &str, went: &Transferred) {
    went.left_out.iter().for_each(|sentence| say(sentence));
    say(&format!("{what} {} cells in {} tables, {} bytes", went.cells, went.tables + 1, went.bytes));
}

fn list(file: &std::path::Path, path: &[u8]) -> anyhow::Result<Done> {
    let entries = Database::open(file).and_then(|db| db.reader()?.list(path)).map_err(mend)?;
    let Some(entries) = entries else { return usage(format!("there is no table “{}”", clean(&String::from_utf8_lossy(path)))) };
    output::write(|out| {
        entries.iter().try_for_each(|(name, entry)| {
            // Names come from a file, which may be hostile to a terminal.
            let name = clean(&String::from_utf8_lossy(name)).into_owned();
            match entry {
                Entry::Table => writeln!(out, "{:<8} {:>12}  {name}/", "table", ""),
                Entry::Cell { kind, size, .. } => writeln!(out, "{:<8} {size:>12}  {name}", kind.name()),
            }
        })
    })?;
    Ok(Done::Well)
}

fn get(file: &std::path::Path, path: &[u8]) -> anyhow::Result<Done> {
    let mut written = Ok(());
    let found = Database::open(file)
        .and_then(|db| db.reader()?.cell(path, &mut |cell| written = output::write(|out| out.write_all(cell.body))))
        .map_err(mend)?;
    written?;
    if !found {
        return usage(format!("there is no cell “{}”", clean(&String::from_utf8_lossy(path))));
    }
    Ok(Done::Well)
}

fn put(file: &std::path::Path, path: &[u8], from: Option<PathBuf>) -> anyhow::Result<Done> {
    let (body, modified) = read_input(from)?;
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let cell = Cell { kind: kind_of(name, &body), modified, body: &body };
    Database::open_for_writing(file).and_then(|db| db.write(&mut |writer| writer.put(path, &cell))).map_err(mend)?;
    // Said only now: what is said to be stored is on disk.
    output::write(|out| writeln!(out, "stored {} bytes", body.len()))?;
    Ok(Done::Well)
}

fn read_input(from: Option<PathBuf>) -> anyhow::Result<(Vec<u8>, i64)> {
    let mut body = Vec::new();
    let read = match &from {
        Some(path) => File::open(path).and_then(|f| {
            let modified = transfer::modified(&f.metadata()?);
            f.take(MAX_INPUT + 1).read_to_end(&mut body).map(|_| modified)
        }),
        None => io::stdin()
            .lock()
            .take(MAX_INPUT + 1)
            .read_to_end(&mut body)
            .map(|_| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs() as i64)),
    };
    let name = from.map_or("standard input".to_owned(), |p| p.display().to_string());
    match read {
        Ok(_) if body.len() as u64 > MAX_INPUT => usage(format!("{name} is larger than 512 MiB, which no cell may be")),
        Ok(modified) => Ok((body, modified)),
        Err(e) => usage(format!("{name} cannot be read: {e}")),
    }
}
