//! A private PostgreSQL server.

use std::ffi::OsString;
use std::path::PathBuf;

use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::Scratch;

use super::{Home, Private, Programs, Restart, most_connections, words};
use crate::WorkloadError::{self, Failed};
use crate::database::connection::{Login, Protocol, Target};
use crate::database::options::Options;
use crate::database::postgres::PgConnection;
use crate::programs::{find_program, postgresql_versions};

/// The programs, or what is not here as a sentence that says what to do.
pub(crate) fn programs() -> Result<Programs, String> {
    let not_here = "PostgreSQL is not installed (no postgres and initdb in PATH or /usr/lib/postgresql); install \
        postgresql, or give \
                    the address of a server with --set url=postgres://…";
    let initdb = find_program(&["initdb"], &postgresql_versions()).ok_or(not_here)?;
    // Both of one version: the server beside initdb.
    let server = initdb
        .canonicalize()
        .unwrap_or_else(|_| initdb.clone())
        .with_file_name("postgres");
    if server.exists() {
        Ok(Programs {
            server,
            install: initdb,
        })
    } else {
        Err(not_here.to_owned())
    }
}

/// Makes a server's new directory `dir` with its data, and tells how to log in and with which words the server starts.
pub(crate) fn prepare(
    scratch: &mut Scratch,
    dir: PathBuf,
    what: &str,
    settings: impl IntoIterator<Item = String>,
) -> Result<(Home, Login, Vec<OsString>), WorkloadError> {
    let Programs { server, install } = programs().map_err(WorkloadError::Missing)?;
    let home = Home::make(dir, &["postgres", "nobody"])?;
    let address = home.socket(".s.PGSQL.5432")?;
    // A small segment of System V shared memory stays behind when the server is killed.
    let note = Undo::RemoveSegment {
        note: home.data.join("postmaster.pid"),
    };
    scratch
        .record(note)
        .map_err(|e| Failed(format!("the journal could not be written: {e}")))?;
    let data = home.data.display().to_string();
    let args = [
        "--username=fingerpost",
        "--auth=trust",
        "--no-sync",
        "--no-instructions",
        "--encoding=UTF8",
        "--locale=C",
        "-D",
        &data,
    ];
    home.run(scratch, what, home.command(&words(&install, &args))?)?;
    let own = [
        "listen_addresses=".to_owned(),
        format!("unix_socket_directories={}", home.run.display()),
        "unix_socket_permissions=0700".to_owned(),
        // In files of the data directory, which go with it; POSIX shared memory would stay behind after a kill.
        "dynamic_shared_memory_type=mmap".to_owned(),
    ];
    let mut words = words(&server, &["-D", &data]);
    words.extend(
        own.into_iter()
            .chain(settings)
            .flat_map(|setting| ["-c".into(), setting.into()]),
    );
    Ok((
        home,
        Login {
            address,
            user: "fingerpost".to_owned(),
            password: None,
            database: "postgres".to_owned(),
        },
        words,
    ))
}

/// Starts a server in a new directory `dir`.
pub fn start(
    options: &Options,
    scratch: &mut Scratch,
    dir: PathBuf,
) -> Result<Private, WorkloadError> {
    let settings = std::iter::once(format!("max_connections={}", most_connections(options))).chain(
        options
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    let (home, login, own) = prepare(
        scratch,
        dir,
        "making PostgreSQL's data directory (initdb)",
        settings,
    )?;
    let words = options
        .server_prefix
        .iter()
        .map(OsString::from)
        .chain(own)
        .collect();
    // "Fast shutdown" of its manual: clients are sent away.
    let restart = Restart {
        home,
        what: "PostgreSQL",
        words,
        end: libc::SIGINT,
    };
    let server = restart.serve(scratch, || PgConnection::connect(&login).map(drop))?;
    let target = Target::Server {
        protocol: Protocol::Postgres,
        login,
        storage: None,
    };
    Ok(Private {
        server,
        target,
        restart,
    })
}
