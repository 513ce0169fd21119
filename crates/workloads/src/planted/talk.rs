//! One client's connection to a server of any kind: a text is asked, and the whole answer read.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection as Sqlite;
use serde::{Deserialize, Serialize};

use crate::database::connection::Login;
use crate::database::mysql::MySqlConnection;
use crate::database::postgres::PgConnection;
use crate::database::redis::RedisConnection;
use crate::database::stream::Stream;
use crate::web::http::{HeadCache, Parser, Progress};

/// A server that has no answer after this long hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// The system takes no time that is none.
const LEAST: Duration = Duration::from_millis(1);
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
            Target::Redis(address) => {
                let stream = Stream::tcp(address, patience.max(LEAST), PATIENCE, !split).map_err(|e| told(&e))?;
                Talk::Redis(RedisConnection::over(stream, String::new(), split))
            }
            Target::Http(address) => {
                let tcp = Tcp::connect(*address, split, patience).map_err(|e| told(&e))?;
                Talk::Http(tcp, Box::default(), name.to_owned())
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
    Redis(RedisConnection),
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
            Talk::Redis(c) => {
                let words: Vec<&str> = text.split_ascii_whitespace().collect();
                c.ask(&words).map(drop).map_err(|e| e.to_string())
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

/// A connection to a web server.
pub struct Tcp {
    stream: TcpStream,
    split: bool,
    buffer: Vec<u8>,
}

impl Tcp {
    fn connect(address: SocketAddr, split: bool, patience: Duration) -> io::Result<Tcp> {
        let stream = TcpStream::connect_timeout(&address, patience.max(LEAST))?;
        stream.set_nodelay(!split)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Tcp { stream, split, buffer: vec![0; BUFFER] })
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
