//! The session: attaches observers to a workload's processes and, at the end, says what they saw.

mod watch;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fingerpost_record::under_way::UnderWay;
use fingerpost_record::{Observation, Params};
use fingerpost_sys::cgroup::{Hierarchies, members};
use fingerpost_sys::network;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::sample;
use fingerpost_sys::subjects::Subjects;
use fingerpost_sys::trace::thread_cpu_seconds;

use crate::calls::Role;
use crate::clients::ClientGroups;
use crate::delays::Delayed;
use crate::follow::Answering;
use crate::follow::source::{self, Source};
use crate::follow::taking::{Known, MOST_EVENTS, Recorded, Taking};
use crate::follow::underway;
use crate::machine::{self, Reading, Totals};
use crate::neighbours::Neighbours;
use crate::population::Population;
use crate::series::{add_rates, take_series};
use crate::stacks::{self, Sampled};
use crate::summary;
use crate::tracing;

#[cfg(test)]
pub(crate) use watch::of_windows;
use watch::{
    OpenWindow, SAMPLE_EVERY, SAMPLE_SHARE, SocketSampling, Sockets, Stop, Watched, sample_sockets,
    watch,
};

/// The share of one CPU that sampling sockets may take where requests are followed too, as their leaves say more; and
/// of a service that somebody else started.
const ADDED_SHARE: f64 = 0.005;
const SERVICE_SHARE: f64 = 0.001;

/// How often, at most, of a service that somebody else started: a thread that wakes takes a CPU from a busy server, and
/// has the scheduler move others, which costs the service some times what the sample itself takes.
const SERVICE_EVERY: Duration = Duration::from_millis(100);

/// How long the first window waits for the first sample of sockets, at most: some ten times what one takes.
const FIRST_SAMPLE: Duration = Duration::from_millis(100);

/// Totals of what a server's connections received (`queues::Received`).
pub const RECEIVED_BYTES: &str = "sockets.received.bytes";
/// See [`RECEIVED_BYTES`].
pub const RECEIVED_SECONDS: &str = "sockets.received.seconds";

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

/// The kernel's events, open and switched off. Who watches one pass after the other hands them on: closing them takes
/// the kernel a good part of a second, in which it waits for every CPU once for each kind of event.
pub struct Events(Box<dyn Source + Send>);

/// What the sampling thread brings back, or why there is nothing.
type Sampling = Result<Sampled, String>;
/// The same of the thread that looks at requests under way, with the CPU seconds that it took.
type Looking = Result<(UnderWay, f64), String>;

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
    window: Arc<OpenWindow>,
    /// Of one that is traced.
    stacks: Option<io::Result<JoinHandle<Sampling>>>,
    /// Of a service that somebody else started.
    under_way: Option<io::Result<JoinHandle<Looking>>>,
    /// At the levels that attribute.
    delays: Option<Result<Delayed, String>>,
    attach_cost: f64,
}

/// What can be opened before the load begins: memory for events costs milliseconds, which a busy machine does not give
/// at once.
pub struct Prepared {
    level: Level,
    events: Option<Result<Events, String>>,
    cost: f64,
}

impl Prepared {
    /// Opens what this level needs, switched off; the events of a pass before are taken where there are any.
    pub fn new(level: Level, events: Option<Events>) -> Prepared {
        let cost = thread_cpu_seconds();
        let open = || events.map_or_else(|| source::open(MOST_EVENTS).map(Events), Ok);
        let events = (level == Level::Tracing).then(open);
        Prepared {
            level,
            events,
            cost: thread_cpu_seconds() - cost,
        }
    }

    /// Attaches to the subjects' processes, their descendants and threads. What is created later is found on the way.
    /// Load generators that keep an account of their own do so while events are taken.
    pub fn attach(self, subjects: &Subjects, known: Known) -> Session {
        let subject = subjects.servers.first().copied();
        let client = subjects
            .clients
            .iter()
            .find(|c| !subjects.servers.contains(c))
            .copied();
        self.attach_to(
            [subject, client],
            || Population::find(subjects),
            client.is_some(),
            known,
        )
    }

    /// Attaches to a service that somebody else started. How long it is to be watched says how what can be kept is
    /// spread over that time; `lately` is given the latest windows about once a second, to be followed while the others
    /// are still to come.
    pub fn attach_service(
        self,
        service: &Service,
        length: Option<Duration>,
        lately: Option<Sender<Recorded>>,
    ) -> Session {
        let pids = || {
            service.pids.iter().copied().chain(
                service
                    .groups
                    .iter()
                    .flat_map(|dir| members::of_directory(dir)),
            )
        };
        let subject = pids().next();
        let population = Population::of_service(&service.pids, &service.groups);
        let answering = Answering::of(population.processes.keys().copied());
        let listens = !answering.is_empty();
        let known = Known {
            service: Some(answering),
            length,
            lately,
            ..Known::default()
        };
        let (pids, groups) = (service.pids.clone(), service.groups.clone());
        let mut session = self.attach_to([subject, None], || population, listens, known);
        session.look_at_requests(pids, groups);
        session
    }

    fn attach_to(
        self,
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
        let Prepared {
            level,
            events,
            cost: prepared,
        } = self;
        let taking = events.map(|events| events.map(|Events(source)| Taking::new(source, known)));
        let places = taking
            .as_ref()
            .and_then(|t| t.as_ref().ok()?.about().closing.clone())
            .filter(|_| service);
        let followed = matches!(taking, Some(Ok(_)));
        let cost = thread_cpu_seconds();
        let stop = Arc::new(Stop::default());
        let client = ClientGroups::begin(&paths, client, &groups);
        let before = Reading::take(&paths, &groups);
        let population = find();
        let delays = (level != Level::Counting)
            .then(|| Delayed::begin(&paths, population.processes.keys().copied()));
        let begun = Instant::now();
        let servers = servers_of(&population);
        let closing = population.clone();
        let closing_pids = servers.clone();
        let window = Arc::new(OpenWindow::default());
        let stacks = sampled.then(|| {
            let servers = servers.clone();
            begin(&stop, &window, |stop, window| {
                sample_stacks(servers, stop, window)
            })
        });
        let (every, share) = how_often(followed, service);
        let (begins, begun_sampling) = mpsc::channel();
        let how = SocketSampling {
            every,
            share,
            closing: places,
            begins,
            between_windows: service,
        };
        let sockets = (level != Level::Counting && separate).then(|| {
            begin(&stop, &window, move |stop, window| {
                sample_sockets(&servers, how, stop, window)
            })
        });
        let neighbours = service.then(|| Neighbours::begin(&paths, closing_pids));
        if service && sockets.is_some() {
            // A window that opened now would show requests that wait for the CPU that this has. It has begun, or ended,
            // when nobody sends; on a machine that gives it no CPU for so long, watching begins without.
            let _ = begun_sampling.recv_timeout(FIRST_SAMPLE);
        }
        let looks = Arc::clone(&window);
        let watcher = begin(&stop, &window, move |stop, window| {
            watch(population, level, taking, begun, stop, window)
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
            neighbours,
            window: looks,
            stacks,
            under_way: None,
            delays,
            attach_cost: prepared + thread_cpu_seconds() - cost,
        }
    }
}

/// All processes but the clients'.
fn servers_of(population: &Population) -> Vec<i32> {
    let is_client = |pid: &i32| population.roles.get(pid) == Some(&Role::Client);
    population
        .processes
        .keys()
        .copied()
        .filter(|pid| !is_client(pid))
        .collect()
}

/// How often sockets are sampled, at most, and the share of one CPU that it may take.
fn how_often(followed: bool, service: bool) -> (Duration, f64) {
    match (followed, service) {
        (true, true) => (SERVICE_EVERY, SERVICE_SHARE),
        (true, false) => (SAMPLE_EVERY, ADDED_SHARE),
        (false, _) => (SAMPLE_EVERY, SAMPLE_SHARE),
    }
}

/// Begins a thread that watches until it is told to stop, and may wait for the end of a window.
fn begin<T: Send + 'static>(
    stop: &Arc<Stop>,
    window: &Arc<OpenWindow>,
    watch: impl FnOnce(&Stop, &OpenWindow) -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let (stop, window) = (Arc::clone(stop), Arc::clone(window));
    thread::Builder::new().spawn(move || watch(&stop, &window))
}

fn sample_stacks(servers: Vec<i32>, stop: &Stop, window: &OpenWindow) -> Sampling {
    stacks::watch(servers, |length| {
        let asked = stop.sleep(length);
        window.wait(stop);
        asked
    })
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
    /// Which functions had the CPU, still to be unwound and named; nothing where that was not asked for, or why it
    /// could not be had.
    pub sampled: Option<Sampling>,
    /// Requests of a service that had no answer yet, or why that is not known; nothing of other workloads.
    pub under_way: Option<Result<UnderWay, String>>,
    /// What the next pass can be watched with.
    pub events: Option<Events>,
}

impl Told {
    /// What there is to tell where the system refuses the thread that observes.
    pub fn refused(error: &io::Error) -> Told {
        Told::without(&format!("could not be started: {error}"))
    }

    fn without(why: &str) -> Told {
        Told {
            refused: Some(format!("the thread that observes the load {why}")),
            ..Told::default()
        }
    }
}

impl Session {
    /// Attaches at once: [`Prepared::new`] and [`Prepared::attach`].
    pub fn attach(subjects: &Subjects, level: Level) -> Session {
        Prepared::new(level, None).attach(subjects, Known::default())
    }

    /// Begins to look at the requests that a service has not answered.
    fn look_at_requests(&mut self, pids: Vec<i32>, groups: Vec<PathBuf>) {
        let look = |stop: &Stop, window: &OpenWindow| {
            underway::watch(pids, groups, None, |length| {
                let asked = stop.sleep(length);
                window.wait(stop);
                asked
            })
        };
        self.under_way = Some(begin(&self.stop, &self.window, look));
    }

    /// Detaches and tells what was seen. The workload's name and parameters are for the caller to fill in ([`label`]).
    pub fn finish(mut self) -> Told {
        let cost = thread_cpu_seconds();
        let paths = Paths::system();
        let elapsed = self.begun.elapsed().as_secs_f64();
        // At once: on a busy machine the watching thread ends when the load may be over, and its threads gone.
        self.population.look(elapsed, true);
        let after = Reading::take(&paths, &self.groups);
        let sides = self
            .population
            .processes
            .keys()
            .map(|&pid| (pid, summary::side_of(&self.population, pid)));
        let delays = self.delays.map(|delays| delays.map(|d| d.finish(sides)));
        self.stop.ask();
        let mut watched = match self.watcher.map(JoinHandle::join) {
            Ok(Ok(watched)) => watched,
            Ok(Err(_)) => return Told::without("met a defect"),
            Err(e) => return Told::refused(&e),
        };
        let sockets = self
            .sockets
            .and_then(|thread| ended(thread, "samples them"));
        let sampled = self
            .stacks
            .and_then(|thread| ended(thread, "samples stacks"));
        let under_way = self
            .under_way
            .and_then(|thread| ended(thread, "looks at requests under way"));
        watched.population.take_over(self.population);
        let (mut threads, syscalls) = summary::totals(&watched.population, &watched.seen, elapsed);
        threads.append(&mut watched.notes);
        let mut ours: BTreeSet<i32> = watched.population.processes.keys().copied().collect();
        ours.insert(std::process::id() as i32);
        let limits = limits(&paths, &self.groups, &watched.population);

        let mut cpu = after.cpu_since(&self.before);
        cpu.insert("elapsed.seconds".into(), elapsed);
        let mut network = after.network_since(&self.before);
        add_rates(&mut network, &watched.series, elapsed);
        let mut pressure = after.pressure_since(&self.before);
        pressure.extend(self.client.iter().flat_map(ClientGroups::since));
        let counters =
            |observer: &str, totals: Totals| observation(observer, "/proc counters", totals);
        let (tracing_source, tracing_totals) = tracing::look();
        let mut found = vec![
            Observation {
                series: take_series(&mut watched.series, "cpu."),
                ..counters("cpu", cpu)
            },
            threads_observation(&mut watched, threads),
            counters("memory", after.memory_since(&self.before)),
            counters("disk", after.disk_since(&self.before)),
            Observation {
                series: take_series(&mut watched.series, "net."),
                ..counters("network", network)
            },
            counters("pressure", pressure),
            observation(
                "others",
                &after.others_source(&ours),
                after.others_since(&self.before, &ours, |pid| {
                    sample::status(&PathBuf::from(format!("/proc/{pid}")))?.effective_user
                }),
            ),
            counters("limits", limits),
            observation("tracing", &tracing_source, tracing_totals),
        ];
        for (observer, totals) in [("syscalls", syscalls), ("mappings", watched.mappings)] {
            found.extend(
                (!totals.is_empty()).then(|| observation(observer, &watched.source, totals)),
            );
        }
        found.extend(sockets.map(sockets_observation));
        let neighbours = self.neighbours.map(|neighbours| neighbours.finish(&paths));
        found.extend(neighbours.map(|(source, totals)| observation("neighbours", source, totals)));
        found.extend(delays.map(|delays| match delays {
            Ok(totals) => observation("delays", "delay accounting (taskstats)", totals),
            Err(why) => none("delays", &why),
        }));
        found[0].self_cost = self.attach_cost + thread_cpu_seconds() - cost;
        let under_way = under_way.map(|told| {
            told.map(|(under_way, cost)| {
                found[0].self_cost += cost;
                under_way
            })
        });
        Told {
            observations: found,
            recorded: watched.recorded,
            refused: None,
            sampled,
            under_way,
            events: watched.events,
        }
    }
}

fn threads_observation(watched: &mut Watched, totals: Totals) -> Observation {
    let series = take_series(&mut watched.series, "trace.");
    Observation {
        series,
        self_cost: watched.cost,
        lost: watched.lost,
        ..observation("threads", &watched.source, totals)
    }
}

/// What a thread gave when it ended. (A defect in it ends the process; in tests it is nothing.)
fn ended<T>(
    thread: io::Result<JoinHandle<Result<T, String>>>,
    does: &str,
) -> Option<Result<T, String>> {
    match thread {
        Ok(thread) => thread.join().ok(),
        Err(e) => Some(Err(format!(
            "the thread that {does} could not be started: {e}"
        ))),
    }
}

/// What limits the subject: its control groups, its tasks' own settings, and its network.
fn limits(paths: &Paths, groups: &Hierarchies, population: &Population) -> Totals {
    let mut limits = machine::limits(paths, groups);
    limits.append(&mut summary::task_settings(population));
    limits.append(&mut shaped(network::shapers()));
    limits
}

/// What limits or delays packets, of the network that this process is in, which need not be that of a container's
/// service.
pub(crate) fn shaped(shapers: io::Result<usize>) -> Totals {
    shapers
        .ok()
        .map(|count| ("net.shapers".to_owned(), count as f64))
        .into_iter()
        .collect()
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
        observer: observer.to_owned(),
        source: source.to_owned(),
        totals,
        ..Observation::default()
    }
}

/// What could not be observed, and why.
fn none(observer: &str, why: &str) -> Observation {
    observation(observer, &format!("none: {why}"), Totals::new())
}

pub(crate) fn sockets_observation(sockets: Sockets) -> Observation {
    let (q, cost) = match sockets {
        Ok(found) => found,
        Err(why) => return none("sockets", &why),
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
    if let Some(received) = q.received {
        t.insert(RECEIVED_BYTES.into(), received.bytes as f64);
        t.insert(RECEIVED_SECONDS.into(), received.seconds);
    }
    if q.rtt_count > 0 {
        t.insert("sockets.rtt.us".into(), q.rtt_us / q.rtt_count as f64);
    }
    Observation {
        self_cost: cost,
        ..observation("sockets", "socket diagnosis, sampled", t)
    }
}
