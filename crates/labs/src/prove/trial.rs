//! One plant: the rehearsal with and without it, in turns, and what `compare` makes of the difference.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fingerpost_compare::{Comparison, Options, compare};
use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_record::{Finding, Host, Params};
use fingerpost_sys::task;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::rehearsal::{NAME, Rehearsal};
use fingerpost_workloads::{Workload, WorkloadError};

use super::kept::Kept;
use super::plants::{Change, Plant};
use super::setting::Setting;
use super::{Proof, Result as Verdict, Runs, asking};
use crate::attribute::KeptOpen;
use crate::deciding::ask;
use crate::deciding::levers::huge_pages_are;

/// Pairs of turns: what noise takes from one or two of them must not decide.
const PAIRS: usize = 6;
/// The difference that does not matter. A plant must bite harder, and a busy machine's noise must not reach it.
pub const THRESHOLD: f64 = 0.10;

/// What all trials of a proof share.
pub struct Course<'a> {
    /// The time for one trial.
    pub time: Duration,
    /// The directory for files.
    pub dir: &'a Path,
    /// CPUs that may be used.
    pub cpus: &'a [usize],
    /// The host's description, for the runs.
    pub host: &'a Host,
    /// Whether we are root.
    pub root: bool,
    /// Whether the user asked to stop.
    pub stop: &'a AtomicBool,
    /// Keeps the kernel's events open from pass to pass.
    pub events: &'a KeptOpen,
}

/// What a trial leaves: its row, and both sides as runs where it came to that.
pub struct Trial {
    /// The row.
    pub proof: Proof,
    /// Both sides.
    pub runs: Option<Runs>,
}

/// Plants, measures, compares, and takes everything away again.
pub fn run(plant: &Plant, course: &Course, scratch: &mut Scratch) -> Trial {
    let begun = Instant::now();
    let without = |verdict, reason| Trial {
        proof: Proof::without(plant, verdict, reason),
        runs: None,
    };
    let (result, failed_first) = match missing(plant, course) {
        Some(reason) => (Err(WorkloadError::Missing(reason)), None),
        None => at_most_twice(course.stop, || measured(plant, course, scratch)),
    };
    let mut trial = match result {
        Ok(runs) => judged(plant, runs),
        Err(WorkloadError::Missing(reason)) => without(Verdict::Skipped, reason),
        Err(e) => without(Verdict::Failed, e.to_string()),
    };
    if trial.runs.is_some() {
        trial.proof.reason =
            failed_first.map(|reason| format!("the first attempt failed: {reason}"));
    }
    trial.proof.seconds = begun.elapsed().as_secs_f64();
    trial
}

/// A second attempt after one that failed, with why that was. Linux 6.18 sometimes ends a server that was to swap,
/// because it finds no page of the group to swap out while it reads pages ahead, with nine tenths of the swap file
/// free.
pub(super) fn at_most_twice<T>(
    stop: &AtomicBool,
    mut attempt: impl FnMut() -> Result<T, WorkloadError>,
) -> (Result<T, WorkloadError>, Option<String>) {
    match attempt() {
        Err(WorkloadError::Failed(reason)) if !stop.load(Ordering::Relaxed) => {
            (attempt(), Some(reason))
        }
        other => (other, None),
    }
}

/// What keeps a plant from being planted here.
fn missing(plant: &Plant, course: &Course) -> Option<String> {
    let changes = (plant.changes)();
    let wants = |f: fn(&Change) -> bool| changes.iter().any(f);
    if plant.root && !course.root {
        return Some("it takes root".into());
    }
    if course.cpus.len() < plant.cpus {
        return Some(format!(
            "it takes {} CPUs, and this process may use {}",
            plant.cpus,
            course.cpus.len()
        ));
    }
    if wants(|c| c.store_bypass) && !task::store_bypass_can_be_chosen() {
        return Some("this CPU or kernel leaves no choice about speculative store bypass".into());
    }
    if wants(|c| c.no_huge_pages) && huge_pages_are("never") {
        return Some("the system has huge pages switched off already".into());
    }
    None
}

/// Compares both sides and holds the verdict against the plant.
pub fn judged(plant: &Plant, runs: Runs) -> Trial {
    let comparison = compared(&runs, 0.0);
    let mut proof = Proof::of(plant, comparison.causes);
    proof.slower = comparison
        .rows
        .first()
        .and_then(|row| row.ratio)
        .map(|r| r.value);
    proof.unexplained = comparison.unexplained;
    proof.headline = comparison.headline;
    Trial {
        proof,
        runs: Some(runs),
    }
}

/// Both sides compared; `starts` is by how much two starts of the server are known to differ.
pub(super) fn compared([base, new]: &Runs, starts: f64) -> Comparison {
    let options = Options {
        threshold: THRESHOLD,
        paired: true,
        starts,
    };
    compare(
        std::slice::from_ref(base),
        std::slice::from_ref(new),
        &options,
    )
}

/// One side: its surroundings, its server, and what was measured of it.
struct SideOfTrial {
    setting: Setting,
    rehearsal: Rehearsal,
    kept: Kept,
}

fn measured(plant: &Plant, course: &Course, scratch: &mut Scratch) -> Result<Runs, WorkloadError> {
    let [base, new] = (plant.recipes)();
    let mut sides: Vec<SideOfTrial> = Vec::new();
    let mut result = Ok(());
    for (side, (recipe, change)) in [base, new].into_iter().zip((plant.changes)()).enumerate() {
        match Setting::make(change, side, course.dir, course.cpus, scratch) {
            Ok(setting) => sides.push(SideOfTrial {
                rehearsal: setting.rehearsal(recipe),
                setting,
                kept: Kept::default(),
            }),
            Err(e) => result = Err(e),
        }
    }
    if result.is_ok() {
        result =
            in_turns(&mut sides, plant, course).and_then(|()| decided(&mut sides, plant, course));
    }
    let mut kept = Vec::new();
    for mut side in sides {
        side.rehearsal.stop();
        result = result.and(side.setting.leave());
        drop(side.rehearsal);
        let unmade = side.setting.unmake(scratch);
        result = result.and(unmade);
        kept.push(side.kept);
    }
    result?;
    let run = |kept: Option<Kept>| {
        kept.map(|k| k.into_run(NAME, &Params::new(), course.host))
            .unwrap_or_default()
    };
    let new = kept.pop();
    Ok([run(kept.pop()), run(new)])
}

/// Something that is done while this side alone has its surroundings.
fn turn(
    side: &mut SideOfTrial,
    course: &Course,
    act: impl FnOnce(&mut SideOfTrial) -> Result<(), WorkloadError>,
) -> Result<(), WorkloadError> {
    if course.stop.load(Ordering::Relaxed) {
        return Err(WorkloadError::Failed("interrupted".into()));
    }
    side.setting.enter()?;
    let result = act(side);
    side.setting.leave()?;
    result
}

/// Base and plant, plant and base, and so on: what drifts hits both.
fn in_turns(
    sides: &mut [SideOfTrial],
    plant: &Plant,
    course: &Course,
) -> Result<(), WorkloadError> {
    for side in sides.iter_mut() {
        side.rehearsal.start()?;
    }
    let length = (course.time / (PAIRS as u32 * 2)).max(plant.least);
    let (params, clients) = (Params::new(), (plant.recipes)()[0].clients as f64);
    let mut order = Interleaved::pairs(Extent::rounds(PAIRS));
    while let Some(next) = order.next(false) {
        let pass = |side: &mut SideOfTrial| {
            side.kept
                .pass(&mut side.rehearsal, &params, length, clients, course.events)
        };
        turn(&mut sides[next.step], course, pass)?;
    }
    Ok(())
}

/// What the passes leave undecided is decided by experiment.
fn decided(sides: &mut [SideOfTrial], plant: &Plant, course: &Course) -> Result<(), WorkloadError> {
    let [base, new] = sides else { return Ok(()) };
    let (params, clients) = (Params::new(), (plant.recipes)()[0].clients as f64);
    let runs =
        [&base.kept, &new.kept].map(|kept| kept.clone().into_run(NAME, &params, course.host));
    let experiments = |side: &mut SideOfTrial, findings: &[Finding], eagerness| {
        turn(side, course, |side| {
            let question = asking::question(
                &params,
                findings,
                (&side.kept, clients),
                eagerness,
                side.setting.neighbours(),
            );
            side.kept
                .run
                .experiments
                .extend(ask(&mut side.rehearsal, &question).map_err(WorkloadError::Failed)?);
            Ok(())
        })
    };
    asking::decided(
        [base, new],
        &compared(&runs, 0.0),
        |side| &side.kept,
        experiments,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the attempts in turn, as often as they are asked for.
    fn attempts(
        stop: bool,
        values: &[Result<u8, &str>],
    ) -> (Result<u8, String>, Option<String>, usize) {
        let mut made = 0;
        let (result, failed_first) = at_most_twice(&AtomicBool::new(stop), || {
            made += 1;
            values[made - 1].map_err(|reason| WorkloadError::Failed(reason.into()))
        });
        (result.map_err(|e| e.to_string()), failed_first, made)
    }

    #[test]
    fn what_failed_is_tried_once_more_and_told() {
        assert_eq!(attempts(false, &[Ok(1)]), (Ok(1), None, 1));
        assert_eq!(
            attempts(false, &[Err("refused"), Ok(2)]),
            (Ok(2), Some("refused".into()), 2)
        );
        assert_eq!(
            attempts(false, &[Err("refused"), Err("again")]),
            (Err("again".into()), Some("refused".into()), 2)
        );
        assert_eq!(
            attempts(true, &[Err("interrupted")]),
            (Err("interrupted".into()), None, 1)
        );
    }

    #[test]
    fn what_is_missing_is_not_tried_again() {
        let mut made = 0;
        let (result, _) = at_most_twice(&AtomicBool::new(false), || {
            made += 1;
            Err::<(), _>(WorkloadError::Missing("no memory controller".into()))
        });
        assert!(matches!(result, Err(WorkloadError::Missing(_))) && made == 1);
    }
}
