//! A private PostgreSQL server.

use std::ffi::OsStr;
use std::path::PathBuf;

use fingerpost_sys::journal::Undo;
use fingerpost_sys::scratch::Scratch;

use super::{Home, Private, Restart};
use crate::WorkloadError;
use crate::database::connection::{Login, Target};
use crate::database::options::Options;
use crate::database::postgres::PgConnection;
use crate::programs::{find_program, postgresql_versions};

/// PostgreSQL's own default.
const MOST_CONNECTIONS: usize = 100;

pub(crate) struct Programs {
    pub(crate) server: PathBuf,
    pub(crate) initdb: PathBuf,
}

/// What is not here, as a sentence that says what to do.
pub fn missing() -> Option<String> {
    programs().err()
}

pub(crate) fn programs() -> Result<Programs, String> {
    let not_here = "PostgreSQL is not installed (no postgres and initdb in PATH or /usr/lib/postgresql); install postgresql, or give \
                    the address of a server with --set url=postgres://…";
    let initdb = find_program(&["initdb"], &postgresql_versions()).ok_or(not_here)?;
    // Both of one version: the server beside initdb.
    let server = initdb.canonicalize().unwrap_or_else(|_| initdb.clone()).with_file_name("postgres");
    if server.exists() { Ok(Programs { server, initdb }) } else { Err(not_here.to_owned()) }
}

/// Starts a server in a new directory `dir`.
pub fn start(options: &Options, scratch: &mut Scratch, dir: PathBuf) -> Result<Private, WorkloadError> {
    let programs = programs().map_err(WorkloadError::Missing)?;
    let home = Home::make(dir, &["postgres", "nobody"])?;
    let address = home.socket(".s.PGSQL.5432")?;
    let data = home.data.clone();
    let args = ["--username=fingerpost", "--auth=trust", "--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C", "-D"];
    // A small segment of System V shared memory stays behind when the server is killed.
    let note = Undo::RemoveSegment { note: data.join("postmaster.pid") };
    scratch.record(note).map_err(|e| WorkloadError::Failed(format!("the journal could not be written: {e}")))?;
    let words: Vec<&OsStr> =
        std::iter::once(programs.initdb.as_os_str()).chain(args.iter().map(OsStr::new)).chain(std::iter::once(data.as_os_str())).collect();
    home.run(scratch, "making PostgreSQL's data directory (initdb)", home.command(&words)?)?;

    let mut settings = vec![
        "listen_addresses=".to_owned(),
        format!("unix_socket_directories={}", home.run.display()),
        "unix_socket_permissions=0700".to_owned(),
        // In files of the data directory, which go with it; POSIX shared memory would stay behind after a kill.
        "dynamic_shared_memory_type=mmap".to_owned(),
        format!("max_connections={}", MOST_CONNECTIONS.max(options.clients.iter().copied().max().unwrap_or(0) + 10)),
    ];
    settings.extend(options.variables.iter().map(|(name, value)| format!("{name}={value}")));
    let mut words: Vec<&OsStr> = options.server_prefix.iter().map(OsStr::new).collect();
    words.extend([programs.server.as_os_str(), OsStr::new("-D"), data.as_os_str()]);
    words.extend(settings.iter().flat_map(|setting| [OsStr::new("-c"), OsStr::new(setting)]));
    let login = Login { address, user: "fingerpost".to_owned(), password: None, database: "postgres".to_owned() };
    // "Fast shutdown" of its manual: clients are sent away.
    let restart = Restart::new(home, "PostgreSQL", &words, libc::SIGINT);
    let server = restart.serve(scratch, || PgConnection::connect(&login).map(drop))?;
    Ok(Private { server, target: Target::Postgres { login }, restart })
}
