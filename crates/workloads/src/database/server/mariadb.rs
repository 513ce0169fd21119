//! A private MariaDB server.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use fingerpost_sys::scratch::Scratch;

use super::{Home, Private, Restart};
use crate::WorkloadError;
use crate::database::connection::{Login, Target};
use crate::database::mysql::MySqlConnection;
use crate::database::options::Options;
use crate::programs::find_program;

/// The article's clients and some to spare.
const MOST_CONNECTIONS: usize = 100;
/// Large enough that what the users ask for fits, small enough that looking for a free block stays cheap.
const QUERY_CACHE_BYTES: u64 = 64 << 20;

/// The programs of an installation.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) server: PathBuf,
    pub(crate) install: PathBuf,
}

/// What is not here, as a sentence that says what to do.
pub fn missing() -> Option<String> {
    programs().err()
}

pub(crate) fn programs() -> Result<Programs, String> {
    let server = find_program(&["mariadbd", "mysqld"], &[])
        .ok_or("MariaDB is not installed (no mariadbd in PATH or /usr/sbin); install mariadb-server, or give the address of a server with --set url=mysql://…")?;
    let install = find_program(&["mariadb-install-db", "mysql_install_db"], &[])
        .ok_or("the MariaDB server here has no mariadb-install-db, which makes its data directory; install the full mariadb-server")?;
    let version = Command::new(&server).args(["--no-defaults", "--version"]).output().map(|o| o.stdout).unwrap_or_default();
    if !String::from_utf8_lossy(&version).contains("MariaDB") {
        return Err(format!("{} is not MariaDB; for another server give its address with --set url=mysql://…", server.display()));
    }
    Ok(Programs { server, install })
}

/// Starts a server in a new directory `dir`.
pub fn start(options: &Options, storage: &str, query_cache: bool, scratch: &mut Scratch, dir: PathBuf) -> Result<Private, WorkloadError> {
    let programs = programs().map_err(WorkloadError::Missing)?;
    let home = Home::make(dir, &["mysql", "nobody"])?;
    let address = home.socket("server.sock")?;
    let (data, run) = (format!("--datadir={}", home.data.display()), home.run.display());
    // At its start a server deletes the temporary tables that it finds in this directory. In /tmp those are the host's own server's.
    let temporary = format!("--tmpdir={run}");
    // Without waiting for the disk at each of some hundred statements (0.6 s instead of 6 s): a directory that a crash spoils is made
    // anew. The server itself, started afterwards, does wait.
    let install = [
        "--no-defaults",
        &data,
        &temporary,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
        "--debug-no-sync",
    ];
    let words: Vec<&OsStr> = std::iter::once(programs.install.as_os_str()).chain(install.iter().map(OsStr::new)).collect();
    home.run(scratch, "making MariaDB's data directory (mariadb-install-db)", home.command(&words)?)?;

    let mut args = vec![
        "--no-defaults".to_owned(),
        data,
        temporary,
        format!("--socket={run}/server.sock"),
        format!("--pid-file={run}/server.pid"),
        "--skip-networking".to_owned(),
        "--skip-name-resolve".to_owned(),
        format!("--max-connections={}", MOST_CONNECTIONS.max(options.clients.iter().copied().max().unwrap_or(0) + 10)),
        format!("--query-cache-type={}", u8::from(query_cache)),
        format!("--query-cache-size={}", if query_cache { QUERY_CACHE_BYTES } else { 0 }),
    ];
    args.extend(options.variables.iter().map(|(name, value)| format!("--{name}={value}")));
    let words: Vec<&OsStr> = options
        .server_prefix
        .iter()
        .map(OsStr::new)
        .chain(std::iter::once(programs.server.as_os_str()))
        .chain(args.iter().map(OsStr::new))
        .collect();
    let mut login = Login { address, user: "root".to_owned(), password: None, database: String::new() };
    let restart = Restart::new(home, "MariaDB", &words, libc::SIGTERM);
    let server = restart.serve(scratch, || MySqlConnection::connect(&login)?.text("CREATE DATABASE IF NOT EXISTS site").map(drop))?;
    login.database = "site".to_owned();
    Ok(Private { server, target: Target::MySql { login, storage: Some(storage.to_owned()) }, restart })
}
