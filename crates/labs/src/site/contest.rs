//! Rounds: in each, every contestant reads the same list, in random order.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use fingerpost_measure::estimate;
use fingerpost_record::{Better, Estimate, Measurement, Outcome, Params, Process, Profile, Unit};
use fingerpost_workloads::site::Access;
use fingerpost_workloads::site::reader::Reader;

use super::places::Place;
use super::prepare::Prepared;
use super::settings::{Settings, State};
use super::warming::Start;
use crate::{Context, LabError};

/// The version of the definitions of all rows. In version 1 every page was copied into a buffer, also from where it lay in memory.
const VERSION: u32 = 2;
/// Processes of each contestant that a figure needs at least.
const LEAST_GROUPS: usize = 3;
/// Rounds in the life of a process.
const ROUNDS: usize = 22;
/// The same, when every round waits for the disk.
const COLD_ROUNDS: usize = 4;

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
    /// The most processes of each contestant.
    fn most_groups(&self) -> usize {
        match self.context.profile {
            Profile::Screen | Profile::Quick => 6,
            Profile::Standard | Profile::Imported => 12,
            Profile::Thorough => 30,
        }
    }

    /// Parameters that all rows have: where, when there is more than one place or the user named it.
    pub fn params(&self) -> Params {
        self.place.params()
    }

    /// Says what is being done; `within` is the share of the part that is done.
    pub fn progress(&mut self, doing: &str, within: f64) {
        self.context.sink.progress(doing, self.share.0 + self.share.1 * within.min(1.0));
    }

    /// Runs a contest: groups of processes, one for each contestant; in the life of a group, rounds.
    pub fn hold(&mut self, contest: &Contest) -> Result<(), LabError> {
        let begun = Instant::now();
        let mut random = fastrand::Rng::with_seed(self.context.seed);
        let mut rows: BTreeMap<&'static str, Row> = BTreeMap::new();
        for group in 0..self.most_groups() {
            let spent = begun.elapsed();
            let next = spent / group.max(1) as u32;
            if self.context.sink.interrupted() || (group >= LEAST_GROUPS && spent + next > contest.budget) {
                break;
            }
            let within = spent.as_secs_f64() / contest.budget.as_secs_f64().max(1e-3);
            self.progress(&format!("{} {} {}", contest.probe, contest.params, contest.state.name()), within);
            match contest.state {
                State::Warming => self.warm_up(contest, &mut random, &mut rows),
                State::Warm | State::Cold => self.group(contest, &mut random, &mut rows)?,
            }
            for (store, row) in &rows {
                let measurement = row.measurement(contest, store);
                self.context.sink.measurement(measurement);
            }
        }
        Ok(())
    }

    /// One process of each contestant, from start to end.
    fn group(&mut self, contest: &Contest, random: &mut fastrand::Rng, rows: &mut BTreeMap<&'static str, Row>) -> Result<(), LabError> {
        let mut readers = self.start(contest, rows);
        let mut samples: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        let rounds = if contest.state == State::Cold { COLD_ROUNDS } else { ROUNDS };
        for _ in 0..rounds {
            if self.context.sink.interrupted() {
                break;
            }
            // The same list for all, which the seed stands for; the record's numbers have 53 bits.
            let what = if contest.state == State::Warm { "warm-round" } else { "round" };
            let order = format!("{what} {} {}", random.u64(..1 << 53), contest.urls);
            random.shuffle(&mut readers);
            for reader in &mut readers {
                let name = reader.access.name();
                match measure(reader, &order, contest.state) {
                    Ok(ns) => samples.entry(name).or_default().push(ns / contest.per as f64),
                    Err(e) => rows.entry(name).or_default().failed = Some(e.to_string()),
                }
            }
            readers.retain(|r| rows.get(r.access.name()).is_none_or(|row| row.failed.is_none()));
        }
        readers.into_iter().for_each(|r| r.stop(self.context.scratch));
        for (name, samples) in samples {
            let value = Some(estimate::median(&samples));
            let process = Process { value, samples, batch: contest.urls as u64, ..Process::default() };
            rows.entry(name).or_default().processes.push(process);
        }
        Ok(())
    }

    /// Starts a reader for each contestant that is available, and has it read everything once.
    fn start(&mut self, contest: &Contest, rows: &mut BTreeMap<&'static str, Row>) -> Vec<Reader> {
        let mut readers = Vec::new();
        for &access in contest.stores {
            let row = rows.entry(access.name()).or_default();
            if row.skipped.is_some() || row.failed.is_some() {
                continue;
            }
            let cpu = self.context.cpus.first().copied();
            let started = contest
                .prepared
                .source(access)
                .map_err(LabError::Missing)
                .and_then(|source| Reader::start(access, source, &contest.prepared.list, cpu, self.context.scratch));
            match started.and_then(|mut reader| reader.ask("warm").map(|_| reader)) {
                Ok(reader) => readers.push(reader),
                Err(LabError::Missing(why)) => row.skipped = Some(why),
                Err(e) => row.failed = Some(e.to_string()),
            }
        }
        readers
    }
}

/// One contestant's time for one round, in nanoseconds.
fn measure(reader: &mut Reader, order: &str, state: State) -> Result<f64, LabError> {
    if state == State::Cold {
        // Pages that a process has mapped stay in memory, so the database is closed before.
        reader.ask("close")?;
        drop_caches().map_err(|e| LabError::Failed(format!("the caches cannot be dropped: {e}")))?;
    }
    let answer = reader.ask(order)?;
    answer.first().copied().ok_or_else(|| LabError::Failed("a reader told no time".to_owned()))
}

/// Writes out what is changed and has the kernel forget what it has of files and directories. It changes no setting: there is nothing to
/// undo.
pub fn drop_caches() -> std::io::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

impl Row {
    fn measurement(&self, contest: &Contest, store: &str) -> Measurement {
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
