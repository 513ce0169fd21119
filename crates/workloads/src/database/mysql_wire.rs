//! Packets of MySQL's protocol, and the answers that they make: errors, lists of rows, rows of text.

use crate::database::connection::QueryError;
use crate::database::stream::Stream;

const OK: u8 = 0x00;
const LOCAL_INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// A longer payload would be split into several packets; none of ours comes near.
const LONGEST_PACKET: usize = 0xff_ffff;

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
        Wire {
            stream,
            sequence: 0,
            out: Vec::with_capacity(4096),
        }
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
            return Err(QueryError::protocol(format!(
                "a statement of {length} bytes does not fit into a packet"
            )));
        }
        self.out[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.out[3] = self.sequence;
        self.stream
            .send(&self.out)
            .map_err(|e| QueryError::lost(&e))
    }

    /// Sends a command, which begins a new exchange.
    pub fn command(&mut self, command: u8, payload: &[u8]) -> Result<(), QueryError> {
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
        let packet = self
            .stream
            .take(4 + length)
            .map_err(|e| QueryError::lost(&e))?;
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
    pub fn until_end(&mut self, mut each: impl FnMut(&[u8])) -> Result<u64, QueryError> {
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
    pub fn answer(&mut self, each: impl FnMut(&[u8])) -> Result<u64, QueryError> {
        match self.receive_ok()?[0] {
            OK => Ok(0),
            LOCAL_INFILE => Err(QueryError::protocol("the server asks for a local file")),
            _ => {
                self.until_end(|_| {})?;
                self.until_end(each)
            }
        }
    }
}

/// The values of a row in the text protocol. What does not parse is left out: a count is checked by who needs it.
pub fn text_row(mut row: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    while let Some((&first, rest)) = row.split_first() {
        let (length, rest) = match first {
            0xfb => (0, rest),
            0xfc if rest.len() >= 2 => (
                usize::from(u16::from_le_bytes([rest[0], rest[1]])),
                &rest[2..],
            ),
            0xfd if rest.len() >= 3 => (
                u32::from_le_bytes([rest[0], rest[1], rest[2], 0]) as usize,
                &rest[3..],
            ),
            n if n < 0xfb => (usize::from(n), rest),
            _ => break,
        };
        let Some((value, rest)) = rest.split_at_checked(length) else {
            break;
        };
        values.push(String::from_utf8_lossy(value).into_owned());
        row = rest;
    }
    values
}

/// The error that a server tells: a number, five letters of state, a sentence.
fn server_error(payload: &[u8]) -> QueryError {
    let code = payload
        .get(1..3)
        .map_or(0, |c| u16::from_le_bytes([c[0], c[1]]));
    let text = payload.get(3..).unwrap_or_default();
    let text = if text.first() == Some(&b'#') {
        text.get(6..).unwrap_or_default()
    } else {
        text
    };
    let kind = match code {
        1213 => "deadlock".to_owned(),
        1205 => "lock wait timeout".to_owned(),
        1040 => "too many connections".to_owned(),
        1044 | 1045 => "access denied".to_owned(),
        1062 => "duplicate key".to_owned(),
        1021 | 1114 => "disk or table full".to_owned(),
        _ => format!("server error {code}"),
    };
    QueryError {
        kind,
        message: String::from_utf8_lossy(text).into_owned(),
        fatal: matches!(code, 1040 | 1044 | 1045 | 1053 | 1927),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_is_counted_by_its_kind() {
        let packet = [&[ERR, 0xbd, 0x04][..], b"#40001Deadlock found"].concat();
        assert_eq!(
            server_error(&packet),
            QueryError::refused("deadlock", "Deadlock found")
        );
        // Before log-in there is no state, and a broken packet must not panic.
        assert!(server_error(&[&[ERR, 0x10, 0x04][..], b"Too many"].concat()).fatal);
        assert_eq!(server_error(&[ERR]).kind, "server error 0");
        assert_eq!(server_error(&[ERR, 1, 0, b'#', b'4']).message, "");
    }

    #[test]
    fn rows_of_text_are_read_and_broken_ones_do_no_harm() {
        assert_eq!(
            text_row(&[2, b'4', b'2', 0xfb, 0xfc, 1, 0, b'x']),
            ["42", "", "x"]
        );
        assert_eq!(text_row(&[9, b'4']), Vec::<String>::new());
        assert_eq!(text_row(&[0xfc, 1]), Vec::<String>::new());
    }
}
