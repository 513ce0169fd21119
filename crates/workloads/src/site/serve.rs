//! A web server for real use on loopback: a site from a directory or from an object database.
//!
//! A thread for each connection, a bounded number of them: it serves the person who looks at a site on their own machine. The
//! server that is put under load is [`crate::web::static_server`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fingerpost_odb::{Database, Entry, Kind, Reader};

use super::tree::checksum;
use crate::web::content::{Body, Content, Directory};

/// Connections at a time; more are turned away with 503.
const CONNECTIONS: usize = 128;
/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(30);
/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;

/// What is served.
pub enum Source {
    /// A directory.
    Files(Directory),
    /// An object database.
    Odb(Database),
}

impl Source {
    /// Opens a directory, or a database's file.
    pub fn open(from: &Path) -> Result<Source, String> {
        if from.is_dir() {
            return Directory::open(from).map(Source::Files).map_err(|e| format!("{} cannot be served: {e}", from.display()));
        }
        Database::open(from).map(Source::Odb).map_err(|e| e.to_string())
    }
}

/// Something that was found.
struct Found {
    body: Vec<u8>,
    modified: i64,
    kind: Option<Kind>,
}

/// What a path leads to.
enum Way {
    Found(Found),
    /// A folder without the slash at the end: relative links in its index would lead astray.
    Folder,
    Nothing,
}

/// Finds things; each connection has its own, because a database's reader belongs to one thread.
enum Finder<'s> {
    Files(&'s Directory),
    Odb(Box<dyn Reader>),
}

impl<'s> Finder<'s> {
    fn new(source: &'s Source) -> io::Result<Finder<'s>> {
        Ok(match source {
            Source::Files(directory) => Finder::Files(directory),
            Source::Odb(database) => Finder::Odb(database.reader().map_err(io::Error::other)?),
        })
    }

    fn find(&mut self, path: &[u8]) -> io::Result<Way> {
        let inner = path.strip_prefix(b"/").unwrap_or(path);
        let with_index = [inner, b"index.html"].concat();
        let wanted = if inner.is_empty() || inner.ends_with(b"/") { &with_index[..] } else { inner };
        match self {
            Finder::Files(directory) => files(directory, wanted),
            Finder::Odb(reader) => odb(&mut **reader, wanted),
        }
    }
}

fn files(directory: &Directory, path: &[u8]) -> io::Result<Way> {
    let rooted = [b"/", path].concat();
    match directory.find(&rooted)? {
        Some(Body::File(file, length)) => {
            let mut file = File::from(file);
            let modified = fingerpost_odb::transfer::modified(&file.metadata()?);
            let mut body = Vec::with_capacity(length as usize);
            file.read_to_end(&mut body)?;
            Ok(Way::Found(Found { body, modified, kind: None }))
        }
        Some(Body::Bytes(bytes)) => Ok(Way::Found(Found { body: bytes.to_vec(), modified: 0, kind: None })),
        None => Ok(match directory.find(&[&rooted[..], b"/"].concat())? {
            Some(_) => Way::Folder,
            None => Way::Nothing,
        }),
    }
}

fn odb(reader: &mut dyn Reader, path: &[u8]) -> io::Result<Way> {
    let mut found = None;
    let read = reader.cell(path, &mut |cell| {
        found = Some(Found { body: cell.body.to_vec(), modified: cell.modified, kind: Some(cell.kind) });
    });
    match (read, found) {
        (Ok(_), Some(found)) => Ok(Way::Found(found)),
        (Ok(_), None) => Ok(match reader.entry(path) {
            Ok(Some(Entry::Table)) => Way::Folder,
            _ => Way::Nothing,
        }),
        // A path that cannot be leads nowhere.
        (Err(fingerpost_odb::Error::Path(..)), _) => Ok(Way::Nothing),
        (Err(e), _) => Err(io::Error::other(e)),
    }
}

/// A listener on 127.0.0.1, and nowhere else.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Serves until `stop` says so; it is asked ten times a second.
pub fn serve(listener: &TcpListener, source: &Source, stop: &dyn Fn() -> bool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let open = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        while !stop() {
            let (stream, _) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    wait(listener);
                    continue;
                }
                Err(_) => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                open.fetch_sub(1, Ordering::Relaxed);
                let _ = (&stream).write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                continue;
            }
            let open = &open;
            scope.spawn(move || {
                // A client that goes away is no error of ours.
                let _ = converse(&stream, source);
                let _ = stream.shutdown(std::net::Shutdown::Both);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

/// Waits until somebody connects, or a tenth of a second.
fn wait(listener: &TcpListener) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }));
}

/// One connection: requests and answers in turn.
fn converse(mut stream: &TcpStream, source: &Source) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let mut finder = Finder::new(source)?;
    let mut input = Vec::new();
    loop {
        let (answer, length, keep) = match read_request(&input) {
            Parsed::Partial if input.len() > MAX_HEAD => (Answer::plain(431), 0, false),
            Parsed::Partial => {
                let mut piece = [0; 4096];
                match stream.read(&mut piece)? {
                    0 => return Ok(()),
                    n => input.extend_from_slice(&piece[..n]),
                }
                continue;
            }
            Parsed::Bad(status) => (Answer::plain(status), 0, false),
            Parsed::Whole(request, length) => {
                let answer = answer(&mut finder, &request).unwrap_or_else(|_| Answer::plain(500));
                (Answer { head_only: request.head_only, ..answer }, length, request.keep_alive)
            }
        };
        stream.write_all(&answer.bytes(keep))?;
        if !keep {
            return Ok(());
        }
        input.drain(..length);
    }
}

/// A request, as far as it matters here.
#[derive(Debug, Default, PartialEq)]
struct Request {
    path: Vec<u8>,
    query: String,
    head_only: bool,
    keep_alive: bool,
    range: Option<String>,
    if_none_match: Option<String>,
    if_modified_since: Option<String>,
    if_range: Option<String>,
}

enum Parsed {
    Partial,
    Bad(u16),
    Whole(Request, usize),
}

fn read_request(bytes: &[u8]) -> Parsed {
    use crate::web::request;
    let wanted = match request::parse(bytes) {
        request::Parsed::Partial => return Parsed::Partial,
        request::Parsed::Bad(status) => return Parsed::Bad(status),
        request::Parsed::Whole(wanted) => wanted,
    };
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    if request.parse(bytes).is_err() {
        return Parsed::Bad(400);
    }
    let field = |name: &str| {
        let found = request.headers.iter().find(|f| f.name.eq_ignore_ascii_case(name));
        found.and_then(|f| std::str::from_utf8(f.value).ok()).map(|v| v.trim().to_owned())
    };
    // Another site's page may not read this one through a name that it made lead here.
    let host = field("host").unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    if !matches!(name, "127.0.0.1" | "localhost" | "") {
        return Parsed::Bad(421);
    }
    let query = request.path.and_then(|p| p.find('?').map(|at| p[at..].to_owned())).unwrap_or_default();
    let whole = Request {
        query,
        range: field("range"),
        if_none_match: field("if-none-match"),
        if_modified_since: field("if-modified-since"),
        if_range: field("if-range"),
        path: wanted.path,
        head_only: wanted.head_only,
        keep_alive: wanted.keep_alive,
    };
    Parsed::Whole(whole, wanted.length)
}

/// An answer before it is bytes.
#[derive(Debug, Default)]
struct Answer {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: Vec<u8>,
    head_only: bool,
}

impl Answer {
    fn plain(status: u16) -> Answer {
        let body = format!("{status} {}\n", reason(status)).into_bytes();
        Answer { status, fields: vec![("Content-Type", "text/plain; charset=utf-8".to_owned())], body, head_only: false }
    }

    fn bytes(&self, keep: bool) -> Vec<u8> {
        let mut out =
            format!("HTTP/1.1 {} {}\r\nDate: {}\r\n", self.status, reason(self.status), httpdate::fmt_http_date(SystemTime::now()));
        for (name, value) in &self.fields {
            out += &format!("{name}: {value}\r\n");
        }
        if self.status != 304 {
            out += &format!("Content-Length: {}\r\n", self.body.len());
        }
        out += "X-Content-Type-Options: nosniff\r\n";
        out += if keep { "\r\n" } else { "Connection: close\r\n\r\n" };
        let mut out = out.into_bytes();
        if !self.head_only && self.status != 304 {
            out.extend_from_slice(&self.body);
        }
        out
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}

fn answer(finder: &mut Finder, request: &Request) -> io::Result<Answer> {
    let found = match finder.find(&request.path)? {
        Way::Found(found) => found,
        Way::Nothing => return Ok(Answer::plain(404)),
        Way::Folder => {
            let to = format!("{}/{}", encode(&request.path), request.query);
            return Ok(Answer { fields: vec![("Location", to)], ..Answer::plain(301) });
        }
    };
    let tag = format!("\"{:x}-{:016x}\"", found.body.len(), checksum(&found.body));
    let modified = UNIX_EPOCH + Duration::from_secs(found.modified.max(0) as u64);
    let index = request.path.ends_with(b"/");
    let name: &[u8] = if index { b"index.html" } else { &request.path };
    let mut fields = vec![
        ("Content-Type", content_type(name, found.kind).to_owned()),
        ("ETag", tag.clone()),
        ("Last-Modified", httpdate::fmt_http_date(modified)),
        ("Accept-Ranges", "bytes".to_owned()),
    ];
    if unchanged(request, &tag, modified) {
        return Ok(Answer { status: 304, fields, ..Answer::default() });
    }
    let length = found.body.len() as u64;
    match wanted_range(request, &tag, modified, length) {
        None => Ok(Answer { status: 200, fields, body: found.body, head_only: false }),
        Some(None) => {
            fields.push(("Content-Range", format!("bytes */{length}")));
            Ok(Answer { fields, ..Answer::plain(416) })
        }
        Some(Some((from, to))) => {
            fields.push(("Content-Range", format!("bytes {from}-{to}/{length}")));
            Ok(Answer { status: 206, fields, body: found.body[from as usize..=to as usize].to_vec(), head_only: false })
        }
    }
}

/// Whether the client has it already. A tag counts more than a time (RFC 9110, 13.2.2).
fn unchanged(request: &Request, tag: &str, modified: SystemTime) -> bool {
    match (&request.if_none_match, &request.if_modified_since) {
        (Some(tags), _) => tags.split(',').map(str::trim).any(|t| t == "*" || t.strip_prefix("W/").unwrap_or(t) == tag),
        (None, Some(since)) => httpdate::parse_http_date(since).is_ok_and(|since| modified <= since),
        (None, None) => false,
    }
}

/// The one range that is wanted: nothing for all, `Some(None)` for one that there is not. Several ranges are answered with all, as a
/// server may.
fn wanted_range(request: &Request, tag: &str, modified: SystemTime, length: u64) -> Option<Option<(u64, u64)>> {
    let spec = request.range.as_deref()?.strip_prefix("bytes=")?;
    if let Some(condition) = &request.if_range
        && condition != tag
        && httpdate::parse_http_date(condition).ok() != Some(modified)
    {
        return None;
    }
    let (from, to) = spec.split_once('-').filter(|_| !spec.contains(','))?;
    let (from, to) = match (from.trim().parse::<u64>(), to.trim()) {
        (Ok(from), "") => (from, length.saturating_sub(1)),
        (Ok(from), to) => (from, to.parse::<u64>().ok().filter(|to| *to >= from)?.min(length.saturating_sub(1))),
        // The last so many bytes.
        (Err(_), to) if from.trim().is_empty() => match to.parse::<u64>().ok()? {
            0 => return Some(None),
            last => (length.saturating_sub(last), length.saturating_sub(1)),
        },
        _ => return None,
    };
    Some((from < length).then_some((from, to)))
}

/// A path as it stands in a URL.
pub fn encode(path: &[u8]) -> String {
    // Two slashes at the beginning would name another host.
    let start = path.iter().take_while(|&&b| b == b'/').count().saturating_sub(1);
    path[start..].iter().fold(String::new(), |text, &b| match b {
        b'/' | b'-' | b'_' | b'.' | b'~' => text + &char::from(b).to_string(),
        b if b.is_ascii_alphanumeric() => text + &char::from(b).to_string(),
        b => text + &format!("%{b:02X}"),
    })
}

/// The type that a name's ending stands for, else the kind of the cell.
fn content_type(path: &[u8], kind: Option<Kind>) -> &'static str {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    let ending = name.iter().rposition(|&b| b == b'.').map_or(&b""[..], |at| &name[at + 1..]).to_ascii_lowercase();
    match ending.as_slice() {
        b"html" | b"htm" => "text/html; charset=utf-8",
        b"txt" | b"md" | b"csv" => "text/plain; charset=utf-8",
        b"css" => "text/css; charset=utf-8",
        b"js" | b"mjs" => "text/javascript; charset=utf-8",
        b"json" => "application/json",
        b"xml" => "application/xml",
        b"opml" => "text/x-opml",
        b"svg" => "image/svg+xml",
        b"png" => "image/png",
        b"jpg" | b"jpeg" => "image/jpeg",
        b"gif" => "image/gif",
        b"webp" => "image/webp",
        b"ico" => "image/vnd.microsoft.icon",
        b"pdf" => "application/pdf",
        b"woff2" => "font/woff2",
        b"mp4" => "video/mp4",
        _ => match kind {
            Some(Kind::Text | Kind::Script) => "text/plain; charset=utf-8",
            Some(Kind::Outline) => "text/x-opml",
            Some(Kind::Binary) | None => "application/octet-stream",
        },
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
