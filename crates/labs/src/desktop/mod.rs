//! How quickly the machine answers somebody at it while its server is loaded, beside the same server idle: the article
//! quotes that one of its systems feels sluggish, and has no figure for that.

pub mod analysis;
pub(crate) mod shown;

use std::collections::BTreeMap;
use std::time::Duration;

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_measure::doubt::too_many_errors;
use fingerpost_record::{Measurement, Outcome, Params, Percentiles, Process};
use fingerpost_workloads::desktop::{Desktop, Task, Turns};
use fingerpost_workloads::histogram::Histogram;
use fingerpost_workloads::{Workload, quantile};

use crate::loaded::later_round_failed;
use crate::rows::Definition;
use crate::{LabError, Setting, Sink};

/// Idle and loaded alternate this often.
const ROUNDS: usize = 3;
/// A stretch is at least this long: a hundred turns of the frequent tasks, twenty of the other.
const SHORTEST: Duration = Duration::from_secs(1);
/// The share of a lab's time that the tasks may take, beyond the stretches that figures need.
const SHARE: f64 = 0.12;
/// The longest part of a stretch's length that a load warms up for before it.
const LONGEST_WARM_UP: f64 = 0.25;
/// The part of the load's length in which turns are due: the last of them is to end while the load lasts.
const SHARE_OF_LOAD: f64 = 0.95;

/// Whether they are wanted.
pub const SETTING: Setting = Setting::new(
    "desktop",
    "on; off with --profile quick",
    "on: how quickly a waker, a start of a program and a read of a file are done, beside the most loaded server and \
     beside the idle one",
)
.one_of(&["on", "off"]);

/// What their rows are, beside whichever server.
pub const MEANING: &str =
    "how long a small task takes from when it is due, beside an idle and beside a loaded server";

/// A lab beside whose server they are measured.
///
/// The latency of a desktop's periodic tasks, each turn from when it was *due* until it was done: `task=waker`, a
/// thread that sleeps until its turn (every 10 ms), until it runs; `task=exec`, `/bin/true` (every 50 ms), until it was
/// waited for; `task=read`, a 4 KiB file in the page cache opened, read and closed (every 10 ms). With `load=most` the
/// server has the most clients of the run throughout, with `load=idle` it runs and has none. A turn that starts late is
/// made at once and counted from when it was due, so that none is left out because the one before took long. The figure
/// is the median; percentiles are of all turns of all rounds, and each round has its p99, its longest (`max`) and how
/// many were not done when the next was due (`missed`). It misleads where the load generator, which is on the same
/// machine, takes more of the CPUs than the server: what is told is the load of both.
pub struct Beside {
    /// The lab's name.
    pub lab: &'static str,
    /// Its rows.
    pub rows: Definition,
    /// The parameter that counts who asks; the step with the most is the load.
    pub by: &'static str,
    /// Parameters that say how the server is loaded, which rows of the idle one do not have.
    pub of_load: &'static [&'static str],
    /// How long its load warms up before a step of this length.
    pub warm_up: fn(Duration) -> Duration,
}

/// Whether the server is loaded meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    /// It runs, and has no clients.
    Idle,
    /// It has the most clients of the run.
    Most,
}

/// What there is of one kind of row: the rounds' turns.
type Rounds = BTreeMap<(Load, Task), Vec<Turns>>;

/// How long each of the six stretches is, of a lab that has this much time.
pub fn length(time: Duration) -> Duration {
    time.mul_f64(SHARE)
        .div_f64((2 * ROUNDS) as f64 * (1.0 + LONGEST_WARM_UP))
        .max(SHORTEST)
}

impl Beside {
    /// The time of all stretches of this length.
    pub fn cost(&self, length: Duration) -> Duration {
        (length + (self.warm_up)(length)) * (2 * ROUNDS) as u32
    }

    /// Measures the tasks beside a workload that was started, in stretches of this length, and tells the rows.
    pub fn measure(
        &self,
        desktop: &mut Desktop,
        workload: &mut dyn Workload,
        length: Duration,
        sink: &mut dyn Sink,
    ) {
        let Some(step) = self.most(workload) else {
            return;
        };
        let times = ((self.warm_up)(length), length);
        self.rounds(&step, sink, &mut |load| {
            stretch(desktop, workload, load, &step, times)
        });
    }

    /// The step with the most who ask; of several the first one, which of a web server has connections that are kept.
    fn most(&self, workload: &dyn Workload) -> Option<Params> {
        let steps = workload
            .steps()
            .into_iter()
            .filter_map(|step| Some((step.int(self.by)?, step)));
        steps.rev().max_by_key(|(n, _)| *n).map(|(_, step)| step)
    }

    /// Idle and loaded in turns, the first of a round alternating; tells the rows after each.
    fn rounds(
        &self,
        step: &Params,
        sink: &mut dyn Sink,
        stretch: &mut dyn FnMut(Load) -> Result<Vec<(Task, Turns)>, LabError>,
    ) {
        let mut all = Rounds::new();
        let mut course = Interleaved::pairs(Extent::rounds(ROUNDS));
        let mut failed = false;
        while let Some(turn) = course.next(failed || sink.interrupted()) {
            let load = [Load::Idle, Load::Most][turn.step];
            sink.progress(
                &format!(
                    "{}, a desktop's tasks beside it, round {} of {ROUNDS}",
                    self.lab,
                    turn.round + 1
                ),
                0.97,
            );
            let (turns, failure) = match stretch(load) {
                Ok(turns) => (turns, None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            turns
                .into_iter()
                .for_each(|(task, turns)| all.entry((load, task)).or_default().push(turns));
            for task in Task::ALL {
                let rounds = all.get(&(load, task)).map_or(&[][..], Vec::as_slice);
                sink.measurement(self.row(
                    &self.params(step, load, task),
                    rounds,
                    failure.as_deref(),
                ));
            }
            failed = failure.is_some();
        }
    }

    /// How the server is loaded matters to the loaded rows only.
    fn params(&self, step: &Params, load: Load, task: Task) -> Params {
        let (of, load) = match load {
            Load::Idle => (step.without(self.of_load), "idle"),
            Load::Most => (step.clone(), "most"),
        };
        of.with("load", load).with("task", task.name())
    }

    fn row(&self, params: &Params, rounds: &[Turns], failure: Option<&str>) -> Measurement {
        let none = || {
            let why = failure
                .map(str::to_owned)
                .or_else(|| rounds.iter().find_map(|r| r.why.clone()));
            (
                Outcome::Failed,
                why.unwrap_or_else(|| "no turn was due".into()),
            )
        };
        let mut together = Histogram::default();
        rounds
            .iter()
            .for_each(|turns| together.add_counted(&turns.latencies));
        // The middle of a bucket may lie above the longest turn, which is known exactly.
        let worst = rounds.iter().map(|turns| turns.worst_ns).max().unwrap_or(0);
        let at = |q| together.quantile(q).map_or(0.0, |ns| ns.min(worst) as f64);
        let percentiles = Some(Percentiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
        });
        self.rows.row(
            params.clone(),
            rounds.iter().filter_map(process).collect(),
            percentiles,
            doubt(rounds, failure),
            none,
        )
    }
}

/// The tasks beside a workload: idle for as long as a step takes, or while the step is under way.
fn stretch(
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
            workload.step_observed(step, length, &mut || {
                begun = desktop.begin(warm_up, measured)
            })?;
            begun?;
        }
    }
    desktop.end()
}

fn process(turns: &Turns) -> Option<Process> {
    let median = quantile(&turns.latencies, 0.5)? as f64;
    let made: u64 = turns.latencies.iter().map(|(_, n)| n).sum();
    let counters = BTreeMap::from([
        (
            "p99".to_owned(),
            quantile(&turns.latencies, 0.99)?.min(turns.worst_ns) as f64,
        ),
        ("max".to_owned(), turns.worst_ns as f64),
        ("missed".to_owned(), turns.missed as f64),
        ("unfinished".to_owned(), turns.unfinished as f64),
        ("errors".to_owned(), turns.failed as f64),
    ]);
    Some(Process {
        counters,
        ..Process::of_one(median, made)
    })
}

/// What speaks against the figures.
fn doubt(rounds: &[Turns], failure: Option<&str>) -> Option<String> {
    if let Some(why) = failure {
        return Some(later_round_failed(why));
    }
    let failed: u64 = rounds.iter().map(|r| r.failed).sum();
    let made: u64 = rounds
        .iter()
        .flat_map(|r| &r.latencies)
        .map(|(_, n)| n)
        .sum();
    if let (true, Some(why)) = (
        too_many_errors(failed, made),
        rounds.iter().rev().find_map(|r| r.why.as_ref()),
    ) {
        return Some(format!("{failed} turns failed: {why}"));
    }
    let unfinished: u64 = rounds.iter().map(|r| r.unfinished).sum();
    if unfinished > 0 {
        return Some(format!(
            "{unfinished} turns were due and not begun in twice the time; they count as long as they were waited for"
        ));
    }
    (rounds.len() < ROUNDS).then(|| format!("{} of {ROUNDS} rounds only", rounds.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::listener::Listener;

    const OF_A_LAB: Beside = Beside {
        lab: "database",
        rows: Definition {
            probe: "database.desktop",
            ..Definition::LATENCY
        },
        by: "clients",
        of_load: &["mix", "clients"],
        warm_up: |length| length / 4,
    };

    fn made(ns: u64) -> Vec<(Task, Turns)> {
        Task::ALL
            .map(|task| {
                (
                    task,
                    Turns {
                        latencies: vec![(ns, 99), (10 * ns, 1)],
                        worst_ns: 10 * ns,
                        missed: 1,
                        ..Turns::default()
                    },
                )
            })
            .to_vec()
    }

    fn told(fails: Option<usize>) -> (Vec<Load>, Listener) {
        let (mut sink, mut order) = (
            Listener {
                patience: 100,
                ..Listener::default()
            },
            Vec::new(),
        );
        let step = Params::new()
            .with("engine", "sqlite")
            .with("mix", "read")
            .with("clients", 50);
        OF_A_LAB.rounds(&step, &mut sink, &mut |load| {
            order.push(load);
            if fails == Some(order.len()) {
                return Err(LabError::Failed("the server fell over".into()));
            }
            Ok(made(if load == Load::Idle { 100 } else { 200 }))
        });
        (order, sink)
    }

    fn find<'a>(sink: &'a Listener, load: &str, task: &str) -> &'a Measurement {
        let is = |m: &&Measurement, key: &str, value: &str| {
            m.params.get(key).is_some_and(|v| v.to_string() == value)
        };
        sink.rows
            .iter()
            .find(|m| is(m, "load", load) && is(m, "task", task))
            .unwrap()
    }

    #[test]
    fn idle_and_loaded_alternate_and_each_task_has_a_row_for_both() {
        let (order, sink) = told(None);
        assert_eq!(
            order,
            [
                Load::Idle,
                Load::Most,
                Load::Most,
                Load::Idle,
                Load::Idle,
                Load::Most
            ]
        );
        assert_eq!(sink.rows.len(), 6);
        let (idle, loaded) = (find(&sink, "idle", "exec"), find(&sink, "most", "exec"));
        assert_eq!(
            (idle.estimate.unwrap().value, loaded.estimate.unwrap().value),
            (100.0, 200.0)
        );
        assert_eq!((idle.outcome, idle.processes.len()), (Outcome::Measured, 3));
        assert_eq!(
            (idle.params.int("clients"), loaded.params.int("clients")),
            (None, Some(50))
        );
        assert_eq!(
            (
                loaded.processes[0].counters["max"],
                loaded.processes[0].counters["missed"]
            ),
            (2000.0, 1.0)
        );
    }

    /// Steps of a web server with connections that are kept and without.
    struct Steps;

    impl Workload for Steps {
        fn name(&self) -> &'static str {
            "web"
        }
        fn start(&mut self) -> Result<(), LabError> {
            Ok(())
        }
        fn steps(&self) -> Vec<Params> {
            let of =
                |keep: &str, n: i64| Params::new().with("keepalive", keep).with("connections", n);
            [of("on", 1), of("on", 10), of("off", 1), of("off", 10)].to_vec()
        }
        fn subjects(&self) -> fingerpost_workloads::Subjects {
            fingerpost_workloads::Subjects::default()
        }
        fn step(
            &mut self,
            _: &Params,
            _: Duration,
        ) -> Result<fingerpost_workloads::Step, LabError> {
            Ok(fingerpost_workloads::Step::default())
        }
        fn stop(&mut self) {}
    }

    #[test]
    fn the_load_is_the_first_step_with_the_most_who_ask() {
        let of_web = Beside {
            by: "connections",
            of_load: &["connections"],
            ..OF_A_LAB
        };
        assert_eq!(
            of_web.most(&Steps),
            Some(
                Params::new()
                    .with("keepalive", "on")
                    .with("connections", 10)
            )
        );
        assert_eq!(OF_A_LAB.most(&Steps), None);
    }

    #[test]
    fn no_percentile_is_above_the_longest_turn() {
        let turns = Turns {
            latencies: vec![(1001, 1)],
            worst_ns: 1000,
            ..Turns::default()
        };
        let row = OF_A_LAB.row(&Params::new(), &vec![turns; ROUNDS], None);
        assert_eq!(
            (
                row.percentiles.unwrap().p99,
                row.processes[0].counters["p99"]
            ),
            (1000.0, 1000.0)
        );
    }

    #[test]
    fn a_failed_round_and_a_failed_turn_are_told() {
        let (order, sink) = told(Some(2));
        assert_eq!(order.len(), 2);
        assert_eq!(
            (
                find(&sink, "most", "waker").outcome,
                find(&sink, "idle", "waker").outcome
            ),
            (Outcome::Failed, Outcome::Untrusted)
        );
        let (_, sink) = told(Some(3));
        assert!(
            find(&sink, "most", "read")
                .reason
                .as_ref()
                .unwrap()
                .contains("fell over")
        );
        let one = |turns: Turns| doubt(&[turns.clone(), turns.clone(), turns], None);
        assert_eq!(one(Turns::default()), None);
        assert!(
            one(Turns {
                failed: 2,
                why: Some("no such file".into()),
                ..Turns::default()
            })
            .unwrap()
            .contains("6 turns failed: no such")
        );
        let few = Turns {
            failed: 1,
            why: Some("no such file".into()),
            latencies: vec![(1, 999)],
            ..Turns::default()
        };
        assert_eq!(one(few), None, "one in a thousand is counted only");
        assert!(
            one(Turns {
                unfinished: 2,
                ..Turns::default()
            })
            .unwrap()
            .starts_with("6 turns were due")
        );
    }

    #[test]
    fn stretches_fit_into_their_share_of_a_labs_time() {
        for seconds in [0, 30, 80, 300] {
            let time = Duration::from_secs(seconds);
            let (length, least) = (length(time), OF_A_LAB.cost(SHORTEST));
            assert!(
                length >= SHORTEST
                    && OF_A_LAB.cost(length)
                        <= time.mul_f64(SHARE).max(least) + Duration::from_millis(1)
            );
        }
    }
}
