//! Throughput by the number of those who ask, of whichever lab's server.

pub mod html;
pub mod words;

use fingerpost_compare::scaling::tables;
use fingerpost_record::Run;

use crate::document::Section;
use crate::lab::{Analysis, Labs, Shown};
use crate::view::interval_title;

/// The analysis: of every row of throughput, whichever lab's it is.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: true,
    rank: 0,
    of,
};

/// More answers of one kind than these are none.
const MOST: usize = 3;

fn of(run: &Run, labs: Labs) -> Option<Shown> {
    let tables = tables(run);
    let pages = html::sections(&run.measurements, labs, interval_title(run));
    let sections = tables.iter().map(|table| words::section(run, table));
    let sections: Vec<Section> = sections.collect();
    (!sections.is_empty() || !pages.is_empty()).then(|| Shown {
        answers: tables
            .iter()
            .take(MOST)
            .map(|table| words::answer(table, tables.len() > 1))
            .collect(),
        page: Some(pages),
        ..Shown::of(sections)
    })
}
