//! Windows of events while a workload runs, and the requests followed when it is over.
//!
//! Following takes more CPU time than taking, so it waits until the load has ended: what it costs then slows nobody.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fingerpost_record::Paths;
use fingerpost_sys::stamps::{Stamp, Stamps};
use fingerpost_sys::trace::thread_cpu_seconds;

use super::leaf::Side;
use super::pace::Pace;
use super::source::{Source, Window};
use super::{Follower, Requested};
use crate::calls::{Fd, Role, Wait};
use crate::population::{Descriptors, Population};
use crate::states;
use crate::tracer::Tracer;

/// Events that are kept to be followed: with 48 bytes each, some 70 MB.
pub const MOST_EVENTS: usize = 1_500_000;

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
            let silent = self.trace(&window, descriptors);
            if self.kept + window.events.len() <= MOST_EVENTS {
                self.kept += window.events.len();
                self.windows.push((window, silent));
                let turns = turns.map(|t| t.stamps).unwrap_or_default();
                self.learn(length, &turns);
                self.turns.extend(turns);
            }
        }
        Ok(self.pace.pause(length, events, thread_cpu_seconds() - before))
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

    /// Looks up the parents of processes that a window shows for the first time, as long as they live.
    fn find_parents(&mut self, window: &Window) {
        for e in window.events.iter().filter(|e| e.pid > 0) {
            self.parents.entry(e.pid).or_insert_with(|| {
                let status = std::fs::read_to_string(format!("/proc/{}/status", e.pid)).unwrap_or_default();
                status.lines().find_map(|l| l.strip_prefix("PPid:")?.trim().parse().ok()).unwrap_or(0)
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

    /// Ends taking: the sums of threads' states, what is to be followed, and the source, still open.
    pub fn finish(self, population: &Population) -> (Tracer, Recorded, Box<dyn Source + Send>) {
        let recorded = Recorded {
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
        let what = match self.first.filter(|pid| self.roles.get(pid) == Some(&Role::Whole)) {
            None => Requested::ByClients,
            Some(pid) if self.turns.is_empty() => Requested::Command(pid),
            Some(_) => Requested::ByThreads,
        };
        // Which sockets belong together is learned from all windows before any is followed.
        self.windows.iter_mut().for_each(|(w, _)| follower.learn(w));
        let turns: Vec<(i32, u64, u64)> = self.turns.iter().map(|t| (t.tid, t.start, t.end)).collect();
        for (window, silent) in &self.windows {
            follower.window(window, silent, &turns, what);
        }
        let mut paths = follower.finish(self.source);
        (paths.lost, paths.windows) = (self.lost, paths.windows + self.torn);
        paths.self_cost = self.spent + thread_cpu_seconds() - before;
        paths
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

fn side(role: Role) -> Side {
    if role == Role::Client { Side::Client } else { Side::Server }
}
