//! How quickly the machine answers somebody at it while its server is loaded, beside the same server idle: the article found a system with
//! half of the throughput and asked what its desktop has of that.

use std::collections::BTreeMap;
use std::time::Duration;

use fingerpost_record::{Better, Measurement, Outcome, Params, Percentiles, Process, Unit};
use fingerpost_workloads::desktop::{Desktop, Task, Turns};
use fingerpost_workloads::histogram::Histogram;
use fingerpost_workloads::{Workload, quantile};

use super::import;
use crate::rows::Definition;
use crate::{LabError, Sink};

/// The latency of a desktop's periodic tasks, each turn from when it was *due* until it was done: `task=waker`, a thread that sleeps
/// until its turn (every 10 ms), until it runs; `task=exec`, `/bin/true` (every 50 ms), until it was waited for; `task=read`, a 4 KiB file
/// in the page cache opened, read and closed (every 10 ms). With `load=most` the server has the most clients of the run throughout, with
/// `load=idle` it runs and has none. A turn that starts late is made at once and counted from when it was due, so that none is left out
/// because the one before took long. The figure is the median; percentiles are of all turns of all rounds, and each round has its p99, its
/// longest (`max`) and how many were not done when the next was due (`missed`). It misleads where the load generator, which is on the
/// same machine, takes more of the CPUs than the server: what is told is the load of both.
pub const DESKTOP: &str = "database.desktop";
const OF_DESKTOP: Definition = Definition { probe: DESKTOP, version: 1, unit: Unit::Nanoseconds, better: Better::Lower };
/// Idle and loaded alternate this often.
pub const ROUNDS: usize = 3;
/// A stretch is at least this long: a hundred turns of the frequent tasks, twenty of the other.
const SHORTEST: Duration = Duration::from_secs(1);
/// The wait before a stretch, in parts of it: the load's own warm-up lasts as long.
const SHARE_OF_LOAD: f64 = 0.95;

/// Whether the server is loaded meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// It runs, and has no clients.
    Idle,
    /// It has the most clients of the run.
    Most,
}

/// What there is of one kind of row: the rounds' turns.
type Rounds = BTreeMap<(Load, Task), Vec<Turns>>;

/// How long each of the six stretches is in this time.
pub fn length(time: Duration) -> Duration {
    // A stretch has a warm-up of a quarter before it.
    time.div_f64(2.0 * ROUNDS as f64 * 1.25).max(SHORTEST)
}

/// The time of all stretches of this length.
pub fn cost(length: Duration, warm_up: Duration) -> Duration {
    (length + warm_up) * (2 * ROUNDS) as u32
}

/// The tasks beside a workload: idle for as long as a step takes, or while the step is under way.
pub fn stretch(
    desktop: &mut Desktop,
    workload: &mut dyn Workload,
    load: Load,
    step: &Params,
    (warm_up, length): (Duration, Duration),
) -> Result<Vec<(Task, Turns)>, LabError> {
    let measured = length.mul_f64(SHARE_OF_LOAD);
    match load {
        Load::Idle => desktop.begin(warm_up, measured)?,
        Load::Most => {
            let mut begun = Err(LabError::Failed("the load did not begin".to_owned()));
            workload.step_observed(step, length, &mut || begun = desktop.begin(warm_up, measured))?;
            begun?;
        }
    }
    desktop.end()
}

/// Idle and loaded in turns, the first of a round alternating; tells the rows after each.
pub fn rounds(step: &Params, sink: &mut dyn Sink, stretch: &mut dyn FnMut(Load) -> Result<Vec<(Task, Turns)>, LabError>) {
    let mut all = Rounds::new();
    for round in 0..ROUNDS {
        let order = if round % 2 == 0 { [Load::Idle, Load::Most] } else { [Load::Most, Load::Idle] };
        for load in order {
            if sink.interrupted() {
                return;
            }
            sink.progress(&format!("database, a desktop's tasks beside it, round {} of {ROUNDS}", round + 1), 0.97);
            let (turns, failure) = match stretch(load) {
                Ok(turns) => (turns, None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            turns.into_iter().for_each(|(task, turns)| all.entry((load, task)).or_default().push(turns));
            for task in Task::ALL {
                let rounds = all.get(&(load, task)).map_or(&[][..], Vec::as_slice);
                sink.measurement(row(&params(step, load, task), rounds, failure.as_deref()));
            }
            if failure.is_some() {
                return;
            }
        }
    }
}

/// How many clients there are matters to the loaded rows only.
fn params(step: &Params, load: Load, task: Task) -> Params {
    let (of, load) = match load {
        Load::Idle => (import::params(step), "idle"),
        Load::Most => (step.clone(), "most"),
    };
    of.with("load", load).with("task", task.name())
}

fn row(params: &Params, rounds: &[Turns], failure: Option<&str>) -> Measurement {
    let none = || {
        let why = failure.map(str::to_owned).or_else(|| rounds.iter().find_map(|r| r.why.clone()));
        (Outcome::Failed, why.unwrap_or_else(|| "no turn was due".into()))
    };
    let mut together = Histogram::new();
    rounds.iter().for_each(|turns| together.add_counted(&turns.latencies));
    // The middle of a bucket may lie above the longest turn, which is known exactly.
    let worst = rounds.iter().map(|turns| turns.worst_ns).max().unwrap_or(0);
    let at = |q| together.quantile(q).map_or(0.0, |ns| ns.min(worst) as f64);
    let percentiles = Some(Percentiles { p50: at(0.5), p90: at(0.9), p99: at(0.99) });
    OF_DESKTOP.row(params.clone(), rounds.iter().filter_map(process).collect(), percentiles, doubt(rounds, failure), none)
}

fn process(turns: &Turns) -> Option<Process> {
    let median = quantile(&turns.latencies, 0.5)? as f64;
    let made: u64 = turns.latencies.iter().map(|(_, n)| n).sum();
    let counters = BTreeMap::from([
        ("p99".to_owned(), quantile(&turns.latencies, 0.99)?.min(turns.worst_ns) as f64),
        ("max".to_owned(), turns.worst_ns as f64),
        ("missed".to_owned(), turns.missed as f64),
        ("unfinished".to_owned(), turns.unfinished as f64),
        ("errors".to_owned(), turns.failed as f64),
    ]);
    Some(Process { counters, ..Process::of_one(median, made) })
}

/// What speaks against the figures.
fn doubt(rounds: &[Turns], failure: Option<&str>) -> Option<String> {
    if let Some(why) = failure {
        return Some(format!("a further round failed: {why}"));
    }
    let failed: u64 = rounds.iter().map(|r| r.failed).sum();
    if let Some(why) = rounds.iter().rev().find_map(|r| r.why.as_ref()) {
        return Some(format!("{failed} turns failed: {why}"));
    }
    let unfinished: u64 = rounds.iter().map(|r| r.unfinished).sum();
    if unfinished > 0 {
        return Some(format!("{unfinished} turns were due and not begun in twice the time; they count as long as they were waited for"));
    }
    (rounds.len() < ROUNDS).then(|| format!("{} of {ROUNDS} rounds only", rounds.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::listener::Listener;

    fn made(ns: u64) -> Vec<(Task, Turns)> {
        Task::ALL
            .map(|task| (task, Turns { latencies: vec![(ns, 99), (10 * ns, 1)], worst_ns: 10 * ns, missed: 1, ..Turns::default() }))
            .to_vec()
    }

    fn told(fails: Option<usize>) -> (Vec<Load>, Listener) {
        let (mut sink, mut order) = (Listener { patience: 100, ..Listener::default() }, Vec::new());
        let step = Params::new().with("engine", "sqlite").with("mix", "read").with("clients", 50);
        rounds(&step, &mut sink, &mut |load| {
            order.push(load);
            if fails == Some(order.len()) {
                return Err(LabError::Failed("the server fell over".into()));
            }
            Ok(made(if load == Load::Idle { 100 } else { 200 }))
        });
        (order, sink)
    }

    fn find<'a>(sink: &'a Listener, load: &str, task: &str) -> &'a Measurement {
        let is = |m: &&Measurement, key: &str, value: &str| m.params.get(key).is_some_and(|v| v.to_string() == value);
        sink.rows.iter().find(|m| is(m, "load", load) && is(m, "task", task)).unwrap()
    }

    #[test]
    fn idle_and_loaded_alternate_and_each_task_has_a_row_for_both() {
        let (order, sink) = told(None);
        assert_eq!(order, [Load::Idle, Load::Most, Load::Most, Load::Idle, Load::Idle, Load::Most]);
        assert_eq!(sink.rows.len(), 6);
        let (idle, loaded) = (find(&sink, "idle", "exec"), find(&sink, "most", "exec"));
        assert_eq!((idle.estimate.unwrap().value, loaded.estimate.unwrap().value), (100.0, 200.0));
        assert_eq!((idle.outcome, idle.processes.len()), (Outcome::Measured, 3));
        assert_eq!((idle.params.int("clients"), loaded.params.int("clients")), (None, Some(50)));
        assert_eq!((loaded.processes[0].counters["max"], loaded.processes[0].counters["missed"]), (2000.0, 1.0));
    }

    #[test]
    fn no_percentile_is_above_the_longest_turn() {
        let turns = Turns { latencies: vec![(1001, 1)], worst_ns: 1000, ..Turns::default() };
        let row = row(&Params::new(), &vec![turns; ROUNDS], None);
        assert_eq!((row.percentiles.unwrap().p99, row.processes[0].counters["p99"]), (1000.0, 1000.0));
    }

    #[test]
    fn a_failed_round_and_a_failed_turn_are_told() {
        let (order, sink) = told(Some(2));
        assert_eq!(order.len(), 2);
        assert_eq!((find(&sink, "most", "waker").outcome, find(&sink, "idle", "waker").outcome), (Outcome::Failed, Outcome::Untrusted));
        let (_, sink) = told(Some(3));
        assert!(find(&sink, "most", "read").reason.as_ref().unwrap().contains("fell over"));
        let one = |turns: Turns| doubt(&[turns.clone(), turns.clone(), turns], None);
        assert_eq!(one(Turns::default()), None);
        assert!(
            one(Turns { failed: 2, why: Some("no such file".into()), ..Turns::default() }).unwrap().contains("6 turns failed: no such")
        );
        assert!(one(Turns { unfinished: 2, ..Turns::default() }).unwrap().starts_with("6 turns were due"));
    }

    #[test]
    fn stretches_fit_into_their_time() {
        for seconds in [0, 8, 20, 100] {
            let (time, length) = (Duration::from_secs(seconds), length(Duration::from_secs(seconds)));
            assert!(length >= SHORTEST && cost(length, length / 4) <= time.max(cost(SHORTEST, SHORTEST / 4)) + Duration::from_millis(1));
        }
    }
}
