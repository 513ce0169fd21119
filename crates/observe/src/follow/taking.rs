//! Windows of events while a workload runs, and the requests followed when it is over.
//!
//! Following takes more CPU time than taking, so it waits until the load has ended: what it costs then slows nobody.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use fingerpost_record::Paths;
use fingerpost_sys::cgroup::members;
use fingerpost_sys::stamps::{Stamp, Stamps};
use fingerpost_sys::trace::thread_cpu_seconds;

use super::answering::{Answering, AtOnce, Ends, Looker};
use super::event::{Event, What};
use super::leaf::Side;
use super::pace::Pace;
use super::sockets::Generations;
use super::source::{Source, Window};
use super::{Follower, Requested, Stretch};
use crate::calls::{Fd, Role, Wait};
use crate::machine::Totals;
use crate::mappings::Mappings;
use crate::population::{Descriptors, Population};
use crate::states;
use crate::tracer::Tracer;

/// Events that are kept to be followed: with 48 bytes each, 48 MB.
pub const MOST_EVENTS: usize = 1_000_000;

/// Threads of a window that no event concerned, with their processes and what they waited for all the time.
pub type Silent = HashMap<i32, (i32, Wait)>;

/// The pause after a source that has no more windows.
const NO_MORE: Duration = Duration::from_secs(1);

/// What is known of a load before it is watched.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The load generators' own account of each round trip, where they keep one.
    pub stamps: Option<Stamps>,
    /// How long a request takes: nearly all of them, where that is known, else in the mean.
    pub latency: Option<Duration>,
    /// Where it answers, of a service that somebody else started and whose clients are not known.
    pub service: Option<Answering>,
    /// How long it is to be watched, so that what can be kept is spread over that time.
    pub length: Option<Duration>,
}

/// Takes windows.
pub struct Taking {
    source: Box<dyn Source + Send>,
    pace: Pace,
    tracer: Tracer,
    stamps: Option<Stamps>,
    turns: Vec<Stamp>,
    windows: Vec<(Window, Silent)>,
    kept: usize,
    /// The parent of each process that was seen; 0 where it had ended.
    parents: HashMap<i32, i32>,
    own: i32,
    looker: Option<Looker>,
    mappings: Mappings,
    /// The control group of each process that is not the service's.
    groups: HashMap<i32, String>,
    length: Option<Duration>,
    begun: Instant,
    /// CPU seconds of this thread.
    spent: f64,
    /// Events that were lost.
    pub lost: u64,
    /// Events that were read.
    pub events: u64,
    /// Windows that were opened.
    pub count: u64,
    /// Windows that lost events and were left out.
    pub torn: u64,
}

impl Taking {
    /// From a source, with windows as `pace` says.
    pub fn new(source: Box<dyn Source + Send>, pace: Pace) -> Taking {
        let own = std::process::id() as i32;
        Taking {
            source,
            pace,
            tracer: Tracer::new(),
            stamps: None,
            turns: Vec::new(),
            windows: Vec::new(),
            kept: 0,
            parents: HashMap::new(),
            own,
            looker: None,
            mappings: Mappings::default(),
            groups: HashMap::new(),
            length: None,
            begun: Instant::now(),
            spent: 0.0,
            lost: 0,
            events: 0,
            count: 0,
            torn: 0,
        }
    }

    /// Has the load generators keep their own account while windows are open, and makes these long enough for what is known.
    pub fn prepare(&mut self, known: Known) {
        self.stamps = known.stamps;
        self.looker = known.service.map(Looker::new);
        (self.length, self.begun) = (known.length, Instant::now());
        if let Some(latency) = known.latency {
            self.pace.expect(latency);
        }
    }

    /// How the events are had, in words.
    pub fn describe(&self) -> String {
        self.source.describe()
    }

    /// Takes one window. `wait` sleeps, and returns true when the end was asked for. Returns how long to pause before the next.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn take(
        &mut self,
        population: &Population,
        descriptors: &mut Descriptors,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> std::io::Result<Duration> {
        let before = thread_cpu_seconds();
        let pause = self.take_one(population, descriptors, wait, before);
        if !matches!(pause, Ok(Duration::ZERO)) {
            self.source.rest();
        }
        self.spent += thread_cpu_seconds() - before;
        pause
    }

    fn take_one(
        &mut self,
        population: &Population,
        descriptors: &mut Descriptors,
        wait: &mut dyn FnMut(Duration) -> bool,
        before: f64,
    ) -> std::io::Result<Duration> {
        for (&tid, thread) in &population.threads {
            self.tracer.watch(thread.pid, tid, thread.role);
        }
        if let Some(stamps) = &self.stamps {
            stamps.set(true);
        }
        let window = self.source.window(self.pace.length(), wait);
        let turns = self.stamps.as_ref().map(|stamps| {
            stamps.set(false);
            stamps.drain()
        });
        let Some(window) = window? else { return Ok(NO_MORE) };
        self.count += 1;
        self.events += window.events.len() as u64;
        self.lost += window.lost;
        let (length, events) = (Duration::from_nanos(window.end - window.start), window.events.len() as u64);
        if window.lost > 0 {
            // A window with holes would book time to the wrong cause.
            self.torn += 1;
        } else {
            self.find_parents(&window);
            self.mappings.window(window.start, window.end, &window.events);
            self.look(&window, length, population);
            let silent = self.trace(&window, descriptors);
            if self.kept + window.events.len() <= MOST_EVENTS {
                self.kept += window.events.len();
                self.windows.push((window, silent));
                let turns = turns.map(|t| t.stamps).unwrap_or_default();
                self.learn(length, &turns);
                self.turns.extend(turns);
            }
        }
        let pause = self.pace.pause(length, events, thread_cpu_seconds() - before);
        // Of a long time no more is kept than of a short one: then windows are further apart.
        let due = self.length.map_or(Duration::ZERO, |length| length.mul_f64(self.kept as f64 / MOST_EVENTS as f64));
        Ok(pause.max(due.saturating_sub(self.begun.elapsed())))
    }

    /// What a window tells of a service at once: how long its requests take, which sockets answer, and who else was there.
    fn look(&mut self, window: &Window, open: Duration, population: &Population) {
        let Some(looker) = &mut self.looker else { return };
        let parents = &self.parents;
        let known = |pid: i32| population.processes.contains_key(&pid);
        let ours = |pid: i32| known(pid) || parents.get(&pid).is_some_and(|parent| known(*parent));
        for e in window.events.iter().filter(|e| e.pid > 0 && !ours(e.pid)) {
            self.groups.entry(e.pid).or_insert_with(|| members::group_of(e.pid).unwrap_or_default());
        }
        let AtOnce { latencies, cut } = looker.look(window, ours);
        let p99 = latencies.get((latencies.len() * 99 / 100).min(latencies.len().saturating_sub(1))).copied();
        if !latencies.is_empty() || cut > 0 {
            self.pace.learn(open, p99, latencies.len() as u64, cut);
        }
    }

    /// Windows become long against requests, as the load generator's own account tells of them: of each connection the request that is
    /// under way when a window ends is cut.
    fn learn(&mut self, open: Duration, turns: &[Stamp]) {
        let mut latencies: Vec<u64> = turns.iter().map(|t| t.end.saturating_sub(t.start)).collect();
        latencies.sort_unstable();
        let p99 = latencies.get((latencies.len() * 99 / 100).min(latencies.len().saturating_sub(1))).copied();
        let connections: HashSet<(i32, u32)> = turns.iter().map(|t| (t.tid, t.connection)).collect();
        if !turns.is_empty() {
            self.pace.learn(open, p99.map(Duration::from_nanos), turns.len() as u64, connections.len() as u64);
        }
    }

    /// Looks up the parents of processes that a window shows for the first time: the window itself tells those of processes that began in
    /// it, and may have ended in it; the others are asked for as long as they live.
    fn find_parents(&mut self, window: &Window) {
        let forked = |e: &Event| match e.what {
            What::Fork { child } => Some((child, e.pid)),
            _ => None,
        };
        let born: HashMap<i32, i32> = window.events.iter().filter_map(forked).collect();
        for e in window.events.iter().filter(|e| e.pid > 0) {
            self.parents.entry(e.pid).or_insert_with(|| {
                born.get(&e.pid).copied().unwrap_or_else(|| {
                    let status = std::fs::read_to_string(format!("/proc/{}/status", e.pid)).unwrap_or_default();
                    status.lines().find_map(|l| l.strip_prefix("PPid:")?.trim().parse().ok()).unwrap_or(0)
                })
            });
        }
    }

    /// Adds up threads' states and calls, while their descriptors are still open.
    fn trace(&mut self, window: &Window, descriptors: &mut Descriptors) -> Silent {
        descriptors.forget();
        let own = self.own;
        let mut fd = |pid: i32, n: i32| if pid == own { Fd::Unknown } else { descriptors.kind(pid, n) };
        self.tracer.open(window.start);
        for e in &window.events {
            self.tracer.event(e, &mut fd);
        }
        let unheard = self.tracer.close(window.end, &mut fd);
        let seconds = (window.end - window.start) as f64 * 1e-9;
        let mut silent = Silent::new();
        for (pid, tid) in unheard {
            let role = self.tracer.role(pid);
            if let Some(state) = states::state(pid, tid, role, descriptors, &mut 0) {
                self.tracer.whole_window(tid, seconds, state);
                if let Some(wait) = state {
                    silent.insert(tid, (pid, wait));
                }
            }
        }
        silent
    }

    /// How soon the memory that the subjects' processes asked for was touched; empty where the kernel tells no faults.
    pub fn mappings(&self, population: &Population) -> Totals {
        let role = |pid: i32| population.roles().get(&pid).copied();
        // The nearest ancestor that was looked for says whose a process is, as of requests.
        let ours = |pid: i32| -> bool {
            let mut at = pid;
            for _ in 0..16 {
                match (role(at), self.parents.get(&at)) {
                    (Some(role), _) => return role != Role::Client,
                    (None, Some(parent)) => at = *parent,
                    (None, None) => return false,
                }
            }
            false
        };
        self.mappings.totals(ours)
    }

    /// Ends taking: the sums of threads' states, what is to be followed, and the source, still open.
    pub fn finish(self, population: &Population) -> (Tracer, Recorded, Box<dyn Source + Send>) {
        let of_service: HashSet<String> = population.processes.keys().filter_map(|&pid| members::group_of(pid)).collect();
        let mut groups = self.groups;
        groups.retain(|_, group| !group.is_empty() && !of_service.contains(group));
        let recorded = Recorded {
            service: self.looker.map(Looker::finish),
            groups: groups.into_iter().map(|(pid, group)| (pid, members::short(&group))).collect(),
            source: self.source.describe(),
            roles: population.roles().clone(),
            parents: self.parents.into_iter().chain(population.processes.iter().map(|(&pid, p)| (pid, p.parent))).collect(),
            first: population.first(),
            windows: self.windows,
            turns: self.turns,
            lost: self.lost,
            torn: self.torn,
            spent: self.spent,
        };
        (self.tracer, recorded, self.source)
    }
}

/// Windows that were taken, to be followed when the load has ended.
pub struct Recorded {
    service: Option<Ends>,
    groups: HashMap<i32, String>,
    source: String,
    roles: HashMap<i32, Role>,
    parents: HashMap<i32, i32>,
    first: Option<i32>,
    windows: Vec<(Window, Silent)>,
    turns: Vec<Stamp>,
    lost: u64,
    torn: u64,
    spent: f64,
}

impl Recorded {
    /// Follows the requests of all windows. The workload's name and parameters are for the caller to fill in.
    pub fn follow(mut self) -> Paths {
        let what = match self.first.filter(|pid| self.roles.get(pid) == Some(&Role::Whole)) {
            None => Requested::ByClients,
            Some(pid) if self.turns.is_empty() => Requested::Command(pid),
            Some(_) => Requested::ByThreads,
        };
        self.number();
        self.followed(what).0
    }

    /// Follows the requests that were made at a service, or, where there were none, the time of its processes.
    pub fn follow_service(mut self) -> FollowedService {
        self.number();
        let (paths, stretches) = self.followed(Requested::ByArrivals);
        if paths.followed + paths.cut > 0 {
            return FollowedService { paths, stretches };
        }
        let spent = paths.self_cost - self.spent;
        let (mut paths, _) = self.followed(Requested::Programs);
        paths.self_cost += spent;
        FollowedService { paths, stretches: Vec::new() }
    }

    /// Gives every socket in the windows a number of its own.
    fn number(&mut self) {
        let mut generations = Generations::default();
        self.windows.iter_mut().filter(|(w, _)| w.lost == 0).for_each(|(w, _)| generations.number(&mut w.events));
    }

    fn followed(&self, what: Requested) -> (Paths, Vec<Stretch>) {
        let before = thread_cpu_seconds();
        let mut follower = Follower::default();
        for (&pid, role) in &self.roles {
            follower.side(pid, side(*role));
        }
        for &pid in self.parents.keys() {
            if let Some(side) = self.inherited(pid) {
                follower.side(pid, side);
            }
        }
        self.parents.iter().for_each(|(&child, &parent)| follower.child(parent, child));
        if let Some((ports, ends)) = &self.service {
            follower.service(ports.clone(), ends.iter().copied());
        }
        self.groups.iter().for_each(|(&pid, group)| follower.group(pid, format!("({group})")));
        // Which sockets belong together is learned from all windows before any is followed.
        self.windows.iter().for_each(|(w, _)| follower.learn_numbered(w));
        let turns: Vec<(i32, u64, u64)> = self.turns.iter().map(|t| (t.tid, t.start, t.end)).collect();
        for (window, silent) in &self.windows {
            follower.window(window, silent, &turns, what);
        }
        let stretches = follower.stretches();
        let mut paths = follower.finish(self.source.clone());
        (paths.lost, paths.windows) = (self.lost, paths.windows + self.torn);
        paths.self_cost = self.spent + thread_cpu_seconds() - before;
        (paths, stretches)
    }

    /// The side of a process that was not looked for: that of the nearest of its ancestors that was.
    fn inherited(&self, pid: i32) -> Option<Side> {
        let mut at = pid;
        for _ in 0..16 {
            if let Some(role) = self.roles.get(&at) {
                return Some(side(*role));
            }
            at = *self.parents.get(&at)?;
        }
        None
    }
}

/// The requests of a service.
pub struct FollowedService {
    /// Where their time went; of a service without requests, that of its processes.
    pub paths: Paths,
    /// What each window showed; empty for a service without requests.
    pub stretches: Vec<Stretch>,
}

fn side(role: Role) -> Side {
    if role == Role::Client { Side::Client } else { Side::Server }
}
