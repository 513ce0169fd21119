//! The last step before bytes leave for a terminal or a file: a writer that lets nothing through that could act on who
//! reads it.
//!
//! Formats clean the strings that they show where they show them ([`crate::text::clean`]), since only they know a line
//! end of theirs from one of a string's. This writer is behind all of them, so that a place that was forgotten does no
//! harm.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::text::misleads;

/// What the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines of text: line ends and tabs are let through, what misleads becomes U+FFFD.
    Text,
    /// Lines of text with colours: sequences that set colours (`ESC [ … m`) are let through too.
    Colored,
    /// JSON: what misleads can only stand in a string, and is escaped there, which says the same.
    Json,
}

/// A writer that replaces what could act on a terminal or mislead a reader. Only when flushed has it written
/// everything.
#[derive(Debug)]
pub struct Guard<W: Write> {
    inner: W,
    kind: Kind,
    /// The beginning of a character, a line end or a colour whose end has not come yet.
    held: Vec<u8>,
}

/// The longest sequence that sets a colour.
const LONGEST_COLOR: usize = 16;

/// What stands at a place that needs a look.
enum Step<'a> {
    /// So many bytes pass as they are, or are replaced by others.
    Write(usize, &'a [u8]),
    /// So many bytes are a character that misleads.
    Mislead(usize, char),
    /// More bytes are needed to know.
    Wait,
}

impl<W: Write> Guard<W> {
    /// A writer of this kind of bytes.
    pub fn new(inner: W, kind: Kind) -> Guard<W> {
        Guard {
            inner,
            kind,
            held: Vec::new(),
        }
    }

    /// Writes what is safe of these bytes and gives how many were dealt with. At the end of everything nothing is
    /// waited for.
    fn pass(&mut self, bytes: &[u8], at_end: bool) -> io::Result<usize> {
        let mut at = 0;
        loop {
            let plain = bytes[at..]
                .iter()
                .position(|b| !matches!(b, b'\n' | b'\t' | b' '..=b'~'))
                .unwrap_or(bytes.len() - at);
            self.inner.write_all(&bytes[at..at + plain])?;
            at += plain;
            if at == bytes.len() {
                return Ok(at);
            }
            match self.step(&bytes[at..]) {
                Step::Write(length, instead) => {
                    self.inner.write_all(instead)?;
                    at += length;
                }
                Step::Mislead(length, c) => {
                    self.mislead(c)?;
                    at += length;
                }
                Step::Wait if at_end => {
                    self.mislead(char::REPLACEMENT_CHARACTER)?;
                    at += 1;
                }
                Step::Wait => return Ok(at),
            }
        }
    }

    /// What to do about the bytes that begin here, the first of which is no printable ASCII.
    fn step<'a>(&self, bytes: &'a [u8]) -> Step<'a> {
        match bytes[0] {
            b'\r' => match bytes.get(1) {
                None => Step::Wait,
                Some(b'\n') => Step::Write(2, &bytes[..2]),
                Some(_) => Step::Write(1, b" "),
            },
            0x1b if self.kind == Kind::Colored => color(bytes),
            ascii @ 0..0x80 => Step::Mislead(1, char::from(ascii)),
            _ => character(bytes),
        }
    }

    fn mislead(&mut self, c: char) -> io::Result<()> {
        if self.kind != Kind::Json {
            return self.inner.write_all("\u{fffd}".as_bytes());
        }
        let mut units = [0; 2];
        c.encode_utf16(&mut units)
            .iter()
            .try_for_each(|unit| write!(self.inner, "\\u{unit:04x}"))
    }
}

/// `ESC [ … m` passes; another sequence loses its beginning.
fn color(bytes: &[u8]) -> Step<'_> {
    let body = bytes
        .iter()
        .skip(2)
        .take_while(|b| b.is_ascii_digit() || **b == b';')
        .count();
    match (bytes.get(1), bytes.get(2 + body)) {
        (Some(b'['), Some(b'm')) if body < LONGEST_COLOR => {
            Step::Write(body + 3, &bytes[..body + 3])
        }
        (None, _) | (Some(b'['), None) if body < LONGEST_COLOR => Step::Wait,
        _ => Step::Mislead(1, '\u{1b}'),
    }
}

/// The character of several bytes that begins here.
fn character(bytes: &[u8]) -> Step<'_> {
    let begin = &bytes[..bytes.len().min(4)];
    let (valid, error) = match std::str::from_utf8(begin) {
        Ok(text) => (text, None),
        Err(e) => (
            std::str::from_utf8(&begin[..e.valid_up_to()]).unwrap_or_default(),
            Some(e),
        ),
    };
    match (valid.chars().next(), error) {
        (Some(c), _) if misleads(c) => Step::Mislead(c.len_utf8(), c),
        (Some(c), _) => Step::Write(c.len_utf8(), &bytes[..c.len_utf8()]),
        (None, Some(e)) => match e.error_len() {
            None => Step::Wait,
            Some(length) => Step::Write(length, "\u{fffd}".as_bytes()),
        },
        (None, None) => Step::Wait,
    }
}

impl<W: Write> Write for Guard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let held = std::mem::take(&mut self.held);
        let all = if held.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned([&held, bytes].concat())
        };
        let done = self.pass(&all, false)?;
        self.held.extend_from_slice(&all[done..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, true)?;
        self.inner.flush()
    }
}

/// Lines of text with nothing in them that could act on who reads them.
pub fn text(bytes: &[u8]) -> Vec<u8> {
    guarded(bytes, Kind::Text)
}

/// JSON that says the same, with nothing in it that could act on who reads it. Line ends between its values stay.
pub fn json(bytes: &[u8]) -> Vec<u8> {
    guarded(bytes, Kind::Json)
}

fn guarded(bytes: &[u8], kind: Kind) -> Vec<u8> {
    let mut guard = Guard::new(Vec::with_capacity(bytes.len()), kind);
    // Writing into memory cannot fail.
    let _ = guard.write_all(bytes).and_then(|()| guard.flush());
    guard.inner
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out, however the bytes are cut into writes.
    #[track_caller]
    fn out_of(kind: Kind, bytes: &[u8]) -> String {
        let out = |piece: usize| {
            let mut guard = Guard::new(Vec::new(), kind);
            bytes
                .chunks(piece)
                .for_each(|b| guard.write_all(b).unwrap());
            guard.flush().unwrap();
            String::from_utf8(guard.inner).unwrap()
        };
        let whole = out(usize::MAX);
        (1..6).for_each(|piece| assert_eq!(out(piece), whole, "in pieces of {piece}"));
        whole
    }

    #[test]
    fn text_keeps_its_lines_and_loses_what_acts() {
        assert_eq!(
            out_of(Kind::Text, "µs – 中文\t1\r\n\u{1F600}\n".as_bytes()),
            "µs – 中文\t1\r\n\u{1F600}\n"
        );
        assert_eq!(
            out_of(
                Kind::Text,
                "a\u{1b}[31mb\u{7}\u{202e}c\u{feff}\rd\u{e0041}\u{9b}".as_bytes()
            ),
            "a�[31mb��c� d��"
        );
        assert_eq!(out_of(Kind::Text, b"a\xff\xe4\xb8b\xf0\x9f"), "a��b��");
    }

    #[test]
    fn colours_pass_only_where_they_may() {
        assert_eq!(
            out_of(
                Kind::Colored,
                b"\x1b[1;31mred\x1b[0m\x1b[2J\x1b]0;x\x07\x1b"
            ),
            "\x1b[1;31mred\x1b[0m�[2J�]0;x��"
        );
        assert_eq!(
            out_of(
                Kind::Colored,
                format!("\x1b[{}m", "1".repeat(40)).as_bytes()
            ),
            format!("�[{}m", "1".repeat(40))
        );
    }

    #[test]
    fn json_says_the_same() {
        let hostile = "a\u{7f}\u{9b}\u{202e}\u{e0041}µ";
        let text = out_of(
            Kind::Json,
            serde_json::to_string(hostile).unwrap().as_bytes(),
        );
        assert!(
            !text.chars().any(misleads) && text.contains('µ'),
            "{text:?}"
        );
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
    }
}
