//! Everything that the pages are made from, and what they are told of their surroundings.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fingerpost_compare::references;
use fingerpost_record::archive::Archive;
use fingerpost_report::html::Define;
use tokio::sync::Semaphore;

use crate::index::Index;
use crate::jobs::Jobs;

/// Something that can be measured, for the form.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What `run` calls it.
    pub name: String,
    /// One line on it.
    pub summary: String,
    /// What can be set: the key, what it does, and its default. A key that ends in a dot takes a name behind it.
    pub settings: Vec<Setting>,
}

/// What of a measurement can be set from the page.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key.
    pub key: String,
    /// One line on it, with its default.
    pub help: String,
}

/// What the page needs to know of its surroundings.
pub struct Options {
    /// Where the runs are.
    pub archive: Archive,
    /// The program that measures: `PROGRAM run …` and `PROGRAM zerofill …`, with `--progress json`.
    pub program: PathBuf,
    /// What the form for measuring offers.
    pub choices: Vec<Choice>,
    /// The ways to get memory that the calculator can measure; the first is the default.
    pub apis: Vec<String>,
    /// Directories of sweeps to show.
    pub sweeps: Vec<PathBuf>,
    /// What a probe's name means, as `list NAME` tells it.
    pub define: Define,
    /// Whether the form may give a setting this value, else why not.
    pub takes: fn(&str, &str) -> Result<(), String>,
}

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
        references::load(&name).map(|run| {
            (
                name,
                run.measurements.into_iter().map(|m| m.probe).collect(),
            )
        })
    };
    references::names().into_iter().filter_map(of).collect()
}
