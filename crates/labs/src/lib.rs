//! Experiments made of several measurements, each with its own course and analysis.
//!
//! A lab drives workloads and observers and hands every result to a [`Sink`] as soon as it exists. It never prints. One file per
//! lab, each ending in its [`Lab`] descriptor; [`REGISTRY`] lists them all.

pub mod attribute;
pub mod database;
pub mod deciding;
mod explained;
pub mod launch;
pub mod load;
pub mod prove;
pub mod rows;
pub mod service;
pub mod site;
mod stalls;
pub mod web;

use std::path::Path;
use std::time::Duration;

use fingerpost_record::{Budget, Experiment, Finding, Measurement, Observation, Params, Paths, Profile};
pub use fingerpost_workloads::WorkloadError as LabError;

/// Takes results as soon as they exist, and tells whether to go on. What a sink has no use for it leaves out.
pub trait Sink {
    /// A row, new or measured further: a row with the same probe, version and parameters is replaced.
    fn measurement(&mut self, row: Measurement);
    /// What an observer saw.
    fn observation(&mut self, _observation: Observation) {}
    /// Where a transaction's time went.
    fn budget(&mut self, _budget: Budget) {}
    /// Requests of a step that were followed.
    fn paths(&mut self, _paths: Paths) {}
    /// A cause, named or cleared.
    fn finding(&mut self, _finding: Finding) {}
    /// An experiment that was made to decide between causes.
    fn experiment(&mut self, _experiment: Experiment) {}
    /// A sentence for the person who waits (standard error), such as a setting that had no effect.
    fn warn(&mut self, _sentence: &str) {}
    /// What is being done now, and the share done so far, 0 to 1.
    fn progress(&mut self, _doing: &str, _done: f64) {}
    /// Whether the user asked to stop: finish the step, keep what there is, clean up, return.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Everything that a lab may use.
pub struct Context<'a> {
    /// `--set` values that are this lab's, already checked against [`Lab::settings`]; unset ones are absent.
    pub settings: &'a Params,
    /// How much time may be spent.
    pub profile: Profile,
    /// Time for this lab.
    pub budget: Duration,
    /// Seed of every random choice.
    pub seed: u64,
    /// A private directory that is removed afterwards, also after a kill.
    pub scratch: &'a mut fingerpost_sys::scratch::Scratch,
    /// CPUs that may be used.
    pub cpus: &'a [usize],
    /// Words put before a private server's command (`taskset -c 0`).
    pub server_prefix: &'a [String],
    /// Whether the system may be changed (and restored).
    pub allow_system_changes: bool,
    /// The directory to work in when a probe asks for a file system.
    pub work_dir: &'a Path,
    /// Where results go.
    pub sink: &'a mut dyn Sink,
}

/// One `--set KEY=VALUE` that a lab understands.
pub struct Setting {
    /// The key. A key that ends in `.` is a prefix (`server.` takes `server.NAME`).
    pub key: &'static str,
    /// The default in words.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// A lab's descriptor.
pub struct Lab {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for `list`.
    pub summary: &'static str,
    /// The probes whose rows it makes (`database.throughput`).
    pub probes: &'static [&'static str],
    /// The settings it takes.
    pub settings: &'static [Setting],
    /// What is missing here for this lab with these settings, as a sentence that says what to do.
    pub missing: fn(&Params) -> Option<String>,
    /// Says which of its settings cannot be, as far as that is known before anything is started or kept.
    pub check: fn(&Params, Profile) -> Result<(), LabError>,
    /// How long it takes by these settings alone; nothing where that is the profile's or the budget's to say.
    pub takes: fn(&Params) -> Option<Duration>,
    /// Runs it.
    pub run: fn(&mut Context) -> Result<(), LabError>,
}

/// Every lab.
pub static REGISTRY: &[&Lab] = &[&database::LAB, &web::LAB, &site::LAB, &launch::LAB];
