//! A service that is running, explained: watched for a while from outside, its requests followed, and kept as a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use fingerpost_diagnose::{PROGRAMS, STEP, StepFigures};
use fingerpost_labs::deciding::service::{Running, on_service};
use fingerpost_labs::service::{self, WORKLOAD};
use fingerpost_observe::Limits;
use fingerpost_observe::follow::{FollowedService, Recorded, Stretch};
use fingerpost_observe::session::{Prepared, RECEIVED_BYTES, RECEIVED_SECONDS, Told, label};
use fingerpost_observe::stacks::Sampled;
use fingerpost_record::under_way::UnderWay;
use fingerpost_record::{Observation, Params, Paths, Run, secret};
use fingerpost_report::explain::Explanation;
use fingerpost_report::explain::service as report;

use super::Args;
use super::client::{self, findings};
use super::live;
use super::target::Target;
use crate::commands::run::command;
use crate::conduct::{begun, open_writer, stopped_by_signals};
use crate::exit::{say, words};
use crate::progress::Progress;
use crate::recorder::Ended;

/// How long a service is watched where nobody says it, in seconds.
pub const SECONDS: f64 = 10.0;
/// How often it is looked whether the service still lives and the user has not had enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// CPU time that naming its functions may take: those in windows of requests, and those of all of the time. A build that
/// is not optimised takes some times as long for the same.
const NAMING: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_500 } else { 500 });
/// CPU time that following its requests may take.
const FOLLOWING: Duration = Duration::from_millis(if cfg!(debug_assertions) { 6_000 } else { 800 });
/// How long following, and naming after it, may take together on a machine that has no CPU for them: a look takes two
/// seconds more than was asked, of which detaching and writing the record need theirs.
const EXPLAINED: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 9_000 } else { 1_500 });

/// The total of a record that says how long it took from the command's start until the service was watched.
const ATTACH: &str = "attach.seconds";

/// What was seen, and where it is kept.
pub struct Explained {
    /// The explanation.
    pub explanation: Explanation,
    /// Its run.
    pub ended: Ended,
    /// Why the load generator's run was not joined, where it was to be.
    pub joined: Result<(), String>,
}

/// Watches a service and explains it, for a command that `began` then. Nothing of it is changed, unless one thing at a
/// time afterwards, with `hold` the neighbours that are held for that: events are taken, counters read. An interrupt
/// ends it early.
///
/// # Errors
/// The system does not let anything be watched, or the service was gone before it could be.
pub fn explain(
    target: Target,
    args: &Args,
    began: Instant,
    hold: Option<&[i32]>,
) -> anyhow::Result<Explained> {
    let length = Duration::from_secs_f64(args.seconds.unwrap_or(SECONDS).min(1e6));
    let progressing = args.progressing();
    let stop = stopped_by_signals()?;
    let beginning = Instant::now();
    let command = secret::cut_words(command(words()).iter().map(String::as_str));
    let run = begun(
        command,
        fingerpost_host::describe_beside_service(&std::env::temp_dir()),
    );
    let (writer, trouble) = open_writer(args.output.as_deref(), &run)?;
    trouble
        .iter()
        .chain(&target.notes)
        .for_each(|sentence| say(sentence));
    let (lately, latest) = args.live.then(channel).unzip();
    let session =
        Prepared::new(args.level(), None).attach_service(&target.service, Some(length), lately);
    let attached = began.elapsed();
    let progress = Progress::start("watching the service", length, progressing);
    let Told {
        mut observations,
        recorded,
        refused,
        sampled,
        under_way,
        ..
    } = std::thread::scope(|threads| {
        // It ends with the session, which holds the other end.
        let told = &progress;
        latest.map(|latest| threads.spawn(move || live::tell(&latest, progressing, told)));
        wait(&target, length, &stop, &progress);
        session.finish()
    });
    observations
        .first_mut()
        .into_iter()
        .for_each(|o| _ = o.totals.insert(ATTACH.to_owned(), attached.as_secs_f64()));
    if let Some(why) = refused {
        anyhow::bail!(why);
    }
    let followed = follow(recorded, sampled, &observations, &progress);
    progress.show("explaining", 1.0);
    let pids = target.pids();
    let (mut explanation, mut run) = record(run, target.params.clone(), observations, followed);
    if let Some(Ok(under_way)) = under_way {
        let under_way = UnderWay {
            workload: WORKLOAD.to_owned(),
            params: target.params.clone(),
            ..under_way
        };
        explanation.under_way = Some(under_way.clone());
        run.under_way.push(under_way);
    }
    if let Some(hold) = hold.filter(|_| !stop.load(Ordering::Relaxed)) {
        let groups = &target.service.groups;
        let running = Running {
            params: &target.params,
            pids: &pids,
            groups,
            findings: &explanation.findings,
            load: load(&run),
            hold,
            stop: &stop,
        };
        match on_service(&running, &mut |change| {
            progress.say(&format!("changing {change}"))
        }) {
            Ok(experiments) => {
                run.experiments.clone_from(&experiments);
                explanation = explanation.with_experiments(experiments);
                run.findings = findings(&explanation);
            }
            Err(why) => progress.say(&format!("no experiment was made: {why}")),
        }
    }
    run.complete = true;
    run.duration_s = beginning.elapsed().as_secs_f64();
    fingerpost_host::after(&mut run.host);
    let joined = args.client.as_deref().map_or(Ok(()), |path| {
        client::join_fresh(&mut run, path, &stop, &progress)
    });
    drop(progress);
    if let (Ok(()), Some(both)) = (
        &joined,
        client::service_of(&run).filter(|_| args.client.is_some()),
    ) {
        explanation = both;
    }
    let kept = writer.finish(&run).map_err(|e| e.to_string());
    Ok(Explained {
        explanation,
        ended: Ended { run, kept },
        joined: joined.map_err(|e| e.to_string()),
    })
}

/// Follows the requests that were recorded, names the functions that had the CPU meanwhile, and has all of the requests
/// counted.
fn follow(
    recorded: Option<Recorded>,
    sampled: Option<Result<Sampled, String>>,
    observations: &[Observation],
    progress: &Progress,
) -> Option<FollowedService> {
    progress.show("following its requests", 1.0);
    let until = Instant::now() + EXPLAINED;
    let naming = |part: u32| Limits {
        cpu: NAMING,
        until: until - EXPLAINED * part / 6,
    };
    let following = Limits {
        cpu: FOLLOWING,
        ..naming(3)
    };
    let mut followed = recorded.map(|recorded| recorded.follow_service(following, naming(1)));
    match (&mut followed, sampled) {
        (Some(followed), Some(Ok(sampled))) => {
            let left;
            (followed.paths.stacks, left) = sampled.name(naming(0));
            followed.left.and(left);
        }
        (_, Some(Err(why))) => progress.say(&format!("its functions are not named: {why}")),
        _ => {}
    }
    followed
        .iter_mut()
        .for_each(|followed| count_by_bytes(followed, observations));
    let left = followed.as_ref().and_then(|f| f.left.sentence());
    left.into_iter()
        .for_each(|sentence| progress.say(&sentence));
    followed
}

/// Has the kernel's account of the bytes that its connections received tell how many requests came in all of the time.
fn count_by_bytes(followed: &mut FollowedService, observations: &[Observation]) {
    let total = |name: &str| {
        observations
            .iter()
            .find_map(|o| o.totals.get(name).copied())
    };
    if let (Some(bytes), Some(seconds), Some(watched)) = (
        total(RECEIVED_BYTES),
        total(RECEIVED_SECONDS),
        total("elapsed.seconds"),
    ) {
        followed.count_by_bytes(bytes, seconds, watched);
    }
}

/// Waits until the time is up, the user has had enough, or the service has gone.
fn wait(target: &Target, length: Duration, stop: &AtomicBool, progress: &Progress) {
    let begun = Instant::now();
    while begun.elapsed() < length && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_EVERY.min(length.saturating_sub(begun.elapsed())));
        progress.show(
            "watching the service",
            begun.elapsed().as_secs_f64() / length.as_secs_f64(),
        );
        if !target.lives() {
            progress.say("the service has ended; what was seen until then is printed");
            return;
        }
    }
    if stop.load(Ordering::Relaxed) {
        progress.say(&format!(
            "ended early, after {:.1} s; what was seen until then is printed",
            begun.elapsed().as_secs_f64()
        ));
    }
}

/// Puts everything into the record, and explains it.
fn record(
    mut run: Run,
    params: Params,
    mut observations: Vec<Observation>,
    followed: Option<FollowedService>,
) -> (Explanation, Run) {
    let elapsed = observations
        .iter()
        .find_map(|o| o.totals.get("elapsed.seconds").copied())
        .unwrap_or(0.0);
    let (paths, stretches, hardware) = followed.map_or((None, Vec::new(), None), |f| {
        (Some(f.paths), f.stretches, Some(f.hardware))
    });
    let paths = paths.map(|paths| Paths {
        workload: WORKLOAD.to_owned(),
        params: params.clone(),
        ..paths
    });
    let figures = figures(paths.as_ref(), &stretches, elapsed);
    observations
        .extend(hardware.map(|(source, totals)| observation(report::HARDWARE, source, totals)));
    let mut step = observation(
        STEP,
        "the service's own sockets".to_owned(),
        figures.to_totals(),
    );
    if stretches.is_empty() {
        step.totals.insert(PROGRAMS.into(), 1.0);
        step.source = "the time of its processes".to_owned();
    } else {
        run.measurements = service::rows(
            &params,
            &stretches,
            paths.as_ref().and_then(|p| p.whole_rate),
            paths.as_ref().and_then(|p| p.whole.as_ref()),
        );
    }
    observations.push(step);
    label(&mut observations, WORKLOAD, &params);
    let explanation = Explanation::new(WORKLOAD, &params, &figures, paths.as_ref(), observations);
    run.observations.clone_from(&explanation.observations);
    run.budgets.push(explanation.budget.clone());
    run.paths.extend(paths);
    run.findings = findings(&explanation);
    (explanation, run)
}

fn observation(observer: &str, source: String, totals: BTreeMap<String, f64>) -> Observation {
    Observation {
        observer: observer.to_owned(),
        source,
        totals,
        ..Observation::default()
    }
}

/// Requests a second, and their mean latency in seconds; 0 where there were none.
fn load(run: &Run) -> (f64, f64) {
    let Some(paths) = run.paths.first().filter(|p| p.seconds > 0.0) else {
        return (0.0, 0.0);
    };
    (paths.rate(), paths.latency.mean)
}

fn figures(paths: Option<&Paths>, stretches: &[Stretch], elapsed: f64) -> StepFigures {
    if stretches.is_empty() {
        service::figures_of_programs(paths.map_or(0.0, |p| p.seconds), elapsed)
    } else {
        service::figures(stretches, elapsed, paths.and_then(|p| p.whole_rate))
    }
}

/// The commands to look closer, by what was found.
pub fn closer(explained: &Explained, pids: &[i32]) -> Vec<String> {
    let id = &explained.ended.run.id;
    let run = match &explained.ended.kept {
        Ok(path)
            if path
                .file_stem()
                .is_some_and(|stem| stem.to_string_lossy() == *id) =>
        {
            id.clone()
        }
        // A word without a slash would be taken for a run of the archive.
        Ok(path) if !path.display().to_string().contains('/') => format!("./{}", path.display()),
        Ok(path) => path.display().to_string(),
        Err(_) => return Vec::new(),
    };
    let mut lines = vec![
        format!(
            "every chain, figure and ruled out suspect: fingerpost explain {run} --format markdown"
        ),
        format!("the slowest requests as lines of time: fingerpost report {run} -o service.html"),
        format!("before and after a change: fingerpost compare {run} LATER"),
    ];
    if let Some(pid) = pids.first() {
        lines.push(format!(
            "which of its functions: perf record -g -p {pid} -- sleep 10"
        ));
    }
    lines
}
