//! Which steps of a loaded server are taken apart, and for how long: one client, the most, and the best in between when
//! it falls.

use std::time::Duration;

use fingerpost_compare::scaling::{Scaling, Shape};
use fingerpost_diagnose::deciding::Policy;
use fingerpost_diagnose::suspects;
use fingerpost_observe::Level;
use fingerpost_record::{Finding, Params, Profile};
use fingerpost_workloads::Workload;

use crate::attribute::{Attributed, KeptOpen, Request, attribute, hand_over_findings};
use crate::deciding::{Question, decide};
use crate::lab::by_profile;
use crate::{LabError, Sink};

/// Steps that are explained of one table at most.
const MOST_STEPS: u32 = 3;
/// What a traced pass costs besides its load: warming up is a quarter, attaching and reading the rest.
const OVERHEAD: Duration = Duration::from_millis(250);
/// A shorter pass sees too few windows of the trace to tell what threads wait for.
const SHORTEST: Duration = Duration::from_millis(600);
/// The share of a lab's time that explaining may take.
const SHARE: f64 = 0.35;

/// The length of a traced pass.
pub fn pass(profile: Profile, budget: Duration, tables: usize) -> Duration {
    let enough = Duration::from_millis(by_profile(profile, [1300, 4000, 10_000]));
    let each = budget.mul_f64(SHARE) / (MOST_STEPS * tables.max(1) as u32);
    each.saturating_sub(OVERHEAD)
        .mul_f64(0.8)
        .clamp(SHORTEST, enough)
}

/// The time to reserve for explaining so many tables of so many steps in all, with passes of this length.
pub fn reserve(length: Duration, tables: usize, steps: usize) -> Duration {
    let passes = (MOST_STEPS * tables.max(1) as u32).min(steps as u32);
    (length.mul_f64(1.25) + OVERHEAD) * passes
}

/// One step as it was measured, all of its rounds together.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub params: Params,
    /// Transactions in all rounds.
    pub transactions: u64,
    /// Seconds of all rounds.
    pub seconds: f64,
    /// Transactions under way at any time: the clients of a closed loop, by Little's law the mean number in an open
    /// one.
    pub under_way: f64,
    /// Why its row is not to be trusted, where that is so.
    pub doubt: Option<String>,
}

impl Measured {
    fn throughput(&self) -> f64 {
        self.transactions as f64 / self.seconds
    }
}

/// How steps are to be explained.
#[derive(Clone, Debug)]
pub struct Course<'a> {
    /// The parameter that counts clients (`clients`, `connections`).
    pub by: &'a str,
    /// Whether a query cache is on, for servers that have one.
    pub query_cache: Option<bool>,
    /// The length of a traced pass.
    pub length: Duration,
    /// Experiments that may decide between the suspects of a table, at most.
    pub experiments: usize,
    /// Whether settings that others live under may be changed for them.
    pub beyond_ours: bool,
}

/// The tables within the steps: those that differ in nothing but the number of clients belong together.
pub fn tables(steps: &[Measured], by: &str) -> Vec<Vec<Measured>> {
    let mut tables: Vec<(Params, Vec<Measured>)> = Vec::new();
    for step in steps
        .iter()
        .filter(|s| s.transactions > 0 && s.seconds > 0.0 && s.params.int(by).is_some())
    {
        let key: Params = step.params.without(&[by]);
        match tables.iter_mut().find(|(k, _)| *k == key) {
            Some((_, table)) => table.push(step.clone()),
            None => tables.push((key, vec![step.clone()])),
        }
    }
    let sorted = |mut table: Vec<Measured>| {
        table.sort_by_key(|s| s.params.int(by));
        table
    };
    tables.into_iter().map(|(_, table)| sorted(table)).collect()
}

/// The steps of a table to explain, as places in it; the last one speaks for the table.
fn chosen(table: &[Measured], by: &str) -> Vec<usize> {
    let points: Vec<(u64, f64)> = table
        .iter()
        .map(|s| (s.params.int(by).unwrap_or(0) as u64, s.throughput()))
        .collect();
    let best = Scaling::of(&points).and_then(|scaling| match scaling.shape {
        Shape::Collapses { .. } | Shape::Declines { .. } => {
            points.iter().position(|p| p.0 == scaling.peak().clients)
        }
        Shape::Scales | Shape::Saturates { .. } => None,
    });
    let Some(last) = table.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut chosen: Vec<usize> = [Some(0), best, Some(last)].into_iter().flatten().collect();
    chosen.dedup();
    chosen
}

/// Explains the steps of every table that speak for it. What cannot be explained is told, and never spoils what was
/// measured.
pub fn explain(
    workload: &mut dyn Workload,
    steps: &[Measured],
    course: &Course,
    sink: &mut dyn Sink,
) -> Result<(), LabError> {
    // A server that was not started here is measured, and not explained: its processes are not known.
    if workload.subjects().servers.is_empty() {
        return Ok(());
    }
    let events = KeptOpen::default();
    for table in tables(steps, course.by) {
        let sweep: Vec<(f64, f64)> = table
            .iter()
            .map(|s| (s.params.int(course.by).unwrap_or(0) as f64, s.throughput()))
            .collect();
        let places = chosen(&table, course.by);
        for (n, place) in places.iter().enumerate() {
            if sink.interrupted() {
                return Ok(());
            }
            let step = &table[*place];
            sink.progress(
                &format!("{}, explaining {}", workload.name(), step.params),
                0.7 + 0.3 * n as f64 / places.len() as f64,
            );
            let request = Request {
                params: &step.params,
                length: course.length,
                clients: step.under_way,
                sweep: &sweep,
                query_cache: course.query_cache,
                level: Level::Tracing,
                measured: Some((step.transactions, step.seconds)),
                latency: None,
                events: Some(&events),
            };
            match attribute(workload, &request, sink) {
                Ok(mut attributed) if n + 1 == places.len() => {
                    attributed.findings = decided(workload, step, &attributed, course, sink);
                    if let Some(why) = &step.doubt {
                        suspects::doubt(&mut attributed.findings, why);
                    }
                    hand_over_findings(&attributed, sink);
                }
                Ok(_) => {}
                Err(error) => sink.warn(&format!(
                    "{} {} could not be explained: {error}",
                    workload.name(),
                    step.params
                )),
            }
        }
    }
    Ok(())
}

/// The findings of the step that speaks for its table, after experiments where these are needed.
fn decided(
    workload: &mut dyn Workload,
    step: &Measured,
    attributed: &Attributed,
    course: &Course,
    sink: &mut dyn Sink,
) -> Vec<Finding> {
    let figures = &attributed.figures;
    let rate = step.throughput() * figures.turns_per_transaction;
    let question = Question {
        params: &step.params,
        findings: &attributed.findings,
        load: (
            rate,
            figures.seconds_per_transaction() / figures.turns_per_transaction,
        ),
        closed: step.params.get("rate").is_none(),
        most: course.experiments,
        beyond_ours: course.beyond_ours,
        policy: Policy::WhereUndecided,
        own_neighbours: Vec::new(),
    };
    decide(workload, &question, sink)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(clients: i64, keep_alive: &str, throughput: u64) -> Measured {
        let params = Params::new()
            .with("keepalive", keep_alive)
            .with("clients", clients);
        Measured {
            params,
            transactions: throughput * 2,
            seconds: 2.0,
            under_way: clients as f64,
            doubt: None,
        }
    }

    #[test]
    fn steps_that_differ_in_clients_alone_are_one_table_in_the_order_of_clients() {
        let steps = [
            step(10, "on", 50),
            step(1, "on", 10),
            step(1, "off", 5),
            step(50, "on", 0),
        ];
        let found = tables(&steps, "clients");
        assert_eq!(
            found,
            [
                vec![steps[1].clone(), steps[0].clone()],
                vec![steps[2].clone()]
            ]
        );
    }

    #[test]
    fn one_client_and_the_most_are_explained_and_the_best_when_it_falls() {
        let table = |rates: [u64; 4]| {
            [1, 2, 10, 50]
                .into_iter()
                .zip(rates)
                .map(|(n, rate)| step(n, "on", rate))
                .collect::<Vec<_>>()
        };
        assert_eq!(chosen(&table([100, 200, 210, 205]), "clients"), [0, 3]);
        assert_eq!(chosen(&table([100, 200, 120, 60]), "clients"), [0, 1, 3]);
        assert_eq!(chosen(&table([200, 100, 90, 60]), "clients"), [0, 3]);
        assert_eq!(chosen(&table([100, 200, 210, 205])[..1], "clients"), [0]);
        assert_eq!(chosen(&[], "clients"), [] as [usize; 0]);
    }

    #[test]
    fn what_is_reserved_is_no_more_than_its_share() {
        for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
            for seconds in [15, 20, 90, 300] {
                let budget = Duration::from_secs(seconds);
                let reserved = reserve(pass(profile, budget, 1), 1, 7);
                assert!(
                    reserved <= budget.mul_f64(SHARE + 0.01),
                    "{profile:?}, {seconds} s: {reserved:?}"
                );
            }
        }
        assert_eq!(pass(Profile::Quick, Duration::ZERO, 4), SHORTEST);
        assert!(reserve(SHORTEST, 1, 1) < reserve(SHORTEST, 1, 2));
    }
}
