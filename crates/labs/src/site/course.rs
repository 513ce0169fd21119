//! The course of a part and what its contests are, and the rows that they fill.

use std::time::Duration;

use fingerpost_measure::estimate;
use fingerpost_record::{Better, Estimate, Measurement, Outcome, Params, Process, Unit};
use fingerpost_workloads::site::Access;

use super::places::Place;
use super::prepare::Prepared;
use super::settings::{Settings, State};
use super::start::Start;
use crate::Context;

/// The version of the definitions of all rows. In version 1 every page was copied into a buffer, also from where it lay in memory.
const VERSION: u32 = 2;
/// Processes of each contestant that a figure needs at least.
pub(super) const LEAST_GROUPS: usize = 3;

/// One part on one file system.
pub struct Course<'s, 'c, 'x> {
    /// What was set.
    pub settings: &'s Settings,
    /// Where.
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
    /// The site.
    pub prepared: &'p Prepared,
    /// The contestants.
    pub stores: &'p [Access],
    /// The probe of the rows.
    pub probe: &'static str,
    /// Parameters of all rows, besides the store.
    pub params: Params,
    /// URLs in a round.
    pub urls: usize,
    /// What a round's time is divided by: 1 for the round, the URLs for a page.
    pub per: usize,
    /// Warm or cold.
    pub state: State,
    /// How readers begin, where the state is warming.
    pub start: &'p Start,
    /// How much time it may take.
    pub budget: Duration,
}

/// A contestant's row as it grows.
#[derive(Default)]
pub struct Row {
    /// What its processes gave.
    pub processes: Vec<Process>,
    /// Why it is not available here.
    pub skipped: Option<String>,
    /// Why it gave nothing.
    pub failed: Option<String>,
}

impl Course<'_, '_, '_> {
    /// Parameters that all rows have: where, when there is more than one place or the user named it.
    pub fn params(&self) -> Params {
        self.place.params()
    }

    /// Says what is being done; `within` is the share of the part that is done.
    pub fn progress(&mut self, doing: &str, within: f64) {
        self.context.sink.progress(doing, self.share.0 + self.share.1 * within.min(1.0));
    }
}

impl Row {
    /// As it is told after each group of processes.
    pub(super) fn measurement(&self, contest: &Contest, store: &str) -> Measurement {
        let params = contest.params.clone().with("store", store);
        row(contest.probe, params, Unit::Nanoseconds, &self.processes, self.skipped.as_ref(), self.failed.as_ref())
    }
}

/// A row of the record from what the processes gave, or why there is nothing.
pub fn row(
    probe: &str,
    params: Params,
    unit: Unit,
    processes: &[Process],
    skipped: Option<&String>,
    failed: Option<&String>,
) -> Measurement {
    let better = if unit == Unit::PerSecond { Better::Higher } else { Better::Lower };
    if let Some((outcome, why)) = skipped.map(|w| (Outcome::Skipped, w)).or(failed.map(|w| (Outcome::Failed, w))) {
        return Measurement::without_figure(probe, VERSION, params, unit, better, outcome, why.clone());
    }
    let values: Vec<f64> = processes.iter().filter_map(|p| p.value).collect();
    let samples: Vec<f64> = processes.iter().flat_map(|p| p.samples.iter().copied()).collect();
    // What is counted, not timed, needs no repetition.
    let few = processes.len() < LEAST_GROUPS && unit != Unit::Bytes;
    Measurement {
        outcome: if few { Outcome::Untrusted } else { Outcome::Measured },
        reason: few.then(|| format!("measured {} times only; a figure needs {LEAST_GROUPS}", processes.len())),
        estimate: match (unit, values.as_slice()) {
            (Unit::Bytes, &[exact]) => Some(Estimate { value: exact, low: exact, high: exact, confidence: estimate::CONFIDENCE }),
            _ => estimate::across_processes(&values),
        },
        percentiles: estimate::percentiles(&samples, better),
        processes: processes.to_vec(),
        ..Measurement::without_figure(probe, VERSION, params, unit, better, Outcome::Measured, String::new())
    }
}
