//! The rounds of a loaded server, and what those of a step come to: its rows, and what speaks against them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_measure::doubt::{spoil, too_many_errors};
use fingerpost_measure::estimate;
use fingerpost_record::unstated::DESCRIBED;
use fingerpost_record::{
    Better, Measurement, Observation, Outcome, Params, Percentiles, Process, Series,
};
use fingerpost_workloads::{Stall, Step, Workload, quantile};

use crate::explained::Measured;
use crate::rows::Definition;
use crate::sink::in_turn;
use crate::{LabError, Sink};

/// What a lab that loads a server has of its steps.
pub struct Loaded {
    pub name: &'static str,
    /// Transactions completed a second.
    pub throughput: &'static Definition,
    /// How long one took.
    pub latency: &'static Definition,
    /// The parameter that counts who asks.
    pub by: &'static str,
    /// What each round has in the record besides its figure: the client's account.
    pub counters: fn(&Step) -> BTreeMap<String, f64>,
    /// Quantiles of the latency that each round has, and their names.
    pub quantiles: &'static [(&'static str, f64)],
    /// Why a round is the client's own doing, beyond what it said of its CPU.
    pub own: fn(&Step) -> Option<String>,
    /// What the client saw of itself in all rounds of a step.
    pub totals: fn(&[Step]) -> Vec<(&'static str, f64)>,
    /// What the names of errors begin with, which are counted beside that.
    pub errors: &'static str,
    /// What is started anew, in a sentence that says that it could not be.
    pub server: &'static str,
    /// Starts it anew before a round, where rounds are to be of different starts.
    pub renew: fn(&mut dyn Workload, &dyn Sink) -> Result<(), LabError>,
    /// Whether the rest would fail as the very first step did.
    pub first_failure_ends: bool,
}

/// How the rounds of a lab are made.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// How many; the time is that which the lab did not wait for its turns.
    pub extent: Extent,
    /// Of their order.
    pub seed: u64,
    /// The length of a step.
    pub length: Duration,
}

impl Rounds {
    /// Runs every step once a round and hands each row to the sink as far as it is known. The workload has just been
    /// started.
    ///
    /// # Errors
    /// The very first step failed, and the lab says that the rest would.
    pub fn run(
        self,
        of: &'static Loaded,
        workload: &mut dyn Workload,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Repetitions>, LabError> {
        let mut all: Vec<Repetitions> = workload
            .steps()
            .into_iter()
            .map(|params| Repetitions::new(of, params))
            .collect();
        let mut course = Interleaved::shuffled(all.len(), self.seed, self.extent);
        let begun = Instant::now();
        let spent = |sink: &dyn Sink| begun.elapsed().saturating_sub(sink.waited());
        while let Some(turn) = course.next_within(spent(sink), sink.interrupted()) {
            let (round, most) = (turn.round + 1, self.extent.most);
            if turn.first
                && round > 1
                && let Err(error) = (of.renew)(workload, sink)
            {
                let server = of.server;
                sink.warn(&format!(
                    "the {server} could not be started for round {round}, and the rounds before it are all: {error}"
                ));
                break;
            }
            let row = &mut all[turn.step];
            let doing = format!("{}, round {round} of {most}: {}", of.name, row.params);
            sink.progress(&doing, 0.7 * turn.done / most as f64);
            match in_turn(sink, |_| workload.step(&row.params, self.length)) {
                Ok(step) => row.steps.push(step),
                Err(error) if of.first_failure_ends && turn.done == 0.0 => return Err(error),
                Err(error) => {
                    sink.warn(&format!("{} {}: {error}", of.name, row.params));
                    // A step may fail once because the machine was busy; one that only fails is given up with the
                    // second time, for every attempt takes seconds.
                    if row.failure.replace(error.to_string()).is_some() && row.steps.is_empty() {
                        course.leave_out(turn.step);
                    }
                }
            }
            row.rows().into_iter().for_each(|row| sink.measurement(row));
        }
        Ok(all)
    }
}

/// Tells what the client saw of itself, and its longest stall, and hands over what is to be explained. `server` is what
/// that called itself.
pub fn tell(all: &[Repetitions], server: &str, sink: &mut dyn Sink) -> Vec<Measured> {
    let observed = all.iter().filter(|of| !of.steps.is_empty());
    observed.for_each(|of| sink.observation(of.observation(server)));
    let stalls = all.first().and_then(|any| {
        told_stalls(
            any.of.name,
            all.iter().map(|of| (&of.params, &of.steps[..])),
        )
    });
    stalls.iter().for_each(|sentence| sink.warn(sentence));
    all.iter().filter_map(Repetitions::measured).collect()
}

/// All that one step gave in the rounds so far.
#[derive(Clone)]
pub struct Repetitions {
    of: &'static Loaded,
    pub params: Params,
    /// Every one that was completed.
    pub steps: Vec<Step>,
    /// Why the latest that failed did.
    pub failure: Option<String>,
}

impl Repetitions {
    pub fn new(of: &'static Loaded, params: Params) -> Self {
        Repetitions {
            of,
            params,
            steps: Vec::new(),
            failure: None,
        }
    }

    /// The rows as far as they are known: in an open loop the latency is there twice, from the sending and from when a
    /// request was due.
    pub fn rows(&self) -> Vec<Measurement> {
        let from = |from: &str| self.params.clone().with("from", from);
        let mut rows = vec![self.throughput()];
        if self.is_open() {
            rows.push(self.latency(from("sent"), |step| &step.latencies));
            rows.push(self.latency(from("intended"), |step| &step.intended));
        } else {
            rows.push(self.latency(self.params.clone(), |step| &step.latencies));
        }
        rows
    }

    /// The row of the throughput alone.
    pub fn throughput(&self) -> Measurement {
        let processes = self.steps.iter().map(|step| {
            let value = step.rate();
            // A step of a few requests may be over before one stretch is.
            let samples = if step.throughput.is_empty() {
                vec![value]
            } else {
                step.throughput.clone()
            };
            // A sample is a stretch of time, in which this many transactions completed on average.
            let batch = step.transactions / step.throughput.len().max(1) as u64;
            Process {
                value: Some(value),
                samples,
                batch,
                counters: (self.of.counters)(step),
                ..Process::default()
            }
        });
        let processes: Vec<Process> = processes.collect();
        let stretches: Vec<f64> = processes
            .iter()
            .flat_map(|p| p.samples.iter().copied())
            .collect();
        let percentiles = estimate::percentiles(&stretches, Better::Higher);
        self.row(
            self.of.throughput,
            self.params.clone(),
            processes,
            percentiles,
        )
    }

    fn latency(&self, params: Params, list: fn(&Step) -> &[(u64, u64)]) -> Measurement {
        let processes = self.steps.iter().filter_map(|step| {
            let at = |q: f64| quantile(list(step), q).map(|ns| ns as f64);
            let mut counters = (self.of.counters)(step);
            counters.extend(
                self.of
                    .quantiles
                    .iter()
                    .filter_map(|(name, q)| Some(((*name).to_owned(), at(*q)?))),
            );
            // The histogram's median stands for its samples, of which there are too many to keep.
            Some(Process {
                counters,
                ..Process::of_one(at(0.5)?, step.transactions)
            })
        });
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        for (ns, n) in self.steps.iter().flat_map(list) {
            *all.entry(*ns).or_default() += n;
        }
        let all: Vec<(u64, u64)> = all.into_iter().collect();
        let at = |q: f64| quantile(&all, q).map(|ns| ns as f64);
        let percentiles = at(0.5)
            .zip(at(0.9))
            .zip(at(0.99))
            .map(|((p50, p90), p99)| Percentiles { p50, p90, p99 });
        self.row(self.of.latency, params, processes.collect(), percentiles)
    }

    fn row(
        &self,
        of: &Definition,
        params: Params,
        processes: Vec<Process>,
        percentiles: Option<Percentiles>,
    ) -> Measurement {
        let none = || {
            (
                Outcome::Failed,
                self.failure
                    .clone()
                    .unwrap_or_else(|| "no step was completed".to_owned()),
            )
        };
        of.row(params, processes, percentiles, self.doubt(), none)
    }

    /// What speaks against the figures: the client was the limit in too many rounds, which also says what to do where
    /// it made errors of its own; too much went wrong; or a round is missing, and what was not observed is not as good
    /// as the rest.
    fn doubt(&self) -> Option<String> {
        let spoilt = |why: &dyn Fn(&Step) -> Option<String>| {
            let mut spoilt: Vec<String> = self.steps.iter().filter_map(why).collect();
            spoil(spoilt.len() as u64, self.steps.len() as u64)
                .then(|| spoilt.pop())
                .flatten()
        };
        let too_many = || {
            let errors = self.errors();
            let (failed, completed) = (
                errors.values().sum(),
                self.steps.iter().map(|s| s.transactions).sum(),
            );
            let kinds: Vec<String> = errors
                .iter()
                .map(|(kind, n)| format!("{n} × {kind}"))
                .collect();
            too_many_errors(failed, completed).then(|| {
                format!(
                    "{failed} errors beside {completed} completed transactions: {}",
                    kinds.join(", ")
                )
            })
        };
        spoilt(&|step| step.client.saturated.clone())
            .or_else(too_many)
            .or_else(|| spoilt(&self.of.own))
            .or_else(|| self.failure.as_deref().map(later_round_failed))
    }

    /// What the client saw of itself; `server` is what that called itself.
    pub fn observation(&self, server: &str) -> Observation {
        let totals = (self.of.totals)(&self.steps)
            .into_iter()
            .map(|(name, n)| (name.to_owned(), n));
        let errors = self
            .errors()
            .into_iter()
            .map(|(kind, n)| (format!("{}.{kind}", self.of.errors), n as f64));
        Observation {
            workload: self.of.name.to_owned(),
            params: self.params.clone(),
            observer: "client".to_owned(),
            source: match server {
                "" => "the load generator’s own account".to_owned(),
                server => format!("{DESCRIBED}{server}"),
            },
            series: stall_series(&self.steps),
            totals: totals.chain(errors).collect(),
            ..Observation::default()
        }
    }

    /// What went wrong, and how often.
    fn errors(&self) -> BTreeMap<&str, u64> {
        let mut errors = BTreeMap::new();
        for (kind, n) in self.steps.iter().flat_map(|s| &s.client.errors) {
            *errors.entry(kind.as_str()).or_default() += n;
        }
        errors
    }

    /// Whether requests are due at given times, whatever the server does.
    fn is_open(&self) -> bool {
        self.steps.iter().any(|s| !s.intended.is_empty())
    }

    /// All rounds together, for explaining; nothing when there was none. In an open loop the transactions under way are
    /// their rate times their mean time (Little's law).
    pub fn measured(&self) -> Option<Measured> {
        let seconds: f64 = self.steps.iter().map(|s| s.elapsed.as_secs_f64()).sum();
        let spent: f64 = self
            .steps
            .iter()
            .flat_map(|s| &s.latencies)
            .map(|&(ns, n)| ns as f64 * n as f64 * 1e-9)
            .sum();
        let transactions = self.steps.iter().map(|s| s.transactions).sum();
        let clients = self.params.int(self.of.by)? as f64;
        let under_way = if self.is_open() {
            (spent / seconds).min(clients)
        } else {
            clients
        };
        let (params, doubt) = (self.params.clone(), self.doubt());
        (seconds > 0.0).then_some(Measured {
            params,
            transactions,
            seconds,
            under_way,
            doubt,
        })
    }
}

/// What is said of a figure of which a later round failed, and is missing.
pub fn later_round_failed(why: &str) -> String {
    format!("a later round failed: {why}")
}

/// One sentence about the stalls of all steps; nothing when there was none.
fn told_stalls<'a>(
    lab: &str,
    steps: impl Iterator<Item = (&'a Params, &'a [Step])>,
) -> Option<String> {
    let stalls: Vec<(&Params, usize, &Stall)> = steps
        .flat_map(|(params, rounds)| {
            rounds
                .iter()
                .enumerate()
                .map(move |(i, step)| (params, i + 1, step))
        })
        .flat_map(|(params, round, step)| {
            step.client
                .stalls
                .iter()
                .map(move |stall| (params, round, stall))
        })
        .collect();
    let (params, round, longest) = stalls
        .iter()
        .max_by(|a, b| a.2.length_s.total_cmp(&b.2.length_s))?;
    let others = match stalls.len() - 1 {
        0 => String::new(),
        n => format!(" ({n} shorter stalls besides, all of them in the record)"),
    };
    let (length, at, why) = (longest.length_s * 1e3, longest.at_s, &longest.why);
    Some(format!(
        "{lab} {params}: nothing completed for {length:.0} ms, {at:.2} s into round {round}{others}: {why}"
    ))
}

/// Every stall of a step's rounds: when, counted over the rounds one after the other, and how long.
fn stall_series(rounds: &[Step]) -> Vec<Series> {
    let mut begin = 0.0;
    let mut points = Vec::new();
    for step in rounds {
        points.extend(
            step.client
                .stalls
                .iter()
                .map(|s| (begin + s.at_s, s.length_s)),
        );
        begin += step.elapsed.as_secs_f64();
    }
    if points.is_empty() {
        Vec::new()
    } else {
        vec![Series {
            name: "stall.length".to_owned(),
            unit: "s".to_owned(),
            points,
        }]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fingerpost_workloads::{ClientReport, Reason, Threads};

    use super::*;

    #[test]
    fn the_longest_stall_is_told_with_its_reason_and_all_are_kept() {
        let stall = |at_s, length_s| Stall {
            at_s,
            length_s,
            why: Reason::Server(1, Threads::Unseen),
        };
        let client = ClientReport {
            stalls: vec![stall(0.5, 0.03), stall(1.25, 0.3)],
            ..ClientReport::default()
        };
        let quiet = Step {
            elapsed: Duration::from_secs(2),
            ..Step::default()
        };
        let rounds = [
            quiet.clone(),
            Step {
                client,
                ..quiet.clone()
            },
        ];
        let params = Params::new().with("clients", 5);
        let sentence = told_stalls("database", [(&params, &rounds[..])].into_iter()).unwrap();
        assert_eq!(
            sentence,
            "database clients=5: nothing completed for 300 ms, 1.25 s into round 2 (1 shorter stalls besides, all of \
             them in the record): the client was waiting for the server"
        );
        assert_eq!(stall_series(&rounds)[0].points, [(2.5, 0.03), (3.25, 0.3)]);
        assert_eq!(
            told_stalls("database", [(&params, &rounds[..1])].into_iter()),
            None
        );
        assert!(stall_series(&rounds[..1]).is_empty());
    }
}
