//! One client's connection to a server of any kind: a text is asked, and the whole answer read.

use std::error::Error;
use std::net::SocketAddr;
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
    pub fn connect(
        &self,
        split: bool,
        name: &str,
        patience: Duration,
    ) -> Result<Talk, Box<dyn Error>> {
        let tcp = |address| Stream::tcp(address, patience.max(LEAST), PATIENCE, split);
        Ok(match self {
            Target::MySql(login) => Talk::MySql(Box::new(MySqlConnection::connect(login, None)?)),
            Target::Postgres(login) => Talk::Postgres(Box::new(PgConnection::connect(login)?)),
            Target::Sqlite(file, pragmas) => Talk::Sqlite(Box::new(open(file, pragmas)?)),
            Target::Redis(address) => {
                Talk::Redis(RedisConnection::over(tcp(address)?, String::new()))
            }
            Target::Http(address) => Talk::Http(tcp(address)?, Box::default(), name.to_owned()),
        })
    }
}

fn open(file: &Path, pragmas: &[String]) -> rusqlite::Result<Sqlite> {
    let sqlite = Sqlite::open(file)?;
    sqlite.busy_timeout(PATIENCE)?;
    pragmas
        .iter()
        .try_for_each(|sql| sqlite.execute_batch(sql))?;
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
    Http(Stream, Box<(Parser, HeadCache)>, String),
}

impl Talk {
    /// Asks, and reads the answer to its end. An error that the server tells is one.
    pub fn ask(&mut self, text: &str) -> Result<(), Box<dyn Error>> {
        match self {
            Talk::MySql(c) => drop(c.text(text)?),
            Talk::Postgres(c) => drop(c.text(text)?),
            Talk::Sqlite(c) => stepped(c, text)?,
            Talk::Redis(c) => {
                let words: Vec<&str> = text.split_ascii_whitespace().collect();
                c.ask(&words)?;
            }
            Talk::Http(stream, reader, name) => {
                let request = format!(
                    "GET {text} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {name}\r\nAccept-Encoding: gzip\r\n\r\n"
                );
                stream.send(request.as_bytes())?;
                page(stream, reader)?;
            }
        }
        Ok(())
    }
}

fn stepped(sqlite: &Sqlite, sql: &str) -> rusqlite::Result<()> {
    let mut statement = sqlite.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Reads a page.
fn page(
    stream: &mut Stream,
    (parser, heads): &mut (Parser, HeadCache),
) -> Result<(), Box<dyn Error>> {
    loop {
        match parser.feed(stream.some()?, heads)? {
            Progress::More => {}
            Progress::Done(answer, _) if answer.status >= 400 => {
                return Err(format!("status {}", answer.status).into());
            }
            Progress::Done(..) => return Ok(()),
        }
    }
}
