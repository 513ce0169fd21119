//! What a run's rows of the site laboratory come to: made once, for its sentences, tables, charts and figures.

use fingerpost_compare::site::{self, Crossing, Less, StoreRatio, Warming};
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
        let warming = site::warming(run);
        let less = site::less(&warming);
        Found { store_ratios: site::store_ratios(run), warming, less, crossings: site::crossings(run) }
    }
}
