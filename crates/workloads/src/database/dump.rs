//! A dump: the data set as text, one statement after the other, as `mysqldump` and its like write it.
//!
//! The article imported one with the database's own client (“via the `>` command”) and found that it took up to 8 times
//! longer on one system than on others. Statements of many rows each, none within a transaction: what is committed, and
//! waited for, is each statement, so that the engine's settings of durability and the disk decide, besides the CPU that
//! parses and indexes.

use std::convert::Infallible;

use crate::database::data::{Data, TABLES};
use crate::database::mysql::each_insert;

/// Goes before the names of tables and indexes, so that they stand beside those under load.
const PREFIX: &str = "imported_";

/// The statements of a dump.
#[derive(Debug)]
pub struct Dump {
    /// In their order.
    pub statements: Vec<String>,
    /// Rows in them.
    pub rows: u64,
}

impl Dump {
    /// The dump of a data set; `options` follows the definition of each table (a storage engine).
    pub fn of(data: &Data, options: &str) -> Dump {
        let mut dump = Dump {
            statements: Vec::new(),
            rows: 0,
        };
        for table in &TABLES {
            dump.statements.push(table.create(PREFIX, options));
            let Ok(()) = each_insert(data, table, PREFIX, |sql, rows| {
                dump.statements.push(sql);
                dump.rows += rows;
                Ok::<(), Infallible>(())
            });
            dump.statements.extend(table.create_indexes(PREFIX));
        }
        dump
    }

    /// Bytes of all statements.
    pub fn bytes(&self) -> u64 {
        self.statements.iter().map(|s| s.len() as u64).sum()
    }
}

/// The statements that take away what a dump made, also a part of it.
pub fn removal() -> impl Iterator<Item = String> {
    TABLES
        .iter()
        .map(|table| format!("DROP TABLE IF EXISTS {PREFIX}{}", table.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::data::Shape;
    use crate::database::mysql::LOAD_BATCH;

    #[test]
    fn a_dump_holds_every_row_in_statements_of_many() {
        let dump = Dump::of(&Data::new(1, 7), " ENGINE=aria");
        let shape = Shape::at(1);
        assert_eq!(dump.rows, shape.members + shape.threads + shape.posts);
        let inserts: Vec<&String> = dump
            .statements
            .iter()
            .filter(|s| s.starts_with("INSERT INTO imported_"))
            .collect();
        assert!(
            inserts.len() > 10 && inserts.iter().all(|s| s.len() < LOAD_BATCH + 2048),
            "{}",
            inserts.len()
        );
        let rows: usize = inserts.iter().map(|s| s.matches("),(").count() + 1).sum();
        assert_eq!(rows as u64, dump.rows);
        assert!(
            dump.statements[0].starts_with("CREATE TABLE imported_members (")
                && dump.statements[0].ends_with(" ENGINE=aria")
        );
        assert!(
            dump.statements
                .iter()
                .any(|s| s == "CREATE INDEX imported_posts_thread ON imported_posts (thread, id)")
        );
        assert_eq!(removal().count(), TABLES.len());
        assert_eq!(
            dump.bytes(),
            dump.statements.iter().map(|s| s.len() as u64).sum::<u64>()
        );
    }
}
