//! The lab of what memory costs, zero-filling taken apart.

mod csv;
mod html;
pub mod words;

use crate::zerofill::analysis::{analyse, headline};
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::untrusted::doubted;

pub use html::legend;

/// The analysis.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 2,
    of,
};

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let analysis = analyse(run)?;
    Some(Shown {
        answers: headline(&analysis)
            .map(|sentence| doubted(sentence, run, "zerofill."))
            .into_iter()
            .collect(),
        alone: None,
        otherwise: None,
        grids: words::grids(&analysis),
        markdown: None,
        derived: csv::derived(&analysis),
        sections: vec![html::section(run, &analysis)],
    })
}
