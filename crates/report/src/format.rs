//! The formats of a run on standard output.

use std::io::{self, Write};
use std::str::FromStr;

use fingerpost_record::Run;

use crate::grid::Grid;
use crate::lab::{Labs, Shown};
use crate::style::Style;
use crate::view::View;
use crate::words::clean;
use crate::{csv, explain, json, markdown, table};

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

impl Format {
    /// The names, as `--format` takes them.
    pub const NAMES: [&'static str; 4] = ["table", "json", "csv", "markdown"];
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let formats = [Format::Table, Format::Json, Format::Csv, Format::Markdown];
        let found = Format::NAMES
            .iter()
            .zip(formats)
            .find(|(known, _)| **known == name);
        found.map(|(_, format)| format).ok_or_else(|| {
            format!(
                "there is no format “{name}”; take one of {}",
                Format::NAMES.join(", ")
            )
        })
    }
}

/// Writes a run in a format, with what these labs analyse of it. The style matters to the table only.
pub fn write_run(
    out: &mut dyn Write,
    run: &Run,
    labs: Labs,
    format: Format,
    style: &Style,
) -> io::Result<()> {
    let shown = |render: &dyn Fn(&View) -> String| render(&View::of(run, labs));
    let text = match format {
        Format::Table => shown(&|view| table::render(view, &pictures(run, view, style), style)),
        Format::Json => return json::write(out, run),
        Format::Csv => shown(&|view| csv::render(run, view)),
        Format::Markdown => shown(&|view| markdown::render(view, &added(run, view))),
    };
    out.write_all(text.as_bytes())
}

/// Each laboratory's picture for a terminal, between what was found and the rows; nothing where the run has none of its
/// rows.
fn pictures(run: &Run, view: &View, style: &Style) -> String {
    let apart = |text: String| {
        if text.is_empty() {
            text
        } else {
            format!("\n{text}")
        }
    };
    let picture =
        |shown: &Shown| apart(shown.grids.iter().map(|grid| grid.render(style)).collect());
    around(view, &apart(explained(run, style)), picture)
}

/// The steps that speak for the run's servers, explained in short; nothing where none was watched.
fn explained(run: &Run, style: &Style) -> String {
    let found = explain::speaking(explain::of_run(run));
    if found.is_empty() {
        return String::new();
    }
    let more = "Every step and every figure: fingerpost explain";
    format!(
        "{}\n{more} {}\n",
        explain::render(&found, style),
        clean(&run.id)
    )
}

/// What laboratories add to a run in Markdown.
fn added(run: &Run, view: &View) -> String {
    let found = explain::speaking(explain::of_run(run));
    let explained = if found.is_empty() {
        String::new()
    } else {
        format!("\n{}", explain::markdown(&found))
    };
    around(view, &explained, |shown| {
        shown
            .markdown
            .clone()
            .unwrap_or_else(|| shown.grids.iter().map(Grid::markdown).collect())
    })
}

/// What each analysis shows, with what explains the time of requests at its place.
fn around(view: &View, explained: &str, show: impl Fn(&Shown) -> String) -> String {
    let part = |before: bool| -> String {
        view.found
            .iter()
            .filter(|(of, _)| of.before_requests == before)
            .map(|(_, shown)| show(shown))
            .collect()
    };
    [part(true), explained.to_owned(), part(false)].concat()
}
