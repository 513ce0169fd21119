//! Everything that the pages are made from.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fingerpost_compare::references;
use fingerpost_report::html::Define;
use tokio::sync::Semaphore;

use crate::index::Index;
use crate::jobs::Jobs;
use crate::options::{Choice, Options};

/// Everything that the pages are made from.
pub struct Site {
    /// The archive.
    pub index: Arc<Index>,
    /// The measurement.
    pub jobs: Jobs,
    /// What can be measured.
    pub choices: Vec<Choice>,
    /// The calculator's ways to get memory.
    pub apis: Vec<String>,
    /// Directories of sweeps.
    pub sweeps: Vec<PathBuf>,
    /// What a probe's name means.
    pub define: Define,
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
            index: Arc::new(Index::new(options.archive)),
            jobs: Jobs::new(options.program),
            choices: options.choices,
            apis: options.apis,
            sweeps: options.sweeps,
            define: options.define,
            published: published(),
            base,
            imports: Semaphore::new(1),
        }
    }
}

/// The published systems, each with the probes of its rows.
fn published() -> Vec<(String, BTreeSet<String>)> {
    let of = |name: String| references::load(&name).map(|run| (name, run.measurements.into_iter().map(|m| m.probe).collect()));
    references::names().into_iter().filter_map(of).collect()
}
