//! `fingerpost site`: the object database, for real use: a web site in one file.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fingerpost_odb::transfer::{self, Transferred};
use fingerpost_odb::{Cell, Database, Engine, Entry, Error, Standing, Store, kind_of, standing};
use fingerpost_record::suggest;
use fingerpost_record::text::clean;
use fingerpost_site::{self as served, Source};
use fingerpost_sys::beneath::Links;

use super::serve_guard::{self, Served};
use super::site_guard::{Work, guarded, limit_growth};
use crate::exit::{Done, Usage, say, usage};
use crate::{conduct, defect, inner, output};

/// Arguments of `site`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost site import public/ site.odb     a directory becomes one file
  fingerpost site serve --from site.odb --port 8080
  fingerpost site ls site.odb
  fingerpost site get site.odb index.html
  fingerpost site export site.odb public/")]
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
        #[command(flatten)]
        of: Kept,
        /// The directory, which must be new or empty
        dir: PathBuf,
    },
    /// What a table holds
    Ls {
        #[command(flatten)]
        of: Kept,
        /// The table; the root when it is left out
        #[arg(default_value = "", hide_default_value = true)]
        path: std::ffi::OsString,
    },
    /// Write a cell's content to standard output
    Get {
        #[command(flatten)]
        of: Kept,
        /// The cell
        path: std::ffi::OsString,
    },
    /// Set a cell; it is on disk when this ends
    Put {
        #[command(flatten)]
        of: Kept,
        /// The cell; tables on the way are made
        path: std::ffi::OsString,
        /// The file with its content; standard input when it is left out
        from: Option<PathBuf>,
    },
    /// Check an object database: read everything in it, within bounds of time and memory
    Verify {
        /// The database's file
        file: PathBuf,
    },
    /// Serve a directory or an object database on loopback
    ///
    /// Of a directory only regular files are served; symbolic links are not followed, and names that begin with a dot
    /// are not found (but `.well-known`). A database is checked first, as `site verify` does it.
    Serve {
        /// The directory, or the database's file
        #[arg(long, value_name = "DIR|FILE")]
        from: PathBuf,
        /// The port; a free one when it is left out
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Of a directory, follow symbolic links that lead to a place inside it; none is followed otherwise
        #[arg(long)]
        follow_links: bool,
        /// Serve a database without checking all of it first, also one that others own or may write to; a damaged one
        /// can end the program
        #[arg(long)]
        trust: bool,
    },
}

/// A database that is there.
#[derive(Debug, clap::Args)]
struct Kept {
    /// The database's file
    file: PathBuf,
    /// Take the file as it is, also one that others own or may write to; a damaged one can end the program
    #[arg(long)]
    trust: bool,
}

fn store_parser() -> impl TypedValueParser<Value = Store> {
    PossibleValuesParser::new(Store::ALL.map(Store::name)).try_map(|name| name.parse::<Store>())
}

/// Cells larger than this are not taken from standard input.
const MAX_INPUT: u64 = 512 << 20;

/// Does what was asked for.
pub fn run(args: Args) -> anyhow::Result<Done> {
    match args.command {
        Command::Import {
            dir,
            file,
            store,
            replace,
        } => {
            let stop = conduct::stopped_by_signals()?;
            let went = transfer::import(&dir, &file, store, replace, &|| {
                stop.load(Ordering::Relaxed)
            })
            .map_err(mend)?;
            tell("imported", &went);
            Ok(Done::Well)
        }
        Command::Export { of, dir } => guarded(&of.file, Work::Read, || export(&of, &dir)),
        Command::Ls { of, path } => guarded(&of.file, Work::Read, || list(&of, path.as_bytes())),
        Command::Get { of, path } => guarded(&of.file, Work::Read, || get(&of, path.as_bytes())),
        Command::Put { of, path, from } => {
            guarded(&of.file, Work::Write, || put(&of, path.as_bytes(), from))
        }
        Command::Verify { file } => guarded(&file, Work::Verify, || verify(&file)),
        Command::Serve {
            from,
            port,
            follow_links,
            trust,
        } => serve_from(&Kept { file: from, trust }, port, follow_links),
    }
}

fn verify(file: &Path) -> anyhow::Result<Done> {
    let ours = standing(file).map_err(mend)? == Standing::Ours;
    let database = if ours {
        Database::open(file)
    } else {
        Database::open_alone(file)
    }
    .map_err(mend)?;
    let found = database.verify().map_err(mend)?;
    output::write(|out| {
        writeln!(
            out,
            "{} is whole: {} cells in {} tables, {} bytes",
            file.display(),
            found.cells,
            found.tables + 1,
            found.bytes
        )
    })?;
    if !ours {
        say(&format!(
            "{} can be changed by others after this check",
            file.display()
        ));
    }
    Ok(Done::Well)
}

fn export(of: &Kept, dir: &Path) -> anyhow::Result<Done> {
    let database = open(of)?;
    // A table that leads to itself would fill the disk.
    database.verify().map_err(mend)?;
    let went = database
        .reader()
        .and_then(|mut reader| transfer::export(&mut *reader, dir))
        .map_err(mend)?;
    tell("exported", &went);
    Ok(Done::Well)
}

fn tell(what: &str, went: &Transferred) {
    went.left_out.iter().for_each(|sentence| say(sentence));
    say(&format!(
        "{what} {} cells in {} tables, {} bytes",
        went.cells,
        went.tables + 1,
        went.bytes
    ));
}

fn list(of: &Kept, path: &[u8]) -> anyhow::Result<Done> {
    let entries = open(of)?
        .reader()
        .and_then(|mut reader| reader.list(path))
        .map_err(mend)?;
    let Some(entries) = entries else {
        return usage(format!("there is no table {}", meant(of, path)));
    };
    output::write(|out| {
        entries.iter().try_for_each(|(name, entry)| {
            // Names come from a file, which may be hostile to a terminal.
            let name = clean(&String::from_utf8_lossy(name)).into_owned();
            match entry {
                Entry::Table => writeln!(out, "{:<8} {:>12}  {name}/", "table", ""),
                Entry::Cell { kind, size, .. } => {
                    writeln!(out, "{:<8} {size:>12}  {name}", kind.name())
                }
            }
        })
    })?;
    Ok(Done::Well)
}

/// A path that there is nothing at, with what is near to it in its table.
fn meant(of: &Kept, path: &[u8]) -> String {
    let split = path.iter().rposition(|byte| *byte == b'/');
    let (table, name) = split.map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]));
    let listed = open(of)
        .ok()
        .and_then(|database| database.reader().ok()?.list(table).ok()?)
        .unwrap_or_default();
    let names: Vec<String> = listed
        .iter()
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        .collect();
    let near = suggest::nearest(
        &String::from_utf8_lossy(name),
        names.iter().map(String::as_str),
    );
    let full = |near| {
        format!(
            "{}{near}",
            String::from_utf8_lossy(&path[..split.map_or(0, |at| at + 1)])
        )
    };
    let meant = near.map_or(String::new(), |near| {
        format!("; did you mean “{}”?", clean(&full(near)))
    });
    format!("“{}”{meant}", clean(&String::from_utf8_lossy(path)))
}

fn get(of: &Kept, path: &[u8]) -> anyhow::Result<Done> {
    let mut written = Ok(());
    let found = open(of)?
        .reader()
        .and_then(|mut reader| reader.cell(path, &mut |cell| written = output::content(cell.body)))
        .map_err(mend)?;
    written?;
    if !found {
        return usage(format!("there is no cell {}", meant(of, path)));
    }
    Ok(Done::Well)
}

fn put(Kept { file, trust }: &Kept, path: &[u8], from: Option<PathBuf>) -> anyhow::Result<Done> {
    Database::engine_of(file).map_err(mend)?;
    if !*trust && standing(file).map_err(mend)? != Standing::Ours {
        return usage(strange(file));
    }
    let (body, modified) = read_input(from)?;
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let cell = Cell {
        kind: kind_of(name, &body),
        modified,
        body: &body,
    };
    limit_growth(file, body.len())?;
    Database::open_for_writing(file)
        .and_then(|db| db.write(&mut |writer| writer.put(path, &cell)))
        .map_err(mend)?;
    // Said only now: what is said to be stored is on disk.
    output::write(|out| writeln!(out, "stored {} bytes", body.len()))?;
    Ok(Done::Well)
}

fn read_input(from: Option<PathBuf>) -> anyhow::Result<(Vec<u8>, i64)> {
    let mut body = Vec::new();
    let read = match &from {
        Some(path) => File::open(path).and_then(|f| {
            let modified = transfer::modified(&f.metadata()?);
            f.take(MAX_INPUT + 1)
                .read_to_end(&mut body)
                .map(|_| modified)
        }),
        None => io::stdin()
            .lock()
            .take(MAX_INPUT + 1)
            .read_to_end(&mut body)
            .map(|_| {
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |t| t.as_secs() as i64)
            }),
    };
    let name = from.map_or("standard input".to_owned(), |p| p.display().to_string());
    match read {
        Ok(_) if body.len() as u64 > MAX_INPUT => usage(format!(
            "{name} is larger than 512 MiB, which no cell may be"
        )),
        Ok(modified) => Ok((body, modified)),
        Err(e) => usage(format!("{name} cannot be read: {e}")),
    }
}

/// Opens a database for reading: one that others can have arranged so that no file beside it is looked at or made and no
/// lock is taken, which they could hold; and none of LMDB's at all unless it is trusted.
fn open(Kept { file, trust }: &Kept) -> anyhow::Result<Database> {
    let engine = Database::engine_of(file).map_err(mend)?;
    match standing(file).map_err(mend)? {
        Standing::Ours => Database::open(file),
        Standing::Strange if engine == Engine::Lmdb && !*trust => return usage(strange(file)),
        Standing::OpenDirectory | Standing::Strange => Database::open_alone(file),
    }
    .map_err(mend)
}

/// What is said of a database that is not opened because others may change it.
fn strange(file: &Path) -> String {
    let name = file.display();
    format!(
        "{name} is not opened: others own or may change it or its directory; copy it to a directory of yours and check \
         it with `fingerpost site verify`, or add --trust"
    )
}

/// An error that the user can mend is bad input; others are failures.
fn mend(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => anyhow::anyhow!("interrupted; nothing was made"),
        other => Usage(other.to_string()).into(),
    }
}

/// Serves until the person ends it.
fn serve_from(of: &Kept, port: u16, follow_links: bool) -> anyhow::Result<Done> {
    let from = &of.file;
    if from.is_dir() {
        let links = if follow_links {
            Links::Inside
        } else {
            Links::None
        };
        return serve_directory(from, port, Source::directory(from, links).map_err(Usage)?);
    }
    guarded(from, Work::Serve, || {
        let database = open(of)?;
        if !of.trust {
            database.verify().map_err(mend)?;
        }
        let (listener, stop) = listen(from, port)?;
        serve(&listener, Source::Odb(database), &stop)
    })
}

/// Serves a directory by an inner process. It has the socket as its standard input, and a defect in it ends it alone.
fn serve_directory(from: &Path, port: u16, source: Source) -> anyhow::Result<Done> {
    if inner::is(serve_guard::INSIDE) {
        defect::ends_with(defect::BROKE_OFF);
        let listener = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .context("there is no socket to serve at")?;
        let stop = conduct::stopped_by_signals()?;
        return serve(&listener.into(), source, &stop);
    }
    let (listener, stop) = listen(from, port)?;
    serve_guard::guarded(
        &Served {
            what: "site",
            lost: "",
        },
        &stop,
        |command, _| command.stdin(OwnedFd::from(listener.try_clone()?)).spawn(),
    )
}

/// A socket at the port, whose address is told, and what a signal sets from before that on.
fn listen(from: &Path, port: u16) -> anyhow::Result<(TcpListener, Arc<AtomicBool>)> {
    let listener = served::listen(port)
        .map_err(|e| Usage(format!("port {port} of 127.0.0.1 cannot be had: {e}")))?;
    let address = listener.local_addr().context("cannot tell the port")?;
    let stop = conduct::stopped_by_signals()?;
    output::sentence(&format!("serving {} on http://{address}/", from.display()))?;
    Ok((listener, stop))
}

fn serve(listener: &TcpListener, source: Source, stop: &AtomicBool) -> anyhow::Result<Done> {
    served::serve(listener, &Arc::new(source), &|| {
        stop.load(Ordering::Relaxed)
    })
    .context("cannot serve")?;
    Ok(Done::Well)
}
