//! Everything that the pages are made from.

use std::collections::BTreeSet;
use std::sync::Arc;

use fingerpost_compare::references;
use tokio::sync::Semaphore;

use crate::index::Index;
use crate::jobs::Jobs;
use crate::options::Options;

/// Everything that the pages are made from.
pub struct Site {
    /// The archive.
    pub index: Arc<Index>,
    /// The measurement.
    pub jobs: Jobs,
    /// What the page was told of its surroundings.
    pub options: Options,
    /// The published systems, with the probes of their rows.
    pub published: Vec<(String, BTreeSet<String>)>,
    /// What every address begins with.
    pub base: String,
    /// One upload at a time: each may be as large as a run.
    pub(crate) imports: Semaphore,
}

impl Site {
    /// A site over the archive.
    pub fn new(options: Options, base: String) -> Site {
        Site {
            index: Arc::new(Index::new(options.archive.clone())),
            jobs: Jobs::new(options.program.clone()),
            options,
            published: published(),
            base,
            imports: Semaphore::new(1),
        }
    }
}

/// The published systems, each with the probes of its rows.
fn published() -> Vec<(String, BTreeSet<String>)> {
    let of = |name: String| {
        references::load(&name).map(|run| (name, run.measurements.into_iter().map(|m| m.probe).collect()))
    };
    references::names().into_iter().filter_map(of).collect()
}
