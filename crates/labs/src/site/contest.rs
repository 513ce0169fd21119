//! Rounds: in each, every contestant reads the same list, in random order.

use std::collections::BTreeMap;
use std::time::Instant;

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_workloads::site::reader::Reader;

use super::course::{Contest, Course, LEAST_GROUPS, Row, enter, row};
use super::settings::State;
use super::start::drop_caches;
use crate::LabError;
use crate::lab::by_profile;

/// Rounds in the life of a process.
const ROUNDS: usize = 22;
/// The same, when every round waits for the disk.
const COLD_ROUNDS: usize = 4;

impl Course<'_, '_, '_> {
    /// Runs a contest: groups of processes, one for each contestant; in the life of a group, rounds.
    pub fn hold(&mut self, contest: &Contest) -> Result<(), LabError> {
        let begun = Instant::now();
        let mut random = fastrand::Rng::with_seed(self.context.seed);
        let mut rows: BTreeMap<&'static str, Row> = BTreeMap::new();
        // The most processes of each contestant.
        let most = by_profile(self.context.profile, [6, 12, 30]);
        let extent = Extent {
            least: LEAST_GROUPS,
            most,
            budget: contest.budget,
        };
        let mut groups = Interleaved::repeated(extent);
        while groups
            .next_within(begun.elapsed(), self.context.sink.interrupted())
            .is_some()
        {
            let spent = begun.elapsed();
            let within = spent.as_secs_f64() / contest.budget.as_secs_f64().max(1e-3);
            self.progress(
                &format!(
                    "{} {} {}",
                    contest.rows.probe,
                    contest.params,
                    contest.state.name()
                ),
                within,
            );
            match contest.state {
                State::Warming => self.warm_up(contest, &mut random, &mut rows),
                State::Warm | State::Cold => self.group(contest, &mut random, &mut rows)?,
            }
            for (store, gave) in &rows {
                let params = contest.params.clone().with("store", *store);
                self.context
                    .sink
                    .measurement(row(contest.rows, params, gave.as_deref()));
            }
        }
        Ok(())
    }

    /// One process of each contestant, from start to end.
    fn group(
        &mut self,
        contest: &Contest,
        random: &mut fastrand::Rng,
        rows: &mut BTreeMap<&'static str, Row>,
    ) -> Result<(), LabError> {
        let mut readers = self.start(contest, rows);
        let mut samples = vec![Vec::new(); readers.len()];
        let rounds = if contest.state == State::Cold {
            COLD_ROUNDS
        } else {
            ROUNDS
        };
        let mut course =
            Interleaved::shuffled(readers.len(), random.u64(..), Extent::rounds(rounds));
        let mut order = String::new();
        while let Some(turn) = course.next(self.context.sink.interrupted()) {
            if turn.first {
                // The same list for all, which the seed stands for; the record's numbers have 53 bits.
                let what = if contest.state == State::Warm {
                    "warm-round"
                } else {
                    "round"
                };
                order = format!("{what} {} {}", random.u64(..1 << 53), contest.urls);
            }
            let reader = &mut readers[turn.step];
            match measure(reader, &order, contest.state) {
                Ok(ns) => samples[turn.step].push(ns / contest.per as f64),
                Err(e) => {
                    rows.insert(reader.access.name(), Err(LabError::Failed(e.to_string())));
                    course.leave_out(turn.step);
                }
            }
        }
        for (reader, samples) in readers.into_iter().zip(samples) {
            if let (Some(row), false) = (rows.get_mut(reader.access.name()), samples.is_empty()) {
                enter(row, Ok(contest.process(samples, BTreeMap::new())));
            }
            reader.stop(self.context.scratch);
        }
        Ok(())
    }

    /// Starts a reader for each contestant that is available, and has it read everything once.
    fn start(&mut self, contest: &Contest, rows: &mut BTreeMap<&'static str, Row>) -> Vec<Reader> {
        let mut readers = Vec::new();
        for &access in contest.stores {
            let row = rows.entry(access.name()).or_insert_with(|| Ok(Vec::new()));
            if row.is_err() {
                continue;
            }
            let cpu = self.context.cpus.first().copied();
            let started = contest
                .prepared
                .source(access)
                .map_err(LabError::Missing)
                .and_then(|source| {
                    Reader::start(
                        access,
                        source,
                        &contest.prepared.list,
                        cpu,
                        self.context.scratch,
                    )
                });
            match started.and_then(|mut reader| reader.ask("warm").map(|_| reader)) {
                Ok(reader) => readers.push(reader),
                Err(e) => *row = Err(e),
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
        drop_caches()
            .map_err(|e| LabError::Failed(format!("the caches cannot be dropped: {e}")))?;
    }
    let answer = reader.ask(order)?;
    answer
        .first()
        .copied()
        .ok_or_else(|| LabError::Failed("a reader told no time".to_owned()))
}
