//! A private MariaDB server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use fingerpost_undo::scratch::Scratch;

use super::{Home, Private, Programs, Restart, most_connections, words};
use crate::WorkloadError;
use crate::database::connection::{Login, Protocol, QueryError, Target};
use crate::database::mysql::MySqlConnection;
use crate::database::options::Options;
use crate::programs::find_program;

/// Large enough that what the users ask for fits, small enough that looking for a free block stays cheap.
const QUERY_CACHE_BYTES: u64 = 64 << 20;

/// The programs, or what is not here as a sentence that says what to do.
pub(crate) fn programs() -> Result<Programs, String> {
    let server = find_program(&["mariadbd", "mysqld"], &[]).ok_or(
        "MariaDB is not installed (no mariadbd in PATH or /usr/sbin); install mariadb-server, or give the \
            address of a server with --set url=mysql://…",
    )?;
    let install = find_program(&["mariadb-install-db", "mysql_install_db"], &[]).ok_or(
        "the MariaDB server here has no mariadb-install-db, which makes its data directory; install the full \
            mariadb-server",
    )?;
    let version = Command::new(&server)
        .args(["--no-defaults", "--version"])
        .output()
        .map(|o| o.stdout)
        .unwrap_or_default();
    if !String::from_utf8_lossy(&version).contains("MariaDB") {
        return Err(format!(
            "{} is not MariaDB; for another server give its address with --set url=mysql://…",
            server.display()
        ));
    }
    Ok(Programs { server, install })
}

/// Makes a server's new directory `dir` with its data, and tells how to log in and with which words the server starts.
/// `both` are options of the server and of what makes its data.
pub(crate) fn prepare(
    scratch: &mut Scratch,
    dir: PathBuf,
    what: &str,
    both: &[&str],
) -> Result<(Home, Login, Vec<OsString>), WorkloadError> {
    let Programs { server, install } = programs().map_err(WorkloadError::Missing)?;
    let home = Home::make(dir, &["mysql", "nobody"])?;
    let address = home.socket("server.sock")?;
    let (data, run) = (
        format!("--datadir={}", home.data.display()),
        home.run.display(),
    );
    // At its start a server deletes the temporary tables that it finds in this directory. In /tmp those are the host's
    // own server's.
    let temporary = format!("--tmpdir={run}");
    let common = [&["--no-defaults", &data, &temporary], both].concat();
    // Without waiting for the disk at each of some hundred statements (0.6 s instead of 6 s): a directory that a crash
    // spoils is made anew. The server itself, started afterwards, does wait.
    let fixed = [
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
        "--debug-no-sync",
    ];
    home.run(
        scratch,
        what,
        home.command(&words(&install, common.iter().chain(&fixed)))?,
    )?;
    let (socket, pid) = (
        format!("--socket={run}/server.sock"),
        format!("--pid-file={run}/server.pid"),
    );
    let own = [&socket, &pid, "--skip-networking", "--skip-name-resolve"];
    let words = words(&server, common.iter().chain(&own));
    Ok((
        home,
        Login {
            address,
            user: "root".to_owned(),
            password: None,
            database: String::new(),
        },
        words,
    ))
}

/// Makes the database in a server that answers.
pub(crate) fn make_database(login: &Login) -> Result<(), QueryError> {
    MySqlConnection::connect(login, None)?
        .text("CREATE DATABASE IF NOT EXISTS site")
        .map(drop)
}

/// Starts a server in a new directory `dir`.
pub fn start(
    options: &Options,
    storage: &str,
    query_cache: bool,
    scratch: &mut Scratch,
    dir: PathBuf,
) -> Result<Private, WorkloadError> {
    let (home, mut login, own) = prepare(
        scratch,
        dir,
        "making MariaDB's data directory (mariadb-install-db)",
        &[],
    )?;
    let settings = [
        format!("--max-connections={}", most_connections(options)),
        format!("--query-cache-type={}", u8::from(query_cache)),
        format!(
            "--query-cache-size={}",
            if query_cache { QUERY_CACHE_BYTES } else { 0 }
        ),
    ];
    let variables = options
        .variables
        .iter()
        .map(|(name, value)| format!("--{name}={value}"));
    let settings = settings.into_iter().chain(variables).map(OsString::from);
    let words = options
        .server_prefix
        .iter()
        .map(OsString::from)
        .chain(own)
        .chain(settings)
        .collect();
    let restart = Restart {
        home,
        what: "MariaDB",
        words,
        end: libc::SIGTERM,
    };
    let server = restart.serve(scratch, || make_database(&login))?;
    login.database = "site".to_owned();
    let target = Target::Server {
        protocol: Protocol::MySql,
        login,
        storage: Some(storage.to_owned()),
    };
    Ok(Private {
        server,
        target,
        restart,
    })
}
