//! Rows of two sides beside each other.

use fingerpost_record::{Better, Descriptor, Estimate, Params, Unit};
use serde::Serialize;

use crate::ratio::Ratio;
use crate::verdict::Verdict;

/// A row that both sides have.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The probe.
    pub probe: String,
    /// What is said of the row besides its figures.
    #[serde(skip)]
    pub descriptor: Descriptor,
    /// Its parameters; where an imported side leaves some unstated, the other side's.
    pub params: Params,
    /// The unit of `base` and `new`.
    pub unit: Unit,
    /// Their good direction.
    pub better: Better,
    /// The base side's figure.
    pub base: Estimate,
    /// The new side's figure.
    pub new: Estimate,
    /// How many times slower the new side is; absent where a figure is not positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// ln of how many times slower in each pair, where the row was compared pair by pair; else empty.
    #[serde(skip)]
    pub pairs: Vec<f64>,
    /// What that says.
    pub verdict: Verdict,
    /// Whether there is any difference, be it larger than the threshold or not: the rows' number is allowed for, as in
    /// the verdict.
    #[serde(skip)]
    pub real: bool,
    /// Whether a side's figure is not to be trusted; the note says why, and the verdict is `unresolved`.
    #[serde(skip)]
    pub untrusted: bool,
    /// What to know about the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Counters per operation that both sides have: name, base, new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(String, f64, f64)>,
}

impl Row {
    /// ln of how many times slower, where there is a ratio.
    pub fn log(&self) -> Option<f64> {
        self.ratio.map(|r| r.value.ln())
    }
}

/// A row that was not compared.
#[derive(Clone, Debug, Serialize)]
pub struct NotCompared {
    /// The probe.
    pub probe: String,
    /// Its parameters.
    pub params: Params,
    /// The unit of the figures.
    pub unit: Unit,
    /// The base side's figure, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// The new side's figure, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<f64>,
    /// Why, in words.
    pub why: String,
}
