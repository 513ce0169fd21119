//! Deciding experiments carried out: one thing changed for short stretches, in turns, while the load goes on.
//!
//! What to change and what the answer means is `fingerpost_diagnose::deciding`'s to say.

pub mod course;
pub mod levers;
pub mod service;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_diagnose::deciding::{
    Course, Offer, Planned, Policy, course as course_of, plan, verdict,
};
use fingerpost_record::{Answer, Asked, Experiment, Finding, Measure, Params, Profile};
use fingerpost_sys::trace::monotonic_ns;
use fingerpost_sys::turn::{NoTurn, Turn};
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::{Stamps, Workload};

use self::course::{Executor, Over, carry_out};
use self::levers::{Lever, Pulled, Scope, levers};
use crate::Sink;
use crate::lab::by_profile;

/// What a load lasts longer than its experiments: to begin, and for what a busy machine takes longer.
const MARGIN: f64 = 0.5;
const SLACK: f64 = 1.15;
/// The nice value of the thread that changes things, so that it does so in time; where the user may have it.
const PRIORITY: i32 = -15;

/// Commands that experiment at the same time change each other's answers, and a server that one puts before all others
/// keeps the kernel's threads from what the other waits for: they take turns on a host.
const TURN: &str = "fingerpost-experiments";
/// How long one waits for the others: a command's experiments take some ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for the turn to experiment. `enough` ends the waiting.
fn turn(enough: &mut dyn FnMut() -> bool) -> Result<Turn, String> {
    Turn::take(TURN, PATIENCE, enough).map_err(|why| match why {
        NoTurn::Kept => {
            format!(
                "another command on this host has been experimenting for {} s; try again later",
                PATIENCE.as_secs()
            )
        }
        NoTurn::Stopped => {
            "it was interrupted while another command on this host experimented".to_owned()
        }
    })
}

/// How many experiments there is time for.
pub fn most(profile: Profile) -> usize {
    by_profile(profile, [2, 4, 7])
}

/// What is to be decided on a server of ours.
pub struct Question<'a> {
    /// The step.
    pub params: &'a Params,
    /// What passive signs say.
    pub findings: &'a [Finding],
    /// Requests a second, and their mean latency in seconds.
    pub load: (f64, f64),
    /// Whether clients send the next request when the last is answered.
    pub closed: bool,
    /// Experiments at most.
    pub most: usize,
    /// Whether settings that others live under may be changed.
    pub beyond_ours: bool,
    /// When experiments are made.
    pub policy: Policy,
    /// Processes of ours beside the server that may be held.
    pub own_neighbours: Vec<i32>,
}

/// Decides between the suspects of a step of a private server, where that is needed and possible: its load once more,
/// with experiments in it. Experiments go to the sink, and the findings are returned as they are after them.
pub fn decide(
    workload: &mut dyn Workload,
    question: &Question,
    sink: &mut dyn Sink,
) -> Vec<Finding> {
    let Some(prepared) = prepare(workload, question).filter(|_| !sink.interrupted()) else {
        return question.findings.to_vec();
    };
    sink.progress(
        &format!(
            "{} {}: changing one thing at a time",
            workload.name(),
            question.params
        ),
        0.99,
    );
    let experiments = match under_load(workload, question, &prepared) {
        Ok(experiments) => experiments,
        Err(sentence) => {
            sink.warn(&format!(
                "the suspects could not be told apart by experiment: {sentence}"
            ));
            return question.findings.to_vec();
        }
    };
    let found = verdict(question.findings, &experiments);
    experiments
        .into_iter()
        .for_each(|experiment| sink.experiment(experiment));
    found
}

/// The experiments themselves, none where none is needed or possible: what they say of anybody is for others to judge.
///
/// # Errors
/// A sentence: why they could not be carried out.
pub fn ask(workload: &mut dyn Workload, question: &Question) -> Result<Vec<Experiment>, String> {
    prepare(workload, question).map_or(Ok(Vec::new()), |prepared| {
        under_load(workload, question, &prepared)
    })
}

/// What can be changed here, which of it is to be, and whom to ask.
struct Prepared {
    levers: Vec<Lever>,
    planned: Vec<Planned>,
    stamps: Stamps,
}

/// Nothing where nobody can be asked, or nothing is to be changed.
fn prepare(workload: &dyn Workload, question: &Question) -> Option<Prepared> {
    let stamps = workload.stamps()?;
    let (own_neighbours, beyond_ours) = (question.own_neighbours.clone(), question.beyond_ours);
    let levers = levers(&Scope {
        subjects: workload.subjects(),
        own_neighbours,
        beyond_ours,
    });
    let offers: Vec<Offer> = levers.iter().map(|l| l.offer.clone()).collect();
    let planned = plan(question.findings, &offers, question.policy, question.most);
    (!planned.is_empty()).then_some(Prepared {
        levers,
        planned,
        stamps,
    })
}

/// Loads the server once more, and carries the experiments out meanwhile.
fn under_load(
    workload: &mut dyn Workload,
    question: &Question,
    prepared: &Prepared,
) -> Result<Vec<Experiment>, String> {
    let Prepared {
        levers,
        planned,
        stamps,
    } = prepared;
    let (rate, latency) = question.load;
    let by = if question.closed {
        Measure::Rate
    } else {
        Measure::Latency
    };
    let name = workload.name();
    let each: Vec<(&Lever, Course, Experiment)> = planned
        .iter()
        .map(|p| {
            let lever = &levers[p.offer];
            (
                lever,
                course_of(lever.offer.change, rate, latency),
                blank(name, question.params, lever, p, by),
            )
        })
        .collect();
    let possible = each
        .iter()
        .filter(|(lever, ..)| lever.offer.hindrance.is_none());
    let seconds: f64 = possible.map(|(_, course, _)| course.seconds()).sum();
    if seconds == 0.0 {
        return Ok(each
            .into_iter()
            .map(|(.., experiment)| experiment)
            .collect());
    }
    let _turn = turn(&mut || false)?;
    let scratch = Scratch::create_guarded().map_err(|e| format!("no journal can be kept: {e}"))?;
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel::<()>();
        let conductor = thread::Builder::new()
            .spawn_scoped(scope, move || conduct(each, scratch, stamps, &told));
        let step = workload.step_observed(
            question.params,
            Duration::from_secs_f64(seconds * SLACK + MARGIN),
            &mut || _ = tell.send(()),
        );
        drop(tell);
        let conductor = conductor
            .map_err(|e| format!("the thread that changes things could not be started: {e}"))?;
        let experiments = conductor
            .join()
            .map_err(|_| "the thread that changes things met a defect".to_owned())?;
        step.map(|_| experiments).map_err(|e| e.to_string())
    })
}

/// An experiment before it is carried out.
fn blank(
    workload: &str,
    params: &Params,
    lever: &Lever,
    planned: &Planned,
    by: Measure,
) -> Experiment {
    let hindrance = lever.offer.hindrance.clone();
    Experiment {
        workload: workload.to_owned(),
        params: params.clone(),
        change: lever.offer.change,
        what: lever.offer.what.clone(),
        tests: planned.tests.iter().map(|t| (*t).to_owned()).collect(),
        by,
        pairs: Vec::new(),
        effect: None,
        answer: if hindrance.is_some() {
            Answer::NotDone
        } else {
            Answer::Unresolved
        },
        reason: hindrance,
    }
}

/// Carries the experiments out, one after the other, as long as the load lasts.
fn conduct(
    each: Vec<(&Lever, Course, Experiment)>,
    mut scratch: Scratch,
    stamps: &Stamps,
    told: &mpsc::Receiver<()>,
) -> Vec<Experiment> {
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    if told.recv().is_err() {
        return Vec::new();
    }
    let carried = each.into_iter().map(|(lever, course, experiment)| {
        if experiment.answer == Answer::NotDone {
            return experiment;
        }
        let asked = |settle_s: f64, stretch_s: f64| stamped(stamps, told, settle_s, stretch_s);
        carry_out(
            &mut Asking::new(lever, &mut scratch, asked),
            &course,
            experiment,
        )
    });
    let experiments = carried.collect();
    stamps.set(false);
    experiments
}

/// A server that a lever changes; how its requests are asked is the caller's.
struct Asking<'a, A> {
    lever: &'a Lever,
    pulled: Pulled,
    scratch: &'a mut Scratch,
    /// As [`Executor::ask`].
    asked: A,
}

impl<'a, A: FnMut(f64, f64) -> Result<Option<Asked>, Over>> Asking<'a, A> {
    fn new(lever: &'a Lever, scratch: &'a mut Scratch, asked: A) -> Self {
        Asking {
            lever,
            pulled: Pulled::default(),
            scratch,
            asked,
        }
    }
}

impl<A: FnMut(f64, f64) -> Result<Option<Asked>, Over>> Executor for Asking<'_, A> {
    fn change(&mut self, limit_s: f64) -> Result<(), String> {
        self.pulled
            .pull(self.lever, self.scratch, Duration::from_secs_f64(limit_s))
    }

    fn restore(&mut self) -> Result<(), String> {
        self.pulled.release(self.scratch)
    }

    fn ask(&mut self, settle_s: f64, stretch_s: f64) -> Result<Option<Asked>, Over> {
        (self.asked)(settle_s, stretch_s)
    }
}

/// Asks a server of ours under load: its generators' own account says how many requests ended when. `load` is closed
/// when the load is over.
fn stamped(
    stamps: &Stamps,
    load: &mpsc::Receiver<()>,
    settle_s: f64,
    stretch_s: f64,
) -> Result<Option<Asked>, Over> {
    let wait = |seconds: f64| {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let wait = || load.recv_timeout(end.saturating_duration_since(Instant::now()));
        // A word that came before is no end.
        if wait().and_then(|()| wait()) == Err(mpsc::RecvTimeoutError::Timeout) {
            Ok(())
        } else {
            Err(Over)
        }
    };
    // Stamping goes on all the time: what is under way when it is switched on would be missing.
    stamps.set(true);
    wait(settle_s)?;
    let begin = monotonic_ns();
    wait(stretch_s)?;
    let end = monotonic_ns();
    let drained = stamps.drain();
    let ended = drained
        .stamps
        .iter()
        .filter(|s| (begin..end).contains(&s.end));
    let ended: Vec<u64> = ended.map(|s| s.end.saturating_sub(s.start)).collect();
    let requests = ended.len() as u64;
    let latency_ns =
        (requests > 0).then(|| ended.iter().map(|l| *l as f64).sum::<f64>() / requests as f64);
    let asked = Asked {
        requests,
        seconds: end.saturating_sub(begin) as f64 * 1e-9,
        latency_ns,
    };
    Ok((drained.lost == 0).then_some(asked))
}
