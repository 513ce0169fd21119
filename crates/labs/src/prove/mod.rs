//! `prove`: plants known causes, one at a time, and checks that the verdict names them.
//!
//! [`plants`] is the table of what is planted; [`setting`] makes and unmakes each plant; [`trial`] runs the rehearsal
//! with and without it in turns and has `compare` judge. [`servers`] does the same in real servers. Nothing here
//! prints.

mod asking;
mod kept;
pub mod plants;
pub mod servers;
pub mod setting;
pub mod trial;

use fingerpost_record::{Finding, Layer, Run};
use serde::{Deserialize, Serialize};

pub use plants::{PLANTS, Plant};
pub use servers::score::Result;
pub use trial::{Course, Trial, run};

/// One row of the proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The plant's name: that of the cause, or `control.…`.
    pub plant: String,
    /// What was done, in words.
    pub what: String,
    /// The causes that are to be named; none for a control.
    pub planted: Vec<String>,
    /// The layer of the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// What became of it.
    pub result: Result,
    /// Why it was skipped or failed, or why the first of two attempts did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many times slower a transaction became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower: Option<f64>,
    /// Whom the verdict accuses, first the one that explains most.
    #[serde(default)]
    pub accused: Vec<Finding>,
    /// The share of the difference that nobody is accused of.
    #[serde(default)]
    pub unexplained: f64,
    /// The comparison's own sentence.
    #[serde(default)]
    pub headline: String,
    /// How long it took, in seconds.
    #[serde(default)]
    pub seconds: f64,
    /// The ids of both sides' runs, where they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<[String; 2]>,
}

impl Proof {
    /// A row of a plant that was not compared.
    pub fn without(plant: &Plant, result: Result, reason: String) -> Proof {
        Proof {
            result,
            reason: Some(reason),
            ..Proof::of(plant, Vec::new())
        }
    }

    /// A row from whom the verdict accuses.
    pub fn of(plant: &Plant, causes: Vec<Finding>) -> Proof {
        let accused: Vec<Finding> = causes.into_iter().filter(|f| f.status.accuses()).collect();
        Proof {
            plant: plant.name.to_owned(),
            what: plant.what.to_owned(),
            planted: plant.causes().iter().map(|c| (*c).to_owned()).collect(),
            layer: plant.layer(),
            result: judge(&plant.causes(), &accused),
            accused,
            ..Proof::default()
        }
    }

    /// Whether the layer that was named first is the planted one.
    pub fn layer_is_right(&self) -> bool {
        self.layer.is_some() && self.accused.first().map(|f| f.layer) == self.layer
    }
}

/// One plant: its cause must come first. Several: they must be the first, in any order. None: nobody may be accused.
fn judge(planted: &[&str], accused: &[Finding]) -> Result {
    let first: Vec<&str> = accused
        .iter()
        .take(planted.len())
        .map(|f| f.cause.as_str())
        .collect();
    match (planted.is_empty(), accused.is_empty()) {
        (true, true) => Result::Right,
        (true, false) => Result::Wrong,
        (false, true) => Result::Missed,
        (false, false) if planted.iter().all(|p| first.contains(p)) => Result::Right,
        (false, false) => Result::Wrong,
    }
}

/// Both sides of a trial as runs that can be compared again.
pub type Runs = [Run; 2];

#[cfg(test)]
mod tests {
    use fingerpost_record::Status;

    use super::*;

    fn finding(cause: &str) -> Finding {
        Finding {
            cause: cause.into(),
            layer: Layer::Scheduler,
            status: Status::Confirmed,
            share: 0.5,
            evidence: Vec::new(),
            step: None,
            relation: None,
        }
    }

    #[test]
    fn a_plant_must_be_named_first_and_a_control_must_accuse_nobody() {
        let accused = [finding("cpu.quota"), finding("app.lock")];
        assert_eq!(judge(&["cpu.quota"], &accused), Result::Right);
        assert_eq!(judge(&["app.lock"], &accused), Result::Wrong);
        assert_eq!(judge(&["app.lock", "cpu.quota"], &accused), Result::Right);
        assert_eq!(
            judge(&["app.lock", "network.delay"], &accused),
            Result::Wrong
        );
        assert_eq!(judge(&["app.lock"], &[]), Result::Missed);
        assert_eq!(judge(&[], &[]), Result::Right);
        assert_eq!(judge(&[], &accused), Result::Wrong);
    }
}
