//! Throughput by the number of those who ask, of whichever lab's server.

mod csv;
pub mod html;
pub mod words;

use fingerpost_compare::scaling::tables;
use fingerpost_record::Run;

use crate::grid::apart;
use crate::lab::{Analysis, Labs, Shown};
use crate::view::interval_title;

/// The analysis: of every row of throughput, whichever lab's it is.
pub static ANALYSIS: Analysis = Analysis { before_requests: true, rank: 0, of };

/// More answers of one kind than these are none.
const MOST: usize = 3;

fn of(run: &Run, labs: Labs) -> Option<Shown> {
    let tables = tables(run);
    let sections = html::sections(&run.measurements, labs, interval_title(run));
    (!tables.is_empty() || !sections.is_empty()).then(|| Shown {
        answers: tables.iter().take(MOST).map(|table| words::answer(table, tables.len() > 1)).collect(),
        alone: None,
        otherwise: None,
        grids: apart(tables.iter().map(words::grid)),
        markdown: Some(words::markdown(&tables)),
        derived: csv::derived(run, &tables),
        sections,
    })
}
