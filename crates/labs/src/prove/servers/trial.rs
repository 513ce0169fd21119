//! One trial: both sides' servers stand side by side and are loaded in turns; a short calibration without tracing sets
//! the strength first.

use fingerpost_record::cause::id;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fingerpost_compare::ratio::paired;
use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_record::{Finding, Host, Params, Run};
use fingerpost_sys::task;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::planted::servers::Engine;
use fingerpost_workloads::planted::{Places, Planted};
use fingerpost_workloads::{Workload, WorkloadError};

use super::around::Surround;
use super::kind::{Kind, Need};
use super::scene::{Pair, Scene};
use super::score::{Effect, Result as Verdict, Row};
use super::set::Set;
use super::strength::{Outline, corrected};
use crate::attribute::KeptOpen;
use crate::deciding::ask;
use crate::deciding::levers::huge_pages_are;
use crate::prove::kept::Kept;
use crate::prove::trial::{at_most_twice, compared};
use crate::prove::{Runs, asking};

/// Pairs of turns, at least and at most: passes that vary are made more of.
const PAIRS: (usize, usize) = (5, 24);
/// Half the width of the effect's interval, as a logarithm, that needs no more pairs. It is the width that is waited
/// for, never a verdict: whoever stops when a difference shows finds more differences than there are.
const PRECISE: f64 = 0.1;
/// Length of a step of the calibration.
const GLANCE: Duration = Duration::from_millis(150);
/// Corrections at most.
const CORRECTIONS: usize = 3;
/// An effect as near to the one wanted needs no correction.
const NEAR: f64 = 0.15;

/// What all trials share.
pub struct Course<'a> {
    /// CPUs that may be used.
    pub cpus: &'a [usize],
    /// The host's description, for the runs.
    pub host: &'a Host,
    /// Whether this process is in a network of its own.
    pub own_network: bool,
    /// The kernel's events, kept open from pass to pass.
    pub events: &'a KeptOpen,
    /// Whether the user asked to stop.
    pub stop: &'a AtomicBool,
}

/// What a trial gave, before it is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// What was planted, with the magnitudes that the calibration found.
    pub outline: Outline,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Both sides, or why there are none.
    pub result: Result<Runs, (Verdict, String)>,
}

/// Whether a trial is to be run in a network of its own.
pub fn own_network(outline: &Outline) -> bool {
    outline
        .planted
        .iter()
        .any(|p| Set::find(&p.kind).is_some_and(|k| k.needs.contains(&Need::OwnNetwork)))
}

/// Plants, measures, and takes everything away again.
pub fn run(outline: &Outline, course: &Course, scratch: &mut Scratch) -> Taken {
    let begun = Instant::now();
    let mut outline = outline.clone();
    let result = match missing(&outline, course) {
        Some(reason) => Err((Verdict::Skipped, reason)),
        None => at_most_twice(course.stop, || measured(&mut outline, course, scratch))
            .0
            .map_err(|e| match e {
                WorkloadError::Missing(reason) => (Verdict::Skipped, reason),
                e => (Verdict::Failed, e.to_string()),
            }),
    };
    Taken {
        outline,
        seconds: begun.elapsed().as_secs_f64(),
        result,
    }
}

/// Has `compare` judge what a trial gave.
pub fn judged(taken: Taken) -> Row {
    let Taken {
        outline,
        seconds,
        result,
    } = taken;
    let runs = match result {
        Ok(runs) => runs,
        Err((verdict, reason)) => return Row::without(outline, verdict, reason, seconds),
    };
    let comparison = compared(&runs, spread_of_starts(outline.engine));
    let effect = comparison
        .rows
        .first()
        .and_then(|row| row.ratio)
        .map(|r| Effect {
            value: r.value,
            low: r.low,
            high: r.high,
        });
    Row {
        seconds,
        unexplained: comparison.unexplained,
        headline: comparison.headline,
        ..Row::judged(outline, effect, comparison.causes)
    }
}

/// By how much two starts of a server differ: what the ratios of controls spread by beyond what their pairs tell, over
/// √2 (`bench/RESULTS.md`, 25 November: 22 controls of MariaDB, 18 of Apache; none is seen of the others).
fn spread_of_starts(engine: Engine) -> f64 {
    match engine {
        Engine::MariaDb => 0.05,
        Engine::Apache => 0.045,
        _ => 0.0,
    }
}

/// What keeps a trial from being run here.
fn missing(outline: &Outline, course: &Course) -> Option<String> {
    if let Some(why) = outline.engine.missing() {
        return Some(why);
    }
    outline.planted.iter().find_map(|planted| {
        let Some(kind) = Set::find(&planted.kind) else {
            return Some(format!("there is no plant {}", planted.kind));
        };
        let lacks = |need: &Need| {
            let why = match need {
                Need::TwoCpus if course.cpus.len() < 2 => "it takes two CPUs",
                Need::OwnNetwork if !course.own_network => "it takes a network of its own",
                Need::StoreBypass if !task::store_bypass_can_be_chosen() => {
                    "this CPU or kernel leaves no choice about speculative store bypass"
                }
                Need::HugePages if huge_pages_are("never") || huge_pages_are("madvise") => {
                    "the system gives huge pages only to those that ask, which no server does"
                }
                _ => return None,
            };
            Some(why.to_owned())
        };
        kind.needs.iter().find_map(lacks)
    })
}

/// One side while it lives.
struct Side {
    surround: Surround,
    planted: Option<Planted>,
    kept: Kept,
}

fn kinds(outline: &Outline) -> Result<Vec<&'static Kind>, WorkloadError> {
    let find = |name: &str| {
        Set::find(name).ok_or_else(|| WorkloadError::Missing(format!("there is no plant {name}")))
    };
    outline.planted.iter().map(|p| find(&p.kind)).collect()
}

/// Both sides with the first so many plants made.
fn pair(outline: &Outline, kinds: &[&Kind], many: usize, rate: f64, cpus: &[usize]) -> Pair {
    with(outline, kinds, &|n| n < many, rate, cpus)
}

/// Both sides with those plants made, by their numbers.
fn with(
    outline: &Outline,
    kinds: &[&Kind],
    made: &dyn Fn(usize) -> bool,
    rate: f64,
    cpus: &[usize],
) -> Pair {
    let mut pair = Pair {
        rate,
        ..Pair::alike((kinds[0].scene)(outline.engine), cpus)
    };
    for (_, (kind, planted)) in kinds
        .iter()
        .zip(&outline.planted)
        .enumerate()
        .filter(|(n, _)| made(*n))
    {
        (kind.plant)(&mut pair, planted.magnitude);
    }
    pair
}

fn measured(
    outline: &mut Outline,
    course: &Course,
    scratch: &mut Scratch,
) -> Result<Runs, WorkloadError> {
    let kinds = kinds(outline)?;
    let first = *kinds
        .first()
        .ok_or_else(|| WorkloadError::Failed("nothing is to be planted".into()))?;
    let whole = pair(outline, &kinds, kinds.len(), 10_000.0, course.cpus);
    let dir = scratch
        .subdir(&format!("trial-{}", outline.number))
        .map_err(|e| WorkloadError::Failed(e.to_string()))?;
    let mut sides: Vec<Side> = Vec::new();
    let started = [&whole.base, &whole.new]
        .into_iter()
        .enumerate()
        .try_for_each(|(number, scene)| {
            sides.push(start(scene, number, &dir, scratch)?);
            Ok(())
        });
    let mut result = started
        .and_then(|()| calibrated(outline, &kinds, &mut sides, course, scratch))
        .and_then(|()| in_turns(&mut sides, first, outline, course))
        .and_then(|()| decided(&mut sides, outline, course));
    let mut runs = Vec::new();
    for side in sides {
        let (kept, ended) = end(side, scratch);
        result = result.and(ended);
        runs.push(kept.into_run(outline.engine.workload(), &params(outline), course.host));
    }
    // The next trial's data goes where this one's was.
    let gone = fingerpost_undo::files::remove_tree(&dir)
        .map_err(|e| WorkloadError::Failed(format!("{}: {e}", dir.display())));
    result.and(gone)?;
    let numbered = |(i, run): (usize, Run)| Run {
        id: format!("trial-{}-{}", outline.number, ["base", "new"][i]),
        ..run
    };
    let runs: Vec<Run> = runs.into_iter().enumerate().map(numbered).collect();
    runs.try_into()
        .map_err(|_| WorkloadError::Failed("a side is missing".into()))
}

fn params(outline: &Outline) -> Params {
    Params::new().with("engine", outline.engine.name())
}

fn start(
    scene: &Scene,
    number: usize,
    dir: &Path,
    scratch: &mut Scratch,
) -> Result<Side, WorkloadError> {
    let surround = Surround::make(&scene.around, number, dir, scratch)?;
    let home = dir.join(if number == 0 { "base" } else { "new" });
    let places = Places {
        dir: &home,
        client: &scene.around.client,
        server: &mut |pid| surround.place(pid),
    };
    match Planted::start(&scene.plan, &scene.prepare, places, scratch) {
        Ok(planted) => Ok(Side {
            surround,
            planted: Some(planted),
            kept: Kept::default(),
        }),
        Err(e) => surround.unmake(scratch).and(Err(e)),
    }
}

/// Ends a side, whatever became of it.
fn end(mut side: Side, scratch: &mut Scratch) -> (Kept, Result<(), WorkloadError>) {
    let left = side.surround.end(scratch);
    let finished = side.planted.take().map_or(Ok(()), |planted| {
        planted.finish(scratch).map_err(WorkloadError::Failed)
    });
    let unmade = side.surround.unmake(scratch);
    (side.kept, left.and(finished).and(unmade))
}

/// Gives both sides what can be changed while they run.
fn adjust(sides: &mut [Side], pair: &Pair, scratch: &mut Scratch) -> Result<(), WorkloadError> {
    for (side, scene) in sides.iter_mut().zip([&pair.base, &pair.new]) {
        let Some(planted) = &mut side.planted else {
            continue;
        };
        planted.script = scene.script.clone();
        scene
            .backend
            .iter()
            .try_for_each(|line| planted.tell_backend(line))?;
        side.surround.adjust(&scene.around, planted, scratch)?;
    }
    Ok(())
}

/// Finds for each plant in turn the magnitude that gives the effect wanted, on top of those before it.
fn calibrated(
    outline: &mut Outline,
    kinds: &[&'static Kind],
    sides: &mut [Side],
    course: &Course,
    scratch: &mut Scratch,
) -> Result<(), WorkloadError> {
    let (mut rate, mut wanted) = (10_000.0, 1.0);
    for (n, kind) in kinds.iter().enumerate() {
        wanted *= outline.planted[n].target;
        adjust(
            sides,
            &pair(outline, kinds, n + 1, rate, course.cpus),
            scratch,
        )?;
        if !kind.adjustable {
            continue;
        }
        rate = glance(&mut sides[0], course)?;
        for round in 0..CORRECTIONS {
            adjust(
                sides,
                &pair(outline, kinds, n + 1, rate, course.cpus),
                scratch,
            )?;
            if round > 0 || n > 0 {
                rate = glance(&mut sides[0], course)?;
            }
            let gave = rate / glance(&mut sides[1], course)?;
            if (gave / wanted).ln().abs() < NEAR {
                break;
            }
            let planted = &mut outline.planted[n];
            planted.magnitude = corrected(planted.magnitude, gave, wanted, kind.range);
        }
    }
    adjust(
        sides,
        &pair(outline, kinds, kinds.len(), rate, course.cpus),
        scratch,
    )?;
    if kinds.len() > 1 {
        each_of_two(outline, kinds, sides, rate, course, scratch)
    } else {
        Ok(())
    }
}

/// Measures what each of two plants adds to the other, where it can be left out for a while: one that sleeps makes
/// fewer writes, and a limit on the disk that was felt before it came may be felt no more.
fn each_of_two(
    outline: &mut Outline,
    kinds: &[&'static Kind],
    sides: &mut [Side],
    rate: f64,
    course: &Course,
    scratch: &mut Scratch,
) -> Result<(), WorkloadError> {
    let effect = |sides: &mut [Side]| {
        Ok::<f64, WorkloadError>(glance(&mut sides[0], course)? / glance(&mut sides[1], course)?)
    };
    let whole = effect(sides)?;
    // What was taken from memory comes back page by page.
    let can_be_left_out = |kind: &Kind| kind.adjustable && kind.cause() != id::MEMORY_LIMIT;
    for n in (0..kinds.len()).filter(|n| can_be_left_out(kinds[*n])) {
        adjust(
            sides,
            &with(outline, kinds, &|other| other != n, rate, course.cpus),
            scratch,
        )?;
        let without = effect(sides)?;
        outline.planted[n].adds = Some(whole / without);
    }
    adjust(
        sides,
        &pair(outline, kinds, kinds.len(), rate, course.cpus),
        scratch,
    )
}

/// Transactions a second of a short step without tracing.
fn glance(side: &mut Side, course: &Course) -> Result<f64, WorkloadError> {
    let step = turn(side, course, |planted, _| {
        planted.step(&Params::new(), GLANCE)
    })?;
    Ok(step.rate())
}

/// Something that is done while this side alone is under load.
fn turn<T>(
    side: &mut Side,
    course: &Course,
    act: impl FnOnce(&mut Planted, &mut Kept) -> Result<T, WorkloadError>,
) -> Result<T, WorkloadError> {
    if course.stop.load(Ordering::Relaxed) {
        return Err(WorkloadError::Failed("interrupted".into()));
    }
    let Some(planted) = &mut side.planted else {
        return Err(WorkloadError::Failed("the server was not started".into()));
    };
    side.surround.enter(planted)?;
    let result = act(planted, &mut side.kept);
    side.surround.leave()?;
    result
}

/// Base and plant, plant and base, and so on: what drifts hits both.
fn in_turns(
    sides: &mut [Side],
    kind: &Kind,
    outline: &Outline,
    course: &Course,
) -> Result<(), WorkloadError> {
    let params = params(outline);
    let mut order = Interleaved::pairs(Extent::rounds(PAIRS.1));
    while let Some(next) = order.next(false) {
        if next.first && next.round >= PAIRS.0 && precise(sides) {
            break;
        }
        turn(&mut sides[next.step], course, |planted, kept| {
            let clients = planted.script.clients as f64;
            kept.pass(planted, &params, kind.pass, clients, course.events)
        })?;
    }
    Ok(())
}

/// What the passes leave undecided is decided by experiment.
fn decided(sides: &mut [Side], outline: &Outline, course: &Course) -> Result<(), WorkloadError> {
    let (name, params) = (outline.engine.workload(), params(outline));
    let [base, new] = sides else { return Ok(()) };
    let runs =
        [&base.kept, &new.kept].map(|kept| kept.clone().into_run(name, &params, course.host));
    let experiments = |side: &mut Side, findings: &[Finding], eagerness| {
        let own_neighbours = side.surround.neighbours();
        turn(side, course, |planted, kept| {
            let question = asking::question(
                &params,
                findings,
                (kept, planted.script.clients as f64),
                eagerness,
                own_neighbours,
            );
            kept.run
                .experiments
                .extend(ask(planted, &question).map_err(WorkloadError::Failed)?);
            Ok(())
        })
    };
    asking::decided(
        [base, new],
        &compared(&runs, spread_of_starts(outline.engine)),
        |side| &side.kept,
        experiments,
    )
}

/// Whether the passes so far tell the effect precisely enough.
fn precise(sides: &[Side]) -> bool {
    let values = |side: &Side| {
        side.kept
            .throughput
            .iter()
            .filter_map(|p| p.value)
            .collect::<Vec<f64>>()
    };
    let ratio = sides
        .first()
        .zip(sides.last())
        .and_then(|(base, new)| paired(&values(base), &values(new), true));
    ratio.is_some_and(|r| (r.high / r.low).ln() / 2.0 <= PRECISE)
}
