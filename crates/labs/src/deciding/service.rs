//! Deciding experiments on a service that somebody else runs: only such as can do no harm, and only because the user
//! asked for them.
//!
//! Its weight is raised, its CPUs are widened, a neighbour that the user names is held for a tenth of a second at a
//! time. Each change is journalled and undone within its stretch, by the guardian where this process cannot. The
//! requests' answer is their mean latency, as nothing is known of the clients.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fingerpost_diagnose::deciding::{Offer, Planned, Policy, course as course_of, plan};
use fingerpost_observe::follow::Counter;
use fingerpost_record::{Answer, Asked, Change, Experiment, Finding, Measure, Params};
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::Subjects;

use super::course::{Over, carry_out};
use super::levers::{Lever, Scope, levers};
use super::{Asking, PRIORITY, blank, turn};
use crate::service::WORKLOAD;

/// What may be changed of a service that is somebody's.
const HARMLESS: [Change; 4] = [Change::Weight, Change::Priority, Change::Cpus, Change::Hold];
/// Experiments at most.
const MOST: usize = 4;
/// How often it is looked whether the user has had enough.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A service, and what is known of it.
pub struct Running<'a> {
    /// What tells it from others in a record.
    pub params: &'a Params,
    /// Its processes.
    pub pids: &'a [i32],
    /// Directories of its control groups.
    pub groups: &'a [PathBuf],
    /// What passive signs say.
    pub findings: &'a [Finding],
    /// Requests a second, and their mean latency in seconds.
    pub load: (f64, f64),
    /// Processes that the user names to be held.
    pub hold: &'a [i32],
    /// Set when the user has had enough.
    pub stop: &'a AtomicBool,
}

/// Carries out what could say anything here. `tell` is told each change before it is made.
///
/// # Errors
/// A sentence: nothing could be counted, or no journal be kept; then nothing was changed.
pub fn on_service(
    running: &Running,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Experiment>, String> {
    let scope = Scope {
        subjects: Subjects {
            servers: running.pids.to_vec(),
            clients: Vec::new(),
        },
        own_neighbours: running.hold.to_vec(),
        beyond_ours: false,
    };
    let levers: Vec<Lever> = levers(&scope)
        .into_iter()
        .filter(|lever| HARMLESS.contains(&lever.offer.change))
        .collect();
    let offers: Vec<Offer> = levers.iter().map(|l| l.offer.clone()).collect();
    let planned = plan(running.findings, &offers, Policy::Asked, MOST);
    if planned.is_empty() {
        return Err(
            "there is nothing that could be changed without harm: it has all CPUs, and who is to be held is not said \
             (--hold)"
                .into(),
        );
    }
    let _turn = turn(&mut || running.stop.load(Ordering::Relaxed))?;
    let mut counter = Counter::open(running.pids, running.groups)?;
    let mut scratch =
        Scratch::create_guarded().map_err(|e| format!("no journal can be kept: {e}"))?;
    let before = rustix::process::getpriority_process(None).ok();
    // So that changes are undone in time beside busy neighbours; where the user may have it.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    let each = planned.iter().map(|planned| {
        one(
            running,
            &levers[planned.offer],
            planned,
            &mut counter,
            &mut scratch,
            tell,
        )
    });
    let experiments = each.collect();
    let _ = before.map(|nice| rustix::process::setpriority_process(None, nice));
    Ok(experiments)
}

fn one(
    running: &Running,
    lever: &Lever,
    planned: &Planned,
    counter: &mut Counter,
    scratch: &mut Scratch,
    tell: &mut dyn FnMut(&str),
) -> Experiment {
    let experiment = blank(WORKLOAD, running.params, lever, planned, Measure::Latency);
    if experiment.answer == Answer::NotDone {
        return experiment;
    }
    if running.stop.load(Ordering::Relaxed) {
        return Experiment {
            answer: Answer::NotDone,
            reason: Some("it was interrupted before".into()),
            ..experiment
        };
    }
    let course = course_of(lever.offer.change, running.load.0, running.load.1);
    let stretch = (course.stretch_s + course.settle_s) * 1e3;
    tell(&format!(
        "{} times for {stretch:.0} ms: {}; undone each time",
        course.pairs, lever.offer.what
    ));
    let stop = running.stop;
    // The kernel's events say how long its requests took.
    let asked = |settle_s: f64, stretch_s: f64| {
        if slept(stop, Duration::from_secs_f64(settle_s)) {
            return Err(Over);
        }
        let counted = counter.count(Duration::from_secs_f64(stretch_s), &mut |pause| {
            slept(stop, pause)
        });
        if stop.load(Ordering::Relaxed) {
            return Err(Over);
        }
        Ok(counted.ok().flatten().map(|counted| Asked {
            requests: counted.latencies.len() as u64,
            seconds: counted.length.as_secs_f64(),
            latency_ns: counted.mean_ns(),
        }))
    };
    carry_out(&mut Asking::new(lever, scratch, asked), &course, experiment)
}

/// Sleeps; true when the user has had enough.
fn slept(stop: &AtomicBool, length: Duration) -> bool {
    let end = Instant::now() + length;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if stop.load(Ordering::Relaxed) || left.is_zero() {
            return stop.load(Ordering::Relaxed);
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}
