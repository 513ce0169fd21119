//! A run as a screen: what a person reads, the record itself, and its figures as lines.

mod document;
mod records;

use std::io::{self, Write};

use fingerpost_record::Run;

use crate::document::Document;
use crate::document::format::Screen;
use crate::document::json;
use crate::document::records::Records;
use crate::html::content::{Around, Content};
use crate::html::of_run;
use crate::lab::Labs;
use crate::view::View;

pub(crate) use document::summary;

/// A run with what these labs analyse of it.
pub struct Shown<'a> {
    /// The run.
    pub run: &'a Run,
    /// The labs.
    pub labs: Labs<'a>,
}

impl Screen for Shown<'_> {
    fn document(&self) -> Document {
        document::of(self.run, View::of(self.run, self.labs))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write(out, self.run)
    }

    fn records(&self) -> Records {
        records::of(self.run, &View::of(self.run, self.labs))
    }

    fn page(&self) -> Content {
        of_run(self.run, self.labs, Around::default())
    }
}
