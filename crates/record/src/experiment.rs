//! Deciding experiments: one thing changed for short stretches, in turns with leaving it, and what the requests said to
//! it.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measurement::Estimate;
use crate::params::Params;

/// Experiments that a run may hold.
pub const MOST_EXPERIMENTS: usize = 32;
/// Pairs of stretches that an experiment may have.
pub const MOST_PAIRS: usize = 100;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A lowered CPU weight or raised nice value of the server is made the usual one.
    Priority,
    /// The server's CPU weight is raised above that of others.
    Weight,
    /// The server's CPU quota is lifted.
    Quota,
    /// The server may use all CPUs.
    Cpus,
    /// A neighbour is held.
    Hold,
    /// The load generator may use all CPUs.
    Client,
    /// Huge pages are given without being asked for.
    HugePages,
}

/// What a request's answer to a change is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Requests a second: of clients that send the next one when the last is answered.
    Rate,
    /// The mean latency: of clients that come when they come.
    Latency,
}

/// What the requests said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// They were faster with the change.
    Faster,
    /// They were slower with it.
    Slower,
    /// They were as before: the whole interval is within what matters.
    Same,
    /// The interval reaches from nothing to what matters.
    Unresolved,
    /// It was not carried out; `reason` says why.
    #[serde(rename = "not done")]
    NotDone,
}

/// Requests of one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Asked {
    /// Requests that ended in it.
    pub requests: u64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Their mean latency in nanoseconds; absent where none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

/// Two stretches side by side, one as it was and one with the change; which came first alternates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Pair {
    /// As it was.
    pub base: Asked,
    /// With the change.
    pub changed: Asked,
}

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Experiment {
    /// The workload that was asked.
    pub workload: String,
    /// The step's parameters.
    #[serde(default)]
    pub params: Params,
    /// What was changed.
    pub change: Change,
    /// The same in words, as the end of “with …”: `the CPU quota of /db lifted (0.5 CPUs)`.
    pub what: String,
    /// The causes that it decides about.
    pub tests: Vec<String>,
    /// What the answer is read from.
    pub by: Measure,
    /// The stretches, in the order in which they were.
    #[serde(default)]
    pub pairs: Vec<Pair>,
    /// How many times faster requests were with the change, below 1 where they were slower; absent where too little was
    /// seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Estimate>,
    /// What the requests said.
    pub answer: Answer,
    /// Why it was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
