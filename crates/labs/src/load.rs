//! The load generator on a machine of its own: what it saw of a server elsewhere, by its own clock.
//!
//! One step is repeated a few times, and the repetitions are what a row's interval is made of. Every round trip is
//! stamped besides, because a transaction may be several of them, and what the server's machine sees are round trips.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_observe::socket_inodes;
use fingerpost_record::client::{CLIENT, THROUGHPUT, TURN, TURNS, WORKLOAD};
use fingerpost_record::descriptor::table;
use fingerpost_record::unstated::DESCRIBED;
use fingerpost_record::{Measurement, Observation, Outcome, Params, Percentiles, Process};
use fingerpost_sys::sockdiag::{ESTABLISHED, SockDiag};
use fingerpost_workloads::histogram::Histogram;
use fingerpost_workloads::{Stamps, Step, Workload};

use crate::database;
use crate::loaded::{Loaded, Repetitions};
use crate::rows::Definition;
use crate::{LabError, Sink};

const OF_THROUGHPUT: Definition = Definition {
    table: &table::LOAD,
    place: Some(0),
    probe: THROUGHPUT,
    ..Definition::RATE
};
const OF_TURNS: Definition = Definition {
    table: &table::LOAD,
    place: Some(1),
    probe: TURNS,
    ..Definition::RATE
};
pub(crate) const OF_TURN: Definition = Definition {
    table: &table::LOAD,
    place: Some(2),
    probe: TURN,
    ..Definition::LATENCY
};
/// As of a database, whose clients load it.
static LOADED: Loaded = Loaded {
    throughput: &OF_THROUGHPUT,
    latency: &OF_TURN,
    ..database::LOADED
};
/// Repetitions: as many as an interval of 95 % needs at the least would be six, and each costs a warm-up.
const REPETITIONS: u32 = 6;
/// A repetition is at least this long.
const SHORTEST: Duration = Duration::from_millis(300);
/// How often stamps are taken out of the generators' memory, which holds half a million.
const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// The part of a repetition after which its round trips count: what lies before is warm-up.
const WARM: f64 = 0.25;

/// The round trips of one repetition.
#[derive(Debug, Default)]
struct Turns {
    latencies: Histogram,
    sum_ns: u128,
    lost: u64,
    /// The least round trip of the network that TCP saw, in microseconds.
    network_us: Option<u32>,
}

/// How long each repetition is within this time, its warm-up included.
pub fn length(whole: Duration) -> Duration {
    (whole / REPETITIONS).div_f64(1.0 + WARM).max(SHORTEST)
}

/// Puts the load on, and tells the rows and the client's own account. The workload has been started.
///
/// # Errors
/// No repetition could be done.
pub fn measure(
    workload: &mut dyn Workload,
    step: &Params,
    whole: Duration,
    described: &str,
    sink: &mut dyn Sink,
) -> Result<(), LabError> {
    let length = length(whole);
    let mut all = Repetitions::new(&LOADED, step.clone());
    let (mut turns, mut begun_s) = (Vec::new(), None);
    let mut course = Interleaved::repeated(Extent::rounds(REPETITIONS as usize));
    while let Some(turn) = course.next(all.failure.is_some() || sink.interrupted()) {
        sink.progress(
            &format!("loading {step}"),
            turn.done / f64::from(REPETITIONS),
        );
        let begins = unix_seconds();
        match repetition(workload, step, length) {
            Ok((done, of)) => {
                begun_s.get_or_insert(begins);
                all.steps.push(done);
                turns.push(of);
            }
            Err(error) if turns.is_empty() => return Err(error),
            Err(error) => {
                sink.warn(&format!("the load ended early: {error}"));
                all.failure = Some(error.to_string());
            }
        }
        rows(&all, &turns)
            .into_iter()
            .for_each(|row| sink.measurement(row));
    }
    if let Some(begun_s) = begun_s {
        // Also of a server that does not tell what it is: what follows is its name when both accounts are joined.
        let source = format!("{DESCRIBED}{described}");
        let observation = Observation {
            source,
            ..all.observation(described)
        };
        sink.observation(account(
            observation,
            &all,
            &turns,
            (begun_s, unix_seconds()),
        ));
    }
    Ok(())
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// One repetition: a step, and its round trips as they were stamped.
fn repetition(
    workload: &mut dyn Workload,
    step: &Params,
    length: Duration,
) -> Result<(Step, Turns), LabError> {
    let (stamps, clients) = (workload.stamps(), workload.subjects().clients);
    let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let watcher = stamps.map(|stamps| {
            let (begun, over) = (&begun, &over);
            thread::Builder::new()
                .name("fp-turns".into())
                .spawn_scoped(scope, move || take(&stamps, &clients, length, begun, over))
        });
        let done =
            workload.step_observed(step, length, &mut || begun.store(true, Ordering::Relaxed));
        over.store(true, Ordering::Relaxed);
        let turns = match watcher {
            Some(Ok(thread)) => thread.join().unwrap_or_default(),
            _ => Turns::default(),
        };
        Ok((done?, turns))
    })
}

/// Takes stamps from the end of the warm-up until the step is over.
fn take(
    stamps: &Stamps,
    clients: &[i32],
    length: Duration,
    begun: &AtomicBool,
    over: &AtomicBool,
) -> Turns {
    let mut turns = Turns::default();
    while !begun.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(length.mul_f64(WARM));
    // What was left of the repetition before.
    stamps.drain();
    stamps.set(true);
    while !over.load(Ordering::Relaxed) {
        thread::sleep(DRAIN_EVERY);
        let drained = stamps.drain();
        turns.lost += drained.lost;
        for stamp in drained.stamps {
            let took = stamp.end.saturating_sub(stamp.start);
            turns.latencies.record(took);
            turns.sum_ns += u128::from(took);
        }
        if turns.network_us.is_none() && !over.load(Ordering::Relaxed) {
            turns.network_us = network(clients);
        }
    }
    stamps.set(false);
    turns
}

/// The least time that a packet and its acknowledgement took on any connection of these processes, as TCP measured it;
/// nothing where they have none, or the kernel does not tell.
fn network(clients: &[i32]) -> Option<u32> {
    let own = socket_inodes(clients.iter().copied());
    let mut least: Option<u32> = None;
    let mut take = |s: fingerpost_sys::sockdiag::Tcp| {
        if s.state == ESTABLISHED && own.contains(&s.inode) && s.least_rtt_us > 0 {
            least = Some(least.map_or(s.least_rtt_us, |l| l.min(s.least_rtt_us)));
        }
    };
    SockDiag::open().ok()?.tcp(&mut take).ok()?;
    least
}

/// Transactions and round trips a second, and how long a round trip took.
fn rows(all: &Repetitions, turns: &[Turns]) -> Vec<Measurement> {
    let (params, steps) = (&all.params, &all.steps);
    let throughput = all.throughput();
    // What speaks against the throughput speaks against the rows beside it.
    let row = |of: &Definition,
               params: Params,
               processes: Vec<Process>,
               percentiles: Option<Percentiles>| {
        let none = || (Outcome::Skipped, "no round trip was stamped".to_owned());
        of.row(
            params,
            processes,
            percentiles,
            throughput.reason.clone(),
            none,
        )
    };
    let value = |step: &Step| {
        Some(step.turns as f64 / step.elapsed.as_secs_f64()).filter(|v| v.is_finite())
    };
    let rates = steps
        .iter()
        .filter_map(|s| Some(Process::of_one(value(s)?, s.turns)))
        .collect();
    let rate = row(&OF_TURNS, params.clone(), rates, None);
    let mut together = Histogram::default();
    turns.iter().for_each(|t| together.merge(&t.latencies));
    let at = |q| together.quantile(q).map_or(0.0, |ns| ns as f64);
    let percentiles = (together.total() > 0).then(|| Percentiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
    });
    let latency = |percent: i64, q: f64| {
        let of = |t: &Turns| {
            Some(Process::of_one(
                t.latencies.quantile(q)? as f64,
                t.latencies.total(),
            ))
        };
        let params = params.clone().with("percentile", percent);
        row(
            &OF_TURN,
            params,
            turns.iter().filter_map(of).collect(),
            percentiles,
        )
    };
    let latencies = [latency(50, 0.5), latency(99, 0.99)];
    [throughput, rate].into_iter().chain(latencies).collect()
}

/// The client's own account, with its round trips and when by its own clock it was.
fn account(
    of: Observation,
    all: &Repetitions,
    turns: &[Turns],
    (begun_s, ended_s): (f64, f64),
) -> Observation {
    let steps = &all.steps;
    let seconds: f64 = steps.iter().map(|s| s.elapsed.as_secs_f64()).sum();
    let counted: u64 = turns.iter().map(|t| t.latencies.total()).sum();
    let mut totals: BTreeMap<String, f64> = of.totals;
    totals.extend([
        ("begun.unix.seconds".to_owned(), begun_s),
        ("ended.unix.seconds".to_owned(), ended_s),
        ("load.seconds".to_owned(), seconds),
        (
            "load.turns".to_owned(),
            steps.iter().map(|s| s.turns as f64).sum(),
        ),
        ("load.turns.stamped".to_owned(), counted as f64),
        (
            "load.turns.unstamped".to_owned(),
            turns.iter().map(|t| t.lost as f64).sum(),
        ),
        (
            "load.saturated".to_owned(),
            steps
                .iter()
                .filter(|s| s.client.saturated.is_some())
                .count() as f64,
        ),
        ("load.repetitions".to_owned(), steps.len() as f64),
        (
            "load.cpus".to_owned(),
            steps.iter().map(|s| s.client.cpus).max().unwrap_or(0) as f64,
        ),
    ]);
    if counted > 0 {
        let sum: u128 = turns.iter().map(|t| t.sum_ns).sum();
        totals.insert(
            "load.turn.mean.seconds".to_owned(),
            sum as f64 / counted as f64 * 1e-9,
        );
    }
    if let Some(least) = turns.iter().filter_map(|t| t.network_us).min() {
        totals.insert(
            "load.network.least.seconds".to_owned(),
            f64::from(least) * 1e-6,
        );
    }
    Observation {
        workload: WORKLOAD.to_owned(),
        observer: CLIENT.to_owned(),
        totals,
        ..of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::listener::Listener;
    use fingerpost_workloads::{ClientReport, Subjects};

    /// A server of which every transaction is three round trips; the second step may be the client's limit, the third
    /// may fail.
    struct Mock {
        steps: u32,
        saturated: bool,
        fails: Option<u32>,
    }

    impl Workload for Mock {
        fn name(&self) -> &'static str {
            "load"
        }
        fn start(&mut self) -> Result<(), LabError> {
            Ok(())
        }
        fn steps(&self) -> Vec<Params> {
            vec![Params::new().with("clients", 5)]
        }
        fn subjects(&self) -> Subjects {
            Subjects::default()
        }
        fn step(&mut self, _: &Params, length: Duration) -> Result<Step, LabError> {
            self.steps += 1;
            if self.fails == Some(self.steps) {
                return Err(LabError::Failed("the server went away".into()));
            }
            let client = ClientReport {
                saturated: self.saturated.then(|| "its CPU was the limit".to_owned()),
                cpus: 2,
                ..Default::default()
            };
            let rate = 100.0 / length.as_secs_f64();
            Ok(Step {
                transactions: 100,
                turns: 300,
                elapsed: length,
                throughput: vec![rate],
                client,
                ..Step::default()
            })
        }
        fn stop(&mut self) {}
    }

    fn measured(fails: Option<u32>, saturated: bool) -> (Result<(), LabError>, Listener) {
        let mut sink = Listener {
            patience: 100,
            ..Listener::default()
        };
        let mut workload = Mock {
            steps: 0,
            saturated,
            fails,
        };
        let step = workload.steps().remove(0);
        (
            measure(
                &mut workload,
                &step,
                Duration::from_secs(6),
                "made up",
                &mut sink,
            ),
            sink,
        )
    }

    fn row<'a>(sink: &'a Listener, probe: &str) -> &'a Measurement {
        sink.rows.iter().find(|r| r.probe == probe).unwrap()
    }

    #[test]
    fn transactions_and_their_round_trips_are_rows_and_the_clients_clock_is_told() {
        let (result, sink) = measured(None, false);
        result.unwrap();
        let (throughput, turns) = (row(&sink, THROUGHPUT), row(&sink, TURNS));
        assert_eq!(
            (throughput.outcome, throughput.processes.len()),
            (Outcome::Measured, REPETITIONS as usize)
        );
        let [one, three] = [throughput, turns].map(|r| r.estimate.unwrap().value);
        assert!((three / one - 3.0).abs() < 1e-9, "{one} {three}");
        assert_eq!(
            row(&sink, TURN).outcome,
            Outcome::Skipped,
            "nothing was stamped, which is not zero"
        );
        let totals = &sink.observations[0].totals;
        assert_eq!(
            (totals["load.turns"], totals["load.turns.stamped"]),
            (1800.0, 0.0)
        );
        assert!(
            totals["ended.unix.seconds"] >= totals["begun.unix.seconds"]
                && totals["begun.unix.seconds"] > 1.6e9
        );
        let asked = [
            "load.seconds",
            "load.repetitions",
            "load.saturated",
            "load.cpus",
        ];
        assert!(
            asked.iter().all(|name| totals.contains_key(*name)),
            "what a verdict asks for: {totals:?}"
        );
        assert_eq!(
            (
                totals.get("load.turn.mean.seconds"),
                totals.get("load.network.least.seconds")
            ),
            (None, None)
        );
    }

    #[test]
    fn a_clients_limit_is_told_with_every_row_and_a_load_that_breaks_off_keeps_what_there_is() {
        let (_, sink) = measured(None, true);
        assert!(
            row(&sink, TURNS)
                .reason
                .as_ref()
                .unwrap()
                .contains("CPU was the limit")
        );
        let (result, sink) = measured(Some(3), false);
        result.unwrap();
        assert!(
            sink.warnings[0].contains("went away")
                && sink.observations[0].totals["load.repetitions"] == 2.0
        );
        let (throughput, turns) = (row(&sink, THROUGHPUT), row(&sink, TURNS));
        assert!(
            [throughput, turns]
                .iter()
                .all(|r| r.outcome == Outcome::Untrusted && r.processes.len() == 2)
        );
        assert!(
            throughput
                .reason
                .as_ref()
                .unwrap()
                .contains("a later round failed")
                && turns.reason == throughput.reason
        );
        assert!(measured(Some(1), false).0.is_err());
    }

    #[test]
    fn repetitions_with_their_warm_up_fit_into_the_time() {
        for seconds in [2, 10, 60] {
            let (whole, length) = (
                Duration::from_secs(seconds),
                length(Duration::from_secs(seconds)),
            );
            assert!(
                length >= SHORTEST
                    && (length * REPETITIONS).mul_f64(1.0 + WARM)
                        <= whole.max(SHORTEST * REPETITIONS * 2)
            );
        }
    }
}
