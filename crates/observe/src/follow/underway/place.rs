//! Which thread has which request, and what it waits for.
//!
//! A thread that waits for bytes of a connection does not work on its request. So of a process with one connection, or
//! one thread, `/proc` tells who has it. A process that serves many connections by one thread waits for all of them
//! together: what its request waits for is told by what the process asked others since it came, or by its other threads.

use std::collections::{HashMap, HashSet};

use fingerpost_record::service;
use fingerpost_record::under_way::{
    MOST_HOPS, MOST_REQUESTS, MOST_WORKERS, Place, Progress, Request, SessionState, Wait, WaitKind,
};
use fingerpost_sys::blocked::{self, At, Registers};

use super::scene::{self, Scene, Thread};
use super::track::{Connection, Standing};

/// The kernel's tick and a service's way from reading to asking another: a request to another service that went out
/// this much before the last bytes came in was of an earlier one.
const TICKS: u64 = 12_000_000;
/// A thread that has had a request since it came was on a CPU within this long after it.
const TAKEN_WITHIN: u64 = 300_000_000;
/// A thread at a Unix socket that ran less long ago than this is at work as usual.
const BLOCKED_FOR: u64 = 20_000_000;
/// Threads of a process that may have requests of which it is not known which thread has them.
const MOST_CANDIDATES: usize = 64;

/// A request that was found, and the cookie of its connection, where it has one.
pub struct Found {
    cookie: Option<u64>,
    request: Request,
}

/// What one look found.
#[derive(Default)]
pub struct Detail {
    pub at_ns: u64,
    pub connections: u64,
    pub found: Vec<Found>,
    pub requests: Vec<Request>,
    pub count: u64,
    pub quiet: u64,
    pub quiet_ns: u64,
    pub workers: Vec<Place>,
    pub in_transaction: Vec<Place>,
    /// Threads that may have the requests of which the thread is not known, and had the time to.
    pub candidates: Vec<Place>,
    /// Where the threads that are told were, to unwind their stacks.
    pub registers: HashMap<i32, (i32, Registers)>,
    /// What has become clear of connections.
    pub settled: Vec<(u64, Standing)>,
    /// Which thread waits for which connection alone: it will have its next request.
    pub waiting: Vec<(u64, i32)>,
}

/// What is known besides the scene.
pub struct Known<'a> {
    /// When watching began.
    pub began_ns: u64,
    /// The thread that a connection's requests have, where it was seen before.
    pub threads: &'a HashMap<u64, i32>,
}

/// Looks where the requests of these connections are.
pub fn look(scene: &mut Scene, connections: &[Connection], known: &Known) -> Detail {
    let mut found = Looking {
        scene,
        all: connections,
        known,
        detail: Detail {
            connections: connections.len() as u64,
            ..Detail::default()
        },
        used: HashSet::new(),
    };
    found.detail.at_ns = found.scene.now_ns;
    let mut in_order: Vec<&Connection> = connections.iter().collect();
    in_order.sort_by_key(|c| c.since_ns);
    for connection in in_order {
        found.connection(connection);
    }
    found.of_unix();
    found.sessions();
    let mut detail = found.detail;
    let untaken = |f: &Found| f.request.place.is_none() && f.request.progress != Progress::Read;
    if detail.found.iter().any(untaken) {
        detail.workers = workers(scene, &mut detail.registers);
    }
    detail
}

impl Detail {
    /// Keeps what is told of connections that have not changed until the look was over: the kernel's account and
    /// `/proc` are not read in one moment.
    pub fn keep(&mut self, unchanged: impl Fn(u64) -> bool) {
        self.settled.retain(|(cookie, _)| unchanged(*cookie));
        let found = std::mem::take(&mut self.found).into_iter();
        let kept = found.filter(|f| f.cookie.is_none_or(&unchanged));
        self.requests = kept.map(|f| f.request).collect();
        self.count = self.requests.len() as u64;
        self.requests.sort_by(|a, b| b.age_s.total_cmp(&a.age_s));
        self.requests.truncate(MOST_REQUESTS);
        let untaken = |r: &Request| r.place.is_none() && r.progress != Progress::Read;
        if !self.requests.iter().any(untaken) {
            self.workers.clear();
        }
    }
}

struct Looking<'a, 'b, 'c> {
    scene: &'a mut Scene<'b>,
    all: &'a [Connection],
    known: &'a Known<'c>,
    detail: Detail,
    /// Threads, and connections to other services, that have a request already.
    used: HashSet<(i32, u64)>,
}

impl Looking<'_, '_, '_> {
    fn connection(&mut self, c: &Connection) {
        match c.standing {
            Standing::Answered => return self.learn(c),
            Standing::Quiet => return self.quiet(c),
            Standing::Pending | Standing::Unclear => {}
        }
        if c.socket.inode == 0 {
            return self.add(c, Progress::NotAccepted, None);
        }
        let Some((pid, fd)) = owner(self.scene, c.socket.inode) else {
            // Another process may have it, which is not known to be the service's.
            if c.standing == Standing::Pending {
                self.add(c, progress(c), None);
            }
            return;
        };
        if service::is_unasked(&scene::title(pid)) {
            self.detail.settled.push((c.socket.cookie, Standing::Quiet));
            return self.quiet(c);
        }
        let threads = self.scene.threads(pid).to_vec();
        let waiting = threads.iter().find(|t| t.descriptors.contains(&fd));
        let in_a_set = self
            .scene
            .processes
            .get(&pid)
            .is_some_and(|p| p.epolls.values().any(|set| set.contains(&fd)));
        match waiting {
            Some(thread) if !self.serves_others(pid, thread, fd) => self.awaited(c, pid, thread),
            Some(thread) => self.by_loop(c, pid, Some(thread), &threads),
            None if in_a_set && threads.len() > 1 => self.by_loop(c, pid, None, &threads),
            None => self.by_thread(c, pid, &threads),
        }
    }

    /// Whether a thread waits for more than this connection: others that it answers, or one that it asked.
    fn serves_others(&self, pid: i32, thread: &Thread, fd: i32) -> bool {
        let sockets = self.scene.processes.get(&pid).map(|p| &p.sockets);
        thread.descriptors.iter().filter(|d| **d != fd).any(|d| {
            sockets.and_then(|s| s.get(d)).is_some_and(|&inode| {
                self.scene.answers(inode)
                    || self.scene.listens(inode)
                    || self.scene.outstanding(inode).is_some()
            })
        })
    }

    /// Remembers which thread waits for a connection alone.
    fn learn(&mut self, c: &Connection) {
        let Some((pid, fd)) = owner(self.scene, c.socket.inode) else {
            return;
        };
        let alone = |t: &&Thread| t.descriptors.as_slice() == [fd];
        if let Some(tid) = self.scene.threads(pid).iter().find(alone).map(|t| t.tid) {
            self.detail.waiting.push((c.socket.cookie, tid));
        }
    }

    /// The service waits for more of this client, and for nobody else.
    fn awaited(&mut self, c: &Connection, pid: i32, thread: &Thread) {
        if thread.descriptors.len() == 1 {
            self.detail.waiting.push((c.socket.cookie, thread.tid));
        }
        if c.socket.unread > 0 {
            // It has just come.
            let place = self.place(pid, thread);
            return self.add(c, Progress::Unread, Some(place));
        }
        let standing = if c.standing == Standing::Unclear {
            Standing::Answered
        } else {
            self.quiet(c);
            Standing::Quiet
        };
        self.detail.settled.push((c.socket.cookie, standing));
    }

    /// A thread, or several, serve many connections.
    fn by_loop(&mut self, c: &Connection, pid: i32, thread: Option<&Thread>, all: &[Thread]) {
        let arrived = arrived(c, self.scene.now_ns);
        if c.socket.unread == 0
            && let Some(inode) = self.asked_since(c, pid, arrived)
        {
            self.used.insert((pid, u64::from(inode)));
            let at = thread
                .or_else(|| all.iter().find(|t| t.multiplexes))
                .or(all.first());
            let place = at.map(|thread| {
                let mut place = self.place(pid, thread);
                place.wait = Wait::default();
                self.scene.peer(&mut place.wait, inode);
                place.peer = behind(self.scene, &place.wait, inode, MOST_HOPS - 1).map(Box::new);
                place
            });
            return self.add(c, Progress::Read, place);
        }
        // Where no thread waits for events, the one that would is at something: the only one that is not idle.
        if thread.is_none() {
            let mut busy = Vec::new();
            for t in all.iter().filter(|t| !t.multiplexes) {
                let place = self.place(pid, t);
                if !matches!(place.wait.kind, WaitKind::Lock | WaitKind::Sleep) {
                    busy.push((place, t.ran_ns));
                }
            }
            if let ([(place, ran)], Standing::Pending) = (busy.as_slice(), c.standing)
                && self.kept_from(c, place, *ran)
            {
                return self.add(c, progress(c), Some(place.clone()));
            }
        }
        // A thread beside those that wait for events: it runs, or is blocked in something else than a lock, in which
        // idle ones of a pool are, too.
        for t in all.iter().filter(|t| !t.multiplexes) {
            let since = t
                .ran_ns
                .is_none_or(|ran| ran + TICKS >= arrived && self.lately(arrived, ran));
            if !since || self.used.contains(&(t.tid, 0)) {
                continue;
            }
            let place = self.place(pid, t);
            let telling = !matches!(
                place.wait.kind,
                WaitKind::Lock | WaitKind::Sleep | WaitKind::Unknown | WaitKind::Running
            );
            if telling || all.len() == 1 {
                self.used.insert((t.tid, 0));
                return self.add(c, progress(c), Some(place));
            }
        }
        let place = thread.map(|t| {
            let mut place = self.place(pid, t);
            place.wait.kind = WaitKind::Events;
            place
        });
        match c.standing {
            Standing::Unclear => {}
            _ if c.socket.unread > 0 => self.add(c, Progress::Unread, place),
            _ if arrived >= self.known.began_ns && !c.tells => self.add(c, Progress::Read, place),
            _ => {
                self.detail.settled.push((c.socket.cookie, Standing::Quiet));
                self.quiet(c);
            }
        }
    }

    /// Whether what a thread did then may be of a request that came so: it came since watching began, or shortly before.
    /// What came last on a connection long ago may be no request.
    fn lately(&self, arrived: u64, done: u64) -> bool {
        arrived >= self.known.began_ns || done <= arrived + TAKEN_WITHIN
    }

    /// Whether the only thread of a process that is not idle, which is here, keeps a connection from its answer.
    fn kept_from(&self, c: &Connection, place: &Place, ran: Option<u64>) -> bool {
        if c.socket.unread > 0 {
            return true;
        }
        let now = self.scene.now_ns;
        let at = arrived(c, now);
        if place.wait.kind != WaitKind::Running {
            return ran.is_some_and(|ran| ran + TICKS >= at && ran <= at + TAKEN_WITHIN);
        }
        // It runs since the first bytes came that it has not read, at least: it has the request that it read last.
        let unread = |o: &&Connection| o.socket.unread > 0 || o.socket.inode == 0;
        let since = self.all.iter().filter(unread).map(|o| o.since_ns).min();
        let later = |o: &&Connection, since: u64| {
            let other = arrived(o, now);
            o.standing == Standing::Pending && !unread(o) && other > at && other <= since
        };
        since.is_some_and(|since| at <= since + TICKS && !self.all.iter().any(|o| later(&o, since)))
    }

    /// A connection by which the process asked another service since the request came, and has no answer.
    fn asked_since(&self, c: &Connection, pid: i32, arrived: u64) -> Option<u32> {
        let sockets = self.scene.processes.get(&pid)?.sockets.values();
        let asked = sockets.filter_map(|&inode| Some((self.scene.outstanding(inode)?, inode)));
        let within = |(sent, _): &(u64, u32)| {
            let at_once = sent.abs_diff(arrived) <= TICKS;
            let since = *sent + TICKS >= arrived && self.lately(arrived, *sent);
            at_once || c.standing == Standing::Pending && since
        };
        let free = |(_, inode): &(u64, u32)| !self.used.contains(&(pid, u64::from(*inode)));
        asked
            .filter(within)
            .filter(free)
            .min_by_key(|(sent, _)| sent.abs_diff(arrived))
            .map(|(_, inode)| inode)
    }

    /// No thread waits for the connection: one works on its request.
    fn by_thread(&mut self, c: &Connection, pid: i32, all: &[Thread]) {
        if let [only] = all {
            // A thread that runs may have any of several connections' requests.
            let answering = |inode: &&u32| self.scene.answers(**inode);
            let of = self.scene.processes.get(&pid).map(|p| &p.sockets);
            let alone = of.is_some_and(|s| s.values().filter(answering).count() == 1);
            let running = only.at == At::Running;
            let taken = c.socket.unread > 0
                || !running
                || arrived(c, self.scene.now_ns) >= self.known.began_ns;
            if c.standing == Standing::Pending && taken || alone && !running {
                let place = self.place(pid, only);
                self.add(c, progress(c), Some(place));
            }
            return;
        }
        let sockets = self.scene.processes.get(&pid).map(|p| p.sockets.clone());
        let idle = |t: &&Thread| {
            t.descriptors.iter().any(|fd| {
                sockets
                    .as_ref()
                    .and_then(|s| s.get(fd))
                    .is_some_and(|&i| self.scene.answers(i) || self.scene.listens(i))
            })
        };
        let known = self.known.threads.get(&c.socket.cookie);
        let arrived = arrived(c, self.scene.now_ns);
        let free: Vec<&Thread> = all
            .iter()
            .filter(|t| !idle(t) && !self.used.contains(&(t.tid, 0)))
            .collect();
        let ran = |t: &&&Thread| t.ran_ns.filter(|ran| ran + TICKS >= arrived);
        let nearest = || {
            let near = |t: &&&Thread| ran(t).is_some_and(|ran| ran <= arrived + TAKEN_WITHIN);
            free.iter().filter(near).min_by_key(|t| ran(t))
        };
        let by_number = free.iter().find(|t| Some(&t.tid) == known);
        let running = |t: &&&Thread| c.standing == Standing::Pending || t.at != At::Running;
        match by_number.or_else(nearest).filter(running).copied() {
            Some(thread) => {
                self.used.insert((thread.tid, 0));
                let place = self.place(pid, thread);
                self.add(c, progress(c), Some(place));
            }
            None if c.standing == Standing::Pending => {
                let since: Vec<&Thread> = free.into_iter().filter(|t| ran(&t).is_some()).collect();
                let tids: HashSet<i32> = self.detail.candidates.iter().map(|p| p.tid).collect();
                let left = MOST_CANDIDATES.saturating_sub(tids.len());
                let new = since.into_iter().filter(|t| !tids.contains(&t.tid));
                for thread in new.take(left) {
                    let place = self.place(pid, thread);
                    self.detail.candidates.push(place);
                }
                self.add(c, progress(c), None);
            }
            None => {}
        }
    }

    /// Requests at Unix sockets, of processes with one thread: the kernel counts no bytes there. A thread that does not
    /// wait for its connection works on its request, since it ran last.
    fn of_unix(&mut self) {
        let of: Vec<(u32, u32)> = self
            .scene
            .unix
            .values()
            .filter(|s| self.scene.answers(s.inode))
            .map(|s| (s.inode, s.unread))
            .collect();
        for (inode, unread) in of {
            self.detail.connections += 1;
            let Some((pid, fd)) = owner(self.scene, inode) else {
                continue;
            };
            let [thread] = self.scene.threads(pid) else {
                continue;
            };
            let (thread, own) = (thread.clone(), thread.descriptors.contains(&fd));
            let in_a_set = self
                .scene
                .processes
                .get(&pid)
                .is_some_and(|p| p.epolls.values().any(|set| set.contains(&fd)));
            // Of one thread that serves many connections it is not known whether it has a request of this one.
            if own || in_a_set && thread.multiplexes && self.serves_others(pid, &thread, fd) {
                continue;
            }
            let of = self.scene.processes.get(&pid).map(|p| &p.sockets);
            let answering = |inode: &&u32| self.scene.answers(**inode);
            let alone = of.is_some_and(|s| s.values().filter(answering).count() == 1);
            let ran = thread.ran_ns.unwrap_or(self.scene.now_ns);
            let age = self.scene.now_ns.saturating_sub(ran);
            if thread.at == At::Running || age < BLOCKED_FOR || !(alone || unread > 0) {
                continue;
            }
            let place = self.place(pid, &thread);
            let progress = if unread > 0 {
                Progress::Unread
            } else {
                Progress::Read
            };
            self.detail.found.push(Found {
                cookie: None,
                request: Request {
                    age_s: age as f64 * 1e-9,
                    progress,
                    client: String::new(),
                    place: Some(place),
                },
            });
        }
    }

    /// Sessions that are idle in a transaction.
    fn sessions(&mut self) {
        if self.detail.found.is_empty() {
            return;
        }
        let pids: Vec<i32> = self.scene.processes.keys().copied().collect();
        for pid in pids {
            let idle = service::session(&scene::title(pid))
                .is_some_and(|s| s.state == SessionState::IdleInTransaction);
            let thread = self.scene.threads(pid).first().cloned();
            if let (true, Some(thread)) = (idle, thread)
                && self.detail.in_transaction.len() < MOST_WORKERS
            {
                let place = self.place(pid, &thread);
                self.detail.in_transaction.push(place);
            }
        }
    }

    fn quiet(&mut self, c: &Connection) {
        let since = self.scene.now_ns.saturating_sub(c.since_ns);
        self.detail.quiet += 1;
        self.detail.quiet_ns = self.detail.quiet_ns.max(since);
    }

    fn add(&mut self, c: &Connection, progress: Progress, place: Option<Place>) {
        // What was unclear is a request from now on, where the thread that has it is blocked.
        let blocked = place
            .as_ref()
            .is_some_and(|p| p.wait.kind != WaitKind::Running);
        if c.standing == Standing::Unclear && blocked {
            let settled = (c.socket.cookie, Standing::Pending);
            self.detail.settled.push(settled);
        }
        let client = c.socket.remote_end();
        self.detail.found.push(Found {
            cookie: Some(c.socket.cookie),
            request: Request {
                age_s: self.scene.now_ns.saturating_sub(c.since_ns) as f64 * 1e-9,
                progress,
                client: client.map_or_else(String::new, |a| a.to_string()),
                place,
            },
        });
    }

    fn place(&mut self, pid: i32, thread: &Thread) -> Place {
        place_of(
            self.scene,
            pid,
            thread,
            &mut self.detail.registers,
            MOST_HOPS,
        )
    }
}

/// When the last bytes of a connection came.
fn arrived(c: &Connection, now_ns: u64) -> u64 {
    now_ns.saturating_sub(u64::from(c.socket.since_received_ms) * 1_000_000)
}

fn progress(c: &Connection) -> Progress {
    if c.socket.unread > 0 {
        Progress::Unread
    } else {
        Progress::Read
    }
}

/// Who serves a connection: of several processes that hold it, not the one that made the others.
fn owner(scene: &Scene, inode: u32) -> Option<(i32, i32)> {
    let all = scene.owners.get(&inode)?;
    let parent = |pid: i32| {
        all.iter()
            .any(|(other, _)| scene.parents.get(other) == Some(&pid))
    };
    all.iter()
        .find(|(pid, _)| !parent(*pid))
        .or(all.first())
        .copied()
}

/// Where the thread of another service is that has the request which this socket sent; nothing where that is not known,
/// or it waits for more of it.
fn behind(scene: &mut Scene, wait: &Wait, inode: u32, hops: usize) -> Option<Place> {
    let pid = wait.whom.as_ref()?.pid;
    let other = scene.other_end(inode)?;
    let fd = scene.take_in(pid, other)?;
    let [thread] = scene.threads(pid) else {
        return None;
    };
    let thread = thread.clone();
    let place = place_of(scene, pid, &thread, &mut HashMap::new(), hops);
    let waits = thread.descriptors.contains(&fd) && place.wait.kind != WaitKind::Peer;
    (!waits).then_some(place)
}

fn place_of(
    scene: &mut Scene,
    pid: i32,
    thread: &Thread,
    registers: &mut HashMap<i32, (i32, Registers)>,
    hops: usize,
) -> Place {
    let kernel = blocked::kernel_stack(pid, thread.tid);
    scene.asked = None;
    let wait = scene.wait(pid, thread, &kernel);
    let asked = scene.asked.filter(|_| hops > 0);
    let peer = asked.and_then(|inode| behind(scene, &wait, inode, hops - 1));
    if let Some(at) = thread.registers() {
        registers.insert(thread.tid, (pid, at));
    }
    Place {
        process: scene::process(pid).unwrap_or_default(),
        tid: thread.tid,
        thread: thread.name.clone(),
        session: service::session(&scene::title(pid)),
        wait,
        peer: peer.map(Box::new),
        kernel,
        functions: Vec::new(),
    }
}

/// Where those are that could accept a connection: the threads of the processes that hold the listening sockets, but for
/// those that made the others.
fn workers(scene: &mut Scene, registers: &mut HashMap<i32, (i32, Registers)>) -> Vec<Place> {
    let listening = scene
        .owners
        .iter()
        .filter(|(inode, _)| scene.listens(**inode))
        .flat_map(|(_, owners)| owners.iter().map(|o| o.0));
    let mut pids: Vec<i32> = listening.collect();
    pids.sort_unstable();
    pids.dedup();
    let parent = |pid: &i32| pids.iter().any(|p| scene.parents.get(p) == Some(pid));
    let children: Vec<i32> = pids.iter().copied().filter(|pid| !parent(pid)).collect();
    let mut found = Vec::new();
    for pid in children {
        let threads = scene.threads(pid).to_vec();
        let several = threads.len() > 1;
        for thread in threads {
            let place = place_of(scene, pid, &thread, registers, 0);
            // Of several threads many are idle in a lock.
            let idle = several && matches!(place.wait.kind, WaitKind::Lock | WaitKind::Sleep);
            if !idle && found.len() < MOST_WORKERS {
                found.push(place);
            }
        }
    }
    found
}
