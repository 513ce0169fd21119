//! Samples of one probe or workload step, with what was made of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::descriptor::{Descriptor, of_before};
use crate::params::Params;
use crate::unit::Unit;

/// Which direction of a value is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: a latency.
    Lower,
    /// More is better: a throughput.
    Higher,
}

/// What became of a measurement. All but `measured` carry a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// There is a figure, and nothing speaks against it.
    Measured,
    /// There is a figure, and a reason not to rely on it.
    Untrusted,
    /// Not tried: something that it needs is not here.
    Skipped,
    /// Tried, and it went wrong.
    Failed,
}

/// What stands in the reason of a row between the number of its processes and that of those a figure needs.
const TOO_FEW: &str = " processes were measured; a figure needs ";

/// The reason of a row that so many processes measured, which are fewer than the `least` that a figure needs.
pub fn too_few_processes(processes: usize, least: usize) -> String {
    format!("only {processes}{TOO_FEW}{least}")
}

/// How many processes measured a row, where they were too few: its interval is as wide as so few make it.
pub fn few_processes(m: &Measurement) -> Option<usize> {
    let reason = m
        .reason
        .as_deref()
        .filter(|_| m.outcome == Outcome::Untrusted)?;
    reason
        .strip_prefix("only ")?
        .split_once(TOO_FEW)?
        .0
        .parse()
        .ok()
}

/// A point estimate with its interval, in the measurement's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The interval's nominal coverage, such as 0.95.
    pub confidence: f64,
}

impl Estimate {
    /// Half the interval's width as a share of the value; infinite for a value of zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 {
            f64::INFINITY
        } else {
            ((self.high - self.low) / 2.0 / self.value).abs()
        }
    }
}

/// Where the samples lie, disturbed ones included: what a low quantile leaves out is shown here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Percentiles {
    /// Half of the samples are at most this.
    pub p50: f64,
    /// Nine tenths of the samples are at most this.
    pub p90: f64,
    /// 99 % of the samples are at most this.
    pub p99: f64,
}

/// What one process (of a probe) or one repetition (of a workload step) gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Process {
    /// This process's own estimate, in the measurement's unit: the top level of repetition within a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// One value per batch, in the measurement's unit, in the order measured.
    pub samples: Vec<f64>,
    /// Indexes of the samples that an involuntary switch, a migration, steal or a slower CPU hit. They are kept, and
    /// estimated without.
    #[serde(default)]
    pub disturbed: Vec<u32>,
    /// Nanoseconds that a piece of fixed work in user mode took beside the undisturbed samples: on the measuring
    /// process's CPU, then on its partner's. Longer than in other processes of the run: a neighbour shared the core, or
    /// the clock rate was lower.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pace: Vec<f64>,
    /// Whether the measurement's estimate is made without this process, because the CPU did not keep its pace
    /// meanwhile.
    #[serde(default, rename = "aside", skip_serializing_if = "std::ops::Not::not")]
    pub excluded: bool,
    /// Operations that one sample averages over.
    #[serde(default)]
    pub batch: u64,
    /// Counter readings per operation: `instructions_user`, `instructions_kernel`, `cycles_user`, `cycles_kernel`,
    /// `faults` …
    #[serde(default)]
    pub counters: BTreeMap<String, f64>,
}

impl Process {
    /// One that gave one sample, over so many operations.
    pub fn of_one(value: f64, batch: u64) -> Process {
        Process {
            value: Some(value),
            samples: vec![value],
            batch,
            ..Process::default()
        }
    }
}

/// The values of those processes that an estimate is made of: all but those that are excluded.
pub fn kept_values(processes: &[Process]) -> Vec<f64> {
    processes
        .iter()
        .filter(|p| !p.excluded)
        .filter_map(|p| p.value)
        .collect()
}

/// One row of a run: a probe or workload step with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Measurement {
    /// The probe's name, such as `syscall.null`.
    pub probe: String,
    /// What the descriptor of the probe or lab says of the row; read it by [`Measurement::descriptor`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<Descriptor>,
    /// The version of the probe's definition. Rows of different versions are shown, never compared.
    pub version: u32,
    /// The parameters that tell this row from the probe's other rows.
    #[serde(default)]
    pub params: Params,
    /// The unit of every value in this row.
    pub unit: Unit,
    /// Which direction is the good one.
    pub better: Better,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, when the outcome is not `measured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The figure, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Where all samples lie, when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
    /// The raw samples, process by process.
    #[serde(default)]
    pub processes: Vec<Process>,
}

impl Measurement {
    /// A row that has no figure yet, or never will: skipped or failed, with the reason.
    pub fn without_figure(
        probe: &str,
        version: u32,
        params: Params,
        unit: Unit,
        better: Better,
        outcome: Outcome,
        reason: String,
    ) -> Self {
        let (probe, descriptor, reason) = (probe.to_owned(), None, Some(reason));
        let (estimate, percentiles, processes) = (None, None, Vec::new());
        Measurement {
            probe,
            descriptor,
            version,
            params,
            unit,
            better,
            outcome,
            reason,
            estimate,
            percentiles,
            processes,
        }
    }

    /// The row with what its descriptor says.
    pub fn described(self, descriptor: Descriptor) -> Self {
        Measurement {
            descriptor: Some(descriptor),
            ..self
        }
    }

    /// What the descriptor of its probe or lab says of it: as stated, else what is known of such rows of before.
    pub fn descriptor(&self) -> Cow<'_, Descriptor> {
        self.descriptor_without(&Params::new())
    }

    /// The same where these parameters were taken out of the row.
    pub fn descriptor_without(&self, taken_out: &Params) -> Cow<'_, Descriptor> {
        let before = || Cow::Owned(of_before(&self.probe, [&self.params, taken_out]));
        self.descriptor.as_ref().map_or_else(before, Cow::Borrowed)
    }

    /// The row with its figure and percentiles alone.
    pub fn without_samples(&self) -> Measurement {
        let (probe, descriptor, params, reason) = (
            self.probe.clone(),
            self.descriptor.clone(),
            self.params.clone(),
            self.reason.clone(),
        );
        Measurement {
            probe,
            descriptor,
            params,
            reason,
            processes: Vec::new(),
            ..*self
        }
    }

    /// Whether two rows measure the same thing in the same way.
    pub fn same_row(&self, other: &Measurement) -> bool {
        self.probe == other.probe && self.version == other.version && self.params == other.params
    }

    /// Per-process values that the estimate is made of, the top level of repetition within a run.
    pub fn process_values(&self) -> Vec<f64> {
        kept_values(&self.processes)
    }

    /// A counter's median over the processes, per operation.
    pub fn counter(&self, name: &str) -> Option<f64> {
        let mut values: Vec<f64> = self
            .processes
            .iter()
            .filter_map(|p| p.counters.get(name).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}
