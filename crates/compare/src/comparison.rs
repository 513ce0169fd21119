//! How two sides are compared, and the result, as `compare --format json` prints it.

use fingerpost_diagnose::hosts::HostDifference;
use fingerpost_record::Finding;
use serde::Serialize;

use crate::changes::Change;
use crate::counted::Counted;
use crate::gains::Gain;
use crate::pooled::Pooled;
use crate::service::Load;
use crate::settled::Settled;
use crate::side::SideInfo;

pub use crate::curves::Curve;
pub use crate::row::{NotCompared, Row};
pub use fingerpost_diagnose::sides::waterfall::{Waterfall, WaterfallStep};

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The relative difference that does not matter: 0.03 calls 3 % more or less the same.
    pub threshold: f64,
    /// Whether the n-th process of a row on one side was measured beside the n-th on the other, as the two settings of
    /// one interleaved run are. Rows of one run a side with as many processes are then compared pair by pair.
    pub paired: bool,
    /// By how much two starts of the same server are known to differ, as the standard deviation of a logarithm, where
    /// all of a side's processes are of one start: pairs do not show it. 0 where each process is a start of its own.
    pub starts: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threshold: 0.03,
            paired: false,
            starts: 0.0,
        }
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
    /// Each running service of which both sides counted every request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
    /// How each workload's throughput changes with the number of clients, on both sides.
    pub curves: Vec<Curve>,
    /// What explains the difference, most first; then the suspects that were ruled out.
    pub causes: Vec<Finding>,
    /// The share of the difference, 0 to 1, that no cause explains. Zero when nothing differs.
    pub unexplained: f64,
}
