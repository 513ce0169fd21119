//! The throughput of a private server while it is observed and while it is not, in pairs: what `bench/follow cost` is made of.
//!
//!     cost database|web nothing|counting|sampling|tracing PAIRS SECONDS [NAME=VALUE...]
//!
//! Settings are those of the lab. Of each pair one stretch, drawn by lot, is observed from beginning to end. A line for each pair: the
//! transactions a second observed, over those without. `nothing` observes neither, and shows what the machine itself does.

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fingerpost_observe::Level;
use fingerpost_observe::follow::taking::Known;
use fingerpost_observe::session::{Events, Prepared};
use fingerpost_record::{Param, Params};
use fingerpost_sys::guardian;
use fingerpost_sys::scratch::Scratch;
use fingerpost_workloads::database::Database;
use fingerpost_workloads::database::options::Options;
use fingerpost_workloads::web::Web;
use fingerpost_workloads::web::settings::Settings;
use fingerpost_workloads::{Workload, worker};

const USAGE: &str = "cost database|web nothing|counting|sampling|tracing PAIRS SECONDS [NAME=VALUE...]";

fn main() -> ExitCode {
    // Load generators and the guardian are this program, started once more.
    if let Some(status) = guardian::dispatch().or_else(worker::dispatch) {
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
        let [lab, level, pairs, seconds, settings @ ..] = words else { return None };
        let level = match level.as_str() {
            "nothing" => None,
            "counting" => Some(Level::Counting),
            "sampling" => Some(Level::Sampling),
            "tracing" => Some(Level::Tracing),
            _ => return None,
        };
        let length = Duration::from_secs_f64(seconds.parse().ok().filter(|s| (0.1..=600.0).contains(s))?);
        let mut params = Params::new();
        for setting in settings {
            let (name, value) = setting.split_once('=')?;
            params = params.with(name, Param::parse(value));
        }
        Some(Asked { lab: lab.clone(), level, pairs: pairs.parse().ok()?, length, settings: params })
    }
}

fn run(asked: &Asked) -> Result<(), String> {
    let mut scratch = Scratch::create().map_err(|e| e.to_string())?;
    let mut workload: Box<dyn Workload> = match asked.lab.as_str() {
        "database" => Box::new(Database::new(Options::from_settings(&asked.settings, 1).map_err(|e| e.to_string())?, &mut scratch)),
        "web" => {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            Box::new(Web::new(Settings::from_params(&asked.settings).map_err(|e| e.to_string())?, &mut scratch, &[], cpus))
        }
        other => return Err(format!("there is no workload {other}; {USAGE}")),
    };
    workload.start().map_err(|e| e.to_string())?;
    let done = pairs(workload.as_mut(), asked);
    workload.stop();
    done
}

fn pairs(workload: &mut dyn Workload, asked: &Asked) -> Result<(), String> {
    let params = workload.steps().first().cloned().ok_or("the workload has no step")?;
    // The first stretch of all is slower.
    workload.step(&params, asked.length).map_err(|e| e.to_string())?;
    let mut events = None;
    for _ in 0..asked.pairs {
        let first = fastrand::bool();
        let mut rates = [0.0; 2];
        for observed in [first, !first] {
            let level = asked.level.filter(|_| observed);
            rates[usize::from(observed)] = rate(workload, &params, asked.length, level, &mut events)?;
        }
        println!("{:.4}", rates[1] / rates[0]);
        std::io::stdout().flush().map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Transactions a second of one stretch.
fn rate(
    workload: &mut dyn Workload,
    params: &Params,
    length: Duration,
    level: Option<Level>,
    events: &mut Option<Events>,
) -> Result<f64, String> {
    let Some(level) = level else {
        let step = workload.step(params, length).map_err(|e| e.to_string())?;
        return Ok(step.transactions as f64 / step.elapsed.as_secs_f64());
    };
    let subjects = workload.subjects();
    let known = Known { stamps: workload.stamps(), ..Known::default() };
    // Opened before the load begins, as the labs do it.
    let prepared = Prepared::with(level, events.take());
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel::<()>();
        let observer = scope.spawn(move || {
            told.recv().ok()?;
            let session = prepared.attach(&subjects, known);
            // Until the stretch is over.
            _ = told.recv();
            Some(session.finish())
        });
        let step = workload.step_observed(params, length, &mut || _ = tell.send(())).map_err(|e| e.to_string());
        drop(tell);
        let seen = observer.join().map_err(|_| "the observing thread met a defect")?;
        let step = step?;
        let seen = seen.ok_or("the load was over before it was observed")?;
        if let Some(why) = seen.refused {
            return Err(why);
        }
        *events = seen.events;
        Ok(step.transactions as f64 / step.elapsed.as_secs_f64())
    })
}
