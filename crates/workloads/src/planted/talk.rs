//! One client's connection to a server of any kind: a text is asked, and the whole answer read.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection as Sqlite;
use serde::{Deserialize, Serialize};

use crate::database::connection::Login;
use crate::database::mysql::MySqlConnection;
use crate::database::postgres::PgConnection;
use crate::web::http::{HeadCache, Parser, Progress};

/// A server that has no answer after this long hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer of Redis that is longer is not one that was asked for.
const LONGEST: usize = 16 << 20;
const BUFFER: usize = 64 << 10;

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// MariaDB.
    MySql(Login),
    /// PostgreSQL.
    Postgres(Login),
    /// A database within the client's process: its file, and what is said on each new connection.
    Sqlite(PathBuf, Vec<String>),
    /// Redis.
    Redis(SocketAddr),
    /// A web server.
    Http(SocketAddr),
}

impl Target {
    /// Whether the server is within the client's process.
    pub fn is_embedded(&self) -> bool {
        matches!(self, Target::Sqlite(..))
    }

    /// Connects. Requests go out in two writes where `split` asks for it and the protocol is ours to write. `patience`
    /// is for the connection.
    pub fn connect(&self, split: bool, name: &str, patience: Duration) -> Result<Talk, String> {
        let told = |e: &dyn std::fmt::Display| e.to_string();
        Ok(match self {
            Target::MySql(login) => Talk::MySql(Box::new(MySqlConnection::connect(login, None).map_err(|e| told(&e))?)),
            Target::Postgres(login) => Talk::Postgres(Box::new(PgConnection::connect(login).map_err(|e| told(&e))?)),
            Target::Sqlite(file, pragmas) => Talk::Sqlite(Box::new(open(file, pragmas).map_err(|e| told(&e))?)),
            Target::Redis(address) => Talk::Redis(Tcp::connect(*address, split, patience).map_err(|e| told(&e))?),
            Target::Http(address) => {
                let tcp = Tcp::connect(*address, split, patience).map_err(|e| told(&e))?;
                Talk::Http(tcp, Box::new((Parser::new(false), HeadCache::default())), name.to_owned())
            }
        })
    }
}

fn open(file: &Path, pragmas: &[String]) -> rusqlite::Result<Sqlite> {
    let sqlite = Sqlite::open(file)?;
    sqlite.busy_timeout(PATIENCE)?;
    pragmas.iter().try_for_each(|sql| sqlite.execute_batch(sql))?;
    Ok(sqlite)
}

/// A connection.
pub enum Talk {
    /// To MariaDB.
    MySql(Box<MySqlConnection>),
    /// To PostgreSQL.
    Postgres(Box<PgConnection>),
    /// SQLite's.
    Sqlite(Box<Sqlite>),
    /// To Redis.
    Redis(Tcp),
    /// To a web server, with what reads its answers, and the client's name.
    Http(Tcp, Box<(Parser, HeadCache)>, String),
}

impl Talk {
    /// Asks, and reads the answer to its end. An error that the server tells is one.
    pub fn ask(&mut self, text: &str) -> Result<(), String> {
        match self {
            Talk::MySql(c) => c.text(text).map(drop).map_err(|e| e.to_string()),
            Talk::Postgres(c) => c.text(text).map(drop).map_err(|e| e.to_string()),
            Talk::Sqlite(c) => stepped(c, text).map_err(|e| e.to_string()),
            Talk::Redis(tcp) => {
                tcp.send(&command(text)).map_err(|e| e.to_string())?;
                tcp.reply()
            }
            Talk::Http(tcp, reader, name) => {
                let request = format!(
                    "GET {text} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {name}\r\nAccept-Encoding: gzip\r\n\r\n"
                )
                .into_bytes();
                tcp.send(&request).map_err(|e| e.to_string())?;
                tcp.page(&mut reader.0, &mut reader.1)
            }
        }
    }
}

fn stepped(sqlite: &Sqlite, sql: &str) -> rusqlite::Result<()> {
    let mut statement = sqlite.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// A command as Redis reads it: an array of strings.
fn command(text: &str) -> Vec<u8> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let mut out = format!("*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n{word}\r\n", word.len());
    }
    out.into_bytes()
}

/// A TCP connection with what has been read and not used.
pub struct Tcp {
    stream: TcpStream,
    split: bool,
    kept: Vec<u8>,
    buffer: Vec<u8>,
}

impl Tcp {
    fn connect(address: SocketAddr, split: bool, patience: Duration) -> io::Result<Tcp> {
        let stream = TcpStream::connect_timeout(&address, patience.max(Duration::from_millis(1)))?;
        stream.set_nodelay(!split)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Tcp { stream, split, kept: Vec::new(), buffer: vec![0; BUFFER] })
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        if !self.split {
            return self.stream.write_all(request);
        }
        let (first, rest) = request.split_at(request.len() / 2);
        self.stream.write_all(first)?;
        self.stream.write_all(rest)
    }

    fn more(&mut self) -> Result<usize, String> {
        match self.stream.read(&mut self.buffer) {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(n) => Ok(n),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Reads an answer of Redis.
    fn reply(&mut self) -> Result<(), String> {
        loop {
            match answer_end(&self.kept)? {
                Some(end) => {
                    let refused = self.kept.first() == Some(&b'-');
                    let line: Vec<u8> = self.kept.drain(..end).collect();
                    return if refused { Err(String::from_utf8_lossy(&line).trim().to_owned()) } else { Ok(()) };
                }
                None if self.kept.len() > LONGEST => return Err("an answer without end".to_owned()),
                None => {
                    let n = self.more()?;
                    self.kept.extend_from_slice(&self.buffer[..n]);
                }
            }
        }
    }

    /// Reads a page.
    fn page(&mut self, parser: &mut Parser, heads: &mut HeadCache) -> Result<(), String> {
        loop {
            let n = self.more()?;
            match parser.feed(&self.buffer[..n], heads) {
                Ok(Progress::More) => {}
                Ok(Progress::Done(answer, _)) if answer.status >= 400 => {
                    return Err(format!("status {}", answer.status));
                }
                Ok(Progress::Done(..)) => return Ok(()),
                Err(e) => return Err(e.to_string()),
            }
        }
    }
}

/// Where an answer of Redis ends: a simple line, a string with its length, or an array of such. Nothing while it is not
/// whole.
fn answer_end(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(end) = bytes.windows(2).position(|w| w == b"\r\n") else { return Ok(None) };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| "an answer that is no text".to_owned())?;
    let after = end + 2;
    let number = || line[1..].parse::<i64>().map_err(|_| format!("an answer of the wrong form: {line}"));
    match line.as_bytes().first() {
        Some(b'+' | b'-' | b':') => Ok(Some(after)),
        Some(b'$') => match usize::try_from(number()?) {
            Ok(length) if length > LONGEST => Err("an answer without end".to_owned()),
            Ok(length) => Ok((bytes.len() >= after + length + 2).then_some(after + length + 2)),
            Err(_) => Ok(Some(after)),
        },
        Some(b'*') => {
            let mut at = after;
            for _ in 0..number()?.clamp(0, 10_000) {
                match bytes.get(at..).map(flat_end).transpose()?.flatten() {
                    Some(length) => at += length,
                    None => return Ok(None),
                }
            }
            Ok(Some(at))
        }
        _ => Err(format!("an answer of the wrong form: {}", line.chars().take(40).collect::<String>())),
    }
}

/// As [`answer_end`] for a part of an array, which of what is asked here is never an array itself.
fn flat_end(bytes: &[u8]) -> Result<Option<usize>, String> {
    if bytes.first() == Some(&b'*') { Err("an array within an array".to_owned()) } else { answer_end(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_strings() {
        assert_eq!(command("GET k12"), b"*2\r\n$3\r\nGET\r\n$3\r\nk12\r\n");
    }

    #[test]
    fn answers_of_redis_end_where_they_say() {
        for (whole, length) in
            [("+OK\r\n", 5), (":12\r\nrest", 5), ("$3\r\nabc\r\n", 9), ("$-1\r\n", 5), ("*2\r\n:1\r\n$1\r\na\r\n", 15)]
        {
            assert_eq!(answer_end(whole.as_bytes()), Ok(Some(length)), "{whole}");
            assert_eq!(answer_end(&whole.as_bytes()[..length - 1]), Ok(None), "{whole}");
        }
        for wrong in ["hello\r\n", "$x\r\n", "$99999999999\r\n", "*1\r\n*1\r\n", "\r\n"] {
            assert!(answer_end(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
