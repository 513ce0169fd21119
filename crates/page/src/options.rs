//! What the page is told of its surroundings.

use std::path::PathBuf;

use fingerpost_record::archive::Archive;
use fingerpost_report::html::Define;

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
}
