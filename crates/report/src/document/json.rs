//! JSON on standard output.

use std::io::{self, Write};

use fingerpost_record::guard::{Guard, Kind};
use serde::Serialize;

use super::format::{Backend, Screen};
use crate::style::Style;

/// The format.
pub struct Json;

impl Backend for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn purpose(&self) -> &'static str {
        "One JSON document: of a run the record itself"
    }

    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, _: &Style) -> io::Result<()> {
        screen.json(out)
    }
}
/// Writes one JSON document and a line end.
///
/// Characters that could act on a terminal are escaped, which JSON allows anywhere in a string: the document says the
/// same, and a hostile run that is shown on a terminal stays text. (Control characters up to U+001F are always
/// escaped.)
pub fn write(mut out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    let mut guard = Guard::new(&mut out, Kind::Json);
    serde_json::to_writer(&mut guard, document).map_err(io::Error::from)?;
    guard.flush()?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::text::misleads;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_means_the_same() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}\u{e0041}\u{7f}µ";
        let mut out = Vec::new();
        write(&mut out, &hostile).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.trim_end().chars().any(misleads), "{text:?}");
        assert!(text.contains('µ'));
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
    }
}
