//! The session: attaches observers to a workload's processes and, at the end, says what they saw.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fingerpost_record::{Observation, Params, Series};
use fingerpost_sys::cgroup::{Hierarchies, members};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::trace::thread_cpu_seconds;
use fingerpost_workloads::Subjects;

use crate::calls::Role;
use crate::clients::ClientGroups;
use crate::delays::Delayed;
use crate::follow::answering::Answering;
use crate::follow::pace::{COST_SHARE, Pace};
use crate::follow::source::{self, Source};
use crate::follow::taking::{Known, MOST_EVENTS, Recorded, Taking};
use crate::machine::{self, Reading, Totals};
use crate::neighbours::Neighbours;
use crate::population::{Descriptors, Population};
use crate::queues::{Queues, Sampler};
use crate::stacks::{self, Sampled};
use crate::states::States;
use crate::summary::{self, Seen};
use crate::tracing;

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The kernel's counters before and after, and a light look twice a second: for the pass that is measured.
    Counting,
    /// Threads' states, system calls and socket queues too: for the pass that is attributed.
    Tracing,
    /// As `Tracing`, by sampling `/proc` even where tracepoints could be opened.
    Sampling,
}

/// How often the machine's counters are read for the series.
const SERIES_EVERY: Duration = Duration::from_millis(250);
/// How often new processes and threads are looked for.
const LOOK_EVERY: f64 = 0.5;
/// How often states are sampled, at most; and the share of one CPU that sampling may take.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
const SAMPLE_SHARE: f64 = 0.02;
/// The share of one CPU that sampling sockets may take where requests are followed too: their leaves say more.
const ADDED_SHARE: f64 = 0.005;

/// Tells the observers' threads to end, and lets them sleep until then.
#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Sleeps, or returns at once when the end was asked for; true then.
    fn sleep(&self, length: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, _) = self.changed.wait_timeout_while(asked, length, |asked| !*asked).unwrap_or_else(PoisonError::into_inner);
        *asked
    }

    fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// What the watching thread brings back.
struct Watched {
    population: Population,
    seen: Seen,
    source: String,
    series: Vec<Series>,
    cost: f64,
    lost: u64,
    notes: Totals,
    recorded: Option<Recorded>,
    /// How soon memory was touched; empty where no event told.
    mappings: Totals,
    events: Option<Events>,
}

/// What the sampling thread brings back, or why there is nothing.
type Sampling = Result<Sampled, String>;

/// What the socket thread brings back: the sums, the CPU seconds that they cost, or why there are none.
pub(crate) type Sockets = Result<(Queues, f64), String>;

/// Observers attached to a workload.
pub struct Session {
    begun: Instant,
    before: Reading,
    /// As it was found; looked at again at the end, while the watching thread may still be reading a window.
    population: Population,
    groups: Hierarchies,
    client: Option<ClientGroups>,
    stop: Arc<Stop>,
    /// Where the system refuses threads there is no observation.
    watcher: io::Result<JoinHandle<Watched>>,
    sockets: Option<io::Result<JoinHandle<Sockets>>>,
    /// Of a service that somebody else started.
    neighbours: Option<Neighbours>,
    /// Of one that is traced.
    stacks: Option<io::Result<JoinHandle<Sampling>>>,
    /// At the levels that attribute.
    delays: Option<Result<Delayed, String>>,
    attach_cost: f64,
}

/// What can be opened before the load begins: memory for events costs milliseconds, which a busy machine does not give at once.
pub struct Prepared {
    level: Level,
    taking: Option<Result<Taking, String>>,
    cost: f64,
}

/// The kernel's events, open and switched off. Who watches one pass after the other hands them on: closing them takes the kernel a
/// good part of a second, in which it waits for every CPU once for each kind of event.
pub struct Events(Box<dyn Source + Send>);

impl Prepared {
    /// Opens what this level needs, switched off.
    pub fn new(level: Level) -> Prepared {
        Prepared::with(level, None)
    }

    /// As [`Prepared::new`], with the events of a pass before where there are any.
    pub fn with(level: Level, events: Option<Events>) -> Prepared {
        let cost = thread_cpu_seconds();
        let taking = (level == Level::Tracing).then(|| open(events));
        Prepared { level, taking, cost: thread_cpu_seconds() - cost }
    }

    /// Attaches to the subjects' processes, their descendants and threads. What is born later is found on the way.
    /// Load generators that keep an account of their own do so while events are taken.
    pub fn attach(self, subjects: &Subjects, known: Known) -> Session {
        let subject = subjects.servers.first().copied();
        let client = subjects.clients.iter().find(|c| !subjects.servers.contains(c)).copied();
        self.attach_to([subject, client], || Population::find(subjects), client.is_some(), known)
    }

    /// Attaches to a service that somebody else started. How long it is to be watched says how what can be kept is spread over that time;
    /// `lately` is given the latest windows about once a second, to be followed while the others are still to come.
    pub fn attach_service(self, service: &Service, length: Option<Duration>, lately: Option<Sender<Recorded>>) -> Session {
        let pids = || service.pids.iter().copied().chain(service.groups.iter().flat_map(|dir| members::of_directory(dir)));
        let subject = pids().next();
        let population = Population::of_service(&service.pids, &service.groups);
        let answering = Answering::of(population.processes.keys().copied());
        let listens = !answering.is_empty();
        let known = Known { service: Some(answering), length, lately, ..Known::default() };
        self.attach_to([subject, None], || population, listens, known)
    }

    fn attach_to(
        mut self,
        [subject, client]: [Option<i32>; 2],
        find: impl FnOnce() -> Population,
        separate: bool,
        mut known: Known,
    ) -> Session {
        let service = known.service.is_some();
        let sampled = service && self.level == Level::Tracing;
        let paths = Paths::system();
        let groups = machine::groups_of(&paths, subject);
        known.quota = service && groups.limits().cpu_quota.is_some();
        if let Some(Ok(taking)) = &mut self.taking {
            taking.prepare(known);
        }
        let Prepared { level, taking, cost: prepared } = self;
        let followed = matches!(taking, Some(Ok(_)));
        let cost = thread_cpu_seconds();
        let stop = Arc::new(Stop::default());
        let client = ClientGroups::begin(&paths, client, &groups);
        let before = Reading::take(&paths, &groups);
        let population = find();
        let delays = (level != Level::Counting).then(|| Delayed::begin(&paths, population.processes.keys().copied()));
        let begun = Instant::now();
        let servers: Vec<i32> =
            population.processes.keys().copied().filter(|pid| population.roles().get(pid) != Some(&Role::Client)).collect();
        let closing = population.clone();
        let closing_pids = servers.clone();
        let stacks = sampled.then(|| {
            let (stop, servers) = (Arc::clone(&stop), servers.clone());
            thread::Builder::new().spawn(move || stacks::watch(servers, |length| stop.sleep(length)))
        });
        let watcher = {
            let stop = Arc::clone(&stop);
            thread::Builder::new().spawn(move || watch(population, level, taking, begun, &stop))
        };
        let sockets = (level != Level::Counting && separate).then(|| {
            let stop = Arc::clone(&stop);
            let share = if followed { ADDED_SHARE } else { SAMPLE_SHARE };
            thread::Builder::new().spawn(move || sample_sockets(&servers, share, &stop))
        });
        Session {
            begun,
            before,
            population: closing,
            groups,
            client,
            stop,
            watcher,
            sockets,
            neighbours: service.then(|| Neighbours::begin(&paths, closing_pids)),
            stacks,
            delays,
            attach_cost: prepared + thread_cpu_seconds() - cost,
        }
    }
}

/// A service that somebody else started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Its processes; their children are found.
    pub pids: Vec<i32>,
    /// Directories of its control groups, all of whose processes are its.
    pub groups: Vec<PathBuf>,
}

/// What a session saw.
#[derive(Default)]
pub struct Told {
    /// What each observer saw.
    pub observations: Vec<Observation>,
    /// What is still to be followed, when the load has ended; nothing where events could not be had.
    pub recorded: Option<Recorded>,
    /// Why nothing was observed, in one sentence; nothing where something was.
    pub refused: Option<String>,
    /// Which functions had the CPU, still to be unwound and named; nothing where that was not asked for, or why it could not be had.
    pub sampled: Option<Sampling>,
    /// What the next pass can be watched with.
    pub events: Option<Events>,
}

impl Told {
    /// What there is to tell where the system refuses the thread that observes.
    pub fn refused(error: &io::Error) -> Told {
        Told { refused: Some(format!("the thread that observes the load could not be started: {error}")), ..Told::default() }
    }
}

impl Session {
    /// Attaches at once: [`Prepared::new`] and [`Prepared::attach`].
    pub fn attach(subjects: &Subjects, level: Level) -> Session {
        Prepared::new(level).attach(subjects, Known::default())
    }

    /// Detaches and tells what was seen. The workload's name and parameters are for the caller to fill in ([`label`]).
    pub fn finish(mut self) -> Told {
        let cost = thread_cpu_seconds();
        let paths = Paths::system();
        let elapsed = self.begun.elapsed().as_secs_f64();
        // At once: on a busy machine the watching thread ends when the load may be over, and its threads gone.
        self.population.look(elapsed, true);
        let after = Reading::take(&paths, &self.groups);
        let sides = self.population.processes.keys().map(|&pid| (pid, summary::side_of(&self.population, pid)));
        let delays = self.delays.map(|delays| delays.map(|d| d.finish(sides)));
        self.stop.ask();
        let mut watched = match self.watcher.map(JoinHandle::join) {
            Ok(Ok(watched)) => watched,
            Ok(Err(_)) => return Told { refused: Some("the thread that observes the load met a defect".to_owned()), ..Told::default() },
            Err(e) => return Told::refused(&e),
        };
        let sockets = self.sockets.and_then(|s| match s {
            Ok(thread) => thread.join().ok(),
            Err(e) => Some(Err(format!("the thread that samples them could not be started: {e}"))),
        });
        let sampled = self.stacks.and_then(|s| match s {
            Ok(thread) => thread.join().ok(),
            Err(e) => Some(Err(format!("the thread that samples stacks could not be started: {e}"))),
        });
        watched.population.take_over(self.population);
        let (mut threads, syscalls) = summary::totals(&watched.population, &watched.seen, elapsed);
        threads.append(&mut watched.notes);
        let mut ours: BTreeSet<i32> = watched.population.processes.keys().copied().collect();
        ours.insert(std::process::id() as i32);
        let mut limits = machine::limits(&paths, &self.groups);
        limits.append(&mut summary::task_settings(&watched.population));

        let mut cpu = after.cpu_since(&self.before);
        cpu.insert("elapsed.seconds".into(), elapsed);
        let mut network = after.network_since(&self.before);
        add_rates(&mut network, &watched.series, elapsed);
        let mut pressure = after.pressure_since(&self.before);
        pressure.extend(self.client.iter().flat_map(ClientGroups::since));
        let counters = |observer: &str, totals: Totals| observation(observer, "/proc counters", totals);
        let (tracing_source, tracing_totals) = tracing::look();
        let mut found = vec![
            Observation { series: take_series(&mut watched.series, "cpu."), ..counters("cpu", cpu) },
            Observation { self_cost: watched.cost, lost: watched.lost, ..observation("threads", &watched.source, threads) },
            counters("memory", after.memory_since(&self.before)),
            counters("disk", after.disk_since(&self.before)),
            Observation { series: take_series(&mut watched.series, "net."), ..counters("network", network) },
            counters("pressure", pressure),
            observation("others", &after.others_source(&ours), after.others_since(&self.before, &ours)),
            counters("limits", limits),
            observation("tracing", &tracing_source, tracing_totals),
        ];
        if !syscalls.is_empty() {
            found.push(observation("syscalls", &watched.source, syscalls));
        }
        if !watched.mappings.is_empty() {
            found.push(observation("mappings", &watched.source, watched.mappings));
        }
        found.extend(sockets.map(sockets_observation));
        found.extend(self.neighbours.map(|neighbours| {
            let (source, totals) = neighbours.finish(&paths);
            observation("neighbours", &source, totals)
        }));
        found.extend(delays.map(|delays| match delays {
            Ok(totals) => observation("delays", "delay accounting (taskstats)", totals),
            Err(why) => observation("delays", &format!("none: {why}"), Totals::new()),
        }));
        found[0].self_cost = self.attach_cost + thread_cpu_seconds() - cost;
        Told { observations: found, recorded: watched.recorded, refused: None, sampled, events: watched.events }
    }
}

/// Opens the kernel's events, unless they are open already.
fn open(events: Option<Events>) -> Result<Taking, String> {
    let source = match events {
        Some(Events(source)) => source,
        None => source::open(MOST_EVENTS)?,
    };
    let pace = Pace::new(COST_SHARE, source.cpus(), source.event_cost());
    Ok(Taking::new(source, pace))
}

/// Fills in which workload and step observations are of.
pub fn label(observations: &mut [Observation], workload: &str, params: &Params) {
    for o in observations {
        workload.clone_into(&mut o.workload);
        o.params = params.clone();
    }
}

fn observation(observer: &str, source: &str, totals: Totals) -> Observation {
    Observation {
        workload: String::new(),
        params: Params::new(),
        observer: observer.to_owned(),
        source: source.to_owned(),
        series: Vec::new(),
        totals,
        self_cost: 0.0,
        lost: 0,
    }
}

fn watch(mut population: Population, level: Level, taking: Option<Result<Taking, String>>, begun: Instant, stop: &Stop) -> Watched {
    let paths = Paths::system();
    let mut series = Recorder::new(&paths, begun);
    let mut descriptors = Descriptors::default();
    let (mut taking, mut source) = match taking {
        Some(Ok(taking)) => {
            let source = taking.describe();
            (Some(taking), source)
        }
        Some(Err(why)) => (None, format!("/proc sampling ({why})")),
        None => (None, if level == Level::Counting { "/proc counters" } else { "/proc sampling" }.to_owned()),
    };
    let mut states = States::default();
    let mut looked = begun.elapsed().as_secs_f64();
    loop {
        let pause = match (&mut taking, level) {
            (_, Level::Counting) => SERIES_EVERY,
            (Some(taking), _) => match taking.take(&population, &mut descriptors, &mut |length| stop.sleep(length)) {
                Ok(pause) => pause,
                Err(e) => {
                    source = format!("{source}, ended early: {e}");
                    Duration::from_millis(100)
                }
            },
            (None, _) => {
                let cost = thread_cpu_seconds();
                states.look(&population, &mut descriptors);
                SAMPLE_EVERY.max(Duration::from_secs_f64((thread_cpu_seconds() - cost) / SAMPLE_SHARE))
            }
        };
        series.tick(&paths);
        if stop.sleep(if taking.is_some() { pause } else { jittered(pause) }) {
            break;
        }
        let now = begun.elapsed().as_secs_f64();
        if now - looked >= LOOK_EVERY {
            looked = now;
            population.look(now, false);
            descriptors.forget();
        }
    }
    finish_watch(population, level, taking, states, source, series)
}

fn finish_watch(population: Population, level: Level, taking: Option<Taking>, states: States, source: String, series: Recorder) -> Watched {
    let mut notes = Totals::new();
    let (mut lost, mut recorded, mut events, mut mappings) = (0, None, None, Totals::new());
    let seen = match (taking, level) {
        (_, Level::Counting) => Seen::Counters,
        (Some(taking), _) => {
            lost = taking.lost;
            notes.insert("trace.windows".into(), taking.count as f64);
            notes.insert("trace.windows.torn".into(), taking.torn as f64);
            notes.insert("trace.events".into(), taking.events as f64);
            mappings = taking.mappings(&population);
            let (tracer, to_follow, source) = taking.finish(&population);
            (recorded, events) = (Some(to_follow), Some(Events(source)));
            let (open, idle) = (tracer.window_seconds(), tracer.ready_while_idle());
            notes.insert("trace.window.seconds".into(), open);
            Seen::Traced(tracer.into_threads(), open, idle)
        }
        (None, _) => {
            notes.insert("samples.unreadable".into(), states.unreadable as f64);
            notes.insert("samples".into(), states.threads.values().map(|l| l.all).max().unwrap_or(0) as f64);
            Seen::Sampled(states.threads)
        }
    };
    Watched { population, seen, source, series: series.finish(), cost: thread_cpu_seconds(), lost, notes, recorded, mappings, events }
}

/// A pause between half and one and a half of what was asked, so that sampling does not beat with anything periodic.
fn jittered(pause: Duration) -> Duration {
    let n = fingerpost_sys::trace::monotonic_ns().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    pause.mul_f64(0.5 + n as f64 / 1024.0)
}

fn sample_sockets(servers: &[i32], share: f64, stop: &Stop) -> Sockets {
    let mut sampler = Sampler::find(servers.iter().copied())?;
    loop {
        let cost = thread_cpu_seconds();
        sampler.sample();
        let pause = SAMPLE_EVERY.max(Duration::from_secs_f64((thread_cpu_seconds() - cost) / share));
        if stop.sleep(jittered(pause)) {
            return Ok((sampler.finish(), thread_cpu_seconds()));
        }
    }
}

pub(crate) fn sockets_observation(sockets: Sockets) -> Observation {
    let (q, cost) = match sockets {
        Ok(found) => found,
        Err(why) => return observation("sockets", &format!("none: {why}"), Totals::new()),
    };
    let n = q.samples.max(1) as f64;
    let mut t = Totals::new();
    for (name, sum) in [
        ("connections.mean", q.connections),
        ("queue.server.mean", q.at_server),
        ("queue.client.mean", q.at_client),
        ("queue.network.mean", q.on_the_way),
        ("connecting.mean", q.connecting),
        ("accept.queue.mean", q.accept),
    ] {
        t.insert(name.into(), sum as f64 / n);
    }
    t.insert("accept.queue.max".into(), q.accept_max as f64);
    t.insert("accept.backlog".into(), q.backlog as f64);
    t.insert("sockets.samples".into(), q.samples as f64);
    t.insert("sockets.sample.seconds".into(), cost / n);
    if q.rtt_count > 0 {
        t.insert("sockets.rtt.us".into(), q.rtt_us / q.rtt_count as f64);
    }
    Observation { self_cost: cost, ..observation("sockets", "socket diagnosis, sampled", t) }
}

/// Readings over time: CPUs busy and stolen, network in and out.
struct Recorder {
    begun: Instant,
    last: (f64, Reading),
    points: [Vec<(f64, f64)>; 4],
}

impl Recorder {
    fn new(paths: &Paths, begun: Instant) -> Recorder {
        let reading = Reading::light(paths);
        Recorder { begun, last: (begun.elapsed().as_secs_f64(), reading), points: Default::default() }
    }

    fn tick(&mut self, paths: &Paths) {
        let now = self.begun.elapsed().as_secs_f64();
        let span = now - self.last.0;
        if span < 0.9 * SERIES_EVERY.as_secs_f64() {
            return;
        }
        let reading = Reading::light(paths);
        let [busy, steal] = reading.busy_cpus_since(&self.last.1);
        let mbit = reading.network_bytes_since(&self.last.1).map(|b| b as f64 * 8e-6 / span);
        for (points, value) in self.points.iter_mut().zip([busy, steal, mbit[0], mbit[1]]) {
            points.push((now, value));
        }
        self.last = (now, reading);
    }

    fn finish(self) -> Vec<Series> {
        let names = [("cpu.busy", "CPUs"), ("cpu.steal", "CPUs"), ("net.in", "Mbit/s"), ("net.out", "Mbit/s")];
        let series = |((name, unit), points): ((&str, &str), _)| Series { name: name.to_owned(), unit: unit.to_owned(), points };
        names.into_iter().zip(self.points).map(series).collect()
    }
}

fn take_series(series: &mut Vec<Series>, prefix: &str) -> Vec<Series> {
    let (taken, rest) = std::mem::take(series).into_iter().partition(|s| s.name.starts_with(prefix));
    *series = rest;
    taken
}

/// Average and peak rates in Mbit/s.
pub(crate) fn add_rates(network: &mut Totals, series: &[Series], elapsed: f64) {
    for side in ["in", "out"] {
        let bytes = network.get(&format!("net.{side}.bytes")).copied().unwrap_or(0.0);
        let average = bytes * 8e-6 / elapsed.max(1e-9);
        let peak = series.iter().filter(|s| s.name == format!("net.{side}")).flat_map(|s| &s.points).map(|p| p.1).fold(average, f64::max);
        network.insert(format!("net.{side}.mbit_s"), average);
        network.insert(format!("net.{side}.peak.mbit_s"), peak);
    }
}
