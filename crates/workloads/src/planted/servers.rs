//! Real servers that are installed here, started privately with settings of the caller's choice.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use fingerpost_undo::scratch::{Scratch, Server};
use serde::{Deserialize, Serialize};

use super::surroundings::Surroundings;
use super::talk::Target;
use crate::WorkloadError::{self, Failed};
use crate::database::connection::QueryError;
use crate::database::postgres::PgConnection;
use crate::database::server::{Home, mariadb, postgresql, words};
use crate::programs::find_program;
use crate::server_dir::{make_passable, write_readable};
use crate::web::{apache, nginx, private};

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// MariaDB over a Unix socket.
    MariaDb,
    /// PostgreSQL over a Unix socket.
    PostgreSql,
    /// SQLite within the client's process.
    Sqlite,
    /// Redis over TCP.
    Redis,
    /// nginx with files.
    Nginx,
    /// nginx before a server of ours.
    Proxy,
    /// Apache with files.
    Apache,
}

impl Engine {
    /// Every one.
    pub const ALL: [Engine; 7] = {
        use Engine::*;
        [MariaDb, PostgreSql, Sqlite, Redis, Nginx, Proxy, Apache]
    };

    /// The name on the command line and in parameters.
    pub fn name(self) -> &'static str {
        [
            "mariadb",
            "postgresql",
            "sqlite",
            "redis",
            "nginx",
            "proxy",
            "apache",
        ][self as usize]
    }

    /// The name of the workload that it belongs to.
    pub fn workload(self) -> &'static str {
        match self {
            Engine::MariaDb | Engine::PostgreSql | Engine::Sqlite | Engine::Redis => "database",
            Engine::Nginx | Engine::Proxy | Engine::Apache => "web",
        }
    }

    /// What is missing here for it.
    pub fn missing(self) -> Option<String> {
        let without = |names: &[&str]| {
            find_program(names, &[])
                .is_none()
                .then(|| format!("{} is not installed", names[0]))
        };
        match self {
            Engine::MariaDb => mariadb::programs().err(),
            Engine::PostgreSql => postgresql::programs().err(),
            Engine::Sqlite => None,
            Engine::Redis => without(&["redis-server", "valkey-server"]),
            Engine::Nginx | Engine::Proxy => without(&["nginx"]),
            Engine::Apache => apache::missing(apache::Mpm::Event),
        }
    }
}

/// How a server is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which.
    pub engine: Engine,
    /// Its settings: variables of databases with their values, `PRAGMA`s of SQLite. Of nginx the names are the places
    /// `main`, `listen`, `http`, `server` and `files` (the location of the files); of Apache all lines are its own,
    /// with an empty name.
    pub settings: Vec<(String, String)>,
    /// What holds for its processes.
    pub surroundings: Surroundings,
}

impl Plan {
    /// A server as it is installed.
    pub fn of(engine: Engine) -> Plan {
        Plan {
            engine,
            settings: Vec::new(),
            surroundings: Surroundings::default(),
        }
    }

    /// With a setting, in place of one of the same name where a name can be set once.
    pub fn set(&mut self, name: &str, value: &str) {
        if self.engine.workload() == "database" {
            self.settings.retain(|(n, _)| n != name);
        }
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    fn lines(&self, place: &str, before: &str) -> String {
        self.settings
            .iter()
            .filter(|(name, _)| name == place)
            .map(|(_, line)| format!("{before}{line}\n"))
            .collect()
    }
}

/// A server that answers: its process, and how to speak to it. No process for one within the client's.
type Started = (Option<Server>, Target);

/// Starts it in a new directory. `backend` is where a proxy gets its pages.
pub fn start(
    plan: &Plan,
    dir: PathBuf,
    backend: Option<u16>,
    scratch: &mut Scratch,
) -> Result<Started, WorkloadError> {
    if let Some(missing) = plan.engine.missing() {
        return Err(WorkloadError::Missing(missing));
    }
    match plan.engine {
        Engine::MariaDb => start_mariadb(plan, dir, scratch),
        Engine::PostgreSql => start_postgresql(plan, dir, scratch),
        Engine::Sqlite => {
            fs::create_dir(&dir)
                .map_err(|e| Failed(format!("cannot make {}: {e}", dir.display())))?;
            let pragmas = plan
                .settings
                .iter()
                .map(|(name, value)| format!("PRAGMA {name}={value}"))
                .collect();
            Ok((None, Target::Sqlite(dir.join("site.db"), pragmas)))
        }
        Engine::Redis => start_redis(plan, dir, scratch),
        Engine::Nginx | Engine::Proxy | Engine::Apache => start_web(plan, dir, backend, scratch),
    }
}

/// Starts the server itself, in its surroundings.
fn serve(
    plan: &Plan,
    home: &Home,
    what: &str,
    words: &[OsString],
    scratch: &mut Scratch,
    answers: impl FnMut() -> Result<(), QueryError>,
) -> Result<Option<Server>, WorkloadError> {
    let mut command = home.command(words)?;
    plan.surroundings.apply(&mut command);
    home.serve(scratch, what, command, answers).map(Some)
}

fn start_mariadb(
    plan: &Plan,
    dir: PathBuf,
    scratch: &mut Scratch,
) -> Result<Started, WorkloadError> {
    // A small log is made sooner, and is as good for seconds of load.
    let small = ["--innodb-log-file-size=16M"];
    let (home, mut login, mut words) =
        mariadb::prepare(scratch, dir, "making MariaDB's data directory", &small)?;
    words.extend(
        plan.settings
            .iter()
            .map(|(name, value)| format!("--{name}={value}").into()),
    );
    let server = serve(plan, &home, "MariaDB", &words, scratch, || {
        mariadb::make_database(&login)
    })?;
    login.database = "site".to_owned();
    Ok((server, Target::MySql(login)))
}

fn start_postgresql(
    plan: &Plan,
    dir: PathBuf,
    scratch: &mut Scratch,
) -> Result<Started, WorkloadError> {
    let settings = plan
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let (home, login, words) =
        postgresql::prepare(scratch, dir, "making PostgreSQL's data directory", settings)?;
    let server = serve(plan, &home, "PostgreSQL", &words, scratch, || {
        PgConnection::connect(&login).map(drop)
    })?;
    Ok((server, Target::Postgres(login)))
}

fn free_port() -> Result<u16, WorkloadError> {
    private::free_port().map_err(|e| Failed(format!("no port of 127.0.0.1 can be had: {e}")))
}

fn answers(address: SocketAddr) -> Result<(), QueryError> {
    TcpStream::connect(address)
        .map(drop)
        .map_err(|e| QueryError::lost(&e))
}

fn start_redis(plan: &Plan, dir: PathBuf, scratch: &mut Scratch) -> Result<Started, WorkloadError> {
    let program = find_program(&["redis-server", "valkey-server"], &[])
        .ok_or_else(|| Failed("redis-server has gone".into()))?;
    let home = Home::make(dir, &["redis", "nobody"])?;
    let port = free_port()?;
    let data = home.data.display().to_string();
    let fixed = [
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--dir",
        &data,
        "--save",
        "",
        "--daemonize",
        "no",
    ];
    let mut words = words(&program, &fixed);
    words.extend(
        plan.settings
            .iter()
            .flat_map(|(name, value)| [format!("--{name}").into(), value.into()]),
    );
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = serve(plan, &home, "Redis", &words, scratch, || answers(address))?;
    Ok((server, Target::Redis(address)))
}

fn start_web(
    plan: &Plan,
    dir: PathBuf,
    backend: Option<u16>,
    scratch: &mut Scratch,
) -> Result<Started, WorkloadError> {
    let home = Home::make(dir, private::ACCOUNTS)?;
    let root = make_files(&home.dir.path)
        .map_err(|e| Failed(format!("the pages cannot be written: {e}")))?;
    let port = free_port()?;
    let (dir, run) = (&home.dir, &home.run);
    let (name, command) = match plan.engine {
        Engine::Apache => (
            "Apache",
            apache::in_foreground(dir, run, |modules| {
                apache(plan, &home, &root, port, modules)
            })?,
        ),
        _ => (
            "nginx",
            nginx::in_foreground(dir, run, &nginx(plan, &home, &root, port, backend))?,
        ),
    };
    let words: Vec<OsString> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsString::from)
        .collect();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = serve(plan, &home, name, &words, scratch, || answers(address))?;
    Ok((server, Target::Http(address)))
}

/// Pages of 1, 16, 64 and 256 KiB of text, and one in a deep directory.
fn make_files(dir: &Path) -> std::io::Result<PathBuf> {
    let root = dir.join("pages");
    make_passable(&root)?;
    let mut random = fastrand::Rng::with_seed(4);
    let mut text = String::new();
    while text.len() < 256 << 10 {
        let word: String = (0..random.usize(2..9))
            .map(|_| random.lowercase())
            .collect();
        text.push_str(&word);
        text.push(' ');
    }
    for (name, size) in [
        ("small", 1 << 10),
        ("page", 16 << 10),
        ("large", 64 << 10),
        ("huge", 256 << 10),
    ] {
        write_readable(&root.join(name), &text.as_bytes()[..size])?;
    }
    let mut deep = root.clone();
    for name in ["d"; 24] {
        deep.push(name);
        fs::create_dir(&deep)?;
        fs::set_permissions(&deep, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    write_readable(&deep.join("small"), &text.as_bytes()[..1 << 10])?;
    Ok(root)
}

fn nginx(plan: &Plan, home: &Home, root: &Path, port: u16, backend: Option<u16>) -> String {
    let (main, http, server, files) = (
        plan.lines("main", ""),
        plan.lines("http", "    "),
        plan.lines("server", "        "),
        plan.lines("files", "            "),
    );
    let listen = plan.lines("listen", " ").replace('\n', "");
    let main = if main.contains("worker_processes") {
        main
    } else {
        format!("worker_processes 2;\n{main}")
    };
    let upstream = backend
        .map(|port| format!("    upstream backend {{ server 127.0.0.1:{port}; keepalive 64; }}\n"))
        .unwrap_or_default();
    let pass = "            proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\";\n";
    let location = format!(
        "        location / {{\n{}{files}        }}\n",
        if backend.is_some() { pass } else { "" }
    );
    let http = format!("    default_type text/plain;\n{http}{upstream}");
    nginx::framed(
        (&home.run, root),
        &main,
        ("crit", 1024),
        &http,
        &format!("{port}{listen}"),
        &format!("{server}{location}"),
    )
}

fn apache(plan: &Plan, home: &Home, root: &Path, port: u16, modules: &Path) -> String {
    let loads = ["mpm_event", "authz_core", "unixd", "deflate", "filter"]
        .map(|name| apache::load(modules, name, false));
    let fixed = "ThreadsPerChild 25\nStartServers 2\nServerLimit 2\nMaxRequestWorkers 50\n";
    let (own, overrides) = (
        fixed.to_owned() + &plan.lines("", ""),
        plan.lines("override", "    "),
    );
    let overrides = if overrides.is_empty() {
        "    AllowOverride None\n"
    } else {
        &overrides
    };
    apache::framed(
        &home.dir,
        (&home.run, root),
        port,
        &loads.concat(),
        "crit",
        &own,
        overrides,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_once_and_lines_are_added() {
        let mut plan = Plan::of(Engine::Redis);
        plan.set("hz", "1");
        plan.set("hz", "2");
        assert_eq!(plan.settings, [("hz".to_owned(), "2".to_owned())]);
        let mut plan = Plan::of(Engine::Nginx);
        plan.set("http", "gzip on;");
        plan.set("http", "gzip_types *;");
        assert_eq!(plan.lines("http", " "), " gzip on;\n gzip_types *;\n");
    }
}
