//! The `warming` state: rounds from the moment at which a process opens its store, when nothing has been loaded yet.
//!
//! That is what the source's eleven rounds were: its ratio grew as more of the database's tables had come into memory.
//! Each contestant has all of its rounds for itself, one contestant after the other, because several of them read the
//! same files, and what one loads into the kernel's cache the next would find there. They read the same lists, so that
//! the ratio is still taken round by round.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::analysis::MET;
use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_workloads::site::Access;
use fingerpost_workloads::site::reader::{Reader, numbers};

use super::course::{Contest, Course, Row, enter, row};
use super::start::{Start, drop_caches};
use crate::LabError;

/// Rounds from the start: the source's.
pub const ROUNDS: usize = 11;

/// How long all rounds of a process may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Tells that a contest cannot be held, in a row of each contestant.
pub fn skip(course: &mut Course, contest: &Contest, why: &str) {
    for access in contest.stores {
        let params = contest.params.clone().with("store", access.name());
        course.context.sink.measurement(row(
            contest.rows,
            params,
            Err(&LabError::Missing(why.to_owned())),
        ));
    }
}

impl Course<'_, '_, '_> {
    /// One process of each contestant, one after the other, with the same lists.
    pub(super) fn warm_up(
        &mut self,
        contest: &Contest,
        random: &mut fastrand::Rng,
        rows: &mut BTreeMap<&'static str, Row>,
    ) {
        let lists: Vec<u64> = (0..ROUNDS).map(|_| random.u64(..1 << 53)).collect();
        let mut course =
            Interleaved::shuffled(contest.stores.len(), random.u64(..), Extent::rounds(1));
        while let Some(turn) = course.next(self.context.sink.interrupted()) {
            let access = contest.stores[turn.step];
            let known = rows.entry(access.name()).or_insert_with(|| Ok(Vec::new()));
            if known.is_ok() {
                let gave = self.rounds_from_start(contest, access, &lists);
                enter(
                    known,
                    gave.map(|(samples, counters)| contest.process(samples, counters)),
                );
            }
        }
    }

    /// The times of one contestant's rounds, in nanoseconds, in their order, and what was counted of its memory.
    fn rounds_from_start(
        &mut self,
        contest: &Contest,
        access: Access,
        lists: &[u64],
    ) -> Result<(Vec<f64>, BTreeMap<String, f64>), LabError> {
        let source = contest.prepared.source(access).map_err(LabError::Missing)?;
        let cpu = self.context.cpus.first().copied();
        let mut reader = Reader::start(
            access,
            source,
            &contest.prepared.list,
            cpu,
            self.context.scratch,
        )?;
        let before = contest.start.counted().get(MET).copied();
        let times = begin(&mut reader, contest.start).and_then(|()| {
            let begun = Instant::now();
            let sink = &*self.context.sink;
            let mut enough = || match () {
                () if sink.interrupted() => Some("it was interrupted".to_owned()),
                () if begun.elapsed() > LONGEST => {
                    let why = if contest.start.limit.is_some() {
                        "; with so little memory it reads the same from the disk again and again"
                    } else {
                        ""
                    };
                    Some(format!(
                        "{ROUNDS} rounds took longer than {} s{why}",
                        LONGEST.as_secs()
                    ))
                }
                () => None,
            };
            let time = |list: &u64| {
                reader.order(&format!("round {list} {}", contest.urls))?;
                let answer = numbers(&reader.read_answer_until(&mut enough)?);
                let ns = answer
                    .first()
                    .copied()
                    .ok_or_else(|| LabError::Failed("a reader told no time".to_owned()))?;
                Ok(ns / contest.per as f64)
            };
            lists.iter().map(time).collect()
        });
        // While the reader lives, and holds what it has.
        let mut counted = contest.start.counted();
        if let (Some(met), Some(before)) = (counted.get_mut(MET), before) {
            *met -= before;
        }
        reader.stop(self.context.scratch);
        times.map(|times| (times, counted))
    }
}

/// Puts a reader where its memory is limited, and has it open its store anew there, with what the kernel knew of it
/// forgotten.
///
/// Of the program it has everything before. Else what it had not run yet would be read from the disk within the first
/// rounds, with megabytes around it, and be counted and limited as memory that the store takes: 7.7 of 8 MiB with a
/// program of 50 MB on a device that reads 8 MiB ahead.
fn begin(reader: &mut Reader, start: &Start) -> Result<(), LabError> {
    reader.ask("load-program")?;
    // Pages that a process has mapped stay in memory, so the database is closed before.
    reader.ask("close")?;
    if let Some(memory_group) = &start.memory_group {
        memory_group.add(reader.pid()).map_err(LabError::Failed)?;
    }
    if start.cold {
        drop_caches()
            .map_err(|e| LabError::Failed(format!("the caches cannot be dropped: {e}")))?;
    }
    let open = start
        .limit
        .map_or("open".to_owned(), |bytes| format!("open {bytes}"));
    reader.ask(&open).map(drop)
}
