//! Which connection a server takes.

use super::connection::{Connection, QueryError, Target};
use super::mysql::MySqlConnection;
use super::postgres::PgConnection;
use super::redis::RedisConnection;
use super::sqlite::SqliteConnection;

impl Target {
    /// Connects and prepares every statement.
    pub fn connect(&self) -> Result<Box<dyn Connection>, QueryError> {
        Ok(match self {
            Target::Sqlite { file, synchronous } => Box::new(SqliteConnection::open(file, synchronous)?),
            Target::MySql { login, .. } => Box::new(MySqlConnection::prepared(login)?),
            Target::Postgres { login } => Box::new(PgConnection::prepared(login)?),
            Target::Redis { login } => Box::new(RedisConnection::connect(login)?),
        })
    }
}
