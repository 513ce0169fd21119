//! What an output format is, and what it is given to show.

use std::io::{self, Write};

use super::blocks::Document;
use super::records::Records;
use crate::html::content::Content;
use crate::style::Style;

/// What a command shows. Each format takes the form that it is made of.
pub trait Screen {
    /// For a person.
    fn document(&self) -> Document;
    /// For a program: one JSON document.
    ///
    /// # Errors
    /// What writing to `out` gives.
    fn json(&self, out: &mut dyn Write) -> io::Result<()>;
    /// For a program: lines of fields.
    fn records(&self) -> Records;
    /// A page.
    fn page(&self) -> Content;
}

/// An output format: one file of this folder, and a line in [`FORMATS`](crate::format::FORMATS).
pub trait Backend: Sync {
    /// Its name, as `--format` takes it.
    fn name(&self) -> &'static str;
    /// What it is for, in a few words.
    fn purpose(&self) -> &'static str;
    /// Writes what is to be shown. The style matters to a terminal only.
    ///
    /// # Errors
    /// What writing to `out` gives.
    fn write(&self, out: &mut dyn Write, screen: &dyn Screen, style: &Style) -> io::Result<()>;
}
