//! The lab of what memory costs, zero-filling taken apart.

mod figures;
mod section;
pub mod shares;
pub mod words;

use crate::zerofill::analysis::{analyse, headline};
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::untrusted::doubted;

pub use section::section;

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
        ..Shown::of([section(run, &analysis)])
    })
}
