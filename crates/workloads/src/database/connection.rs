//! One connection to a database, whatever the engine, and one that counts its round trips and stamps each while that is
//! asked for.

use std::time::Duration;

use fingerpost_record::Secret;
use fingerpost_sys::stamps::ThreadWriter;
use fingerpost_sys::trace::monotonic_ns;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::database::stream::{Address, Stream};

/// A query that has no answer after this long is given up: the server hangs.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(60);

/// A statement's parameter, or a value of a row; a text has letters, digits, spaces and full stops, which need no
/// quoting in any engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(&'a str),
}

/// Why a query gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}{}{message}", if .message.is_empty() { "" } else { ": " })]
pub struct QueryError {
    /// The kind that errors are counted by, such as `deadlock` or `connection lost`.
    pub kind: String,
    /// What the server or the system said.
    pub message: String,
    /// Whether the connection is of no more use.
    pub fatal: bool,
}

impl QueryError {
    /// The server refused; the connection goes on.
    pub fn refused(kind: impl Into<String>, message: impl Into<String>) -> QueryError {
        QueryError {
            kind: kind.into(),
            message: message.into(),
            fatal: false,
        }
    }

    /// There was an answer, and it cannot be right.
    pub fn wrong(message: impl Into<String>) -> QueryError {
        QueryError::refused("wrong answer", message)
    }

    /// The connection broke.
    pub fn lost(error: &std::io::Error) -> QueryError {
        let kind = match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer in time",
            std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe => {
                "connection reset"
            }
            _ => "connection lost",
        };
        QueryError {
            kind: kind.to_owned(),
            message: error.to_string(),
            fatal: true,
        }
    }

    /// The server does not let us in.
    pub fn denied(message: impl Into<String>) -> QueryError {
        QueryError {
            kind: "access denied".to_owned(),
            message: message.into(),
            fatal: true,
        }
    }

    /// The other side does not keep to the protocol.
    pub fn protocol(message: impl Into<String>) -> QueryError {
        QueryError {
            kind: "protocol error".to_owned(),
            message: message.into(),
            fatal: true,
        }
    }
}

/// A connection with [`crate::database::mix::STATEMENTS`] prepared.
pub trait Connection: Send {
    /// Runs a statement by its place among the prepared ones, reads the whole answer, and tells how many rows it had.
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError>;
    /// Begins or ends a transaction. A server that has none has nothing to do here.
    fn bound(&mut self, _: Bound) -> Result<(), QueryError> {
        Ok(())
    }
}

/// Where a transaction begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Its beginning.
    Begin,
    /// Its end for good: what was written is on disk when this returns, as far as the engine's settings promise that.
    Commit,
    /// Its end as if it had never been.
    Rollback,
}

impl Bound {
    /// Every one.
    pub const ALL: [Bound; 3] = [Bound::Begin, Bound::Commit, Bound::Rollback];

    /// The statement.
    pub fn sql(self) -> &'static str {
        ["BEGIN", "COMMIT", "ROLLBACK"][self as usize]
    }
}

/// A connection for the length of one transaction. Each of its statements is one round trip, its beginning and its end
/// included.
pub struct Turns<'a> {
    connection: &'a mut dyn Connection,
    thread_writer: Option<&'a ThreadWriter>,
    number: u32,
    taken: u64,
}

impl<'a> Turns<'a> {
    /// Over a connection with this number; stamped where there is a thread_writer, while its switch is on.
    #[inline]
    pub fn new(
        connection: &'a mut dyn Connection,
        thread_writer: Option<&'a ThreadWriter>,
        number: u32,
    ) -> Self {
        Turns {
            connection,
            thread_writer,
            number,
            taken: 0,
        }
    }

    /// Round trips until now.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The clock is read only while round trips are stamped: a transaction of several has no reading between them
    /// otherwise.
    #[inline]
    fn turn<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn Connection) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        self.taken += 1;
        let Some(thread_writer) = self
            .thread_writer
            .filter(|thread_writer| thread_writer.on())
        else {
            return ask(self.connection);
        };
        let start = monotonic_ns();
        let answer = ask(self.connection);
        // One that failed for good has no answer that the kernel could have seen.
        if !answer.as_ref().is_err_and(|e| e.fatal) {
            thread_writer.stamp(self.number, start, monotonic_ns());
        }
        answer
    }
}

impl Connection for Turns<'_> {
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        self.turn(|on| on.query(statement, args))
    }

    fn bound(&mut self, bound: Bound) -> Result<(), QueryError> {
        self.turn(|on| on.bound(bound))
    }
}

/// Where and how to connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A database file of SQLite.
    Sqlite {
        /// The file.
        file: std::path::PathBuf,
        /// `PRAGMA synchronous`: `full`, `normal` or `off`.
        synchronous: String,
    },
    /// A server.
    Server {
        /// What it speaks.
        protocol: Protocol,
        /// How to log in. With Redis the database is the key of the hash that holds the data.
        login: Login,
        /// The storage engine to make tables with, for MySQL's protocol; the server's default when there is none.
        storage: Option<String>,
    },
}

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// MySQL's.
    MySql,
    /// PostgreSQL's.
    Postgres,
    /// Redis'.
    Redis,
}

impl Protocol {
    /// Its name in parameters.
    pub fn name(self) -> &'static str {
        ["mysql", "postgresql", "redis"][self as usize]
    }
}

/// How to log in to a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// Where it listens.
    pub address: Address,
    /// The user.
    pub user: String,
    /// The password, when it asks for one. Serialized it is itself: that is how it goes through a pipe to our own
    /// processes.
    #[serde(serialize_with = "revealed", deserialize_with = "taken")]
    pub password: Option<Secret>,
    /// The database.
    pub database: String,
}

fn revealed<S: Serializer>(password: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    password.as_ref().map(Secret::reveal).serialize(serializer)
}

fn taken<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
}

impl Login {
    /// A stream to the server.
    pub fn stream(&self) -> Result<Stream, QueryError> {
        let failed = |e: std::io::Error| QueryError {
            kind: "connect failed".to_owned(),
            message: e.to_string(),
            fatal: true,
        };
        Stream::connect(&self.address, ANSWER_DEADLINE).map_err(failed)
    }

    /// The password, or nothing.
    pub fn password(&self) -> Option<&str> {
        self.password.as_ref().map(Secret::reveal)
    }
}

impl std::fmt::Debug for Login {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} at {}, database {}",
            self.user, self.address, self.database
        )
    }
}
