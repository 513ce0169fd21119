//! How long a dump of the data takes to import: the article had it take up to 8 times longer on one system than on
//! others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_measure::estimate::percentiles;
use fingerpost_record::descriptor::table;
use fingerpost_record::{Better, Measurement, Outcome, Params, Process};
use fingerpost_workloads::database::Imported;

use crate::rows::Definition;
use crate::{LabError, Sink};

/// A dump of the data set, from the first statement sent until the last is committed.
pub const OF_IMPORT: Definition = Definition {
    table: &table::DATABASE,
    probe: "database.import",
    ..Definition::LATENCY
};
/// Imports that a figure needs, and the most.
const ENOUGH: usize = 3;
const MOST: usize = 9;

/// What users do, and how many they are.
pub const OF_USERS: &[&str] = &["mix", "clients"];

/// What rows of imports have in common: none of what users do matters to them.
pub fn params(of_a_step: &Params) -> Params {
    of_a_step.without(OF_USERS)
}

/// Imports again and again until there are enough, and further while one fits into the time; tells the row each time.
/// What fails is the row's reason.
pub fn repeat(
    params: &Params,
    time: Duration,
    sink: &mut dyn Sink,
    import: &mut dyn FnMut() -> Result<Imported, LabError>,
) {
    let begun = Instant::now();
    let mut all: Vec<Imported> = Vec::new();
    let extent = Extent {
        least: ENOUGH,
        most: MOST,
        budget: time,
    };
    let mut course = Interleaved::repeated(extent);
    let mut failure = None;
    while let Some(turn) =
        course.next_within(begun.elapsed(), failure.is_some() || sink.interrupted())
    {
        sink.progress(
            &format!(
                "database, importing a dump, {} of {ENOUGH}",
                (turn.round + 1).min(ENOUGH)
            ),
            0.99,
        );
        match import() {
            Ok(imported) => all.push(imported),
            Err(error) => failure = Some(error.to_string()),
        }
        sink.measurement(row(params, &all, failure.clone()));
    }
}

fn row(params: &Params, all: &[Imported], failure: Option<String>) -> Measurement {
    let values: Vec<f64> = all.iter().map(|i| i.took.as_nanos() as f64).collect();
    let few = (all.len() < ENOUGH)
        .then(|| format!("imported {} times only; a figure needs {ENOUGH}", all.len()));
    let doubt = failure
        .as_ref()
        .map(|why| format!("a further import failed: {why}"))
        .or(few);
    let process = |i: &Imported| Process {
        counters: BTreeMap::from([
            ("bytes".to_owned(), i.bytes as f64),
            ("rows".to_owned(), i.rows as f64),
            ("statements".to_owned(), i.statements as f64),
        ]),
        ..Process::of_one(i.took.as_nanos() as f64, 1)
    };
    let none = || {
        (
            Outcome::Failed,
            failure.unwrap_or_else(|| "the run ended before".into()),
        )
    };
    OF_IMPORT.row(
        params.clone(),
        all.iter().map(process).collect(),
        percentiles(&values, Better::Lower),
        doubt,
        none,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Last {
        row: Option<Measurement>,
        told: usize,
    }

    impl Sink for Last {
        fn measurement(&mut self, row: Measurement) {
            self.told += 1;
            self.row = Some(row);
        }
    }

    /// Imports that take 1, 2, 3 … s; the n-th fails.
    fn told(fails: Option<usize>) -> Last {
        let (mut sink, mut n) = (Last::default(), 0);
        repeat(
            &params(
                &Params::new()
                    .with("engine", "sqlite")
                    .with("mix", "read")
                    .with("clients", 5),
            ),
            Duration::ZERO,
            &mut sink,
            &mut || {
                n += 1;
                match fails {
                    Some(at) if at == n => Err(LabError::Failed("disk full".into())),
                    _ => Ok(Imported {
                        took: Duration::from_secs(n as u64),
                        bytes: 10,
                        rows: 2,
                        statements: 3,
                    }),
                }
            },
        );
        sink
    }

    #[test]
    fn three_imports_make_a_figure() {
        let sink = told(None);
        let row = sink.row.unwrap();
        assert_eq!(
            (row.probe.as_str(), row.outcome, sink.told),
            ("database.import", Outcome::Measured, 3)
        );
        assert_eq!(
            (row.estimate.unwrap().value, row.process_values()),
            (2e9, vec![1e9, 2e9, 3e9])
        );
        assert_eq!(row.params, Params::new().with("engine", "sqlite"));
        assert_eq!(row.processes[0].counters["rows"], 2.0);
    }

    #[test]
    fn an_import_that_fails_is_told_and_one_is_no_figure() {
        let row = told(Some(1)).row.unwrap();
        assert_eq!(
            (row.outcome, row.reason.as_deref()),
            (Outcome::Failed, Some("disk full"))
        );
        let row = told(Some(2)).row.unwrap();
        assert_eq!(row.outcome, Outcome::Untrusted);
        assert!(row.reason.unwrap().contains("disk full"));
    }
}
