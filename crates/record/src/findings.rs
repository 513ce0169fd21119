//! What observers saw, where a transaction's time went, and what is to blame.

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::Component;
use crate::evidence::{self, Evidence};
use crate::params::Params;

pub use crate::layer::Layer;

/// A named sequence of readings over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Series {
    /// What was read, such as `cpu.user` or `disk.writes`.
    pub name: String,
    /// The unit of the readings, in words (`CPUs`, `1/s`, `Mbit/s`).
    pub unit: String,
    /// Seconds since the observation began, and the reading.
    pub points: Vec<(f64, f64)>,
}

/// What one observer saw of one step of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Observation {
    /// The workload's name.
    pub workload: String,
    /// The step's parameters.
    #[serde(default)]
    pub params: Params,
    /// The observer's name, such as `syscalls`.
    pub observer: String,
    /// How it saw it: `perf tracepoints`, `/proc sampling` …
    #[serde(default)]
    pub source: String,
    /// Readings over time.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Totals over the step, by name; the name carries the unit (`futex.seconds`, `disk.flushes`).
    #[serde(default)]
    pub totals: BTreeMap<String, f64>,
    /// CPU seconds that observing took.
    pub self_cost: f64,
    /// Events that were lost (a full ring, a missed sample).
    pub lost: u64,
}

/// One additive part of a budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Part {
    /// The layer that it belongs to.
    pub layer: Layer,
    /// What the time went to.
    pub component: Component,
    /// Seconds of wall time per transaction.
    pub seconds_per_transaction: f64,
    /// Share of the wall time, 0 to 1.
    pub share: f64,
}

/// Where the wall time of one transaction went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Budget {
    /// The workload's name.
    pub workload: String,
    /// The step's parameters.
    #[serde(default)]
    pub params: Params,
    /// Transactions that the budget averages over.
    pub transactions: u64,
    /// Wall seconds per transaction: what the parts and the rest add up to.
    #[serde(default)]
    pub seconds_per_transaction: f64,
    /// The additive parts, largest first.
    pub parts: Vec<Part>,
    /// The share of the wall time, 0 to 1, that no part explains.
    pub unexplained: f64,
}

/// How a candidate cause was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The evidence names it and excludes its neighbours.
    #[serde(alias = "guilty")]
    Confirmed,
    /// The evidence fits, and does not exclude another.
    #[serde(alias = "suspected")]
    Likely,
    /// What would show it was observed, and is not there.
    #[serde(rename = "ruled out", alias = "cleared")]
    RuledOut,
    /// Not known: what a verdict needs was not observed, or does not tell.
    #[serde(rename = "not observed", alias = "not judged")]
    NotObserved,
}

impl Status {
    /// The status as the record writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Confirmed => "confirmed",
            Status::Likely => "likely",
            Status::RuledOut => "ruled out",
            Status::NotObserved => "not observed",
        }
    }

    /// Whether it accuses: confirmed or likely.
    pub fn accuses(self) -> bool {
        matches!(self, Status::Confirmed | Status::Likely)
    }
}

/// A cause with its share of the time, its evidence and its status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Finding {
    /// The cause's name, such as `cpu.quota`.
    pub cause: String,
    /// The layer it belongs to.
    pub layer: Layer,
    /// Confirmed, likely, ruled out or not observed.
    pub status: Status,
    /// Share of the time (or of the difference, in a comparison), 0 to 1.
    pub share: f64,
    /// The step of a workload that it is of, where it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// The facts that say so.
    #[serde(deserialize_with = "evidence::read")]
    pub evidence: Vec<Evidence>,
    /// Another cause that it is told of with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
}

/// A step of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StepName {
    /// The workload's name.
    pub workload: String,
    /// The step's parameters.
    #[serde(default)]
    pub params: Params,
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.workload, self.params)
    }
}

impl Finding {
    /// A finding that is told of with no other.
    pub fn new(
        cause: impl Into<String>,
        layer: Layer,
        status: Status,
        share: f64,
        evidence: Vec<Evidence>,
    ) -> Finding {
        Finding {
            cause: cause.into(),
            layer,
            status,
            share,
            step: None,
            evidence,
            relation: None,
        }
    }

    /// Whether it is of this step.
    pub fn is_of(&self, workload: &str, params: &Params) -> bool {
        self.step
            .as_ref()
            .is_some_and(|step| step.workload == workload && step.params == *params)
    }

    /// A suspect that this speaks for.
    pub fn ruled_out(cause: &str, layer: Layer, evidence: Evidence) -> Finding {
        Finding::new(cause, layer, Status::RuledOut, 0.0, vec![evidence])
    }
}

/// How a finding is told of with another cause's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// It may be no more than a consequence of this cause, which comes first.
    FollowsFrom(String),
    /// What is spent where both act is told of this cause: it is not observed itself.
    ToldOf(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_as_said_and_read_as_schema_1_wrote_it() {
        for (status, older) in [
            (Status::Confirmed, "guilty"),
            (Status::Likely, "suspected"),
            (Status::RuledOut, "cleared"),
            (Status::NotObserved, "not judged"),
        ] {
            let text = serde_json::to_string(&status).unwrap();
            assert_eq!(text, format!("{:?}", status.as_str()));
            for text in [text, format!("{older:?}")] {
                assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
            }
        }
    }
}
