//! A client for PostgreSQL's protocol: prepared statements, one round trip each, answers counted in place.
//!
//! Messages to send and the log-in's arithmetic (MD5, SCRAM) are the `postgres-protocol` crate's. The `postgres` crate
//! above it runs an asynchronous runtime for every connection, whose wake-ups would be the client's largest cost.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use crate::database::connection::{Arg, Bound, Connection, Login, QueryError};
use crate::database::data::{Data, Session, TABLES, Table};
use crate::database::mix::STATEMENTS;
use crate::database::stream::Stream;

/// Data is copied in pieces of about this size.
const COPY_PIECE: usize = 256 << 10;

/// A connection to a PostgreSQL server.
pub struct PgConnection {
    stream: Stream,
    out: BytesMut,
}

/// What the statements of the mix are prepared as, and the bounds of a transaction.
const NAMES: [&str; STATEMENTS.len()] = [
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
];
const BOUNDS: [&str; Bound::ALL.len()] = ["t0", "t1", "t2"];

/// An unsuitable text, such as one with a zero within.
fn unsendable(error: &std::io::Error) -> QueryError {
    QueryError::protocol(format!("cannot be sent: {error}"))
}

impl PgConnection {
    /// Connects and logs in.
    pub fn connect(login: &Login) -> Result<PgConnection, QueryError> {
        let mut connection = PgConnection {
            stream: login.stream()?,
            out: BytesMut::with_capacity(4096),
        };
        let options = [
            ("user", login.user.as_str()),
            ("database", login.database.as_str()),
            ("client_encoding", "UTF8"),
        ];
        frontend::startup_message(options, &mut connection.out).map_err(|e| unsendable(&e))?;
        connection.flush()?;
        connection.authenticate(login)?;
        connection.until_ready(|_, _| {})?;
        Ok(connection)
    }

    fn prepare_one(&mut self, name: &str, sql: &str) -> Result<(), QueryError> {
        frontend::parse(name, sql, [], &mut self.out).map_err(|e| unsendable(&e))?;
        frontend::sync(&mut self.out);
        self.flush()?;
        self.until_ready(|_, _| {})
    }

    fn flush(&mut self) -> Result<(), QueryError> {
        let sent = self.stream.send(&self.out);
        self.out.clear();
        sent.map_err(|e| QueryError::lost(&e))
    }

    /// The next message: its kind and its body.
    #[inline]
    fn receive(&mut self) -> Result<(u8, &[u8]), QueryError> {
        let header = self.stream.peek(5).map_err(|e| QueryError::lost(&e))?;
        let kind = header[0];
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if length < 4 {
            return Err(QueryError::protocol("a message shorter than its length"));
        }
        let message = self
            .stream
            .take(1 + length)
            .map_err(|e| QueryError::lost(&e))?;
        Ok((kind, &message[5..]))
    }

    /// Reads until the server is ready for the next query; hands each message to `each`. The first error that the
    /// server tells is returned once it is ready again, so that the connection can be used on.
    #[inline]
    fn until_ready(&mut self, mut each: impl FnMut(u8, &[u8])) -> Result<(), QueryError> {
        let mut error = None;
        loop {
            match self.receive()? {
                (b'Z', _) => return error.map_or(Ok(()), Err),
                (b'E', body) => {
                    let told = server_error(body);
                    if told.fatal {
                        return Err(told);
                    }
                    error.get_or_insert(told);
                }
                (kind, body) => each(kind, body),
            }
        }
    }

    fn authenticate(&mut self, login: &Login) -> Result<(), QueryError> {
        let password = || {
            login.password().ok_or_else(|| {
                QueryError::denied(
                    "the server asks for a password; set PGPASSWORD or password_file=PATH",
                )
            })
        };
        loop {
            let (kind, body) = self.receive()?;
            if kind == b'E' {
                return Err(QueryError {
                    fatal: true,
                    ..server_error(body)
                });
            }
            if kind != b'R' || body.len() < 4 {
                return Err(QueryError::protocol("this is not a PostgreSQL server"));
            }
            let rest = body[4..].to_vec();
            match u32::from_be_bytes([body[0], body[1], body[2], body[3]]) {
                0 => return Ok(()),
                3 if self.stream.is_unix() => frontend::password_message(password()?.as_bytes(), &mut self.out),
                3 => {
                    return Err(QueryError::denied(
                        "the server wants the password itself, which is not sent over TCP without encryption",
                    ));
                }
                5 => {
                    let salt =
                        rest.get(..4).and_then(|s| s.try_into().ok()).ok_or_else(|| QueryError::protocol("no salt"))?;
                    let hash = md5_hash(login.user.as_bytes(), password()?.as_bytes(), salt);
                    frontend::password_message(hash.as_bytes(), &mut self.out)
                }
                10 => {
                    self.scram(password()?)?;
                    continue;
                }
                other => {
                    return Err(QueryError::denied(format!(
                        "the server asks for log-in method {other}, which is not supported"
                    )));
                }
            }
            .map_err(|e| unsendable(&e))?;
            self.flush()?;
        }
    }

    /// SCRAM-SHA-256 without channel binding, which needs TLS.
    fn scram(&mut self, password: &str) -> Result<(), QueryError> {
        let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut self.out)
            .map_err(|e| unsendable(&e))?;
        self.flush()?;
        let failed = |e: std::io::Error| QueryError::denied(e.to_string());
        scram.update(&self.sasl_part(11)?).map_err(failed)?;
        frontend::sasl_response(scram.message(), &mut self.out).map_err(|e| unsendable(&e))?;
        self.flush()?;
        scram.finish(&self.sasl_part(12)?).map_err(failed)
    }

    /// The server's part of the exchange, which must be the one that is due.
    fn sasl_part(&mut self, due: u32) -> Result<Vec<u8>, QueryError> {
        match self.receive()? {
            (b'E', body) => Err(QueryError {
                fatal: true,
                ..server_error(body)
            }),
            (b'R', body) if body.get(..4) == Some(&due.to_be_bytes()[..]) => Ok(body[4..].to_vec()),
            _ => Err(QueryError::protocol("an unknown answer to the log-in")),
        }
    }

    /// Runs a statement as text and gives its rows as texts; NULL is an empty text.
    pub fn text(&mut self, sql: &str) -> Result<Vec<Vec<String>>, QueryError> {
        frontend::query(sql, &mut self.out).map_err(|e| unsendable(&e))?;
        self.flush()?;
        let mut rows = Vec::new();
        self.until_ready(|kind, body| {
            if kind == b'D' {
                rows.push(text_row(body));
            }
        })?;
        Ok(rows)
    }

    fn copy(&mut self, data: &Data, table: &Table) -> Result<(), QueryError> {
        frontend::query(&format!("COPY {} FROM STDIN", table.name), &mut self.out)
            .map_err(|e| unsendable(&e))?;
        self.flush()?;
        let (kind, body) = self.receive()?;
        if kind != b'G' {
            let error = if kind == b'E' {
                server_error(body)
            } else {
                QueryError::protocol("no answer to COPY")
            };
            return Err(QueryError {
                fatal: true,
                ..error
            });
        }
        let mut piece = Vec::with_capacity(COPY_PIECE + 2048);
        data.each_row(table, |row| {
            push_row(&mut piece, row);
            if piece.len() < COPY_PIECE {
                Ok(())
            } else {
                self.send_piece(&mut piece)
            }
        })?;
        self.send_piece(&mut piece)?;
        frontend::copy_done(&mut self.out);
        self.flush()?;
        self.until_ready(|_, _| {})
    }

    fn send_piece(&mut self, piece: &mut Vec<u8>) -> Result<(), QueryError> {
        self.out.extend_from_slice(b"d");
        self.out
            .extend_from_slice(&(piece.len() as u32 + 4).to_be_bytes());
        self.out.extend_from_slice(piece);
        piece.clear();
        self.flush()
    }

    fn execute(&mut self, name: &str, args: &[Arg]) -> Result<u64, QueryError> {
        // Numbers go in binary, texts as they are; the answer comes as text.
        let formats = args.iter().map(|arg| i16::from(matches!(arg, Arg::Int(_))));
        let bound = frontend::bind("", name, formats, args, push_argument, [0], &mut self.out);
        bound.map_err(|_| QueryError::protocol("a parameter that does not fit"))?;
        frontend::execute("", 0, &mut self.out).map_err(|e| unsendable(&e))?;
        frontend::sync(&mut self.out);
        self.flush()?;
        let mut rows = 0;
        self.until_ready(|kind, _| rows += u64::from(kind == b'D'))?;
        Ok(rows)
    }
}

impl Session for PgConnection {
    fn prepare(&mut self) -> Result<(), QueryError> {
        for (name, statement) in NAMES.into_iter().zip(&STATEMENTS) {
            self.prepare_one(name, &numbered(statement.sql))?;
        }
        BOUNDS
            .into_iter()
            .zip(Bound::ALL)
            .try_for_each(|(name, bound)| self.prepare_one(name, bound.sql()))
    }

    fn run(&mut self, sql: &str) -> Result<(), QueryError> {
        self.text(sql).map(drop)
    }

    fn load(&mut self, data: &Data) -> Result<(), QueryError> {
        self.text("BEGIN")?;
        for table in &TABLES {
            self.text(&table.create("", ""))?;
            self.copy(data, table)?;
            for index in table.create_indexes("") {
                self.text(&index)?;
            }
        }
        self.text("COMMIT")?;
        // Sets the hint bits and the visibility map too, so that the first readers need not.
        self.run("VACUUM ANALYZE")
    }

    fn describe(&mut self) -> Result<String, QueryError> {
        let names = "'fsync', 'synchronous_commit', 'shared_buffers', 'wal_sync_method'";
        let settings = self.text(&format!(
            "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names}) ORDER BY 1"
        ))?;
        let settings: Vec<String> = settings.iter().map(|pair| pair.join("=")).collect();
        let version = self.text("SHOW server_version")?.concat().concat();
        Ok(format!("PostgreSQL {version}, {}", settings.join(", ")))
    }
}

fn push_argument(
    arg: &Arg,
    out: &mut BytesMut,
) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
    match arg {
        Arg::Int(n) => out.extend_from_slice(&i32::try_from(*n)?.to_be_bytes()),
        Arg::Text(s) => out.extend_from_slice(s.as_bytes()),
    }
    Ok(IsNull::No)
}

impl Connection for PgConnection {
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        self.execute(NAMES[statement], args)
    }

    fn bound(&mut self, bound: Bound) -> Result<(), QueryError> {
        self.execute(BOUNDS[bound as usize], &[]).map(drop)
    }
}

/// `?` becomes `$1`, `$2` and so on.
fn numbered(sql: &str) -> String {
    let mut n = 0;
    sql.chars()
        .map(|c| {
            if c != '?' {
                return c.to_string();
            }
            n += 1;
            format!("${n}")
        })
        .collect()
}

/// Appends a row as COPY takes it. Texts of the data set need no quoting.
fn push_row(out: &mut Vec<u8>, row: &[Arg]) {
    use std::io::Write;
    for (i, value) in row.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        // Writing to memory cannot fail.
        let _ = match value {
            Arg::Int(n) => write!(out, "{n}"),
            Arg::Text(s) => out.write_all(s.as_bytes()),
        };
    }
    out.push(b'\n');
}

/// The values of a row: a number of columns, and each with its length, −1 for NULL. What does not parse is left out.
fn text_row(body: &[u8]) -> Vec<String> {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut values = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let Some((value, tail)) = tail.split_at_checked(length) else {
            break;
        };
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = tail;
    }
    values
}

/// The error that a server tells: fields of a letter and a text. `S`everity in words, `C`ode, `M`essage.
fn server_error(body: &[u8]) -> QueryError {
    let field = |letter: u8| {
        let found = body
            .split(|b| *b == 0)
            .find(|f| f.first() == Some(&letter))
            .map(|f| &f[1..]);
        String::from_utf8_lossy(found.unwrap_or_default()).into_owned()
    };
    let code = field(b'C');
    let kind = match code.as_str() {
        "40P01" => "deadlock".to_owned(),
        "40001" => "serialization failure".to_owned(),
        "55P03" => "lock wait timeout".to_owned(),
        "53300" => "too many connections".to_owned(),
        "28P01" | "28000" => "access denied".to_owned(),
        "23505" => "duplicate key".to_owned(),
        "53100" => "disk or table full".to_owned(),
        other => format!("server error {other}"),
    };
    QueryError {
        kind,
        message: field(b'M'),
        fatal: matches!(field(b'V').as_str(), "FATAL" | "PANIC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(
            numbered("SELECT a FROM b WHERE c = ? AND d < ?"),
            "SELECT a FROM b WHERE c = $1 AND d < $2"
        );
    }

    #[test]
    fn an_error_of_the_server_is_counted_by_its_kind() {
        let body = b"SERROR\0VERROR\0C40P01\0Mdeadlock detected\0\0";
        assert_eq!(
            server_error(body),
            QueryError::refused("deadlock", "deadlock detected")
        );
        assert!(server_error(b"SFATAL\0VFATAL\0C53300\0Msorry\0\0").fatal);
        assert_eq!(server_error(b"").kind, "server error ");
    }

    #[test]
    fn rows_are_read_and_broken_ones_do_no_harm() {
        let row = [
            &[0, 2][..],
            &2i32.to_be_bytes(),
            b"42",
            &(-1i32).to_be_bytes(),
        ]
        .concat();
        assert_eq!(text_row(&row), ["42", ""]);
        assert_eq!(text_row(&row[..7]), Vec::<String>::new());
        assert_eq!(text_row(&[]), Vec::<String>::new());
    }
}
