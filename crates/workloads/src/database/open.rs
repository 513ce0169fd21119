//! Connecting, whatever the engine.

use crate::database::connection::{Protocol, QueryError, Target};
use crate::database::data::Session;
use crate::database::mysql::MySqlConnection;
use crate::database::postgres::PgConnection;
use crate::database::redis::RedisConnection;
use crate::database::sqlite::SqliteConnection;

/// Connects.
///
/// # Errors
/// The server cannot be reached, or does not let us in; the file cannot be opened.
pub fn open(target: &Target) -> Result<Box<dyn Session>, QueryError> {
    Ok(match target {
        Target::Sqlite { file, synchronous } => {
            Box::new(SqliteConnection::open(file, synchronous)?)
        }
        Target::Server {
            protocol,
            login,
            storage,
        } => match protocol {
            Protocol::MySql => Box::new(MySqlConnection::connect(login, storage.as_deref())?),
            Protocol::Postgres => Box::new(PgConnection::connect(login)?),
            Protocol::Redis => Box::new(RedisConnection::connect(login)?),
        },
    })
}
