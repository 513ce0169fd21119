//! The run: one file.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::findings::{Budget, Finding, Observation};
use crate::host::Host;
use crate::measurement::Measurement;
use crate::paths::Paths;
use crate::under_way::UnderWay;

/// The name and version of the format.
pub const SCHEMA: &str = "fingerpost/run/2";

/// The one before, which is converted when it is read: leaves of followed requests are text there, and a finding's step
/// and relation stand in its evidence.
pub const OLDER_SCHEMA: &str = "fingerpost/run/1";

/// Whether a run of this format can be read.
pub fn is_readable(schema: &str) -> bool {
    schema == SCHEMA || schema == OLDER_SCHEMA
}

/// Characters of a run's label at most.
pub const LONGEST_LABEL: usize = 60;
/// Characters of a run's note at most.
pub const LONGEST_NOTE: usize = 2000;

/// How much time a run may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The rows that tell most per second, in 15 seconds: for node checks.
    Screen,
    /// All primitives in a minute.
    Quick,
    /// The default: intervals that a comparison can rely on.
    #[default]
    Standard,
    /// For publication.
    Thorough,
    /// Not measured by this tool: reference data, or imported results.
    Imported,
}

impl Profile {
    /// The profile's name as the record writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Screen => "screen",
            Profile::Quick => "quick",
            Profile::Standard => "standard",
            Profile::Thorough => "thorough",
            Profile::Imported => "imported",
        }
    }
}

/// The program that made the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Tool {
    /// Version.
    pub version: String,
    /// Commit it was built from, or `unknown`.
    pub commit: String,
}

/// What the instrument itself costs: the clock and the empty loop. Nothing is subtracted from the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Instrument {
    /// Nanoseconds for one reading of the clock.
    pub clock_ns: f64,
    /// The smallest step that the clock was seen to make, in nanoseconds.
    pub resolution_ns: f64,
    /// Nanoseconds for one turn of an empty loop.
    pub loop_ns: f64,
    /// Resident bytes of a probe process when its loop starts.
    pub probe_resident_bytes: u64,
}

/// Everything measured in one go on one host, with the host's description.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run's id: its start as `YYYYMMDDTHHMMSSZ`, a dash, and eight hexadecimal digits.
    pub id: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// How long it took.
    pub duration_s: f64,
    /// How much time it was allowed.
    pub profile: Profile,
    /// What the random order and the resampling were seeded with.
    pub seed: u64,
    /// The command that made it, word by word.
    #[serde(default)]
    pub command: Vec<String>,
    /// What its user calls it, at most [`LONGEST_LABEL`] characters: it stands before what was measured wherever runs
    /// are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What its user wrote about it, at most [`LONGEST_NOTE`] characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it ran to its end. A killed or interrupted run keeps what it had.
    #[serde(default)]
    pub complete: bool,
    /// Where the data comes from, when it was not measured by this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The program that made it.
    pub tool: Tool,
    /// The cost of the instrument.
    #[serde(default)]
    pub instrument: Instrument,
    /// The host.
    pub host: Host,
    /// The rows.
    pub measurements: Vec<Measurement>,
    /// What observers saw.
    #[serde(default)]
    pub observations: Vec<Observation>,
    /// Where transactions' time went.
    #[serde(default)]
    pub budgets: Vec<Budget>,
    /// Requests that were followed, a step each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Paths>,
    /// Requests of a running service that had no answer yet when it was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<UnderWay>,
    /// Causes and suspects.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What was changed for short stretches to decide between causes, and what the requests said; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
}

impl Run {
    /// The row of a probe with exactly these parameters.
    pub fn row(&self, probe: &str, params: &crate::Params) -> Option<&Measurement> {
        self.measurements
            .iter()
            .find(|m| m.probe == probe && &m.params == params)
    }

    /// The JSON Schema of the format, as committed in `docs/run.schema.json`.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Run);
        serde_json::to_string_pretty(&schema).expect("a schema is plain data") + "\n"
    }
}
