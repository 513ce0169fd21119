//! Looks at requests under way while a service is watched, and keeps one look for the record.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use fingerpost_record::under_way::{self as record, MOST_FRAMES, Place, Progress, WaitKind};
use fingerpost_sys::cgroup::members;
use fingerpost_sys::sample;
use fingerpost_sys::sockdiag::{LISTEN, SockDiag};
use fingerpost_sys::trace::{monotonic_ns, thread_cpu_seconds};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Table;
use super::place::{Detail, Known, look};
use super::scene::Scene;
use super::track::{Connection, Standing, Tracker};
use crate::queues::{ports_of, socket_inodes};
use crate::stacks::blocked::{Blocked, copied};

/// How often connections are counted at most, and threads looked at; and the share of one CPU that either may take.
const COUNT_EVERY: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_secs(1);
const COUNT_SHARE: f64 = 0.004;
const LOOK_SHARE: f64 = 0.01;
/// Threads are looked at where a request is at least this old, in nanoseconds: what is shorter, windows show whole.
const WORTH_A_LOOK: u64 = 20_000_000;
/// A request that is this old at the end makes the last look the one that is told.
const OLD_S: f64 = 0.5;
/// Stacks that are copied at one look.
const MOST_STACKS: usize = 64;

/// Watches the requests under way of a service.
pub struct Watcher {
    tracker: Tracker,
    /// What knows better which requests are under way, where there is something.
    table: Option<Box<dyn Table + Send>>,
    pids: Vec<i32>,
    groups: Vec<PathBuf>,
    ports: HashSet<u16>,
    names: HashSet<Vec<u8>>,
    began_ns: u64,
    counts: Vec<u64>,
    /// Which thread had the requests of a connection before.
    threads: HashMap<u64, i32>,
    told: Option<(Detail, Blocked)>,
}

impl Watcher {
    /// For a service of these processes, their descendants and all processes of these control groups.
    ///
    /// # Errors
    /// Why nothing can be told, in a sentence.
    pub fn new(
        pids: Vec<i32>,
        groups: Vec<PathBuf>,
        table: Option<Box<dyn Table + Send>>,
    ) -> Result<Watcher, String> {
        let no = |e: std::io::Error| format!("the kernel does not tell of its connections: {e}");
        let mut diag = in_its_network(members_of(&pids, &groups).first().copied()).map_err(no)?;
        let inodes = socket_inodes(members_of(&pids, &groups).into_iter());
        let ports = ports_of(&mut diag, &inodes).map_err(no)?;
        let mut names = HashSet::new();
        // Without the kernel's module for it there are no Unix sockets to tell of.
        _ = diag.unix(|s| {
            if s.state == LISTEN && inodes.contains(&s.inode) && !s.name.is_empty() {
                names.insert(s.name);
            }
        });
        if ports.is_empty() && names.is_empty() {
            return Err("it listens on no socket that can be seen from here".to_owned());
        }
        Ok(Watcher {
            tracker: Tracker::new(diag, ports.clone()),
            table,
            pids,
            groups,
            ports,
            names,
            began_ns: monotonic_ns(),
            counts: Vec::new(),
            threads: HashMap::new(),
            told: None,
        })
    }

    /// Asks the kernel for the connections; true where one has had a request for long.
    pub(super) fn ask(&mut self) -> bool {
        if self.tracker.update().is_err() {
            return false;
        }
        if let Some(Ok(certain)) = self.table.as_mut().map(|t| t.under_way()) {
            self.correct(&certain);
        }
        let now = monotonic_ns();
        let all = self.tracker.connections.values();
        !self.names.is_empty()
            || all
                .clone()
                .filter(|c| matches!(c.standing, Standing::Pending | Standing::Unclear))
                .any(|c| now.saturating_sub(c.since_ns) >= WORTH_A_LOOK)
    }

    /// Takes over what a table knows better.
    fn correct(&mut self, certain: &[super::UnderWay]) {
        let by_socket: HashMap<u64, &super::UnderWay> =
            certain.iter().map(|u| (u.socket, u)).collect();
        for (cookie, c) in &mut self.tracker.connections {
            match by_socket.get(cookie) {
                Some(u) => {
                    if c.standing != Standing::Quiet {
                        c.standing = Standing::Pending;
                    }
                    c.since_ns = u.since_ns;
                    self.threads.extend(u.tid.map(|tid| (*cookie, tid)));
                }
                None => c.standing = Standing::Answered,
            }
        }
    }

    /// Counts how many requests are under way.
    pub(super) fn count(&mut self) {
        let pending =
            |c: &&Connection| c.standing == Standing::Pending && (c.socket.unread > 0 || !c.tells);
        let count = self.tracker.connections.values().filter(pending).count();
        self.counts.push(count as u64);
    }

    /// Looks at the threads that have them.
    pub(super) fn look(&mut self, last: bool) {
        let pids = members_of(&self.pids, &self.groups);
        let mut unix = Vec::new();
        if !self.names.is_empty() {
            _ = self.tracker.diag().unix(|s| unix.push(s));
        }
        let connections: Vec<Connection> = self.tracker.connections.values().copied().collect();
        let known = Known {
            began_ns: self.began_ns,
            threads: &self.threads,
        };
        let sockets = &self.tracker.sockets;
        let now = monotonic_ns();
        let mut scene = Scene::of(&pids, &self.ports, sockets, &unix, &self.names, now);
        let mut detail = look(&mut scene, &connections, &known);
        if self.tracker.update().is_err() {
            return;
        }
        let before: HashMap<u64, &Connection> =
            connections.iter().map(|c| (c.socket.cookie, c)).collect();
        let unchanged = |cookie: u64| {
            let of = |c: &Connection| (c.socket.received, c.socket.sent, c.socket.inode);
            let now = self.tracker.connections.get(&cookie);
            now.zip(before.get(&cookie))
                .is_some_and(|(now, before)| of(now) == of(before))
        };
        detail.keep(unchanged);
        for (cookie, standing) in std::mem::take(&mut detail.settled) {
            self.tracker.settle(cookie, standing);
        }
        self.threads.extend(std::mem::take(&mut detail.waiting));
        // A worker that has just become ready says less of why requests wait.
        let running = |d: &Detail| {
            let runs = |w: &Place| w.wait.kind == WaitKind::Running;
            d.workers.iter().any(runs)
        };
        let age = |d: &Detail| {
            let sum = d.requests.iter().map(|r| r.age_s).sum::<f64>();
            if running(d) { sum / 2.0 } else { sum }
        };
        let longest = detail.requests.first().map_or(0.0, |r| r.age_s);
        let better = match &self.told {
            None => true,
            Some(_) if last && longest >= OLD_S => true,
            Some((told, _)) => age(&detail) > age(told),
        };
        if better {
            let mut stacks = Blocked::default();
            for (&tid, &(pid, registers)) in detail.registers.iter().take(MOST_STACKS) {
                stacks.extend(copied(pid, tid, registers));
            }
            self.told = Some((detail, stacks));
        }
    }

    pub(super) fn finish(self) -> record::UnderWay {
        let looks = self.counts.len() as u64;
        let sum: u64 = self.counts.iter().sum();
        let (mut detail, stacks) = self.told.unwrap_or_default();
        // What was taken for a request, and was one of many reports.
        let all = self.tracker.connections.values();
        let tell = all
            .filter(|c| c.tells)
            .filter_map(|c| c.socket.remote_end());
        let tell: HashSet<String> = tell.map(|end| end.to_string()).collect();
        let events = |r: &record::Request| {
            let place = r.place.as_ref();
            place.is_some_and(|p| p.wait.kind == WaitKind::Events)
        };
        let before = detail.requests.len();
        detail
            .requests
            .retain(|r| !(events(r) && tell.contains(&r.client)));
        detail.count -= (before - detail.requests.len()) as u64;
        name(&mut detail, stacks);
        assign(&mut detail);
        let mut found = record::UnderWay {
            source: "socket diagnosis and /proc".to_owned(),
            looks,
            mean: sum as f64 / looks.max(1) as f64,
            at_s: detail.at_ns.saturating_sub(self.began_ns) as f64 * 1e-9,
            connections: detail.connections,
            count: detail.count,
            quiet: detail.quiet,
            quiet_s: detail.quiet_ns as f64 * 1e-9,
            requests: detail.requests,
            workers: detail.workers,
            in_transaction: detail.in_transaction,
            ..record::UnderWay::default()
        };
        record::clean(&mut found);
        found
    }
}

/// Opens the socket diagnosis of a process's network, which need not be ours: a container has its own.
fn in_its_network(pid: Option<i32>) -> io::Result<SockDiag> {
    let of = |pid: &str| format!("/proc/{pid}/ns/net");
    let (own, its) = (of("self"), pid.map(|pid| of(&pid.to_string())));
    let Some(its) = its.filter(|its| fs::read_link(its).ok() != fs::read_link(own).ok()) else {
        return SockDiag::open();
    };
    // A thread of its own goes there; what it opens stays there when it has ended.
    let enter = move || {
        let space = File::open(its)?;
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
        SockDiag::open()
    };
    let entered = std::thread::Builder::new().spawn(enter)?.join();
    entered.unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that enters its network failed",
        ))
    })
}

/// Names the functions that blocked threads are in.
fn name(detail: &mut Detail, stacks: Blocked) {
    let named = stacks.name();
    let requests = detail.requests.iter_mut().filter_map(|r| r.place.as_mut());
    for place in requests
        .chain(&mut detail.workers)
        .chain(&mut detail.candidates)
    {
        if let Some(functions) = named.get(&place.tid) {
            place.functions = functions.iter().take(MOST_FRAMES).cloned().collect();
        }
    }
}

/// Where as many threads are blocked in the same functions as there are requests of which the thread is not known, these
/// have them.
fn assign(detail: &mut Detail) {
    let unknown = |r: &&mut record::Request| r.place.is_none() && r.progress == Progress::Read;
    let count = detail.requests.iter_mut().filter(unknown).count();
    let mut groups: Vec<Vec<Place>> = Vec::new();
    for place in detail.candidates.drain(..) {
        let same = |g: &&mut Vec<Place>| {
            g[0].process == place.process
                && g[0].wait.kind == place.wait.kind
                && g[0].functions == place.functions
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    let matching: Vec<Vec<Place>> = groups.into_iter().filter(|g| g.len() == count).collect();
    if let ([group], true) = (matching.as_slice(), count > 1) {
        let requests = detail.requests.iter_mut().filter(unknown);
        for (request, place) in requests.zip(group) {
            request.place = Some(place.clone());
        }
    }
}

/// The processes of a service as they are now: these, their descendants, and all of its control groups.
fn members_of(pids: &[i32], groups: &[PathBuf]) -> Vec<i32> {
    let mut all: HashSet<i32> = pids.iter().copied().collect();
    all.extend(groups.iter().flat_map(|dir| members::of_directory(dir)));
    let numbers = sample::numbers(std::path::Path::new("/proc"));
    let parents: Vec<(i32, i32)> = numbers
        .into_iter()
        .filter_map(|pid| Some((pid, sample::process(pid)?.parent)))
        .collect();
    loop {
        let before = all.len();
        let new = parents.iter().filter(|(_, parent)| all.contains(parent));
        let new: Vec<i32> = new.map(|(pid, _)| *pid).collect();
        all.extend(new);
        if all.len() == before {
            break;
        }
    }
    all.remove(&(std::process::id() as i32));
    let mut all: Vec<i32> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// Watches until `sleep` says that the end was asked for; it sleeps for so long, or waits until a look disturbs nobody.
///
/// # Errors
/// Why nothing can be told, in a sentence.
pub fn watch(
    pids: Vec<i32>,
    groups: Vec<PathBuf>,
    table: Option<Box<dyn Table + Send>>,
    mut sleep: impl FnMut(Duration) -> bool,
) -> Result<(record::UnderWay, f64), String> {
    let begun = thread_cpu_seconds();
    let mut watcher = Watcher::new(pids, groups, table)?;
    let (mut next_look, mut ends) = (0, false);
    loop {
        let before = thread_cpu_seconds();
        let long = watcher.ask();
        let counted = thread_cpu_seconds();
        if long && (ends || monotonic_ns() >= next_look) {
            watcher.look(ends);
            let spent = Duration::from_secs_f64((thread_cpu_seconds() - counted) / LOOK_SHARE);
            next_look = monotonic_ns() + LOOK_EVERY.max(spent).as_nanos() as u64;
        }
        // After the look, which settles what the kernel's account leaves open.
        watcher.count();
        if ends {
            break;
        }
        let pause = Duration::from_secs_f64((counted - before) / COUNT_SHARE);
        ends = sleep(COUNT_EVERY.max(pause));
    }
    let cost = thread_cpu_seconds() - begun;
    Ok((watcher.finish(), cost))
}
