//! Follows the requests of a server that stamps its own stages, and prints both accounts: what `bench/follow truth` is
//! made of.
//!
//!     truth FIRST_SEED TRIALS SECONDS DIRECTORY
//!
//! A line of JSON for each trial: its seed and mix, what was followed (`paths`, as a record has it), and what the
//! server logged of the same requests (`truth`): seconds of each kind of stage, and CPU seconds within it, for all
//! requests and for the slowest 1 %.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fingerpost_observe::follow::source::{self, Source, Window};
use fingerpost_observe::follow::{Follower, Requested, Side};
use fingerpost_record::Paths;
use fingerpost_workloads::rehearsal::truth::log::Served;
use fingerpost_workloads::rehearsal::truth::{Kind, Mix};
use fingerpost_workloads::rehearsal::{Recipe, Rehearsal};
use fingerpost_workloads::{Stamp, Workload, workers};
use serde::Serialize;

/// Events that a window may have, 48 bytes each.
const MOST_EVENTS: usize = 4 << 20;
/// Load before the window.
const SETTLE: Duration = Duration::from_millis(300);
/// What the client does between two requests, so that not all of them are always under way.
const THINK_US: u64 = 300;

/// One trial's two accounts.
#[derive(Serialize)]
struct Trial {
    seed: u64,
    mix: Mix,
    clients: usize,
    /// Requests that the client stamped and the server has no entry for.
    unpaired: u64,
    truth: Truth,
    paths: Paths,
}

/// What the server logged.
#[derive(Serialize)]
struct Truth {
    all: Class,
    slow: Class,
    p50: f64,
    p99: f64,
}

/// Requests summed up.
#[derive(Default, Serialize)]
struct Class {
    requests: u64,
    /// Seconds from the client's sending to its last reading, all requests together.
    seconds: f64,
    /// Of these, those between the server's reading and its answer.
    served: f64,
    kinds: BTreeMap<Kind, Stages>,
}

/// Stages of one kind.
#[derive(Default, Serialize)]
struct Stages {
    count: u64,
    /// Seconds from beginning to end.
    seconds: f64,
    /// CPU seconds of the thread that did the work.
    cpu: f64,
    /// Seconds that it waited for a CPU.
    ready: f64,
    /// Seconds that the request's own thread waited for a CPU, where another one did the work.
    own_ready: f64,
    /// Seconds that it was on one, likewise.
    own_cpu: f64,
}

fn main() -> ExitCode {
    if let Some(status) = workers::dispatch() {
        return status;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((first, trials, seconds, dir)) = parsed(&words) else {
        eprintln!("truth FIRST_SEED TRIALS SECONDS DIRECTORY");
        return ExitCode::from(2);
    };
    for seed in first..first + trials {
        match trial(seed, Duration::from_secs_f64(seconds), Path::new(dir)) {
            Ok(trial) => println!("{}", serde_json::json!(trial)),
            Err(why) => {
                eprintln!("seed {seed}: {why}");
                return ExitCode::from(3);
            }
        }
    }
    ExitCode::SUCCESS
}

fn parsed(words: &[String]) -> Option<(u64, u64, f64, &str)> {
    let [first, trials, seconds, dir] = words else {
        return None;
    };
    let seconds = seconds.parse().ok().filter(|s| (0.1..=600.0).contains(s))?;
    Some((first.parse().ok()?, trials.parse().ok()?, seconds, dir))
}

fn trial(seed: u64, length: Duration, dir: &Path) -> Result<Trial, String> {
    let mix = Mix::draw(seed);
    let clients = 1 + (seed % 3) as usize;
    let mut rehearsal = Rehearsal::new(
        Recipe {
            mix: Some(mix.clone()),
            clients,
            think_us: THINK_US,
            ..Recipe::default()
        },
        dir,
    );
    rehearsal.start().map_err(|e| e.to_string())?;
    let subjects = rehearsal.subjects();
    let stamps = rehearsal.stamps().ok_or("no memory for stamps")?;
    let mut source = source::open(MOST_EVENTS)?;
    stamps.set(true);
    let mut window = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let steps = rehearsal.steps();
            rehearsal
                .step(&steps[0], SETTLE + length + SETTLE)
                .map(drop)
        });
        std::thread::sleep(SETTLE);
        let window = source.window(length, &mut |pause| {
            std::thread::sleep(pause);
            false
        });
        load.join()
            .map_err(|_| "the load's thread failed")?
            .map_err(|e| e.to_string())?;
        window.map_err(|e| e.to_string())
    })?;
    stamps.set(false);
    let drained = stamps.drain();
    let served = rehearsal.truth().map_err(|e| e.to_string())?;
    rehearsal.stop();
    if drained.lost > 0 {
        return Err(format!(
            "{} stamps of the load generator were lost",
            drained.lost
        ));
    }
    let inside: Vec<Stamp> = drained
        .stamps
        .into_iter()
        .filter(|s| s.start >= window.start && s.end <= window.end)
        .collect();
    let (truth, unpaired) = sum_up(&inside, served);
    let mut follower = Follower::default();
    subjects
        .servers
        .iter()
        .for_each(|pid| follower.side(*pid, Side::Server));
    subjects
        .clients
        .iter()
        .for_each(|pid| follower.side(*pid, Side::Client));
    Ok(Trial {
        seed,
        mix,
        clients,
        unpaired,
        truth,
        paths: follow(follower, &*source, &mut window, &inside),
    })
}

fn follow(
    mut follower: Follower,
    source: &dyn Source,
    window: &mut Window,
    stamps: &[Stamp],
) -> Paths {
    let turns: Vec<(i32, u64, u64)> = stamps.iter().map(|s| (s.tid, s.start, s.end)).collect();
    follower.learn(window);
    follower.window(window, &Default::default(), &turns, Requested::ByClients);
    follower.finish(source.about().described.clone())
}

/// The server's entries of the requests that the client stamped, summed up; and how many have none.
fn sum_up(stamps: &[Stamp], mut served: Vec<Served>) -> (Truth, u64) {
    served.sort_by_key(|s| s.received);
    let mut lengths: Vec<u64> = stamps.iter().map(|s| s.end - s.start).collect();
    lengths.sort_unstable();
    let at = |q: f64| {
        lengths
            .get((q * lengths.len() as f64).ceil() as usize - usize::from(!lengths.is_empty()))
            .copied()
            .unwrap_or(0)
    };
    let mut truth = Truth {
        all: Class::default(),
        slow: Class::default(),
        p50: at(0.5) as f64 * 1e-9,
        p99: at(0.99) as f64 * 1e-9,
    };
    let slow_from = at(0.99);
    let mut unpaired = 0;
    for stamp in stamps {
        let Some(entry) = entry(stamp, &served) else {
            unpaired += 1;
            continue;
        };
        truth.all.add(stamp, entry);
        if stamp.end - stamp.start >= slow_from {
            truth.slow.add(stamp, entry);
        }
    }
    (truth, unpaired)
}

/// The entry of a stamped request: of those that lie within it, the one that leaves the least of it.
fn entry<'a>(stamp: &Stamp, served: &'a [Served]) -> Option<&'a Served> {
    let first = served.partition_point(|s| s.received < stamp.start);
    let within = served[first..]
        .iter()
        .take_while(|s| s.received <= stamp.end)
        .filter(|s| s.answered <= stamp.end);
    within.max_by_key(|s| s.answered - s.received)
}

impl Class {
    fn add(&mut self, stamp: &Stamp, entry: &Served) {
        self.requests += 1;
        self.seconds += (stamp.end - stamp.start) as f64 * 1e-9;
        self.served += (entry.answered - entry.received) as f64 * 1e-9;
        for stage in &entry.stages {
            let sum = self.kinds.entry(stage.kind).or_default();
            sum.count += 1;
            sum.seconds += (stage.end - stage.start) as f64 * 1e-9;
            sum.cpu += stage.cpu as f64 * 1e-9;
            sum.ready += stage.ready as f64 * 1e-9;
            sum.own_ready += stage.own_ready as f64 * 1e-9;
            sum.own_cpu += stage.own_cpu as f64 * 1e-9;
        }
    }
}
