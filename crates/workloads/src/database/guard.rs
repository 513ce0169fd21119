//! The process that owns the database on a user's own server: it makes it, waits until nobody needs it any more, and
//! drops it.
//!
//! Its standard input is a pipe from the conductor. However the conductor ends, kill -9 included, the pipe closes, and
//! the guard drops the database and goes. It is therefore the one process that must not die with its parent.

use std::ffi::OsString;
use std::io::{self, BufRead, Read};
use std::time::{Duration, Instant};

use crate::database::connection::{Login, Protocol, QueryError, Target};
use crate::database::open::open;
use crate::database::redis::RedisConnection;
use crate::worker::{Ended, say};

/// The guard's name in [`crate::worker`].
pub const NAME: &str = "database-guard";

/// What the guard says once the database is there, and once it is gone.
pub const MADE: &str = "made";
/// See [`MADE`].
pub const DROPPED: &str = "dropped";

/// Clients of a killed run may hold the database for a moment.
const DROP_DEADLINE: Duration = Duration::from_secs(20);

/// The database that every PostgreSQL server has, from which others are made.
const POSTGRES_HOME: &str = "postgres";

/// Reads the target from the first line, makes the database, waits for the end of input, drops it.
pub fn main(_args: Vec<OsString>) -> Ended {
    let mut input = io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let target = serde_json::from_str(&line)
        .map_err(|e| format!("the guard got a target that it does not understand: {e}"))?;
    create(&target)?;
    // The conductor may be gone, so nothing depends on its reading.
    let _ = say(MADE);
    // Whatever comes, and whatever goes wrong: the end is the end.
    let _ = input.read_to_end(&mut Vec::new());
    drop_database(&target)?;
    Ok(say(DROPPED)?)
}

fn run(target: &Target, sql: &str) -> Result<(), QueryError> {
    let Target::Server {
        protocol, login, ..
    } = target
    else {
        return Ok(());
    };
    let home = if *protocol == Protocol::Postgres {
        POSTGRES_HOME
    } else {
        ""
    };
    let login = Login {
        database: home.to_owned(),
        ..login.clone()
    };
    open(&Target::Server {
        protocol: *protocol,
        login,
        storage: None,
    })?
    .run(sql)
}

fn name(target: &Target) -> &str {
    if let Target::Server { login, .. } = target {
        &login.database
    } else {
        ""
    }
}

/// Names are checked when the address is read, so that they can stand in SQL as they are. CREATE fails when the name
/// exists: nothing that was there before is ever touched.
fn create(target: &Target) -> Result<(), String> {
    let name = name(target);
    if let Target::Server {
        protocol: Protocol::Redis,
        login,
        ..
    } = target
    {
        return match RedisConnection::connect(login).and_then(|mut redis| redis.exists()) {
            Ok(false) => Ok(()),
            Ok(true) => Err(format!("the key “{name}” exists on the server already")),
            Err(e) => Err(format!(
                "the server of the url does not answer as Redis does: {e}"
            )),
        };
    }
    run(target, &format!("CREATE DATABASE {name}")).map_err(|e| match e.kind.as_str() {
        "server error 1007" | "server error 42P04" => {
            format!(
                "the database “{name}” exists on the server already; name one in the url that can be made and dropped"
            )
        }
        _ => format!("the database “{name}” could not be made on the server: {e}"),
    })
}

fn drop_database(target: &Target) -> Result<(), String> {
    if let Target::Server {
        protocol: Protocol::Redis,
        login,
        ..
    } = target
    {
        let removed = RedisConnection::connect(login).and_then(|mut redis| redis.remove());
        return removed.map_err(|e| {
            format!(
                "the key “{}” could not be taken off the server, delete it by hand: {e}",
                name(target)
            )
        });
    }
    let deadline = Instant::now() + DROP_DEADLINE;
    loop {
        match run(target, &format!("DROP DATABASE {}", name(target))) {
            Ok(()) => return Ok(()),
            // PostgreSQL refuses while somebody is connected.
            Err(e) if e.kind == "server error 55006" && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50))
            }
            Err(e) => {
                return Err(format!(
                    "the database “{}” could not be dropped from the server, drop it by hand: {e}",
                    name(target)
                ));
            }
        }
    }
}
