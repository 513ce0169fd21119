//! What one process of one probe brought back.

use std::collections::BTreeMap;

use fingerpost_record::Process;

use crate::estimate::{self, Center};

/// Why there is no figure, or one that is not to be relied on.
#[derive(Clone, Debug, PartialEq)]
pub enum Slice {
    /// Samples in the measurement's unit, in the order measured.
    Samples(Samples),
    /// The probe says that something it needs is not here.
    Skipped(String),
    /// The probe, or the system, says what went wrong. Trying again may help.
    Failed(String),
    /// It did not end by its deadline and was killed. Not tried again: a second try would cost the same time.
    Hung(String),
}

/// Samples of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// One value per batch.
    pub values: Vec<f64>,
    /// Indexes of the batches that were disturbed.
    pub disturbed: Vec<u32>,
    /// Nanoseconds of the fixed work beside the undisturbed batches, by CPU: see [`crate::pace`].
    pub pace: Vec<f64>,
    /// Operations in a batch.
    pub batch: u64,
    /// Counters per operation.
    pub counters: BTreeMap<String, f64>,
    /// Resident bytes of the process when its loop started.
    pub resident: u64,
}

impl Samples {
    /// The process as the record keeps it, with its own estimate.
    pub fn into_process(self, center: Center) -> Process {
        let value = estimate::within_process(&self.values, &self.disturbed, center);
        Process {
            value,
            samples: self.values,
            disturbed: self.disturbed,
            pace: self.pace,
            batch: self.batch,
            counters: self.counters,
            ..Process::default()
        }
    }
}
