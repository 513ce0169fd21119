//! Requests followed through the kernel, one by one: events in, paths out. Nothing is judged here, and nothing is
//! scaled or fitted.
//!
//! ```text
//! source (windows of events) → timelines (threads, CPUs) ─┐
//!                              sockets, disks ────────────┼→ request: turns at sockets
//!                                                                → walk → pieces → sums → record::Paths
//! ```
//!
//! `event` is the vocabulary; a [`source::Source`] has the kernel's events in windows; a [`Follower`] takes one
//! window after the other.

use std::collections::{HashMap, HashSet};

use fingerpost_record::paths::{self, MOST_ASKED};
use fingerpost_record::{Paths, Task};

mod answering;
mod counting;
mod disk;
pub(crate) mod event;
mod leaf;
mod pace;
mod request;
mod served;
mod sockets;
pub mod source;
mod sums;
mod taken;
pub(crate) mod taking;
mod timeline;
mod turns;
pub mod underway;
mod waiting;
mod walk;
pub mod whole;

pub use answering::Answering;
pub use counting::Counter;
use disk::Disks;
pub use leaf::Side;
use request::{Asked, Request, Requests};
use served::Served;
use sockets::{Connections, End, Generations, Sockets};
use source::Window;
use sums::Sums;
pub use taking::{FollowedService, Known, Recorded};
use timeline::{Silent, Timelines, timelines};
use walk::Walker;

use crate::stacks::held::Held;

/// Follows the requests of a workload, window by window.
#[derive(Default)]
pub struct Follower {
    sides: HashMap<i32, Side>,
    connections: Connections,
    generations: Generations,
    sums: Sums,
    /// What requests asked of others, by the thread that answered.
    asked: HashMap<i32, Asked>,
    tasks: HashMap<i32, Task>,
    /// What a record keeps, as far as it is known.
    paths: Paths,
    /// Which processes each made.
    children: HashMap<i32, Vec<i32>>,
    /// The load generator's own latencies within the windows, in nanoseconds.
    generator: Vec<u64>,
    stretches: Vec<Stretch>,
    at_ports: AtPorts,
    /// When which thread had a request, of those that arrived at a service; and of those in windows that were opened for
    /// slow ones.
    held: Vec<Held>,
    held_slow: Vec<Held>,
    /// The control group of each process that is not the service's, where that is known.
    groups: HashMap<i32, String>,
    /// CPUs that any thread of a service may use: see [`walk::Walker::cpus`].
    cpus: Vec<u16>,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// A turn that a load generator makes at a server.
    ByClients,
    /// A stretch of a thread's time that the program itself tells: an embedded database has no socket to see it at.
    ByThreads,
    /// What arrives at the sockets at which a service answers, from any client.
    ByArrivals,
    /// All of the time of this process.
    Command(i32),
    /// All of the time of the processes of a service.
    Programs,
}

/// The requests that one window showed, or a part of a long one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Its length in seconds.
    pub seconds: f64,
    /// Latency of each request that was followed and ended in it, in nanoseconds, in the order of their ends.
    pub latencies: Vec<u64>,
    /// Requests that the window's beginning or end cut; with the window's first part.
    pub cut: u64,
}

/// What came at the TCP ports of a service in all windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtPorts {
    /// Bytes that were read.
    pub bytes: u64,
    /// Requests that were followed.
    pub requests: u64,
}

/// Processes of which it is looked what their interpreter runs.
const MOST_PROGRAMS: usize = 200;
/// Windows that are twice as long as this, in nanoseconds, are told in parts.
const STRETCH: u64 = 100_000_000;

impl Stretch {
    /// The parts of a window.
    fn of(window: &Window, requests: &[(u64, u64)], cut: u64) -> Vec<Stretch> {
        let length = window.end.saturating_sub(window.start).max(1);
        let parts = (length / STRETCH).max(1);
        let mut found = vec![
            Stretch {
                seconds: length as f64 * 1e-9 / parts as f64,
                ..Stretch::default()
            };
            parts as usize
        ];
        found[0].cut = cut;
        for (begin, end) in requests {
            let part = u128::from(end.saturating_sub(window.start)) * u128::from(parts)
                / u128::from(length);
            found[(part as usize).min(parts as usize - 1)]
                .latencies
                .push(end - begin);
        }
        found
    }
}

/// The part of a turn of the load generator's that a followed request is at least, for the two to be the same.
const SAME: f64 = 0.95;

/// Whether a turn that a window's edge cuts is of a request that was followed: the generator's account begins a moment
/// before the call that sends and ends a moment after the one that reads, and a request may lie in the window whose
/// turn does not quite.
fn is_of_one(turn: &(i32, u64, u64), followed: &[(u64, u64)]) -> bool {
    let least = SAME * (turn.2 - turn.1) as f64;
    followed
        .iter()
        .any(|&(begin, end)| turn.1 <= begin && end <= turn.2 && (end - begin) as f64 >= least)
}

/// When requests that were under way as a window was opened for them had begun, by their socket.
fn begun_before(window: &Window) -> HashMap<u64, u64> {
    let arrivals = window.slow.iter().flatten().zip(&window.events);
    arrivals
        .filter_map(|(&begun, e)| match e.what {
            event::What::Arrived { socket } => Some((socket, begun)),
            _ => None,
        })
        .collect()
}

/// What requests asked of others, by who answered, the most time first.
fn asked(found: &HashMap<i32, Asked>, tasks: &HashMap<i32, Task>) -> Vec<paths::Asked> {
    let mut by_name: HashMap<String, Asked> = HashMap::new();
    for (tid, new) in found {
        let name = tasks
            .get(tid)
            .map_or_else(String::new, |task| task.name().into_owned());
        let known = by_name.entry(name).or_default();
        known.turns += new.turns;
        known.time += new.time;
    }
    let mut all: Vec<paths::Asked> = by_name
        .into_iter()
        .map(|(name, of)| paths::Asked {
            name,
            turns: of.turns,
            seconds: of.time as f64 * 1e-9,
        })
        .collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.name.cmp(&b.name)));
    all.truncate(MOST_ASKED);
    all
}

/// The threads that had a request between its reading and the end of its answer: who read it, and who answered.
fn holders(served: &Served, request: &Request) -> impl Iterator<Item = Held> + use<> {
    let latency = request.end - request.begin;
    let held = |tid| Held {
        tid,
        from: served.read,
        to: request.end,
        latency,
    };
    let other = (served.writer != served.reader).then(|| held(served.writer));
    std::iter::once(held(served.reader)).chain(other)
}

impl Follower {
    /// Says on which side a process is.
    pub fn side(&mut self, pid: i32, side: Side) {
        self.sides.insert(pid, side);
    }

    /// Learns from a window which sockets belong together, and gives each a number of its own. Windows must come in the
    /// order of time, and all before the first is followed.
    pub fn learn(&mut self, window: &mut Window) {
        if window.lost == 0 {
            self.generations.number(&mut window.events);
        }
        self.learn_numbered(window);
    }

    /// The same of a window whose sockets have numbers of their own (`Generations`).
    pub fn learn_numbered(&mut self, window: &Window) {
        if window.lost == 0 {
            Sockets::of(&window.events, &timelines(window), &mut self.connections);
        }
    }

    /// Follows the requests of a window. `turns` are the load generator's own: thread, beginning and end of each in
    /// nanoseconds on the monotonic clock; `silent` are threads that no event concerned.
    pub fn window(
        &mut self,
        window: &Window,
        silent: &Silent,
        turns: &[(i32, u64, u64)],
        what: Requested,
    ) {
        let slow = window.slow.is_some();
        self.count(window);
        if window.lost > 0 || slow && what != Requested::ByArrivals {
            return;
        }
        let mut timelines = timelines(window);
        timelines.add_silent(silent, window.start, window.end);
        let sockets = Sockets::of(&window.events, &timelines, &mut self.connections);
        if what == Requested::ByArrivals && !slow {
            self.at_ports.bytes += sockets.received(&self.connections);
        }
        let disks = Disks::of(&window.events);
        self.name(window, &timelines);
        let sides = self.sides(&sockets, &timelines, what);
        let walker = Walker {
            timelines: &timelines,
            sockets: &sockets,
            connections: &self.connections,
            disks: &disks,
            sides: &sides,
            children: &self.children,
            cpus: &self.cpus,
        };
        let inside = || {
            turns
                .iter()
                .filter(|t| t.1 >= window.start && t.2 <= window.end)
        };
        let requests = Requests::new(&walker, window.end, what == Requested::ByArrivals);
        let (mut spans, sums, held) = (
            Vec::new(),
            &mut self.sums,
            if slow {
                &mut self.held_slow
            } else {
                &mut self.held
            },
        );
        let (at_ports, connections) = (&mut self.at_ports.requests, &self.connections);
        let begun = begun_before(window);
        let mut take = |r: Request| {
            if slow {
                sums.add_slow(r);
                return;
            }
            spans.push((r.begin, r.end));
            match what {
                // A command is one request, of which each window shows a part.
                Requested::Command(_) | Requested::Programs => sums.add_part(&r.pieces),
                Requested::ByClients | Requested::ByThreads | Requested::ByArrivals => sums.add(r),
            }
        };
        let cut = match what {
            Requested::ByClients => requests.of_clients(&mut take),
            Requested::ByArrivals => requests.of_arrivals(&mut |served, mut r| {
                if let Some(&begun) = begun.get(&served.socket)
                    && r.begin == window.start
                {
                    r.since(begun);
                }
                held.extend(holders(served, &r));
                *at_ports += u64::from(!slow) * u64::from(connections.is_at_port(served.socket));
                take(r);
            }),
            Requested::Programs => {
                requests
                    .of_programs(window.start, window.end)
                    .into_iter()
                    .for_each(&mut take);
                0
            }
            Requested::ByThreads => {
                inside().for_each(|turn| take(requests.of_thread(*turn)));
                turns
                    .iter()
                    .filter(|t| t.2 > window.start && t.1 < window.end)
                    .count() as u64
                    - inside().count() as u64
            }
            Requested::Command(pid) => {
                take(requests.of_program(pid, window.start, window.end));
                0
            }
        };
        if slow {
            return;
        }
        for (tid, new) in requests.asked() {
            let known = self.asked.entry(tid).or_default();
            known.turns += new.turns;
            known.time += new.time;
        }
        self.add_latencies(
            window,
            turns,
            (what == Requested::ByClients).then_some(&spans),
        );
        self.paths.cut += cut;
        self.stretches.extend(Stretch::of(window, &spans, cut));
    }

    /// Keeps the load generator's own latencies: of what lies within the window, and of what lies across its edges and
    /// is one of `spans`.
    fn add_latencies(
        &mut self,
        window: &Window,
        turns: &[(i32, u64, u64)],
        spans: Option<&Vec<(u64, u64)>>,
    ) {
        let inside = |t: &(i32, u64, u64)| t.1 >= window.start && t.2 <= window.end;
        let edge = |t: &(i32, u64, u64)| {
            t.1 < window.start && t.2 > window.start || t.1 < window.end && t.2 > window.end
        };
        let counts = |t: &&(i32, u64, u64)| {
            inside(t) || spans.is_some_and(|spans| edge(t) && is_of_one(t, spans))
        };
        self.generator
            .extend(turns.iter().filter(counts).map(|t| t.2 - t.1));
    }

    fn count(&mut self, window: &Window) {
        // What was opened for slow requests is no sample of the time.
        if window.slow.is_none() {
            self.paths.windows += 1;
            self.paths.seconds += (window.end - window.start) as f64 * 1e-9;
            self.paths.events += window.events.len() as u64;
            self.paths.lost += window.lost;
        }
    }

    /// The sides of the processes that are known, and of a service's clients.
    fn sides(
        &self,
        sockets: &Sockets,
        timelines: &Timelines,
        what: Requested,
    ) -> HashMap<i32, Side> {
        let clients = if what == Requested::ByArrivals {
            self.clients(sockets, timelines)
        } else {
            HashMap::new()
        };
        clients
            .into_iter()
            .chain(self.sides.iter().map(|(&pid, &side)| (pid, side)))
            .collect()
    }

    /// Processes of this machine that ask the service and that it does not ask.
    fn clients(&self, sockets: &Sockets, timelines: &Timelines) -> HashMap<i32, Side> {
        let pid = |socket: u64| {
            let user = request::user(sockets.between(socket, 0, u64::MAX))?;
            timelines.processes.get(&user).copied()
        };
        let (mut asking, mut asked) = (HashSet::new(), HashSet::new());
        for (socket, _) in sockets.all() {
            let Some(other) = self.connections.peer(socket) else {
                continue;
            };
            let (Some(own), Some(theirs)) = (pid(socket), pid(other)) else {
                continue;
            };
            if self.sides.get(&own) != Some(&Side::Server) || self.sides.contains_key(&theirs) {
                continue;
            }
            let answers = self.connections.end(socket) == Some(End::Answers);
            let found = if answers { &mut asking } else { &mut asked };
            found.insert(theirs);
        }
        asking
            .difference(&asked)
            .map(|&pid| (pid, Side::Client))
            .collect()
    }

    /// What is known of the threads of a window: their names, their processes, and the control groups of processes that
    /// are not the service's.
    fn name(&mut self, window: &Window, timelines: &Timelines) {
        for (tid, name) in window.names.iter() {
            let task = self.tasks.entry(*tid).or_default();
            if *task.comm != **name {
                task.comm = (**name).to_owned();
            }
            if let Some(pid) = timelines.processes.get(tid) {
                task.pid = Some(*pid);
                task.group = self.groups.get(pid).cloned();
            }
        }
    }

    /// Learns what interpreters run, of processes that still do.
    fn name_programs(&mut self) {
        let mut known: HashMap<i32, Option<String>> = HashMap::new();
        for task in self.tasks.values_mut() {
            if let Some(pid) = task.pid
                && underway::interprets(&task.comm)
                && (known.len() < MOST_PROGRAMS || known.contains_key(&pid))
            {
                let program = known
                    .entry(pid)
                    .or_insert_with(|| underway::program_of(pid));
                task.program.clone_from(program);
            }
        }
    }

    /// What was followed.
    pub fn finish(mut self, source: String) -> Paths {
        self.paths.source = source;
        self.generator.sort_unstable();
        self.paths.generator = (!self.generator.is_empty()).then(|| sums::latency(&self.generator));
        self.sums.fill(&mut self.paths, &self.tasks);
        self.paths.asked = asked(&self.asked, &self.tasks);
        self.paths
    }
}

#[cfg(test)]
mod tests;
