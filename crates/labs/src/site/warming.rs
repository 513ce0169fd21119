//! The `warming` state: rounds from the moment at which a process opens its store, when nothing has been loaded yet.
//!
//! That is what the source's eleven rounds were: its ratio grew as more of the database's tables had come into memory. Each contestant has
//! all of its rounds for itself, one contestant after the other, because several of them read the same files, and what one loads into the
//! kernel's cache the next would find there. They read the same lists, so that the ratio is still taken round by round.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fingerpost_compare::site::{MEMORY, MET};
use fingerpost_measure::estimate;
use fingerpost_record::params::named;
use fingerpost_record::{Param, Process, Unit};
use fingerpost_sys::cgroup::Throttle;
use fingerpost_workloads::site::Access;
use fingerpost_workloads::site::reader::{Reader, numbers};

use super::contest::{Contest, Course, Row, drop_caches, row};
use crate::LabError;
use crate::launch::pressure::MemoryGroup;

/// Rounds from the start: the source's.
pub const ROUNDS: usize = 11;

/// How long all rounds of a process may take.
const LONGEST: Duration = Duration::from_secs(30);

/// How the readers of a warming contest begin.
#[derive(Default)]
pub struct Start {
    /// Whether the kernel forgets files and directories before each.
    pub cold: bool,
    /// A control group of the readers, which tells how much memory they have, page cache included, and may limit it.
    pub memory_group: Option<MemoryGroup>,
    /// The limit.
    pub limit: Option<u64>,
}

impl Start {
    /// A start with so much memory, or with all there is.
    ///
    /// # Errors
    /// A sentence that says why memory cannot be limited here.
    pub fn with(course: &mut Course, cold: bool, memory: Option<u64>) -> Result<Start, String> {
        if !cold {
            return match memory {
                None => Ok(Start::default()),
                Some(_) => Err("limiting memory needs root and --allow-system-changes, and a file system with a cache to drop".into()),
            };
        }
        let memory_group = MemoryGroup::make("site", course.context.scratch, &[], Throttle::default());
        let Some(bytes) = memory else { return Ok(Start { cold, memory_group: memory_group.ok(), limit: None }) };
        let memory_group = memory_group?;
        match memory_group.limit(bytes) {
            Ok(()) => Ok(Start { cold, memory_group: Some(memory_group), limit: Some(bytes) }),
            Err(sentence) => Err(memory_group.take_down(course.context.scratch).err().unwrap_or(sentence)),
        }
    }

    /// What is said of a limit that was never met: it changed nothing.
    pub fn unmet(&self) -> Option<String> {
        let (limit, _) = self.limit.zip(self.memory_group.as_ref()?.met()).filter(|(_, met)| *met == 0)?;
        let set = named("memory", &Param::Int(limit as i64));
        Some(format!("with {set} no reader reached the limit, which changed nothing; give less, or a larger site (pages=, urls=)"))
    }

    /// What the readers' group counted: how much memory it has, and how often its limit was met.
    fn counted(&self) -> BTreeMap<String, f64> {
        let Some(memory_group) = &self.memory_group else { return BTreeMap::new() };
        let met = memory_group.met().filter(|_| self.limit.is_some());
        let counted = [(MEMORY, memory_group.memory_bytes()), (MET, met)];
        counted.into_iter().filter_map(|(name, n)| Some((name.to_owned(), n? as f64))).collect()
    }

    /// Takes the control group away.
    pub fn end(self, course: &mut Course) -> Result<(), LabError> {
        self.memory_group.map_or(Ok(()), |memory_group| memory_group.take_down(course.context.scratch).map_err(LabError::Failed))
    }
}

/// Tells that a contest cannot be held, in a row of each contestant.
pub fn skip(course: &mut Course, contest: &Contest, why: &str) {
    for access in contest.stores {
        let params = contest.params.clone().with("store", access.name());
        course.context.sink.measurement(row(contest.probe, params, Unit::Nanoseconds, &[], Some(&why.to_owned()), None));
    }
}

impl Course<'_, '_, '_> {
    /// One process of each contestant, one after the other, with the same lists.
    pub(super) fn warm_up(&mut self, contest: &Contest, random: &mut fastrand::Rng, rows: &mut BTreeMap<&'static str, Row>) {
        let lists: Vec<u64> = (0..ROUNDS).map(|_| random.u64(..1 << 53)).collect();
        let mut stores = contest.stores.to_vec();
        random.shuffle(&mut stores);
        for access in stores {
            let known = rows.entry(access.name()).or_default();
            if self.context.sink.interrupted() || known.skipped.is_some() || known.failed.is_some() {
                continue;
            }
            match self.rounds_from_start(contest, access, &lists) {
                Ok((samples, counters)) => known.processes.push(Process {
                    value: Some(estimate::median(&samples)),
                    samples,
                    batch: contest.urls as u64,
                    counters,
                    ..Process::default()
                }),
                Err(LabError::Missing(why)) => known.skipped = Some(why),
                Err(e) => known.failed = Some(e.to_string()),
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
        let mut reader = Reader::start(access, source, &contest.prepared.list, cpu, self.context.scratch)?;
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
                    Some(format!("{ROUNDS} rounds took longer than {} s{why}", LONGEST.as_secs()))
                }
                () => None,
            };
            let time = |list: &u64| {
                reader.order(&format!("round {list} {}", contest.urls))?;
                let answer = numbers(&reader.hear_until(&mut enough)?);
                let ns = answer.first().copied().ok_or_else(|| LabError::Failed("a reader told no time".to_owned()))?;
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

/// Puts a reader where its memory is limited, and has it open its store anew there, with what the kernel knew of it forgotten.
fn begin(reader: &mut Reader, start: &Start) -> Result<(), LabError> {
    // Pages that a process has mapped stay in memory, so the database is closed before.
    reader.ask("close")?;
    if let Some(memory_group) = &start.memory_group {
        memory_group.add(reader.pid()).map_err(LabError::Failed)?;
    }
    if start.cold {
        drop_caches().map_err(|e| LabError::Failed(format!("the caches cannot be dropped: {e}")))?;
    }
    let open = start.limit.map_or("open".to_owned(), |bytes| format!("open {bytes}"));
    reader.ask(&open).map(drop)
}
