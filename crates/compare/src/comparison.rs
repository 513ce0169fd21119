//! The result of a comparison, as `compare --format json` prints it.

use fingerpost_diagnose::hosts::HostDifference;
pub use fingerpost_diagnose::sides::waterfall::{Waterfall, WaterfallStep};
use fingerpost_record::{Better, Estimate, Finding, Params, Unit};
use serde::Serialize;

use crate::changes::Change;
use crate::gains::Gain;
use crate::pooled::Pooled;
use crate::ratio::Ratio;
use crate::service::Load;
use crate::settle::Settled;
use crate::side::SideInfo;
use crate::verdict::Verdict;

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The relative difference that does not matter: 0.03 calls 3 % more or less the same.
    pub threshold: f64,
    /// Whether the n-th process of a row on one side was measured beside the n-th on the other, as the two settings of one
    /// interleaved run are. Rows of one run a side with as many processes are then compared pair by pair.
    pub paired: bool,
    /// By how much two starts of the same server are known to differ, as the standard deviation of a logarithm, where all of a side's processes
    /// are of one start: pairs do not show it. 0 where each process is a start of its own.
    pub starts: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options { threshold: 0.03, paired: false, starts: 0.0 }
    }
}

/// Two sides, row by row, and what makes the difference.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What to compare with.
    pub base: SideInfo,
    /// The run that is judged.
    pub new: SideInfo,
    /// The relative difference that does not matter.
    pub threshold: f64,
    /// The one sentence that a person reads first.
    pub headline: String,
    /// What was changed between the sides on purpose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What each of them makes by itself, where that was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<Settled>,
    /// What differs between the hosts.
    pub hosts: Vec<HostDifference>,
    /// Rows that both sides have.
    pub rows: Vec<Row>,
    /// Parts of the system of which no row is slower or faster by itself, and all rows together are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pooled: Vec<Pooled>,
    /// Rows that cannot be compared, with the reason: one side lacks them, they failed, their definition changed.
    pub not_compared: Vec<NotCompared>,
    /// How each workload's time per transaction goes from base to new.
    pub waterfalls: Vec<Waterfall>,
    /// What each placement of swap gains on both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    /// The load of each running service that both sides watched, and what of the difference it may explain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
    /// How each workload's throughput changes with the number of clients, on both sides.
    pub curves: Vec<Curve>,
    /// What explains the difference, most first; then the suspects that were cleared.
    pub causes: Vec<Finding>,
    /// The share of the difference, 0 to 1, that no cause explains. Zero when nothing differs.
    pub unexplained: f64,
}

/// A row that both sides have.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The probe.
    pub probe: String,
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
    /// Whether there is any difference, be it larger than the threshold or not: the rows' number is allowed for, as in the verdict.
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

    /// A counter's ratio, new to base.
    pub fn counter_ratio(&self, name: &str) -> Option<f64> {
        self.counters.iter().find(|c| c.0 == name).filter(|c| c.1 > 0.0).map(|c| c.2 / c.1)
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

/// Throughput over the number of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The probe.
    pub probe: String,
    /// Its parameters but `clients`.
    pub params: Params,
    /// Clients, base and new, by clients.
    pub points: Vec<(i64, f64, f64)>,
    /// From how many clients on the base side collapses ([`crate::scaling::COLLAPSED`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_collapses_from: Option<i64>,
    /// From how many clients on the new side collapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_collapses_from: Option<i64>,
}
