//! Comma-separated values as RFC 4180 has them.

use std::io::{self, Write};

use super::format::{Backend, Screen};
use super::records::Field;
use crate::style::Style;

/// The format.
pub struct Csv;

impl Backend for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn purpose(&self) -> &'static str {
        "A line for each figure, values unrounded (RFC 4180)"
    }

    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, _: &Style) -> io::Result<()> {
        out.write_all(render(screen).as_bytes())
    }
}

/// What is to be shown as lines of values.
pub fn render(screen: &dyn Screen) -> String {
    let records = screen.records();
    let names = line(records.columns.iter().map(|name| (*name).to_owned()));
    let lines = records.lines.iter();
    let lines = lines.map(|fields| line(fields.iter().map(field)));
    [names].into_iter().chain(lines).collect()
}

fn field(field: &Field) -> String {
    match field {
        Field::Text(text) => word(text),
        Field::Number(number) => number.clone(),
    }
}

/// A text of the run. A spreadsheet takes a cell that begins like a formula for one, and runs it; an apostrophe makes
/// it text.
pub fn word(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// A line of fields, quoted where they must be, ended as RFC 4180 has it.
pub fn line(fields: impl IntoIterator<Item = String>) -> String {
    fields
        .into_iter()
        .map(|f| quoted(&f))
        .collect::<Vec<_>>()
        .join(",")
        + "\r\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(
            line(["a", "b,c", "say \"hi\"", ""].map(String::from)),
            "a,\"b,c\",\"say \"\"hi\"\"\",\r\n"
        );
    }

    #[test]
    fn nothing_of_a_run_becomes_a_formula_and_a_number_stays_one() {
        assert_eq!(word("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(word("syscall.null"), "syscall.null");
        assert_eq!(field(&Field::number(-1.5)), "-1.5");
    }
}
