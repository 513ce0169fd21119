//! HTTP/1.1 answers as a client reads them: in pieces of any size, of any status, framed in any of the ways of
//! RFC 9112.
//!
//! The parser keeps no body. It tells where an answer ends, what its status was, and whether the connection can be used
//! again.

use thiserror::Error;

/// The longest head (status line and fields) that is read.
const MAX_HEAD: usize = 64 << 10;
/// The longest line of a chunk's size with its extensions.
const MAX_CHUNK_LINE: usize = 4 << 10;
/// The most fields of a head.
const MAX_FIELDS: usize = 128;

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, 200 to 999. Interim answers (1xx) are passed over.
    pub status: u16,
    /// Bytes of the body, without the framing.
    pub body: u64,
    /// Whether another request may be sent on the connection.
    pub keep_alive: bool,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// The answer ended after this many bytes of the piece just fed.
    Done(Answer, usize),
}

/// Why bytes are not an HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadAnswer {
    /// The status line or a field is malformed.
    #[error("malformed answer ({0})")]
    Head(String),
    /// The length of the body is contradictory or not a number.
    #[error("malformed answer (contradictory length)")]
    Length,
    /// A chunk is malformed.
    #[error("malformed answer (chunk)")]
    Chunk,
    /// The head or a chunk's size line is longer than any honest one.
    #[error("malformed answer (head too long)")]
    TooLong,
    /// The connection closed within an answer.
    #[error("connection closed within an answer")]
    Truncated,
    /// The connection closed before the first byte of an answer.
    #[error("connection closed without an answer")]
    Empty,
}

/// What a head says about the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    status: u16,
    /// What follows it.
    next: State,
    keep_alive: bool,
}

/// The head that was parsed last, as bytes and as meaning. A server that is asked for the same file answers with the
/// same head for a second at a time (its Date field), and comparing is ten times cheaper than parsing.
#[derive(Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    head: Option<Head>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before or within a head.
    #[default]
    Head,
    /// Within a body of which so much is left.
    Body { left: u64 },
    /// Within a body that ends with the connection.
    UntilClose,
    /// At the line with a chunk's size.
    ChunkSize,
    /// Within a chunk of which so much is left.
    ChunkData { left: u64 },
    /// At the line end after a chunk's data.
    ChunkEnd,
    /// Within the fields after the last chunk.
    Trailer,
}

/// Reads one answer after another from a connection; the requests were not HEAD, whose answers have no body.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    /// What is kept of a head or line that came in pieces.
    kept: Vec<u8>,
    head: Head,
    body: u64,
    /// Whether any byte of this answer has come.
    pub(super) begun: bool,
}

impl Parser {
    /// Gets ready for a new connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.kept.clear();
        self.body = 0;
        self.begun = false;
    }

    /// Takes the next bytes of the connection.
    pub fn feed(&mut self, bytes: &[u8], cache: &mut HeadCache) -> Result<Progress, BadAnswer> {
        let mut at = 0;
        self.begun |= !bytes.is_empty();
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Head => {
                    let Some(used) = self.take_head(rest, cache)? else {
                        return Ok(Progress::More);
                    };
                    at += used;
                    if self.state == (State::Body { left: 0 }) {
                        return Ok(Progress::Done(self.finish(), at));
                    }
                }
                State::Body { left } => {
                    let n = left.min(rest.len() as u64);
                    self.body += n;
                    at += n as usize;
                    if n == left {
                        return Ok(Progress::Done(self.finish(), at));
                    }
                    self.state = State::Body { left: left - n };
                }
                State::UntilClose => {
                    self.body += rest.len() as u64;
                    at = bytes.len();
                }
                State::ChunkData { left } => {
                    let n = left.min(rest.len() as u64);
                    self.body += n;
                    at += n as usize;
                    self.state = if n == left {
                        State::ChunkEnd
                    } else {
                        State::ChunkData { left: left - n }
                    };
                }
                State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let Some((line, used)) = self.take_line(rest)? else {
                        return Ok(Progress::More);
                    };
                    at += used;
                    if self.chunk_line(&line)? {
                        return Ok(Progress::Done(self.finish(), at));
                    }
                }
            }
        }
        Ok(Progress::More)
    }

    /// The connection was closed: the end of an answer that lasts until then, else an error.
    pub fn close(&mut self) -> Result<Answer, BadAnswer> {
        match self.state {
            State::UntilClose => Ok(self.finish()),
            State::Head if !self.begun => Err(BadAnswer::Empty),
            _ => Err(BadAnswer::Truncated),
        }
    }

    /// Reads a head to its empty line; tells how many bytes of this piece it took, or nothing when it needs more.
    fn take_head(
        &mut self,
        piece: &[u8],
        cache: &mut HeadCache,
    ) -> Result<Option<usize>, BadAnswer> {
        if self.kept.is_empty()
            && let Some(head) = cache.head.filter(|_| piece.starts_with(&cache.bytes))
        {
            self.enter(head);
            return Ok(Some(cache.bytes.len()));
        }
        let before = self.kept.len();
        let parsed = if before == 0 {
            parse_head(piece)?
        } else {
            self.kept.extend_from_slice(piece);
            parse_head(&self.kept)?
        };
        let Some((head, length)) = parsed else {
            if before == 0 {
                self.kept.extend_from_slice(piece);
            }
            return if self.kept.len() > MAX_HEAD {
                Err(BadAnswer::TooLong)
            } else {
                Ok(None)
            };
        };
        let whole = if before == 0 { piece } else { &self.kept };
        if head.status >= 200 {
            cache.bytes.clear();
            cache.bytes.extend_from_slice(&whole[..length]);
            cache.head = Some(head);
        }
        self.kept.clear();
        self.enter(head);
        // A head is parsed whenever bytes come, so it never ends within what an earlier piece brought.
        Ok(Some(length - before))
    }

    /// Goes on to what follows a head.
    fn enter(&mut self, head: Head) {
        (self.head, self.state) = (head, head.next);
    }

    /// Reads to a line end, keeping what came so far; the line without its end, and how many bytes of this piece it
    /// took.
    fn take_line(&mut self, piece: &[u8]) -> Result<Option<(Vec<u8>, usize)>, BadAnswer> {
        let end = piece.iter().position(|&b| b == b'\n');
        let used = end.map_or(piece.len(), |i| i + 1);
        self.kept.extend_from_slice(&piece[..used]);
        if self.kept.len() > MAX_CHUNK_LINE {
            return Err(BadAnswer::TooLong);
        }
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.kept);
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some((line, used)))
    }

    /// Acts on a line of the chunked framing; true when it was the last.
    fn chunk_line(&mut self, line: &[u8]) -> Result<bool, BadAnswer> {
        self.state = match self.state {
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            // Hexadecimal digits, perhaps followed by blanks and an extension.
            State::ChunkSize => {
                match line
                    .split(|&b| b == b';')
                    .next()
                    .and_then(|size| number(size, 16))
                    .ok_or(BadAnswer::Chunk)?
                {
                    0 => State::Trailer,
                    left => State::ChunkData { left },
                }
            }
            State::Trailer if line.is_empty() => return Ok(true),
            State::Trailer => State::Trailer,
            _ => return Err(BadAnswer::Chunk),
        };
        Ok(false)
    }

    /// The answer that has just ended; ready for the next.
    fn finish(&mut self) -> Answer {
        let keep_alive = self.head.keep_alive && self.state != State::UntilClose;
        let answer = Answer {
            status: self.head.status,
            body: self.body,
            keep_alive,
        };
        self.reset();
        answer
    }
}

/// Parses a whole head, with its length; nothing when it is not whole yet.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, BadAnswer> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(e) => return Err(BadAnswer::Head(e.to_string())),
    };
    let mut head = Head {
        status: response.code.unwrap_or(0),
        next: State::UntilClose,
        // HTTP/1.1 keeps the connection unless told otherwise, HTTP/1.0 closes it.
        keep_alive: response.version == Some(1),
    };
    if head.status < 100 {
        return Err(BadAnswer::Head("status below 100".to_owned()));
    }
    let mut length_field = None;
    let mut coded = None;
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            for value in field.value.split(|&b| b == b',') {
                let value = number(value, 10).ok_or(BadAnswer::Length)?;
                if length_field.is_some_and(|known| known != value) {
                    return Err(BadAnswer::Length);
                }
                length_field = Some(value);
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            // Only when the last coding is chunked does the framing tell the end (RFC 9112, 6.3).
            coded = field
                .value
                .rsplit(|&b| b == b',')
                .next()
                .map(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        } else if field.name.eq_ignore_ascii_case("connection") {
            for word in field.value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    head.keep_alive = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") && response.version == Some(0) {
                    head.keep_alive = true;
                }
            }
        }
    }
    // Both is a sign of a confused sender: read it as chunked and do not use the connection again (RFC 9112, 6.1).
    head.keep_alive &= coded != Some(true) || length_field.is_none();
    head.next = match (coded, length_field) {
        // 1xx: the answer proper is still to come. 101 would change the protocol, which we never ask for.
        _ if head.status < 200 => State::Head,
        _ if matches!(head.status, 204 | 304) => State::Body { left: 0 },
        (Some(true), _) => State::ChunkSize,
        (None, Some(left)) => State::Body { left },
        (Some(false), _) | (None, None) => State::UntilClose,
    };
    Ok(Some((head, length)))
}

/// A number of digits only, but for blanks around them: no sign.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(text.trim_ascii())
        .ok()
        .filter(|digits| digits.chars().all(|c| c.is_digit(radix)))?;
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests;
