//! A client for MySQL's protocol, for MariaDB and MySQL: prepared statements, one round trip each, answers counted in
//! place.
//!
//! Why not the `mysql` crate: with its lightest features it is 89 crates and 43 s of building on two cores, and it
//! makes a value of every column. What is needed here is small, and the client must not be what is measured. The
//! protocol: <https://mariadb.com/kb/en/clientserver-protocol/>.

use crate::database::connection::{Arg, Bound, Connection, Login, QueryError};
use crate::database::data::{Data, Session, TABLES, Table};
use crate::database::mix::STATEMENTS;
use crate::database::mysql_login;
use crate::database::mysql_wire::{Wire, text_row};

const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONGLONG: u8 = 8;
const TYPE_VAR_STRING: u8 = 253;
/// Statements that load data are about this long: few round trips, and well below the least limit on packets (1 MiB): a
/// quarter, as `mysqldump` takes it.
pub(super) const LOAD_BATCH: usize = 256 << 10;

/// A statement as the server knows it.
#[derive(Debug)]
struct Prepared {
    id: [u8; 4],
    /// Whether the server has been told the parameters' types, which it remembers.
    bound: bool,
}

/// A connection to a MariaDB or MySQL server.
#[derive(Debug)]
pub struct MySqlConnection {
    wire: Wire,
    prepared: Vec<Prepared>,
    /// The storage engine to make tables with; the server's default when there is none.
    storage: Option<String>,
}

impl MySqlConnection {
    /// Connects and logs in.
    pub fn connect(login: &Login, storage: Option<&str>) -> Result<MySqlConnection, QueryError> {
        let mut wire = Wire::new(login.stream()?);
        mysql_login::log_in(&mut wire, login)?;
        Ok(MySqlConnection {
            wire,
            prepared: Vec::new(),
            storage: storage.map(str::to_owned),
        })
    }

    fn prepare_one(&mut self, sql: &str) -> Result<Prepared, QueryError> {
        self.wire.command(COM_STMT_PREPARE, sql.as_bytes())?;
        let answer = self.wire.receive_ok()?;
        let Some(
            &[
                _,
                a,
                b,
                c,
                d,
                columns_low,
                columns_high,
                parameters_low,
                parameters_high,
            ],
        ) = answer.get(..9)
        else {
            return Err(QueryError::protocol(
                "a short answer to a statement to be prepared",
            ));
        };
        let lists = [
            [parameters_low, parameters_high],
            [columns_low, columns_high],
        ];
        for _ in lists.iter().filter(|list| u16::from_le_bytes(**list) > 0) {
            self.wire.until_end(|_| {})?;
        }
        Ok(Prepared {
            id: [a, b, c, d],
            bound: false,
        })
    }

    /// Runs a statement as text and gives its rows as texts; NULL is an empty text.
    pub fn text(&mut self, sql: &str) -> Result<Vec<Vec<String>>, QueryError> {
        self.wire.command(COM_QUERY, sql.as_bytes())?;
        let mut rows = Vec::new();
        self.wire.answer(|row| rows.push(text_row(row)))?;
        Ok(rows)
    }
}

impl Session for MySqlConnection {
    fn prepare(&mut self) -> Result<(), QueryError> {
        self.prepared = STATEMENTS
            .iter()
            .map(|one| self.prepare_one(one.sql))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    fn run(&mut self, sql: &str) -> Result<(), QueryError> {
        self.text(sql).map(drop)
    }

    fn load(&mut self, data: &Data) -> Result<(), QueryError> {
        let options = self
            .storage
            .as_ref()
            .map(|name| format!(" ENGINE={name}"))
            .unwrap_or_default();
        for table in &TABLES {
            self.text(&table.create("", &options))?;
            // One commit for each table; for engines without transactions it changes nothing.
            self.text("BEGIN")?;
            each_insert(data, table, "", |sql, _| self.text(&sql).map(drop))?;
            self.text("COMMIT")?;
            for index in table.create_indexes("") {
                self.text(&index)?;
            }
            self.text(&format!("ANALYZE TABLE {}", table.name))?;
        }
        Ok(())
    }

    /// What was asked for is checked: a server that does not have a storage engine may take another one silently.
    fn describe(&mut self) -> Result<String, QueryError> {
        let made = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'posts'";
        let made = self.text(made)?.concat().concat().to_lowercase();
        if let Some(asked) = self.storage.as_ref().filter(|asked| **asked != made) {
            return Err(QueryError::refused(
                "wrong storage engine",
                format!("asked for {asked}, got {made}"),
            ));
        }
        let version = self.text("SELECT VERSION()")?.concat().concat();
        let names = "'query_cache_type', 'query_cache_size', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin'";
        let settings = self.text(&format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"
        ))?;
        let settings: Vec<String> = settings
            .iter()
            .map(|pair| pair.join("=").to_lowercase())
            .collect();
        Ok(format!(
            "{version}, storage={made}, {}",
            settings.join(", ")
        ))
    }
}

/// Hands all rows of a table to `each` in statements of many, with how many they are; the table's name begins with
/// `prefix`.
pub(super) fn each_insert<E>(
    data: &Data,
    table: &Table,
    prefix: &str,
    mut each: impl FnMut(String, u64) -> Result<(), E>,
) -> Result<(), E> {
    let (mut sql, mut rows) = (String::new(), 0);
    data.each_row(table, |row| {
        match sql.is_empty() {
            true => sql = format!("INSERT INTO {prefix}{} VALUES ", table.name),
            false => sql.push(','),
        }
        push_row(&mut sql, row);
        rows += 1;
        if sql.len() < LOAD_BATCH {
            Ok(())
        } else {
            each(std::mem::take(&mut sql), std::mem::take(&mut rows))
        }
    })?;
    if sql.is_empty() {
        Ok(())
    } else {
        each(sql, rows)
    }
}

/// Appends `(1,'two',3)`. Texts of the data set need no quoting.
fn push_row(sql: &mut String, row: &[Arg]) {
    use std::fmt::Write;
    for (i, value) in row.iter().enumerate() {
        sql.push(if i == 0 { '(' } else { ',' });
        let _ = match value {
            Arg::Int(n) => write!(sql, "{n}"),
            Arg::Text(s) => write!(sql, "'{s}'"),
        };
    }
    sql.push(')');
}

impl Connection for MySqlConnection {
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        let prepared = &mut self.prepared[statement];
        self.wire.sequence = 0;
        let out = self.wire.packet();
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&prepared.id);
        // No cursor; one iteration; no parameter is NULL.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        out.resize(out.len() + args.len().div_ceil(8), 0);
        out.push(u8::from(!prepared.bound));
        if !prepared.bound {
            for arg in args {
                let kind = if matches!(arg, Arg::Int(_)) {
                    TYPE_LONGLONG
                } else {
                    TYPE_VAR_STRING
                };
                out.extend_from_slice(&[kind, 0]);
            }
        }
        for arg in args {
            match arg {
                Arg::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
                Arg::Text(s) => push_text(out, s),
            }
        }
        prepared.bound = true;
        self.wire.send()?;
        self.wire.answer(|_| {})
    }

    fn bound(&mut self, bound: Bound) -> Result<(), QueryError> {
        self.text(bound.sql()).map(drop)
    }
}

/// Appends a text after its length.
fn push_text(out: &mut Vec<u8>, text: &str) {
    let length = text.len();
    match length {
        0..=250 => out.push(length as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfd);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_after_its_length() {
        for (length, prefix) in [
            (3, vec![3]),
            (300, vec![0xfc, 44, 1]),
            (70_000, vec![0xfd, 0x70, 0x11, 1]),
        ] {
            let mut out = Vec::new();
            push_text(&mut out, &"x".repeat(length));
            assert_eq!(out[..prefix.len()], prefix);
            assert_eq!(out.len(), prefix.len() + length);
        }
    }

    #[test]
    fn a_row_is_written_as_sql() {
        let mut sql = String::new();
        push_row(&mut sql, &[Arg::Int(-1), Arg::Text("a b")]);
        assert_eq!(sql, "(-1,'a b')");
    }
}
