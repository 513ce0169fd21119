//! The output formats: one list, from which the names that `--format` takes come, their help and their completion.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use fingerpost_record::Run;

use crate::document::format::{Backend, Screen};
use crate::document::{asciidoc, csv, html, json, markdown, terminal};
use crate::lab::Labs;
use crate::run::Shown;
use crate::style::Style;

/// Every output format, the one for a terminal first. A new one is a file in `document` and a line here.
pub static FORMATS: &[&dyn Backend] = &[
    &terminal::Terminal,
    &json::Json,
    &csv::Csv,
    &markdown::Markdown,
    &html::Html,
    &asciidoc::AsciiDoc,
];

/// An output format of [`FORMATS`].
#[derive(Clone, Copy)]
pub struct Format(&'static dyn Backend);

impl Format {
    /// For a person at a terminal.
    pub const TABLE: Format = Format(&terminal::Terminal);
    /// The data itself.
    pub const JSON: Format = Format(&json::Json);
    /// A line for each figure.
    pub const CSV: Format = Format(&csv::Csv);
    /// For an issue or a page.
    pub const MARKDOWN: Format = Format(&markdown::Markdown);

    /// All formats, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().map(|format| Format(*format))
    }

    /// Its name, as `--format` takes it.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// What it is for, in a few words.
    pub fn purpose(&self) -> &'static str {
        self.0.purpose()
    }

    /// Writes what is to be shown. The style matters to a terminal only.
    ///
    /// # Errors
    /// What writing to `out` gives.
    pub fn write(&self, out: &mut dyn Write, screen: &dyn Screen, style: &Style) -> io::Result<()> {
        self.0.write(out, screen, style)
    }
}

impl Default for Format {
    fn default() -> Format {
        Format::TABLE
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Format::all().find(|f| f.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Format::all().map(|f| f.name()).collect();
            format!(
                "there is no format “{name}”; take one of {}",
                names.join(", ")
            )
        })
    }
}

/// Writes a run in a format, with what these labs analyse of it.
///
/// # Errors
/// What writing to `out` gives.
pub fn write_run(
    out: &mut dyn Write,
    run: &Run,
    labs: Labs,
    format: Format,
    style: &Style,
) -> io::Result<()> {
    format.write(out, &Shown { run, labs }, style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_a_name_of_its_own_and_writes_a_run() {
        let run = fingerpost_record::fixture::with_everything();
        for format in Format::all() {
            let same = Format::all().filter(|other| other == &format);
            assert_eq!(same.count(), 1, "{format:?}");
            assert_eq!(format.name().parse::<Format>(), Ok(format));
            assert!(!format.purpose().is_empty() && !format.purpose().ends_with('.'));
            let mut out = Vec::new();
            write_run(&mut out, &run, &[], format, &Style::default()).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("syscall.null"), "{format:?}");
        }
        assert!("yaml".parse::<Format>().is_err());
    }
}
