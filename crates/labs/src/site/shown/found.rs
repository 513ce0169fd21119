//! What a run's rows of the site laboratory come to: made once, for its sentences, tables, charts and figures.

use crate::site::analysis::{self, Crossing, Less, StoreRatio, Warming};
use fingerpost_record::Run;

/// All of it.
pub struct Found {
    /// Each object database against files, the fastest first.
    pub store_ratios: Vec<StoreRatio>,
    /// Round by round from the start.
    pub warming: Vec<Warming>,
    /// What less memory makes of that.
    pub less: Vec<Less>,
    /// The sizes at which the faster one changes.
    pub crossings: Vec<Crossing>,
}

impl Found {
    /// Of a run.
    pub fn of(run: &Run) -> Found {
        let warming = analysis::warming(run);
        let less = analysis::less(&warming);
        Found { store_ratios: analysis::store_ratios(run), warming, less, crossings: analysis::crossings(run) }
    }
}
