//! SQLite within the worker process, which is client and server in one.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{
    Connection as Sqlite, ErrorCode, OpenFlags, Row, Statement as Prepared, ToSql, params_from_iter,
};

use crate::database::connection::{Arg, Bound, Connection, QueryError};
use crate::database::data::{Data, Session, TABLES};
use crate::database::mix::STATEMENTS;

/// How long a writer waits for another.
const BUSY: Duration = Duration::from_secs(30);

/// A connection to a database file.
pub struct SqliteConnection {
    sqlite: Sqlite,
}

impl SqliteConnection {
    /// Opens the file, which is made when it is not there. The write-ahead log lets readers go on while one writes.
    pub fn open(file: &Path, synchronous: &str) -> Result<SqliteConnection, QueryError> {
        // No mutex within the connection: each belongs to one thread.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let sqlite = Sqlite::open_with_flags(file, flags).map_err(refusal)?;
        sqlite.busy_timeout(BUSY).map_err(refusal)?;
        sqlite
            .pragma_update(None, "journal_mode", "wal")
            .map_err(refusal)?;
        sqlite
            .pragma_update(None, "synchronous", synchronous)
            .map_err(refusal)?;
        sqlite.set_prepared_statement_cache_capacity(2 * STATEMENTS.len());
        Ok(SqliteConnection { sqlite })
    }

    fn cached(&mut self, sql: &str) -> Result<(), QueryError> {
        self.sqlite
            .prepare_cached(sql)
            .and_then(|mut s| s.execute([]).map(drop))
            .map_err(refusal)
    }
}

impl Connection for SqliteConnection {
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        let mut prepared = self
            .sqlite
            .prepare_cached(STATEMENTS[statement].sql)
            .map_err(refusal)?;
        count_rows(&mut prepared, args).map_err(refusal)
    }

    fn bound(&mut self, bound: Bound) -> Result<(), QueryError> {
        match bound {
            // Immediate: a transaction that is going to write takes the lock at once, so that none fails for having
            // read too old a state.
            Bound::Begin => self.cached("BEGIN IMMEDIATE"),
            Bound::Rollback if self.sqlite.is_autocommit() => Ok(()),
            _ => self.cached(bound.sql()),
        }
    }
}

impl Session for SqliteConnection {
    fn run(&mut self, sql: &str) -> Result<(), QueryError> {
        self.sqlite.execute_batch(sql).map_err(refusal)
    }

    fn load(&mut self, data: &Data) -> Result<(), QueryError> {
        let transaction = self.sqlite.transaction().map_err(refusal)?;
        for table in &TABLES {
            transaction
                .execute_batch(&table.create("", ""))
                .map_err(refusal)?;
            let marks = vec!["?"; table.width()].join(", ");
            let mut insert = transaction
                .prepare(&format!("INSERT INTO {} VALUES ({marks})", table.name))
                .map_err(refusal)?;
            data.each_row(table, |row| insert.execute(params_from_iter(row)).map(drop))
                .map_err(refusal)?;
            drop(insert);
            table
                .create_indexes("")
                .try_for_each(|sql| transaction.execute_batch(&sql))
                .map_err(refusal)?;
        }
        transaction.execute_batch("ANALYZE").map_err(refusal)?;
        transaction.commit().map_err(refusal)?;
        self.sqlite
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(refusal)
    }

    fn describe(&mut self) -> Result<String, QueryError> {
        let text = |row: &Row| match row.get(0)? {
            SqlValue::Integer(n) => Ok(n.to_string()),
            SqlValue::Text(s) => Ok(s),
            other => Ok(format!("{other:?}")),
        };
        let setting = |name: &str| {
            self.sqlite
                .pragma_query_value(None, name, text)
                .map_err(refusal)
        };
        let synchronous = match setting("synchronous")?.as_str() {
            "0" => "off".to_owned(),
            "1" => "normal".to_owned(),
            "2" => "full".to_owned(),
            other => other.to_owned(),
        };
        Ok(format!(
            "SQLite {}, journal_mode={}, synchronous={synchronous}, page_size={}, cache_size={}",
            rusqlite::version(),
            setting("journal_mode")?,
            setting("page_size")?,
            setting("cache_size")?
        ))
    }
}

/// Steps through the answer and reads every column, as a client that wants the data must.
fn count_rows(prepared: &mut Prepared, args: &[Arg]) -> rusqlite::Result<u64> {
    let columns = prepared.column_count();
    let mut rows = prepared.query(params_from_iter(args))?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        for i in 0..columns {
            bytes += match row.get_ref(i)? {
                ValueRef::Text(t) => t.len(),
                _ => 8,
            };
        }
        count += 1;
    }
    std::hint::black_box(bytes);
    Ok(count)
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Arg::Int(n) => ToSqlOutput::Owned(SqlValue::Integer(*n)),
            Arg::Text(s) => ToSqlOutput::Borrowed(ValueRef::Text(s.as_bytes())),
        })
    }
}

fn refusal(error: rusqlite::Error) -> QueryError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "database is locked",
        Some(ErrorCode::DiskFull) => "disk full",
        _ => "database error",
    };
    QueryError::refused(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_file_answers_and_tells_its_settings() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = SqliteConnection::open(&dir.path().join("site.db"), "full").unwrap();
        db.load(&Data::new(1, 1)).unwrap();
        assert_eq!(db.query(0, &[Arg::Int(1)]), Ok(1));
        assert_eq!(db.query(0, &[Arg::Int(-1)]), Ok(0));
        assert_eq!(db.query(3, &[Arg::Int(1), Arg::Int(50)]), Ok(50));
        let told = db.describe().unwrap();
        assert!(
            told.contains("journal_mode=wal, synchronous=full"),
            "{told}"
        );
    }

    #[test]
    fn what_is_rolled_back_never_was() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = SqliteConnection::open(&dir.path().join("site.db"), "off").unwrap();
        db.load(&Data::new(1, 1)).unwrap();
        let insert = [
            Arg::Int(999_999),
            Arg::Text("m"),
            Arg::Int(1),
            Arg::Text("s"),
        ];
        db.bound(Bound::Begin).unwrap();
        db.query(13, &insert).unwrap();
        db.bound(Bound::Rollback).unwrap();
        db.bound(Bound::Rollback).unwrap();
        assert_eq!(db.query(0, &[Arg::Int(999_999)]), Ok(0));
        db.bound(Bound::Begin).unwrap();
        db.query(13, &insert).unwrap();
        db.bound(Bound::Commit).unwrap();
        assert_eq!(db.query(0, &[Arg::Int(999_999)]), Ok(1));
        assert_eq!(db.query(13, &insert).unwrap_err().kind, "database error");
    }
}
