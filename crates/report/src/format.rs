//! The formats of a run on standard output.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use fingerpost_record::Run;

use crate::lab::Labs;
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

/// Writes a run in a format, with what these labs analyse of it. The style matters to the table only.
pub fn write_run(out: &mut dyn Write, run: &Run, labs: Labs, format: Format, style: &Style) -> io::Result<()> {
    let shown = |render: &dyn Fn(&View) -> String| render(&View::of(run, labs));
    let text = match format {
        Format::Table => shown(&|view| table::render(view, &pictures::terminal(run, view, style), style)),
        Format::Json => return json::write(out, run),
        Format::Csv => shown(&|view| csv::render(run, view)),
        Format::Markdown => shown(&|view| markdown::render(view, &pictures::markdown(run, view))),
    };
    out.write_all(text.as_bytes())
}
