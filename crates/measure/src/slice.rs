//! What one process of one probe brought back.

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
    /// As the record keeps them, without an estimate.
    pub process: Process,
    /// Resident bytes of the process when its loop started.
    pub resident: u64,
}

impl Samples {
    /// The process with its own estimate.
    pub fn into_process(self, center: Center) -> Process {
        let value =
            estimate::within_process(&self.process.samples, &self.process.disturbed, center);
        Process {
            value,
            ..self.process
        }
    }
}
