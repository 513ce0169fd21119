//! Windows written to a file, and replayed from it.
//!
//! A file is [`MAGIC`], then a deflated stream of windows: for each the byte 1, its numbers, names and events; at the end the byte 0.
//! Numbers are written seven bits a byte, the lowest first, signed ones folded (0, -1, 1, -2 …); an event's time is the distance from the one before.
//! The version is in the magic. Nothing is believed of a file: every count has a bound, every number its range.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{Source, Window};
use crate::follow::event::Event;

mod code;

/// What such a file begins with.
pub const MAGIC: &[u8; 8] = b"FPEVENT1";
/// Events and names of one window, windows of one file, and bytes of one name, at most.
pub const MOST_EVENTS: u64 = 4_000_000;
const MOST_NAMES: u64 = 200_000;
const MOST_WINDOWS: u64 = 1_000_000;
const MOST_NAME_BYTES: u64 = 64;

/// Writes windows.
pub struct Writer<W: Write> {
    out: DeflateEncoder<W>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// What writing said.
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        Ok(Writer { out: DeflateEncoder::new(out, Compression::default()) })
    }

    /// Adds a window.
    ///
    /// # Errors
    /// What writing said; a window that is larger than a reader would take, or whose events are not in order.
    pub fn window(&mut self, window: &Window) -> io::Result<()> {
        let too_many = window.events.len() as u64 > MOST_EVENTS || window.names.len() as u64 > MOST_NAMES;
        if too_many || !window.events.is_sorted_by_key(|e| e.time) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the window is too large to be recorded, or not in order"));
        }
        let mut bytes = vec![1];
        for n in [window.start, window.end, window.lost, window.names.len() as u64] {
            code::put(&mut bytes, n);
        }
        let mut names: Vec<_> = window.names.iter().collect();
        names.sort_unstable();
        for (&tid, name) in names {
            let end = (0..=name.len().min(MOST_NAME_BYTES as usize)).rev().find(|&n| name.is_char_boundary(n)).unwrap_or(0);
            code::put_signed(&mut bytes, tid.into());
            code::put(&mut bytes, end as u64);
            bytes.extend_from_slice(&name.as_bytes()[..end]);
        }
        code::put(&mut bytes, window.events.len() as u64);
        let mut before = 0;
        for e in &window.events {
            code::put_event(&mut bytes, e, before);
            before = e.time;
            if bytes.len() > 1 << 16 {
                self.out.write_all(&bytes)?;
                bytes.clear();
            }
        }
        self.out.write_all(&bytes)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// What writing said.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0])?;
        self.out.finish()
    }
}

/// Replays the windows of a file, one after the other, as fast as they are asked for.
pub struct Recorded<R: BufRead> {
    input: io::BufReader<DeflateDecoder<R>>,
    windows: u64,
    over: bool,
}

impl<R: BufRead> Recorded<R> {
    /// Opens what [`Writer`] wrote.
    ///
    /// # Errors
    /// What reading said, or that it is no such file.
    pub fn open(mut input: R) -> io::Result<Recorded<R>> {
        let mut magic = [0; 8];
        input.read_exact(&mut magic).map_err(whole)?;
        if &magic != MAGIC {
            let known = magic.starts_with(&MAGIC[..7]);
            return Err(bad(if known {
                "this version does not read recordings of that version"
            } else {
                "this is not a recording of events"
            }));
        }
        Ok(Recorded { input: io::BufReader::new(DeflateDecoder::new(input)), windows: 0, over: false })
    }

    fn next(&mut self) -> io::Result<Option<Window>> {
        let input = &mut self.input;
        match code::byte(input)? {
            0 => return Ok(None),
            1 if self.windows < MOST_WINDOWS => self.windows += 1,
            _ => return Err(bad("the recording has something else where a window should be")),
        }
        let (start, end, lost) = (code::get(input)?, code::get(input)?, code::get(input)?);
        let names = names(input)?;
        let count = bounded(code::get(input)?, MOST_EVENTS)?;
        // A small file may claim many: room is made as they come.
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..count {
            let event = code::event(input, events.last().map_or(0, |e| e.time))?;
            if event.time < start || event.time > end {
                return Err(bad("the recording has an event outside of its window"));
            }
            events.push(event);
        }
        if end < start {
            return Err(bad("the recording has a window that ends before it begins"));
        }
        Ok(Some(Window { start, end, events, lost, names }))
    }
}

fn names(input: &mut impl Read) -> io::Result<HashMap<i32, String>> {
    let mut names = HashMap::new();
    for _ in 0..bounded(code::get(input)?, MOST_NAMES)? {
        let tid = code::int(input)?;
        let mut name = vec![0; bounded(code::get(input)?, MOST_NAME_BYTES)? as usize];
        input.read_exact(&mut name)?;
        names.insert(tid, String::from_utf8(name).map_err(|_| bad("the recording has a name that is no text"))?);
    }
    Ok(names)
}

impl<R: BufRead> Source for Recorded<R> {
    fn describe(&self) -> String {
        "a recording".to_owned()
    }

    fn window(&mut self, _: Duration, _: &mut dyn FnMut(Duration) -> bool) -> io::Result<Option<Window>> {
        if self.over {
            return Ok(None);
        }
        let window = self.next().map_err(whole);
        // After an error nothing that follows would be in its place.
        self.over = !matches!(window, Ok(Some(_)));
        window
    }
}

fn bounded(n: u64, most: u64) -> io::Result<u64> {
    if n <= most { Ok(n) } else { Err(bad("the recording claims more than any recording holds")) }
}

fn bad(sentence: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, sentence)
}

/// The end of a file in the middle of a window, and a stream that cannot be inflated, in words.
fn whole(e: io::Error) -> io::Error {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => bad("the recording ends in the middle"),
        io::ErrorKind::InvalidInput => bad("the recording is damaged"),
        _ => e,
    }
}

#[cfg(test)]
mod tests;
