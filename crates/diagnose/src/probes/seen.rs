//! What is known of a comparison of probes when its causes are sought.

use std::fmt;

use fingerpost_record::evidence::Ratio;
use fingerpost_record::{Better, Descriptor, Evidence, Metric, Params, Unit};
use serde::Serialize;

use crate::steps::KnownSide;

/// What a row's ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval lies beyond the threshold, on the worse side, and stands after the control over all rows.
    Slower,
    /// The same on the better side.
    Faster,
    /// The whole interval lies within the threshold.
    Same,
    /// Neither: the interval is too wide to tell.
    Unresolved,
}

/// As the output writes it.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What kind of thing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The program is another one: its compiler, the compiler's flags, its version.
    Build,
    /// The program is the same and a parameter of it differs.
    Setting,
    /// Swap is somewhere else.
    Placement,
    /// The load came from another machine: nothing of the server was changed.
    Client,
}

/// One thing that was changed between the sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub what: String,
    /// How it was on the base side.
    pub base: String,
    /// How it is on the new side.
    pub new: String,
    /// What kind of change it is.
    pub kind: Kind,
}

/// A row of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen<'a> {
    /// The probe.
    pub probe: &'a str,
    /// What is said of the row besides its figures.
    pub descriptor: &'a Descriptor,
    /// Its parameters.
    pub params: &'a Params,
    /// The unit of both figures.
    pub unit: Unit,
    /// Their good direction.
    pub better: Better,
    /// The base side's figure.
    pub base: f64,
    /// The new side's.
    pub new: f64,
    /// How many times slower the new side is, and the ends of its interval; nothing where a figure is not positive.
    pub ratio: Option<[f64; 3]>,
    /// What the row says by itself.
    pub verdict: Verdict,
    /// What it says with those that it moves with.
    pub together: Verdict,
    /// Whether it could be judged: there is nothing about it that forbids to.
    pub judged: bool,
    /// Counters per operation that both sides have: name, base, new.
    pub counters: &'a [(String, f64, f64)],
    /// Which of the changes concern it, by their places.
    pub changes: Vec<usize>,
}

impl Seen<'_> {
    /// ln of how many times slower, where there is a ratio.
    pub fn log(&self) -> Option<f64> {
        self.ratio.map(|[value, ..]| value.ln())
    }

    /// The row with its figures and its ratio as a fact.
    pub fn fact(&self) -> Evidence {
        Evidence {
            params: self.params.clone(),
            row_unit: Some(self.unit),
            ratio: self
                .ratio
                .map(|[value, low, high]| Ratio { value, low, high }),
            ..Evidence::pair(Metric::Row, [self.base, self.new]).named(self.probe)
        }
    }

    /// A counter's ratio, new to base.
    pub fn counter_ratio(&self, name: &str) -> Option<f64> {
        self.counters
            .iter()
            .find(|c| c.0 == name)
            .filter(|c| c.1 > 0.0)
            .map(|c| c.2 / c.1)
    }
}

/// Throughput over the number of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients<'a> {
    /// The probe.
    pub probe: &'a str,
    /// Clients, base and new, by clients.
    pub points: &'a [(i64, f64, f64)],
    /// From how many clients on the base side collapses.
    pub base_collapses_from: Option<i64>,
    /// From how many clients on the new side collapses.
    pub new_collapses_from: Option<i64>,
}

/// A comparison of probes.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The rows with their verdicts.
    pub rows: &'a [Seen<'a>],
    /// What was changed between the sides.
    pub changes: &'a [Changed],
    /// Throughput by clients.
    pub curves: &'a [Clients<'a>],
    /// The base and the new side.
    pub sides: [KnownSide<'a>; 2],
    /// Whether both sides were measured by this tool, so that more can be measured.
    pub measured_here: bool,
    /// Differences up to this share are none.
    pub threshold: f64,
}
