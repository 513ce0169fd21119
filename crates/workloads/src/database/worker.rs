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
use crate::database::open::open;
use crate::worker::{self, Ended};

/// The worker's name in [`crate::worker`].
pub const NAME: &str = "database-load";

/// Answers orders until there are no more.
pub fn main(_args: Vec<OsString>) -> Ended {
    let mut generator: Option<Generator> = None;
    for line in io::stdin().lock().lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(Request::Load(order)) => fill(&order)
                .map_err(|e| format!("the data could not be loaded: {e}"))
                .map(|server| {
                    generator = Some(Generator::new(order));
                    Reply::Loaded(server)
                }),
            Ok(Request::Step(order)) => match &generator {
                Some(generator) => {
                    // Should the conductor be gone, the answer finds out.
                    let begun = || drop(say(&Reply::Begun));
                    generator.step(order, begun).map(Reply::Step)
                }
                None => Err("a step was ordered before the data was loaded".to_owned()),
            },
            Ok(Request::Import) => match &generator {
                Some(generator) => import(&generator.load)
                    .map_err(|e| format!("the dump could not be imported: {e}")),
                None => Err("an import was ordered before the data was loaded".to_owned()),
            },
            Err(e) => Err(format!(
                "the load generator got an order that it does not understand: {e}"
            )),
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
fn fill(order: &Load) -> Result<String, QueryError> {
    if order.before == 0 {
        // The data is loaded without waiting for the disk; the connections of a step open the file with the setting
        // asked for.
        let target = match order.target.clone() {
            Target::Sqlite { file, .. } => Target::Sqlite {
                file,
                synchronous: "off".to_owned(),
            },
            server => server,
        };
        open(&target)?.load(&Data::new(order.scale, order.seed))?;
    }
    open(&order.target)?.describe()
}

/// Sends a dump of the data as a client of the database does, statement by statement. It is made before, and taken away
/// afterwards.
fn import(order: &Load) -> Result<Reply, QueryError> {
    let options = match &order.target {
        Target::Server {
            storage: Some(storage),
            ..
        } => format!(" ENGINE={storage}"),
        _ => String::new(),
    };
    let dump = Dump::of(&Data::new(order.scale, order.seed), &options);
    let mut session = open(&order.target)?;
    let mut send = |sql: &str| session.run(sql);
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
