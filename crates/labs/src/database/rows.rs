//! Rows of throughput and latency, and the client's account of one number of clients.

use std::collections::BTreeMap;

use fingerpost_record::descriptor::{HostDependence, table};
use fingerpost_record::{Better, Unit};
use fingerpost_workloads::Step;

use crate::rows::Definition;

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
pub const OF_LATENCY: Definition = Definition {
    probe: "database.latency",
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    ..OF_THROUGHPUT
};

/// The client's account of all repetitions together.
pub fn totals(steps: &[Step]) -> Vec<(&'static str, f64)> {
    let sum = |f: fn(&Step) -> f64| steps.iter().map(f).sum::<f64>();
    vec![
        ("client.cpu_seconds", sum(|s| s.client.cpu_seconds)),
        ("wall.seconds", sum(|s| s.elapsed.as_secs_f64())),
        ("transactions", sum(|s| s.transactions as f64)),
        ("stalls", sum(|s| s.client.stalls.len() as f64)),
        (
            "stalls.seconds",
            sum(|s| s.client.stalls.iter().map(|stall| stall.length_s).sum()),
        ),
    ]
}

/// The client's account of one repetition, for the record.
pub fn counters(step: &Step) -> BTreeMap<String, f64> {
    let client = &step.client;
    BTreeMap::from([
        (
            "client_cpu_ns".to_owned(),
            client.cpu_seconds * 1e9 / step.transactions.max(1) as f64,
        ),
        ("stalls".to_owned(), client.stalls.len() as f64),
        (
            "stalled_seconds".to_owned(),
            client.stalls.iter().map(|s| s.length_s).sum(),
        ),
        (
            "errors".to_owned(),
            client.errors.values().sum::<u64>() as f64,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::LOADED;
    use crate::database::listener::Listener;
    use crate::loaded::{Repetitions, tell};
    use fingerpost_record::{Outcome, Params, Percentiles};
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
        let mut all = Repetitions::new(&LOADED, Params::new().with("clients", 5));
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
        assert_eq!(
            latency.percentiles.unwrap(),
            Percentiles {
                p50: 1000.0,
                p90: 1000.0,
                p99: 9000.0
            }
        );
        assert!(
            rows.iter()
                .all(|r| r.outcome == Outcome::Measured && r.reason.is_none())
        );
    }

    #[test]
    fn a_figure_of_the_client_is_not_trusted() {
        let saturated = |yes: bool| {
            let client = ClientReport {
                saturated: yes.then(|| "its own CPU was the limit".to_owned()),
                ..ClientReport::default()
            };
            Step {
                client,
                ..step(1000)
            }
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
        let doubts = |saturations: [bool; 3]| {
            repetitions(saturations.map(saturated))
                .measured()
                .unwrap()
                .doubt
        };
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
            Step {
                client: ClientReport {
                    errors,
                    ..ClientReport::default()
                },
                ..step(10_000)
            }
        };
        let row = &repetitions([failing(300)]).rows()[0];
        assert_eq!(row.outcome, Outcome::Untrusted);
        assert_eq!(
            row.reason.as_deref(),
            Some("300 errors beside 10000 completed transactions: 300 × deadlock")
        );
        let few = repetitions([failing(2)]);
        assert_eq!(few.rows()[0].outcome, Outcome::Measured);
        assert_eq!(few.observation("x").totals["errors.deadlock"], 2.0);
    }

    #[test]
    fn a_step_that_only_failed_is_a_failed_row_with_the_reason() {
        let mut none = repetitions([]);
        none.failure = Some("the server fell over".into());
        let row = &none.rows()[1];
        assert_eq!(
            (row.outcome, row.reason.as_deref()),
            (Outcome::Failed, Some("the server fell over"))
        );
        let mut sink = Listener::default();
        let measured = tell(&[none], "x", &mut sink);
        assert!(measured.is_empty() && sink.observations.is_empty() && sink.warnings.is_empty());
    }
}
