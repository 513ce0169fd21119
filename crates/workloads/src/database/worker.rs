//! The load generator's process: takes orders on standard input, one a line, and answers each with a line on standard
//! output.

use std::ffi::OsString;
use std::io::{self, BufRead};
use std::time::Instant;

use crate::database::connection::{QueryError, Target};
use crate::database::data::Data;
use crate::database::dump::{self, Dump};
use crate::database::load::Generator;
use crate::database::messages::{Imported, Load, Reply, Request};
use crate::database::mysql::MySqlConnection;
use crate::database::postgres::PgConnection;
use crate::database::redis::RedisConnection;
use crate::database::sqlite::SqliteConnection;
use crate::worker::{self, Ended};

/// The worker's name in [`crate::worker`].
pub const NAME: &str = "database-load";

/// Answers orders until there are no more.
pub fn main(_args: Vec<OsString>) -> Ended {
    let (mut generator, mut loaded) = (None, None);
    for line in io::stdin().lock().lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(Request::Load(order)) => fill(&order).map(|server| {
                loaded = Some(order.clone());
                generator = Some(Generator::new(order));
                Reply::Loaded { server }
            }),
            Ok(Request::Step(order)) => match &generator {
                Some(generator) => {
                    // Should the conductor be gone, the answer finds out.
                    let begun = || drop(say(&Reply::Begun));
                    generator.step(order, begun).map(Reply::Step)
                }
                None => Err("a step was ordered before the data was loaded".to_owned()),
            },
            Ok(Request::Import) => match &loaded {
                Some(order) => import(order).map_err(|e| format!("the dump could not be imported: {e}")),
                None => Err("an import was ordered before the data was loaded".to_owned()),
            },
            Err(e) => Err(format!("the load generator got an order that it does not understand: {e}")),
        };
        say(&reply.unwrap_or_else(Reply::Failed))?;
    }
    // The conductor has ended or closed the pipe: there is nobody to work for.
    Ok(())
}

fn say(reply: &Reply) -> io::Result<()> {
    worker::say(&serde_json::to_string(reply)?)
}

/// Makes the tables and fills them, where that was not done, and tells the server's version and settings.
fn fill(order: &Load) -> Result<String, String> {
    let data = (order.before == 0).then(|| Data::new(order.scale, order.seed));
    fill_target(&order.target, data.as_ref()).map_err(|e| format!("the data could not be loaded: {e}"))
}

fn fill_target(target: &Target, data: Option<&Data>) -> Result<String, QueryError> {
    match target {
        Target::Sqlite { file, synchronous } => {
            // The data is loaded without waiting for the disk; the connections of a step open the file with the setting
            // asked for.
            data.map_or(Ok(()), |data| SqliteConnection::open(file, "off")?.load(data))?;
            SqliteConnection::open(file, synchronous)?.describe()
        }
        Target::MySql { login, storage } => {
            let mut connection = MySqlConnection::connect(login)?;
            data.map_or(Ok(()), |data| connection.load(data, storage.as_deref()))?;
            describe_mysql(&mut connection, storage.as_deref())
        }
        Target::Postgres { login } => {
            let mut connection = PgConnection::connect(login)?;
            data.map_or(Ok(()), |data| connection.load(data))?;
            describe_postgres(&mut connection)
        }
        Target::Redis { login } => {
            let mut connection = RedisConnection::connect(login)?;
            data.map_or(Ok(()), |data| connection.load(data))?;
            connection.describe()
        }
    }
}

/// Sends a dump of the data as a client of the database does, statement by statement. It is made before, and taken away
/// afterwards.
fn import(order: &Load) -> Result<Reply, QueryError> {
    let options = match &order.target {
        Target::MySql { storage: Some(storage), .. } => format!(" ENGINE={storage}"),
        _ => String::new(),
    };
    let dump = Dump::of(&Data::new(order.scale, order.seed), &options);
    let mut send = sender(&order.target)?;
    // Of an import that broke off something may be left.
    dump::removal().try_for_each(|sql| send(&sql))?;
    let begun = Instant::now();
    let sent = dump.statements.iter().try_for_each(|sql| send(sql));
    let took = begun.elapsed();
    let removed = dump::removal().try_for_each(|sql| send(&sql));
    sent.and(removed)?;
    Ok(Reply::Imported(Imported {
        took,
        bytes: dump.bytes(),
        rows: dump.rows,
        statements: dump.statements.len() as u64,
    }))
}

/// Takes a statement as text and waits until it is done.
type Sender = Box<dyn FnMut(&str) -> Result<(), QueryError>>;

/// A connection that takes statements as text, with the settings that a step's have.
fn sender(target: &Target) -> Result<Sender, QueryError> {
    Ok(match target {
        Target::Sqlite { file, synchronous } => {
            let mut connection = SqliteConnection::open(file, synchronous)?;
            Box::new(move |sql| connection.text(sql))
        }
        Target::MySql { login, .. } => {
            let mut connection = MySqlConnection::connect(login)?;
            Box::new(move |sql| connection.text(sql).map(drop))
        }
        Target::Postgres { login } => {
            let mut connection = PgConnection::connect(login)?;
            Box::new(move |sql| connection.text(sql).map(drop))
        }
        Target::Redis { .. } => {
            return Err(QueryError::refused("not possible", "Redis has no dump of statements to import"));
        }
    })
}

/// Version and the settings that decide about a commit and the cache, checked against what was asked for: a server that
/// does not have a storage engine may take another one silently.
fn describe_mysql(connection: &mut MySqlConnection, storage: Option<&str>) -> Result<String, QueryError> {
    let made = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'posts'";
    let made = connection.text(made)?.concat().concat().to_lowercase();
    if storage.is_some_and(|asked| asked != made) {
        return Err(QueryError::refused(
            "wrong storage engine",
            format!("asked for {}, got {made}", storage.unwrap_or_default()),
        ));
    }
    let version = connection.text("SELECT VERSION()")?.concat().concat();
    let names = "'query_cache_type', 'query_cache_size', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin'";
    let settings = connection.text(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?;
    let settings: Vec<String> = settings.iter().map(|pair| pair.join("=").to_lowercase()).collect();
    Ok(format!("{version}, storage={made}, {}", settings.join(", ")))
}

fn describe_postgres(connection: &mut PgConnection) -> Result<String, QueryError> {
    let names = "'fsync', 'synchronous_commit', 'shared_buffers', 'wal_sync_method'";
    let settings = connection
        .text(&format!("SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names}) ORDER BY 1"))?;
    let settings: Vec<String> = settings.iter().map(|pair| pair.join("=")).collect();
    let version = connection.text("SHOW server_version")?.concat().concat();
    Ok(format!("PostgreSQL {version}, {}", settings.join(", ")))
}
