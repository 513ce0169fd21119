//! The throughput of a private server while it is observed and while it is not, in pairs: what `bench/follow cost` is
//! made of.
//!
//!     cost database|web nothing|counting|sampling|tracing PAIRS SECONDS [NAME=VALUE...]
//!
//! Settings are those of the lab. The load goes on throughout. Of each pair of stretches one, drawn by lot, is observed
//! from beginning to end. A line for each pair: the transactions a second observed, over those without. `nothing`
//! observes neither, and shows what the machine itself does.

use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_observe::Level;
use fingerpost_observe::follow::Known;
use fingerpost_observe::session::{Events, Prepared};
use fingerpost_record::{Param, Params};
use fingerpost_undo::guardian;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::database::Database;
use fingerpost_workloads::database::options::Options;
use fingerpost_workloads::web::Web;
use fingerpost_workloads::web::settings::Settings;
use fingerpost_workloads::{Step, Subjects, Workload, workers};

const USAGE: &str =
    "cost database|web nothing|counting|sampling|tracing PAIRS SECONDS [NAME=VALUE...]";

fn main() -> ExitCode {
    // Load generators and the guardian are this program, started once more.
    if let Some(status) = guardian::dispatch().or_else(workers::dispatch) {
        return status;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(asked) = Asked::parse(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(3)
        }
    }
}

/// What is to be measured.
struct Asked {
    lab: String,
    level: Option<Level>,
    pairs: usize,
    length: Duration,
    settings: Params,
}

impl Asked {
    fn parse(words: &[String]) -> Option<Asked> {
        let [lab, level, pairs, seconds, settings @ ..] = words else {
            return None;
        };
        let level = match level.as_str() {
            "nothing" => None,
            "counting" => Some(Level::Counting),
            "sampling" => Some(Level::Sampling),
            "tracing" => Some(Level::Tracing),
            _ => return None,
        };
        let length =
            Duration::from_secs_f64(seconds.parse().ok().filter(|s| (0.1..=600.0).contains(s))?);
        let mut params = Params::new();
        for setting in settings {
            let (name, value) = setting.split_once('=')?;
            params = params.with(name, Param::parse(value));
        }
        Some(Asked {
            lab: lab.clone(),
            level,
            pairs: pairs.parse().ok()?,
            length,
            settings: params,
        })
    }
}

fn run(asked: &Asked) -> Result<(), String> {
    let mut scratch = Scratch::create().map_err(|e| e.to_string())?;
    let mut workload: Box<dyn Workload> = match asked.lab.as_str() {
        "database" => Box::new(Database::new(
            Options::from_settings(&asked.settings, 1).map_err(|e| e.to_string())?,
            &mut scratch,
        )),
        "web" => {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            Box::new(Web::new(
                Settings::from_params(&asked.settings).map_err(|e| e.to_string())?,
                &mut scratch,
                &[],
                cpus,
            ))
        }
        other => return Err(format!("there is no workload {other}; {USAGE}")),
    };
    workload.start().map_err(|e| e.to_string())?;
    let done = pairs(workload.as_mut(), asked);
    workload.stop();
    done
}

/// Before the first stretch: longer than any warm-up, before which the load generators tell no rate.
const WARM_UP: Duration = Duration::from_secs(6);
/// Between two stretches: what observed the one before ends, and what observes the next is opened; neither is counted.
const GAP: Duration = Duration::from_millis(700);
/// At either end of a stretch, not counted: the load generators tell their rate by parts of 100 ms, which begin when
/// they like.
const EDGE: f64 = 0.2;

/// One load throughout, whose clients stay connected and where they are: from one load to the next a server's rate
/// differs by far more than what is looked for. Stretches of it are observed, by lot one of each two.
fn pairs(workload: &mut dyn Workload, asked: &Asked) -> Result<(), String> {
    let params = workload
        .steps()
        .first()
        .cloned()
        .ok_or("the workload has no step")?;
    // The first load of all is slower.
    workload
        .step(&params, asked.length)
        .map_err(|e| e.to_string())?;
    let (subjects, stamps) = (workload.subjects(), workload.stamps());
    let (tell, told) = mpsc::channel();
    let (step, over, stretches) = thread::scope(|scope| {
        let observer = scope.spawn(move || {
            told.recv()
                .map_err(|_| "the load did not begin".to_owned())?;
            thread::sleep(WARM_UP);
            let mut events = None;
            let mut stretches = Vec::new();
            for _ in 0..asked.pairs {
                let first = fastrand::bool();
                for observed in [first, !first] {
                    let level = asked.level.filter(|_| observed);
                    let known = Known {
                        stamps: stamps.clone(),
                        ..Known::default()
                    };
                    let (from, to) = stretch(&subjects, known, asked.length, level, &mut events)?;
                    stretches.push((observed, from, to));
                }
            }
            Ok::<_, String>(stretches)
        });
        let whole = WARM_UP + (asked.length + 2 * GAP) * (2 * asked.pairs as u32);
        let step = workload
            .step_observed(&params, whole, &mut || _ = tell.send(()))
            .map_err(|e| e.to_string());
        let over = Instant::now();
        let stretches = observer
            .join()
            .map_err(|_| "the observing thread met a defect")?;
        Ok::<_, String>((step?, over, stretches?))
    })?;
    // The load generators' first part began when the load's length was still to come.
    let began = over - step.elapsed;
    for pair in stretches.chunks(2) {
        let rate = |wanted: bool| {
            let (_, from, to) = pair
                .iter()
                .find(|(observed, ..)| *observed == wanted)
                .ok_or("a pair lacks a side")?;
            mean(
                &step,
                from.duration_since(began).as_secs_f64() + EDGE,
                to.duration_since(began).as_secs_f64() - EDGE,
            )
        };
        println!("{:.4}", rate(true)? / rate(false)?);
    }
    Ok(())
}

/// One stretch: when it began and ended.
fn stretch(
    subjects: &Subjects,
    known: Known,
    length: Duration,
    level: Option<Level>,
    events: &mut Option<Events>,
) -> Result<(Instant, Instant), String> {
    let gap = Instant::now() + GAP;
    // Opened before it begins, as the labs do it.
    let prepared = level.map(|level| Prepared::new(level, events.take()));
    thread::sleep(gap.saturating_duration_since(Instant::now()));
    let from = Instant::now();
    let session = prepared.map(|prepared| prepared.attach(subjects, known));
    thread::sleep(length.saturating_sub(from.elapsed()));
    let to = Instant::now();
    if let Some(seen) = session.map(|session| session.finish()) {
        if let Some(why) = seen.refused {
            return Err(why);
        }
        *events = seen.events;
    }
    Ok((from, to))
}

/// Transactions a second between these seconds of the load.
fn mean(step: &Step, from: f64, to: f64) -> Result<f64, String> {
    const PART: f64 = 0.1;
    let parts = (from / PART).ceil() as usize..(to / PART).floor() as usize;
    let of_it = step
        .throughput
        .get(parts)
        .filter(|parts| !parts.is_empty())
        .ok_or("the load was over before all was observed")?;
    Ok(of_it.iter().sum::<f64>() / of_it.len() as f64)
}
