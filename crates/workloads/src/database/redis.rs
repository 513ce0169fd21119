//! A client for Redis' protocol (RESP 2): one hash with the members' signatures, looked up field by field.
//!
//! The hash is one key, so that taking it away is one command, and its name ends in a random number: nothing that was
//! there is touched.

use std::io::Write as _;

use crate::database::connection::{Arg, Connection, Login, QueryError};
use crate::database::data::{Data, Session, TABLES};
use crate::database::mix::{SIGNATURE, STATEMENTS};
use crate::database::stream::Stream;

/// The user that Redis has where it was told of none.
pub const DEFAULT_USER: &str = "default";
/// Fields that are sent with one command while the data is loaded.
const BATCH: usize = 500;
/// No line of an answer is longer.
const LONGEST_LINE: usize = 4096;
/// No answer's content is longer.
const LONGEST: usize = 16 << 20;
/// No array is longer.
const MOST: i64 = 10_000;
/// The members' place among the tables, and their signature's among the columns.
const MEMBERS: usize = 0;
/// See [`MEMBERS`].
const SIGNATURE_COLUMN: usize = 4;

/// A connection to a Redis server.
pub struct RedisConnection {
    stream: Stream,
    key: String,
    out: Vec<u8>,
}

impl RedisConnection {
    /// Connects, and authenticates where there is a password.
    pub fn connect(login: &Login) -> Result<RedisConnection, QueryError> {
        let mut connection = RedisConnection::over(login.stream()?, login.database.clone());
        if let Some(password) = login.password() {
            let words: &[&str] = if login.user == DEFAULT_USER {
                &["AUTH", password]
            } else {
                &["AUTH", &login.user, password]
            };
            connection.ask(words).map_err(|e| QueryError {
                kind: "access denied".to_owned(),
                fatal: true,
                ..e
            })?;
        }
        Ok(connection)
    }

    /// A connection over a stream.
    pub fn over(stream: Stream, key: String) -> RedisConnection {
        RedisConnection {
            stream,
            key,
            out: Vec::with_capacity(4096),
        }
    }

    /// Whether the key of this login exists.
    pub fn exists(&mut self) -> Result<bool, QueryError> {
        let key = self.key.clone();
        Ok(self.ask(&["EXISTS", &key])? != 0)
    }

    /// Takes the key away.
    pub fn remove(&mut self) -> Result<(), QueryError> {
        let key = self.key.clone();
        self.ask(&["DEL", &key]).map(drop)
    }

    fn put(&mut self, key: &str, fields: &mut Vec<String>) -> Result<(), QueryError> {
        if fields.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = ["HSET", key]
            .into_iter()
            .chain(fields.iter().map(String::as_str))
            .collect();
        let result = self.ask(&words).map(drop);
        fields.clear();
        result
    }

    fn send(&mut self, words: &[&str]) -> Result<(), QueryError> {
        self.out.clear();
        // Writing into memory does not fail.
        let _ = write!(self.out, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(self.out, "${}\r\n", word.len());
            self.out.extend_from_slice(word.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        }
        self.stream
            .send(&self.out)
            .map_err(|e| QueryError::lost(&e))
    }

    /// Sends a command and reads the answer to its end: the number that it tells, 1 for anything else that is there,
    /// and 0 where nothing is.
    pub fn ask(&mut self, words: &[&str]) -> Result<i64, QueryError> {
        self.send(words)?;
        self.answer()
    }

    /// The content of an answer that is a text.
    fn text(&mut self, words: &[&str]) -> Result<String, QueryError> {
        self.send(words)?;
        let line = self.line()?;
        if !line.starts_with('$') {
            return Err(
                told(&line).unwrap_or_else(|| QueryError::protocol("this is not a Redis server"))
            );
        }
        let length = length(&line)?;
        let content = self
            .stream
            .take(length + 2)
            .map_err(|e| QueryError::lost(&e))?;
        Ok(String::from_utf8_lossy(&content[..length]).into_owned())
    }

    /// Reads an answer, or an array of such.
    #[inline]
    fn answer(&mut self) -> Result<i64, QueryError> {
        let line = self.line()?;
        let Some(count) = line.strip_prefix('*') else {
            return self.one(&line);
        };
        // All of it is read, whatever is an error in it: what is asked next has its own answer.
        let mut read = Ok(1);
        for _ in 0..number(count)?.clamp(0, MOST) {
            let line = self.line()?;
            read = read.and(self.one(&line).map(|_| 1));
        }
        read
    }

    /// Reads an answer that begins with this line and is not an array: none that is asked for here is one of arrays.
    #[inline]
    fn one(&mut self, line: &str) -> Result<i64, QueryError> {
        match line.as_bytes().first() {
            Some(b'+') => Ok(1),
            Some(b':') => number(&line[1..]),
            Some(b'$') if line == "$-1" => Ok(0),
            Some(b'$') => {
                self.stream
                    .take(length(line)? + 2)
                    .map_err(|e| QueryError::lost(&e))?;
                Ok(1)
            }
            _ => {
                Err(told(line)
                    .unwrap_or_else(|| QueryError::protocol("this is not a Redis server")))
            }
        }
    }

    /// The next line without its end.
    fn line(&mut self) -> Result<String, QueryError> {
        let mut n = 1;
        loop {
            let seen = self.stream.peek(n).map_err(|e| QueryError::lost(&e))?;
            if seen[n - 1] == b'\n' {
                let line = self.stream.take(n).map_err(|e| QueryError::lost(&e))?;
                let line = line
                    .strip_suffix(b"\r\n")
                    .ok_or_else(|| QueryError::protocol("a line without its end"))?;
                return Ok(String::from_utf8_lossy(line).into_owned());
            }
            n += 1;
            if n > LONGEST_LINE {
                return Err(QueryError::protocol("a line without end"));
            }
        }
    }
}

fn number(text: &str) -> Result<i64, QueryError> {
    text.parse()
        .map_err(|_| QueryError::protocol("a number that is none"))
}

/// The length that a line such as `$120` tells.
fn length(line: &str) -> Result<usize, QueryError> {
    let length = line[1..].parse().ok().filter(|n| *n <= LONGEST);
    length.ok_or_else(|| QueryError::protocol("a length that cannot be"))
}

/// What an answer that refuses says.
fn told(line: &str) -> Option<QueryError> {
    let text = line.strip_prefix('-')?;
    let (kind, message) = text.split_once(' ').unwrap_or((text, ""));
    Some(match kind {
        "NOAUTH" => QueryError::denied(
            "the server asks for a password; set REDISCLI_AUTH or password_file=PATH",
        ),
        _ => QueryError::refused(format!("server error {kind}"), message),
    })
}

impl Connection for RedisConnection {
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        let (SIGNATURE, [Arg::Int(id)]) = (statement, args) else {
            return Err(QueryError::refused(
                "not possible",
                format!("Redis cannot answer “{}”", STATEMENTS[statement].sql),
            ));
        };
        let (key, field) = (std::mem::take(&mut self.key), id.to_string());
        let answer = self.ask(&["HGET", &key, &field]);
        self.key = key;
        Ok(answer?.clamp(0, 1) as u64)
    }
}

impl Session for RedisConnection {
    fn run(&mut self, _: &str) -> Result<(), QueryError> {
        Err(QueryError::refused(
            "not possible",
            "Redis has no dump of statements to import",
        ))
    }

    /// Fills the hash with each member's signature.
    fn load(&mut self, data: &Data) -> Result<(), QueryError> {
        let key = self.key.clone();
        let mut fields: Vec<String> = Vec::new();
        data.each_row(&TABLES[MEMBERS], |row| {
            let (Some(Arg::Int(id)), Some(Arg::Text(signature))) =
                (row.first(), row.get(SIGNATURE_COLUMN))
            else {
                return Ok(());
            };
            fields.extend([id.to_string(), (*signature).to_owned()]);
            if fields.len() < 2 * BATCH {
                Ok(())
            } else {
                self.put(&key, &mut fields)
            }
        })?;
        self.put(&key, &mut fields)
    }

    /// The server's version, and how it keeps data on disk.
    fn describe(&mut self) -> Result<String, QueryError> {
        let info = self.text(&["INFO"])?;
        let of = |name: &str| {
            info.lines()
                .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))
                .unwrap_or("unknown")
                .trim()
                .to_owned()
        };
        Ok(format!(
            "Redis {}, aof_enabled={}, maxmemory_policy={}",
            of("redis_version"),
            of("aof_enabled"),
            of("maxmemory_policy")
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::database::stream::Address;

    /// A connection to a server that gives these answers, whatever it is asked.
    fn answering(answers: Vec<u8>) -> RedisConnection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(&answers);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let address = Address::Tcp("127.0.0.1".into(), port);
        RedisConnection::connect(&Login {
            address,
            user: DEFAULT_USER.into(),
            password: None,
            database: "fp:1".into(),
        })
        .unwrap()
    }

    #[test]
    fn a_field_that_is_there_is_one_row_and_one_that_is_not_is_none() {
        let mut redis = answering(b"$3\r\nabc\r\n$-1\r\n$0\r\n\r\n".to_vec());
        let rows: Vec<u64> = (0..3)
            .map(|id| redis.query(SIGNATURE, &[Arg::Int(id)]).unwrap())
            .collect();
        assert_eq!(rows, [1, 0, 1]);
        assert!(
            redis
                .query(SIGNATURE + 1, &[Arg::Int(1)])
                .unwrap_err()
                .message
                .contains("cannot answer")
        );
    }

    #[test]
    fn answers_of_every_kind_end_where_they_say() {
        for whole in [
            "+OK\r\n",
            ":12\r\n",
            "$3\r\nabc\r\n",
            "$-1\r\n",
            "*2\r\n:1\r\n$1\r\na\r\n",
            "*-1\r\n",
        ] {
            let mut redis = answering(format!("{whole}:7\r\n").into_bytes());
            redis.ask(&["X"]).unwrap();
            assert_eq!(redis.answer(), Ok(7), "{whole}");
            assert!(
                answering(whole.as_bytes()[..whole.len() - 1].to_vec())
                    .ask(&["X"])
                    .unwrap_err()
                    .fatal,
                "{whole}"
            );
        }
        for wrong in [
            "hello\r\n",
            "$x\r\n",
            "$99999999999\r\n",
            "*x\r\n",
            "*1\r\n*1\r\n",
            "\r\n",
        ] {
            assert!(
                answering(wrong.as_bytes().to_vec()).ask(&["X"]).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_command_is_an_array_of_strings_also_in_two_writes() {
        for split in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let within = std::time::Duration::from_secs(60);
            let stream =
                Stream::tcp(&listener.local_addr().unwrap(), within, within, split).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            RedisConnection::over(stream, String::new())
                .send(&["GET", "k12"])
                .unwrap();
            let mut got = Vec::new();
            server.read_to_end(&mut got).unwrap();
            assert_eq!(got, b"*2\r\n$3\r\nGET\r\n$3\r\nk12\r\n");
        }
    }

    #[test]
    fn what_a_server_refuses_is_told_and_a_stranger_is_known() {
        let error = |bytes: &[u8]| answering(bytes.to_vec()).exists().unwrap_err();
        assert!(
            error(b"-NOAUTH Authentication required.\r\n")
                .message
                .contains("REDISCLI_AUTH")
        );
        assert_eq!(
            error(b"-MOVED 12 10.0.0.1:6379\r\n").kind,
            "server error MOVED"
        );
        assert!(
            error(b"HTTP/1.1 400 Bad Request\r\n")
                .message
                .contains("not a Redis server")
        );
        assert!(error(b"").fatal && error(b"$12").fatal && error(&[b'x'; 10_000]).fatal);
    }

    #[test]
    fn no_answer_makes_it_panic_or_hang() {
        let whole = b"$3\r\nabc\r\n:12\r\n+OK\r\n-ERR no\r\n$-1\r\n";
        let mut rng = fastrand::Rng::with_seed(16);
        for _ in 0..300 {
            let mut bytes = whole.to_vec();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            let mut redis = answering(bytes);
            while redis
                .query(SIGNATURE, &[Arg::Int(1)])
                .is_ok_and(|rows| rows <= 1)
            {}
        }
    }
}
