//! From steps to rows: throughput and latency of one number of clients, with what speaks against them.

use std::collections::BTreeMap;

use fingerpost_record::descriptor::{HostDependence, table};
use fingerpost_record::unstated::DESCRIBED;
use fingerpost_record::{Better, Measurement, Observation, Outcome, Params, Percentiles, Process, Unit};
use fingerpost_workloads::{Step, quantile};

use crate::explained::Measured;
use crate::rows::{self, Definition};
use crate::stalls;

/// Transactions completed a second: queries for the reading mixes, committed transactions for the writing one.
pub const OF_THROUGHPUT: Definition = Definition {
    table: &table::DATABASE,
    depends_on_host: Some(HostDependence::Server),
    probe: "database.throughput",
    // Raised when the data set, the mixes or what is counted changes, so that rows of before are not compared.
    version: 1,
    ..Definition::RATE
};
/// How long a transaction took for the client that asked for it.
pub const OF_LATENCY: Definition =
    Definition { probe: "database.latency", unit: Unit::Nanoseconds, better: Better::Lower, ..OF_THROUGHPUT };

/// More failed transactions than this, as a share of all, and the rest is not what was to be measured.
const TOLERABLE_ERRORS: f64 = 0.001;

/// All that one step gave in the rounds so far.
#[derive(Clone, Debug)]
pub struct Repetitions {
    /// Of the step.
    pub params: Params,
    /// Every one that was completed.
    pub steps: Vec<Step>,
    /// Why the latest that failed did.
    pub failure: Option<String>,
}

impl Repetitions {
    /// None yet.
    pub fn new(params: Params) -> Self {
        Repetitions { params, steps: Vec::new(), failure: None }
    }

    /// The rows as far as they are known.
    pub fn rows(&self) -> Vec<Measurement> {
        vec![self.throughput(), self.latency()]
    }

    /// The row of the throughput alone.
    pub fn throughput(&self) -> Measurement {
        let processes = self.steps.iter().map(|step| Process {
            value: Some(step.transactions as f64 / step.elapsed.as_secs_f64()),
            samples: step.throughput.clone(),
            // A sample is a stretch of time, in which this many transactions completed on average.
            batch: step.transactions / step.throughput.len().max(1) as u64,
            counters: counters(step),
            ..Process::default()
        });
        let stretches: Vec<f64> = self.steps.iter().flat_map(|s| s.throughput.iter().copied()).collect();
        let percentiles = fingerpost_measure::estimate::percentiles(&stretches, Better::Higher);
        self.row(&OF_THROUGHPUT, processes.collect(), percentiles)
    }

    fn latency(&self) -> Measurement {
        let processes = self.steps.iter().filter_map(|step| {
            let at = |q: f64| step.latency(q).map(|ns| ns as f64);
            let median = at(0.5)?;
            let mut counters = counters(step);
            for (name, q) in [("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)] {
                counters.extend(at(q).map(|ns| (name.to_owned(), ns)));
            }
            // The histogram's median stands for its samples, of which there are too many to keep.
            Some(Process { counters, ..Process::of_one(median, step.transactions) })
        });
        let all = merged(&self.steps);
        let at = |q: f64| quantile(&all, q).map(|ns| ns as f64);
        let percentiles = at(0.5).zip(at(0.9)).zip(at(0.99)).map(|((p50, p90), p99)| Percentiles { p50, p90, p99 });
        self.row(&OF_LATENCY, processes.collect(), percentiles)
    }

    fn row(&self, of: &Definition, processes: Vec<Process>, percentiles: Option<Percentiles>) -> Measurement {
        let none = || (Outcome::Failed, self.failure.clone().unwrap_or_else(|| "no step was completed".to_owned()));
        of.row(self.params.clone(), processes, percentiles, self.doubt(), none)
    }

    /// What speaks against the figures: the client was the limit in at least half of the repetitions, or too much went
    /// wrong.
    fn doubt(&self) -> Option<String> {
        let errors: u64 = self.steps.iter().flat_map(|s| s.client.errors.values()).sum();
        let done: u64 = self.steps.iter().map(|s| s.transactions).sum();
        if errors as f64 > TOLERABLE_ERRORS * (errors + done) as f64 {
            let kinds: Vec<String> =
                rows::errors(&self.steps).iter().map(|(kind, n)| format!("{n} × {kind}")).collect();
            return Some(format!("{errors} of {} transactions failed: {}", errors + done, kinds.join(", ")));
        }
        let saturated: Vec<&String> = self.steps.iter().filter_map(|s| s.client.saturated.as_ref()).collect();
        if 2 * saturated.len() >= self.steps.len() { saturated.last().map(|s| (*s).clone()) } else { None }
    }

    /// All repetitions together, for explaining; nothing when there was none.
    pub fn measured(&self) -> Option<Measured> {
        let seconds: f64 = self.steps.iter().map(|s| s.elapsed.as_secs_f64()).sum();
        let transactions = self.steps.iter().map(|s| s.transactions).sum();
        let under_way = self.params.int("clients")? as f64;
        (seconds > 0.0).then(|| Measured {
            params: self.params.clone(),
            transactions,
            seconds,
            under_way,
            doubt: self.doubt(),
        })
    }

    /// The client's account of all repetitions together; nothing when there was none.
    pub fn observation(&self, server: &str) -> Option<Observation> {
        if self.steps.is_empty() {
            return None;
        }
        let sum = |f: fn(&Step) -> f64| self.steps.iter().map(f).sum::<f64>();
        let mut totals = BTreeMap::from([
            ("client.cpu_seconds".to_owned(), sum(|s| s.client.cpu_seconds)),
            ("wall.seconds".to_owned(), sum(|s| s.elapsed.as_secs_f64())),
            ("transactions".to_owned(), sum(|s| s.transactions as f64)),
            ("stalls".to_owned(), sum(|s| s.client.stalls.len() as f64)),
            ("stalls.seconds".to_owned(), sum(|s| s.client.stalls.iter().map(|stall| stall.length_s).sum())),
        ]);
        totals.extend(rows::errors(&self.steps).into_iter().map(|(kind, n)| (format!("errors.{kind}"), n as f64)));
        Some(Observation {
            workload: "database".to_owned(),
            params: self.params.clone(),
            observer: "client".to_owned(),
            source: format!("{DESCRIBED}{server}"),
            series: stalls::series(&self.steps),
            totals,
            ..Observation::default()
        })
    }
}

fn counters(step: &Step) -> BTreeMap<String, f64> {
    let client = &step.client;
    BTreeMap::from([
        ("client_cpu_ns".to_owned(), client.cpu_seconds * 1e9 / step.transactions.max(1) as f64),
        ("stalls".to_owned(), client.stalls.len() as f64),
        ("stalled_seconds".to_owned(), client.stalls.iter().map(|s| s.length_s).sum()),
        ("errors".to_owned(), client.errors.values().sum::<u64>() as f64),
    ])
}

fn merged(steps: &[Step]) -> Vec<(u64, u64)> {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (ns, n) in steps.iter().flat_map(|s| &s.latencies) {
        *all.entry(*ns).or_default() += n;
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_workloads::ClientReport;
    use std::time::Duration;

    fn step(transactions: u64) -> Step {
        Step {
            transactions,
            elapsed: Duration::from_secs(2),
            throughput: vec![transactions as f64 / 2.0; 20],
            latencies: vec![(1_000, transactions * 9 / 10), (9_000, transactions / 10)],
            ..Step::default()
        }
    }

    fn repetitions(steps: impl IntoIterator<Item = Step>) -> Repetitions {
        let mut all = Repetitions::new(Params::new().with("clients", 5));
        all.steps.extend(steps);
        all
    }

    #[test]
    fn throughput_is_the_median_of_the_repetitions_and_latency_has_the_percentiles_of_all() {
        let rows = repetitions([step(1000), step(2000), step(1200)]).rows();
        let (throughput, latency) = (&rows[0], &rows[1]);
        assert_eq!(throughput.process_values(), [500.0, 1000.0, 600.0]);
        let e = throughput.estimate.unwrap();
        assert_eq!(e.value, 600.0);
        assert!(e.low < 500.0 && e.high > 1000.0, "{e:?}");
        assert_eq!(throughput.processes[0].samples.len(), 20);
        assert_eq!(latency.estimate.unwrap().value, 1000.0);
        assert_eq!(latency.percentiles.unwrap(), Percentiles { p50: 1000.0, p90: 1000.0, p99: 9000.0 });
        assert!(rows.iter().all(|r| r.outcome == Outcome::Measured && r.reason.is_none()));
    }

    #[test]
    fn a_figure_of_the_client_is_not_trusted() {
        let saturated = |yes: bool| {
            let client = ClientReport {
                saturated: yes.then(|| "its own CPU was the limit".to_owned()),
                ..ClientReport::default()
            };
            Step { client, ..step(1000) }
        };
        let rows = repetitions([saturated(true), saturated(true), saturated(false)]).rows();
        assert_eq!(
            (rows[0].outcome, rows[0].reason.as_deref()),
            (Outcome::Untrusted, Some("its own CPU was the limit"))
        );
        assert_eq!(
            repetitions([saturated(true), saturated(false), saturated(false)]).rows()[0].outcome,
            Outcome::Measured
        );
        let doubts = |saturations: [bool; 3]| repetitions(saturations.map(saturated)).measured().unwrap().doubt;
        assert_eq!(
            doubts([true, true, false]).as_deref(),
            Some("its own CPU was the limit"),
            "who explains the step knows it too"
        );
        assert_eq!(doubts([true, false, false]), None);
    }

    #[test]
    fn too_many_errors_are_named_and_a_few_are_only_counted() {
        let failing = |n: u64| {
            let errors = BTreeMap::from([("deadlock".to_owned(), n)]);
            Step { client: ClientReport { errors, ..ClientReport::default() }, ..step(10_000) }
        };
        let row = &repetitions([failing(300)]).rows()[0];
        assert_eq!(row.outcome, Outcome::Untrusted);
        assert_eq!(row.reason.as_deref(), Some("300 of 10300 transactions failed: 300 × deadlock"));
        let few = repetitions([failing(2)]);
        assert_eq!(few.rows()[0].outcome, Outcome::Measured);
        assert_eq!(few.observation("x").unwrap().totals["errors.deadlock"], 2.0);
    }

    #[test]
    fn a_step_that_only_failed_is_a_failed_row_with_the_reason() {
        let mut none = repetitions([]);
        none.failure = Some("the server fell over".into());
        let row = &none.rows()[1];
        assert_eq!((row.outcome, row.reason.as_deref()), (Outcome::Failed, Some("the server fell over")));
        assert_eq!(none.observation("x"), None);
    }
}
