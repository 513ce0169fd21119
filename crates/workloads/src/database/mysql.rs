//! A client for MySQL's protocol, for MariaDB and MySQL: prepared statements, one round trip each, answers counted in place.
//!
//! Why not the `mysql` crate: with its lightest features it is 89 crates and 43 s of building on two cores, and it makes a value of
//! every column. What is needed here is small, and the client must not be what is measured.
//! The protocol: <https://mariadb.com/kb/en/clientserver-protocol/>.

use crate::database::connection::{Arg, Connection, Login, QueryError};
use crate::database::data::{Data, TABLES};
use crate::database::mix::STATEMENTS;
use crate::database::mysql_login;
use crate::database::stream::Stream;

const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONGLONG: u8 = 8;
const TYPE_VAR_STRING: u8 = 253;
const OK: u8 = 0x00;
const LOCAL_INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// A longer payload would be split into several packets; none of ours comes near.
const LONGEST_PACKET: usize = 0xff_ffff;
/// Statements that load data are about this long: few round trips, and well below the least limit on packets (1 MiB).
const LOAD_BATCH: usize = 256 << 10;

/// Packets of the protocol over a stream: three bytes of length, a number, the payload.
#[derive(Debug)]
pub struct Wire {
    /// The stream below.
    pub stream: Stream,
    /// The number that the next packet sent must carry.
    pub sequence: u8,
    out: Vec<u8>,
}

impl Wire {
    /// Packets over this stream.
    pub fn new(stream: Stream) -> Wire {
        Wire { stream, sequence: 0, out: Vec::with_capacity(4096) }
    }

    /// Begins a packet; its payload is to be appended to what is returned.
    pub fn packet(&mut self) -> &mut Vec<u8> {
        self.out.clear();
        self.out.extend([0; 4]);
        &mut self.out
    }

    /// Sends the packet that was begun.
    pub fn send(&mut self) -> Result<(), QueryError> {
        let length = self.out.len() - 4;
        if length >= LONGEST_PACKET {
            return Err(QueryError::protocol(format!("a statement of {length} bytes does not fit into a packet")));
        }
        self.out[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.out[3] = self.sequence;
        self.stream.send(&self.out).map_err(|e| QueryError::lost(&e))
    }

    /// Sends a command, which begins a new exchange.
    fn command(&mut self, command: u8, payload: &[u8]) -> Result<(), QueryError> {
        self.sequence = 0;
        let out = self.packet();
        out.push(command);
        out.extend_from_slice(payload);
        self.send()
    }

    /// The payload of the next packet.
    #[inline]
    pub fn receive(&mut self) -> Result<&[u8], QueryError> {
        let header = self.stream.peek(4).map_err(|e| QueryError::lost(&e))?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if length == LONGEST_PACKET {
            return Err(QueryError::protocol("a row of 16 MiB or more"));
        }
        self.sequence = header[3].wrapping_add(1);
        let packet = self.stream.take(4 + length).map_err(|e| QueryError::lost(&e))?;
        Ok(&packet[4..])
    }

    /// The payload of the next packet, or the error that it tells.
    #[inline]
    pub fn receive_ok(&mut self) -> Result<&[u8], QueryError> {
        let payload = self.receive()?;
        match payload.first() {
            Some(&ERR) => Err(server_error(payload)),
            Some(_) => Ok(payload),
            None => Err(QueryError::protocol("an empty packet")),
        }
    }

    /// Skips packets up to and with the one that ends a list; hands each payload before it to `each`.
    fn until_end(&mut self, mut each: impl FnMut(&[u8])) -> Result<u64, QueryError> {
        let mut count = 0;
        loop {
            let payload = self.receive_ok()?;
            // A row can begin with the same byte (a text of 16 MiB and more), but is never so short.
            if payload[0] == EOF && payload.len() < 9 {
                return Ok(count);
            }
            each(payload);
            count += 1;
        }
    }

    /// Reads an answer to a statement; hands each row to `each` and tells how many there were.
    fn answer(&mut self, each: impl FnMut(&[u8])) -> Result<u64, QueryError> {
        match self.receive_ok()?[0] {
            OK => Ok(0),
            LOCAL_INFILE => Err(QueryError::protocol("the server asks for a local file")),
            _ => {
                self.until_end(|_| {})?;
                self.until_end(each)
            }
        }
    }

    /// Runs a statement as text and gives its rows as texts; NULL is an empty text.
    pub fn text(&mut self, sql: &str) -> Result<Vec<Vec<String>>, QueryError> {
        self.command(COM_QUERY, sql.as_bytes())?;
        let mut rows = Vec::new();
        self.answer(|row| rows.push(text_row(row)))?;
        Ok(rows)
    }
}

/// The values of a row in the text protocol. What does not parse is left out: a count is checked by who needs it.
fn text_row(mut row: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    while let Some((&first, rest)) = row.split_first() {
        let (length, rest) = match first {
            0xfb => (0, rest),
            0xfc if rest.len() >= 2 => (usize::from(u16::from_le_bytes([rest[0], rest[1]])), &rest[2..]),
            0xfd if rest.len() >= 3 => (u32::from_le_bytes([rest[0], rest[1], rest[2], 0]) as usize, &rest[3..]),
            n if n < 0xfb => (usize::from(n), rest),
            _ => break,
        };
        let Some((value, rest)) = rest.split_at_checked(length) else { break };
        values.push(String::from_utf8_lossy(value).into_owned());
        row = rest;
    }
    values
}

/// The error that a server tells: a number, five letters of state, a sentence.
fn server_error(payload: &[u8]) -> QueryError {
    let code = payload.get(1..3).map_or(0, |c| u16::from_le_bytes([c[0], c[1]]));
    let text = payload.get(3..).unwrap_or_default();
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    let kind = match code {
        1213 => "deadlock".to_owned(),
        1205 => "lock wait timeout".to_owned(),
        1040 => "too many connections".to_owned(),
        1044 | 1045 => "access denied".to_owned(),
        1062 => "duplicate key".to_owned(),
        1021 | 1114 => "disk or table full".to_owned(),
        _ => format!("server error {code}"),
    };
    QueryError { kind, message: String::from_utf8_lossy(text).into_owned(), fatal: matches!(code, 1040 | 1044 | 1045 | 1053 | 1927) }
}

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
}

impl MySqlConnection {
    /// Connects and logs in.
    pub fn connect(login: &Login) -> Result<MySqlConnection, QueryError> {
        let stream = login.stream()?;
        let mut wire = Wire::new(stream);
        mysql_login::log_in(&mut wire, login)?;
        Ok(MySqlConnection { wire, prepared: Vec::new() })
    }

    /// As [`MySqlConnection::connect`], with every statement of the mix prepared.
    pub fn prepared(login: &Login) -> Result<MySqlConnection, QueryError> {
        let mut connection = Self::connect(login)?;
        for statement in &STATEMENTS {
            let prepared = connection.prepare(statement.sql)?;
            connection.prepared.push(prepared);
        }
        Ok(connection)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, QueryError> {
        self.wire.command(COM_STMT_PREPARE, sql.as_bytes())?;
        let answer = self.wire.receive_ok()?;
        let Some(&[_, a, b, c, d, columns_low, columns_high, parameters_low, parameters_high]) = answer.get(..9) else {
            return Err(QueryError::protocol("a short answer to a statement to be prepared"));
        };
        let lists = [[parameters_low, parameters_high], [columns_low, columns_high]];
        for _ in lists.iter().filter(|list| u16::from_le_bytes(**list) > 0) {
            self.wire.until_end(|_| {})?;
        }
        Ok(Prepared { id: [a, b, c, d], bound: false })
    }

    /// Runs a statement as text and gives its rows as texts.
    pub fn text(&mut self, sql: &str) -> Result<Vec<Vec<String>>, QueryError> {
        self.wire.text(sql)
    }

    /// Makes the tables with a storage engine and fills them.
    pub fn load(&mut self, data: &Data, storage: Option<&str>) -> Result<(), QueryError> {
        let options = storage.map(|name| format!(" ENGINE={name}")).unwrap_or_default();
        for table in &TABLES {
            self.text(&table.create(&options))?;
            // One commit for each table; for engines without transactions it changes nothing.
            self.text("BEGIN")?;
            let mut sql = String::with_capacity(LOAD_BATCH + 2048);
            data.each_row(table, |row| {
                sql.push_str(if sql.is_empty() { "" } else { "," });
                if sql.is_empty() {
                    sql = format!("INSERT INTO {} VALUES ", table.name);
                }
                push_row(&mut sql, row);
                if sql.len() < LOAD_BATCH {
                    return Ok(());
                }
                let full = std::mem::take(&mut sql);
                self.text(&full).map(drop)
            })?;
            if !sql.is_empty() {
                self.text(&sql)?;
            }
            self.text("COMMIT")?;
            for index in table.create_indexes() {
                self.text(&index)?;
            }
            self.text(&format!("ANALYZE TABLE {}", table.name))?;
        }
        Ok(())
    }
}

/// Appends `(1,'two',3)`. Texts of the data set need no quoting.
pub(super) fn push_row(sql: &mut String, row: &[Arg]) {
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
                let kind = if matches!(arg, Arg::Int(_)) { TYPE_LONGLONG } else { TYPE_VAR_STRING };
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

    fn begin(&mut self) -> Result<(), QueryError> {
        self.text("BEGIN").map(drop)
    }

    fn commit(&mut self) -> Result<(), QueryError> {
        self.text("COMMIT").map(drop)
    }

    fn rollback(&mut self) -> Result<(), QueryError> {
        self.text("ROLLBACK").map(drop)
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
    fn an_error_of_the_server_is_counted_by_its_kind() {
        let packet = [&[ERR, 0xbd, 0x04][..], b"#40001Deadlock found"].concat();
        assert_eq!(server_error(&packet), QueryError::refused("deadlock", "Deadlock found"));
        // Before log-in there is no state, and a broken packet must not panic.
        assert!(server_error(&[&[ERR, 0x10, 0x04][..], b"Too many"].concat()).fatal);
        assert_eq!(server_error(&[ERR]).kind, "server error 0");
        assert_eq!(server_error(&[ERR, 1, 0, b'#', b'4']).message, "");
    }

    #[test]
    fn rows_of_text_are_read_and_broken_ones_do_no_harm() {
        assert_eq!(text_row(&[2, b'4', b'2', 0xfb, 0xfc, 1, 0, b'x']), ["42", "", "x"]);
        assert_eq!(text_row(&[9, b'4']), Vec::<String>::new());
        assert_eq!(text_row(&[0xfc, 1]), Vec::<String>::new());
    }

    #[test]
    fn a_text_goes_after_its_length() {
        for (length, prefix) in [(3, vec![3]), (300, vec![0xfc, 44, 1]), (70_000, vec![0xfd, 0x70, 0x11, 1])] {
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
