//! Standard output: what the terminal can show, and writing to a reader that may leave.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fingerpost_record::archive::write_whole;
use fingerpost_record::guard::{self, Guard, Kind};
use fingerpost_record::text::clean;
use fingerpost_report::document::format::Screen;
use fingerpost_report::{Format, Style, wrap};
use serde::Serialize;

use crate::exit::usage;

/// How lists and verdicts are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// For a person
    #[default]
    Table,
    /// One JSON document
    Json,
}

/// The style for standard output: colours only on a terminal that has them and where NO_COLOR is unset or empty, lines
/// as long as they like where it is no terminal.
pub fn style(wide: bool) -> Style {
    if !io::stdout().is_terminal() {
        return Style {
            color: false,
            width: None,
            wide,
        };
    }
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb");
    Style {
        color: !refused && !dumb,
        width: Some(width_of(io::stdout())),
        wide,
    }
}

/// The columns of the terminal on standard error; nothing where it is none.
pub fn error_width() -> Option<usize> {
    let err = io::stderr();
    err.is_terminal().then(|| width_of(err))
}

/// A terminal that does not know its width (0 columns) is taken for one of 80.
fn width_of(terminal: impl AsFd) -> usize {
    let known = terminal_size::terminal_size_of(terminal)
        .map(|(terminal_size::Width(columns), _)| usize::from(columns));
    known.filter(|columns| *columns > 0).unwrap_or(80)
}

/// Writes a sentence as a line of its own, wrapped at the terminal's width.
pub fn sentence(text: &str) -> anyhow::Result<()> {
    let text = wrap::indented(&clean(text), 4, style(false).width);
    write(|out| writeln!(out, "{text}"))
}

/// Writes lines, each wrapped at the terminal's width; what is indented stays so.
pub fn lines(lines: &[String]) -> anyhow::Result<()> {
    let width = style(false).width;
    write(|out| {
        lines
            .iter()
            .try_for_each(|line| writeln!(out, "{}", wrap::indented(line, 4, width)))
    })
}

/// Writes to standard output through a buffer, past the guard that lets nothing through that acts on a terminal. An
/// error that says that the reader has left is no error to the user (see `exit`).
pub fn write(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let kind = if style(false).color {
        Kind::Colored
    } else {
        Kind::Text
    };
    let mut out = Guard::new(BufWriter::new(io::stdout().lock()), kind);
    content(&mut out)?;
    Ok(out.flush()?)
}

/// Writes what a user keeps: byte for byte into a pipe or a file. A terminal gets text only, past the guard.
pub fn content(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if !out.is_terminal() {
        return Ok(out.write_all(bytes).and_then(|()| out.flush())?);
    }
    drop(out);
    if std::str::from_utf8(bytes).is_err() {
        return usage("this is no text, and is not written to a terminal; redirect it to a file");
    }
    write(|out| out.write_all(bytes))
}

/// Writes a page into a file, and says so. It may have gone to standard output itself.
pub fn page(file: &Path, page: &str, what: &str) -> anyhow::Result<()> {
    write_whole(file, &guard::text(page.as_bytes()))?;
    if file.is_file() {
        sentence(&format!("{what} is in {}.", file.display()))
    } else {
        Ok(())
    }
}

/// Writes a document as JSON that a person can read, with a line end.
pub fn json(document: &impl Serialize) -> anyhow::Result<()> {
    write(|out| {
        serde_json::to_writer_pretty(&mut *out, document)?;
        writeln!(out)
    })
}

/// Reads `--format`: each output format with its purpose, which is the help and the completion.
pub fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(formats()).try_map(|name| name.parse::<Format>())
}

/// The output formats that there are.
pub fn formats() -> impl Iterator<Item = PossibleValue> {
    Format::all().map(|format| PossibleValue::new(format.name()).help(format.purpose()))
}

/// Writes what is to be shown in a format.
pub fn show(screen: &dyn Screen, format: Format, wide: bool) -> anyhow::Result<()> {
    write(|out| format.write(out, screen, &style(wide)))
}
