//! The course of a part and what its contests are, and the rows that they fill.

use std::collections::BTreeMap;
use std::time::Duration;

use fingerpost_measure::estimate;
use fingerpost_record::descriptor::table;
use fingerpost_record::{Better, Estimate, Measurement, Outcome, Params, Process, Unit};
use fingerpost_workloads::site::Access;

use super::places::Place;
use super::prepare::Prepared;
use super::settings::{Settings, State};
use super::start::Start;
use crate::rows::Definition;
use crate::{Context, LabError};

/// The version of the definitions of all rows. In version 1 every page was copied into a buffer, also from where it lay
/// in memory.
const VERSION: u32 = 2;
/// Processes of each contestant that a figure needs at least.
pub(super) const LEAST_GROUPS: usize = 3;

/// One part on one file system.
pub struct Course<'s, 'c, 'x> {
    pub settings: &'s Settings,
    pub place: &'s Place,
    /// How much time the part may take.
    pub budget: Duration,
    /// Where the part lies in the whole: its beginning, and its length.
    pub share: (f64, f64),
    /// The rest.
    pub context: &'c mut Context<'x>,
}

/// What is measured in one contest.
pub struct Contest<'p> {
    pub prepared: &'p Prepared,
    pub stores: &'p [Access],
    pub rows: &'static Definition,
    /// Parameters of all rows, besides the store.
    pub params: Params,
    /// URLs in a round.
    pub urls: usize,
    /// What a round's time is divided by: 1 for the round, the URLs for a page.
    pub per: usize,
    pub state: State,
    /// How readers begin, where the state is warming.
    pub start: &'p Start,
    /// How much time it may take.
    pub budget: Duration,
}

impl Contest<'_> {
    /// A process by the times of its rounds.
    pub fn process(&self, samples: Vec<f64>, counters: BTreeMap<String, f64>) -> Process {
        let value = Some(estimate::median(&samples));
        Process {
            value,
            samples,
            batch: self.urls as u64,
            counters,
            ..Process::default()
        }
    }
}

/// What a contestant's processes gave so far, or why it gives nothing.
pub type Row = Result<Vec<Process>, LabError>;

/// Adds what one more process gave; what failed once gives nothing.
pub fn enter(row: &mut Row, gave: Result<Process, LabError>) {
    match (gave, &mut *row) {
        (Ok(process), Ok(processes)) => processes.push(process),
        (Err(error), _) => *row = Err(error),
        (Ok(_), Err(_)) => {}
    }
}

impl Course<'_, '_, '_> {
    /// What all rows over the whole site state: where it lies, and what is unusual of it.
    pub fn params(&self) -> Params {
        self.settings
            .unusual()
            .0
            .into_iter()
            .fold(self.place.params(), |params, (key, value)| {
                params.with(&key, value)
            })
    }

    /// Says what is being done; `within` is the share of the part that is done.
    pub fn progress(&mut self, doing: &str, within: f64) {
        self.context
            .sink
            .progress(doing, self.share.0 + self.share.1 * within.min(1.0));
    }
}

/// Rows of a name whose figure is a time. What it is of stands in the lab's descriptor.
const fn times(probe: &'static str) -> Definition {
    Definition {
        table: &table::SITE,
        probe,
        version: VERSION,
        ..Definition::LATENCY
    }
}

pub(super) const OF_ROUND: Definition = times("site.round");
pub(super) const OF_SIZE: Definition = times("site.size");
pub(super) const OF_FOLDER: Definition = times("site.folder");
pub(super) const OF_DEPTH: Definition = times("site.depth");
pub(super) const OF_READERS: Definition = Definition {
    unit: Unit::PerSecond,
    better: Better::Higher,
    ..times("site.readers")
};
pub(super) const OF_SPACE: Definition = Definition {
    unit: Unit::Bytes,
    ..times("site.space")
};
pub(super) const OF_IMPORT: Definition = times("site.import");
pub(super) const OF_SERVED: Definition = Definition {
    probe: "site.served",
    ..OF_READERS
};

/// A row of the record from what the processes gave, or why there is nothing: what is missing here is skipped, the rest
/// failed.
pub fn row(of: &Definition, params: Params, gave: Result<&[Process], &LabError>) -> Measurement {
    let few = |n: usize| format!("measured {n} times only; a figure needs {LEAST_GROUPS}");
    let (processes, none) = match gave {
        Ok(processes) => (processes, (Outcome::Untrusted, few(0))),
        Err(LabError::Missing(why)) => (&[][..], (Outcome::Skipped, why.clone())),
        Err(error) => (&[][..], (Outcome::Failed, error.to_string())),
    };
    let samples: Vec<f64> = processes
        .iter()
        .flat_map(|p| p.samples.iter().copied())
        .collect();
    // What is counted, not timed, needs no repetition.
    let exact = (of.unit == Unit::Bytes)
        .then_some(processes)
        .and_then(|p| if let [one] = p { one.value } else { None });
    let doubt = (processes.len() < LEAST_GROUPS && exact.is_none()).then(|| few(processes.len()));
    let row = of.row(
        params,
        processes.to_vec(),
        estimate::percentiles(&samples, of.better),
        doubt,
        || none,
    );
    let counted = |value| Estimate {
        value,
        low: value,
        high: value,
        confidence: estimate::CONFIDENCE,
    };
    Measurement {
        estimate: exact.map(counted).or(row.estimate),
        ..row
    }
}
