//! How promptly a machine answers beside its loaded server, whichever lab loads it.

mod csv;
mod html;
mod words;

use crate::desktop::analysis::analyse;
use fingerpost_record::Run;

use fingerpost_report::grid::apart;
use fingerpost_report::lab::{Analysis, Labs, Shown};

/// The analysis: of every server that a desktop's tasks were measured beside, whichever lab loads it.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 1,
    of,
};

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let found = analyse(run);
    (!found.is_empty()).then(|| Shown {
        answers: Vec::new(),
        alone: None,
        otherwise: None,
        grids: apart(found.iter().map(words::grid)),
        markdown: Some(words::markdown(&found)),
        derived: csv::derived(run, &found),
        sections: vec![html::section(&found)],
    })
}
