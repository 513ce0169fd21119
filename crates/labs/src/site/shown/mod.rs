//! The lab of a site's pages from files and from an object database.

mod answer;
mod figures;
mod words;

use crate::site::analysis::Found;
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};
use words::SiteView;

/// The analysis.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 3,
    of,
};

fn of(run: &Run, _: Labs) -> Option<Shown> {
    run.measurements
        .iter()
        .find(|m| m.probe.starts_with("site."))?;
    let found = Found::of(run);
    let section = words::section(&found, SiteView::of(&found));
    Some(Shown {
        answers: answer::answers(run, &found),
        ..Shown::of(section)
    })
}
