//! The lab of a site's pages from files and from an object database.

mod answer;
mod csv;
mod html;
pub(crate) mod words;

use crate::site::analysis::{self, Crossing, Less, StoreRatio, Warming};
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};
use words::SiteView;

/// What a run's rows come to: made once, for sentences, tables, charts and figures.
pub(crate) struct Found {
    /// Each object database against files, the fastest first.
    store_ratios: Vec<StoreRatio>,
    /// Round by round from the start.
    warming: Vec<Warming>,
    /// What less memory makes of that.
    less: Vec<Less>,
    /// The sizes at which the faster one changes.
    crossings: Vec<Crossing>,
}

impl Found {
    pub(crate) fn of(run: &Run) -> Found {
        let warming = analysis::warming(run);
        let less = analysis::less(&warming);
        Found { store_ratios: analysis::store_ratios(run), warming, less, crossings: analysis::crossings(run) }
    }

    /// The fastest object database of each kind of row, which comes first of it: that of the source's table.
    fn fastest(&self) -> impl Iterator<Item = &StoreRatio> {
        self.store_ratios.chunk_by(|a, b| a.params == b.params).filter_map(|kind| kind.first())
    }
}

pub static ANALYSIS: Analysis = Analysis { before_requests: false, rank: 3, of };

fn of(run: &Run, _: Labs) -> Option<Shown> {
    run.measurements.iter().find(|m| m.probe.starts_with("site."))?;
    let found = Found::of(run);
    let site = SiteView::of(&found);
    Some(Shown {
        answers: answer::answers(run, &found),
        alone: None,
        otherwise: None,
        grids: words::grids(&site),
        markdown: None,
        derived: csv::derived(&found),
        sections: html::section(&site).into_iter().collect(),
    })
}
