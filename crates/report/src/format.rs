//! The formats of a run on standard output.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use fingerpost_record::Run;

use crate::style::Style;
use crate::view::View;
use crate::{csv, json, markdown, pictures, table};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For a person at a terminal.
    #[default]
    Table,
    /// The record itself.
    Json,
    /// One line per measurement and per derived figure (RFC 4180).
    Csv,
    /// For an issue or a page.
    Markdown,
}

/// A format that there is not.
#[derive(Debug)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no format “{}”; take one of {}", self.0, Format::NAMES.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl Format {
    /// The names, as `--format` takes them.
    pub const NAMES: [&'static str; 4] = ["table", "json", "csv", "markdown"];
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let formats = [Format::Table, Format::Json, Format::Csv, Format::Markdown];
        let found = Format::NAMES.iter().zip(formats).find(|(known, _)| **known == name);
        found.map(|(_, format)| format).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Writes a run in a format. The style matters to the table only.
pub fn write_run(out: &mut dyn Write, run: &Run, format: Format, style: &Style) -> io::Result<()> {
    match format {
        Format::Table => {
            out.write_all(table::render(&View::of(run), &pictures::terminal(run, style), style).as_bytes())
        }
        Format::Json => json::write(out, run),
        Format::Csv => out.write_all(csv::render(run, &View::of(run)).as_bytes()),
        Format::Markdown => out.write_all(markdown::render(&View::of(run), &pictures::markdown(run)).as_bytes()),
    }
}
