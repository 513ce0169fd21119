//! Web servers of our own: started from the scratch directory on a free port of 127.0.0.1, unprivileged, ready when
//! they answer.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_undo::scratch::{self, Scratch};

use super::apache::{self, Mpm};
use super::http::{HeadCache, Parser, Progress};
use super::nginx;
use super::plan::Plan;
use super::settings::{Server, Settings, Url};
use super::static_server;
use crate::WorkloadError::{self, Failed};
use crate::server_dir::{self, Account, ServerDir};
use crate::worker::{self, Link, prefixed};

/// How long a server may take until it answers.
const READY: Duration = Duration::from_secs(20);
/// Ports to try when another process takes the one that was free a moment ago.
const ATTEMPTS: usize = 5;
/// The accounts that a server is dropped to when we are root: the web server's own of this system, else nobody.
pub(crate) const ACCOUNTS: &[&str] = &["www-data", "http", "nginx", "apache", "nobody"];
/// The file that is asked for.
const FILE: &str = "file.bin";

/// A server that answers.
#[derive(Debug)]
pub struct Running {
    /// The process; nothing for a server of the user's own.
    pub server: Option<scratch::Server>,
    /// What a proxy gets the file from: another service on this host, not part of the one that is loaded.
    pub backend: Option<scratch::Server>,
    /// Where it listens.
    pub address: SocketAddr,
    /// What the Host field should say.
    pub host: String,
    /// What to ask it for.
    pub path: String,
    /// How many requests it can work on at a time; nothing when we do not know.
    pub workers: Option<usize>,
    /// What it calls itself in its answers, usually with its version (`nginx/1.22.1`); empty where it does not.
    pub software: String,
}

/// Starts the server that the settings name, or checks that the user's own answers. A private one that was stopped is
/// started again with a directory of its own and the file that is there.
pub fn start(
    settings: &Settings,
    scratch: &mut Scratch,
    prefix: &[String],
    cpus: usize,
) -> Result<Running, WorkloadError> {
    if let Server::Url(url) = &settings.server {
        let Answered { status, software } = ask_own(url).map_err(WorkloadError::Missing)?;
        if status >= 400 {
            return Err(Failed(format!(
                "{} answers with status {status}; name a page that exists",
                url.text
            )));
        }
        return Ok(Running {
            server: None,
            backend: None,
            address: url.address,
            host: url.host.clone(),
            path: url.path.clone(),
            workers: None,
            software,
        });
    }
    let root = scratch.path().join("web-root");
    // Where a start failed before the file was whole, making it again is refused.
    if std::fs::metadata(root.join(FILE)).map_or(true, |file| file.len() != settings.size) {
        // Bytes that do not compress to nothing, the same in every run.
        let mut random = fastrand::Rng::with_seed(4);
        let content: Vec<u8> = (0..settings.size)
            .map(|_| random.alphanumeric() as u8)
            .collect();
        server_dir::make_passable(&root)
            .and_then(|()| server_dir::write_readable(&root.join(FILE), &content))
            .map_err(not_made)?;
    }
    if !settings.proxy {
        return start_private(settings, &root, "web-server", None, scratch, prefix, cpus);
    }
    let behind = Settings {
        server: Server::Embedded,
        proxy: false,
        workers: None,
        ..settings.clone()
    };
    let backend = start_private(&behind, &root, "web-backend", None, scratch, &[], cpus)?;
    let proxy = start_private(
        settings,
        &root,
        "web-server",
        Some(backend.address),
        scratch,
        prefix,
        cpus,
    );
    match proxy {
        Ok(proxy) => Ok(Running {
            backend: backend.server,
            ..proxy
        }),
        Err(e) => {
            // What cannot be ended here is ended with the scratch directory.
            let _ = backend.server.map(|server| scratch.stop(server));
            Err(e)
        }
    }
}

fn not_made(e: std::io::Error) -> WorkloadError {
    Failed(format!("the web server's directory could not be made: {e}"))
}

/// Starts one server in directories of this name, on a port that is free.
fn start_private(
    settings: &Settings,
    root: &Path,
    name: &str,
    backend: Option<SocketAddr>,
    scratch: &mut Scratch,
    prefix: &[String],
    cpus: usize,
) -> Result<Running, WorkloadError> {
    let mut last = Failed(format!("no port could be had in {ATTEMPTS} attempts"));
    for _ in 0..ATTEMPTS {
        let free = (0..)
            .map(|n| scratch.path().join(format!("{name}-{n}")))
            .find(|path| std::fs::symlink_metadata(path).is_err());
        let dir = ServerDir::make(
            free.unwrap_or_else(|| scratch.path().join(name)),
            Account::for_server(ACCOUNTS),
        )
        .map_err(not_made)?;
        let run = dir.hand_over("run").map_err(not_made)?;
        let plan = Plan {
            dir: &dir,
            run: &run,
            root,
            port: free_port().map_err(not_made)?,
            workers: workers(settings, cpus),
            backlog: settings.backlog,
            backend,
        };
        match start_once(settings, &plan, scratch, prefix) {
            // Another process took the port meanwhile.
            Err(Failed(sentence)) if sentence.contains("in use") => last = Failed(sentence),
            done => return done,
        }
    }
    Err(last)
}

/// How many requests the server can work on at a time.
///
/// A server with an event loop gets half of the CPUs, so that the client has the other half: with more, both compete
/// for the same CPUs and the figure is of their competition. Apache with a process or thread per connection needs as
/// many as there are connections, or the rest of the connections would never be answered.
fn workers(settings: &Settings, cpus: usize) -> usize {
    settings.workers.unwrap_or(match settings.server {
        Server::Apache(mpm) => mpm.least_workers().max(settings.most_connections()),
        _ => (cpus / 2).max(1),
    })
}

fn start_once(
    settings: &Settings,
    plan: &Plan,
    scratch: &mut Scratch,
    prefix: &[String],
) -> Result<Running, WorkloadError> {
    let program = match settings.server {
        Server::Nginx => nginx::command(plan)?,
        Server::Apache(mpm) => apache::command(plan, mpm)?,
        Server::Embedded | Server::Url(_) => embedded(plan, !prefix.is_empty()).map_err(|e| {
            Failed(format!(
                "this program could not be copied to run behind the prefix: {e}"
            ))
        })?,
    };
    let name = server_name(&settings.server);
    let failed = |what: &str, e: std::io::Error| Failed(format!("{name} {what}: {e}"));
    let mut command = prefixed(prefix, program);
    plan.dir
        .set_up(&mut command, plan.run)
        .map_err(|e| failed("has no log", e))?;
    let not_started = |e| failed("could not be started", e);
    let (mut server, port) = if settings.server == Server::Embedded {
        let mut link = Link::within(&mut command, scratch).map_err(not_started)?;
        let port = link.port();
        (link.process, port)
    } else {
        (
            scratch.spawn(&mut command).map_err(not_started)?,
            Some(plan.port),
        )
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(plan.port)));
    let path = format!("/{FILE}");
    let ready = port.map_or(Err("it ended before it was ready".to_owned()), |_| {
        wait_until_it_answers(&mut server, address, &path)
    });
    let software = match ready {
        Ok(software) => software,
        Err(why) => {
            let told = last_lines(&plan.dir.told());
            let _ = scratch.stop(server);
            return Err(Failed(format!("{name} did not get ready: {why}{told}")));
        }
    };
    Ok(Running {
        server: Some(server),
        backend: None,
        address,
        host: address.to_string(),
        path,
        workers: Some(plan.workers),
        software,
    })
}

/// The server's name in sentences.
pub fn server_name(server: &Server) -> String {
    match server {
        Server::Embedded => "the embedded web server".to_owned(),
        Server::Nginx => "nginx".to_owned(),
        Server::Apache(Mpm::Prefork) => "Apache (prefork)".to_owned(),
        Server::Apache(Mpm::Worker) => "Apache (worker)".to_owned(),
        Server::Apache(Mpm::Event) => "Apache (event)".to_owned(),
        Server::Url(url) => url.text.clone(),
    }
}

/// The embedded server. Behind a prefix `/proc/self/exe` would be the prefix's own program, and our own file may lie
/// where an unprivileged user cannot reach it, so a copy is run.
fn embedded(plan: &Plan, behind_prefix: bool) -> std::io::Result<Command> {
    let mut command = worker::command(static_server::NAME);
    if behind_prefix {
        let copy = plan.dir.path.join("fingerpost");
        fs::copy("/proc/self/exe", &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        let mut copied = Command::new(copy);
        copied.args(command.get_args());
        command = copied;
    }
    command
        .arg(plan.root)
        .arg(plan.workers.to_string())
        .arg(plan.backlog.to_string());
    Ok(command)
}

/// Waits until it answers, and tells what it calls itself.
fn wait_until_it_answers(
    server: &mut scratch::Server,
    address: SocketAddr,
    path: &str,
) -> Result<String, String> {
    let deadline = Instant::now() + READY;
    loop {
        let why = match ask(address, &address.to_string(), path) {
            Ok(Answered {
                status: 200,
                software,
            }) => return Ok(software),
            Ok(Answered { status, .. }) => return Err(format!("it answers with status {status}")),
            Err(why) => why,
        };
        if let Ok(Some(status)) = server.child.try_wait() {
            return Err(format!("it ended with {status}"));
        }
        if Instant::now() > deadline {
            return Err(format!("no answer within {} s ({why})", READY.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its status.
    pub status: u16,
    /// What the server calls itself; empty where it does not.
    pub software: String,
}

/// The longest head of an answer in which the server's name is looked for, and the most of that name that is kept.
const MOST_HEAD: usize = 16 << 10;
const MOST_NAME: usize = 100;

/// Asks a server of the user's own, or says what to do when it does not answer.
pub fn ask_own(url: &Url) -> Result<Answered, String> {
    ask(url.address, &url.host, &url.path).map_err(|why| {
        format!(
            "{} does not answer ({why}); start the server, or leave url out for a private one",
            url.text
        )
    })
}

/// Asks once.
fn ask(address: SocketAddr, host: &str, path: &str) -> Result<Answered, Box<dyn Error>> {
    let limit = Duration::from_secs(5);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(request.as_bytes())?;
    let (mut parser, mut cache, mut buffer) =
        (Parser::default(), HeadCache::default(), [0; 16 << 10]);
    let mut head = Vec::new();
    loop {
        let n = stream.read(&mut buffer)?;
        head.extend_from_slice(&buffer[..n.min(MOST_HEAD - head.len())]);
        let answer = match n {
            0 => parser.close()?,
            n => match parser.feed(&buffer[..n], &mut cache)? {
                Progress::Done(answer, _) => answer,
                Progress::More => continue,
            },
        };
        return Ok(Answered {
            status: answer.status,
            software: software(&head),
        });
    }
}

/// What a server calls itself in the head of an answer. It becomes a part of a record's list of settings, whose signs
/// it must not have.
fn software(head: &[u8]) -> String {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut answer = httparse::Response::new(&mut fields);
    if !answer.parse(head).is_ok_and(|parsed| parsed.is_complete()) {
        return String::new();
    }
    let field = answer
        .headers
        .iter()
        .find(|f| f.name.eq_ignore_ascii_case("server"));
    let text = field
        .map(|f| String::from_utf8_lossy(f.value).into_owned())
        .unwrap_or_default();
    text.chars()
        .filter(|c| (c.is_ascii_graphic() || *c == ' ') && !matches!(c, ',' | '='))
        .take(MOST_NAME)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// A port that nobody listens on at this moment.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// What a server complained about last.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    if last.is_empty() {
        String::new()
    } else {
        format!("; it said: {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_tells_its_version_in_its_answers() {
        let of = |field: &str| {
            software(
                format!("HTTP/1.1 200 OK\r\nDate: now\r\n{field}\r\nserver answer, Server: x")
                    .as_bytes(),
            )
        };
        assert_eq!(of("Server: nginx/1.22.1\r\n"), "nginx/1.22.1");
        assert_eq!(
            of("server:  Apache/2.4.57 (Debian) \r\n"),
            "Apache/2.4.57 (Debian)"
        );
        assert_eq!(of(""), "");
        assert_eq!(
            of("Server: a, b=c\u{7f}\r\n"),
            "",
            "no field that HTTP allows"
        );
        assert_eq!(of("Server: a, b=c\r\n"), "a bc", "not two settings");
        assert_eq!(
            of(&format!("Server: {}\r\n", "x".repeat(500))).len(),
            MOST_NAME
        );
        assert_eq!(software(b"HTTP/1.1 200 OK\r\nServer: ngi"), "", "cut");
    }

    #[test]
    fn words_before_a_command_keep_it_whole() {
        let mut command = Command::new("nginx");
        command.args(["-c", "x y"]).env("A", "b");
        let words = ["taskset".to_owned(), "-c".to_owned(), "0".to_owned()];
        let whole = prefixed(&words, command);
        assert_eq!(
            format!("{:?}", whole.get_args().collect::<Vec<_>>()),
            r#"["-c", "0", "nginx", "-c", "x y"]"#
        );
        assert_eq!(whole.get_program(), "taskset");
        assert_eq!(whole.get_envs().count(), 1);
    }
}
