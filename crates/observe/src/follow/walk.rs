//! The walk: where a thread was between two times, each moment in one leaf.
//!
//! While the thread was on a CPU, the leaf is what it did; while it was ready, who had the CPU. While it was blocked,
//! the wake-up says how the wait ended: by another thread, and the walk goes on in that thread for as long as the wait
//! lasted; by a device, and the block request tells; by bytes that arrived, and the walk goes on in their sender; by a
//! timer. Each step goes to a wake-up that is earlier than the one before, so that no walk is endless.

use std::collections::HashMap;

use super::disk::Disks;
use super::event::Io;
use super::leaf::{Chain, Kind, Leaf, Link, Piece, Side, Whom};
use super::sockets::{Connections, End, Sockets};
use super::timeline::{Blocked, Cause, Doing, Span, Timelines, Woken};
use crate::calls::{self, Fd, Role, Wait};

/// Nanoseconds on a CPU within which a thread whose wait for a lock had reached its limit waits for it again: to look
/// at the lock and to ask once more takes some microseconds.
const BETWEEN_TRIES: u64 = 200_000;
/// A chain of waits that is longer than this is not followed further.
const DEEPEST: u32 = 64;
/// Of more other CPUs than these, who has each when a wait begins stands for all of it: so many change hands all the
/// time.
const FEW_BESIDE: usize = 15;
/// The process that makes all threads of the kernel.
const KTHREADD: i32 = 2;

/// Everything that is known of one window.
pub struct Walker<'a> {
    pub timelines: &'a Timelines,
    pub sockets: &'a Sockets,
    pub connections: &'a Connections,
    pub disks: &'a Disks,
    /// The side of each process of the workload; others are [`Side::Other`].
    pub sides: &'a HashMap<i32, Side>,
    /// Processes that each process has made, as far as they were looked for.
    pub children: &'a HashMap<i32, Vec<i32>>,
    /// CPUs that any thread of the server may use: while none of them idles, whoever has one of them keeps the server's
    /// threads waiting. Of fewer than two only who had the CPU of the queue is named.
    pub cpus: &'a [u16],
}

/// Where a walk is.
#[derive(Clone, Copy)]
struct At {
    tid: i32,
    side: Side,
    chain: Chain,
    depth: u32,
}

impl At {
    fn put(self, kind: Kind, whom: Whom, span: (u64, u64), out: &mut Vec<Piece>) {
        put(
            Leaf {
                kind,
                side: self.side,
                whom,
                chain: self.chain,
            },
            span,
            out,
        );
    }

    /// Who sleeps, or waits for a lock: another process is named.
    fn put_wait(self, kind: Kind, span: (u64, u64), out: &mut Vec<Piece>) {
        let of_other = self.side == Side::Other && matches!(kind, Kind::Timer | Kind::Lock);
        self.put(
            kind,
            if of_other {
                Whom::Thread(self.tid)
            } else {
                Whom::Nobody
            },
            span,
            out,
        );
    }
}

/// One piece, if there is time for it.
pub fn put(leaf: Leaf, (start, end): (u64, u64), out: &mut Vec<Piece>) {
    match out.last_mut() {
        _ if end <= start => {}
        Some(last) if last.leaf == leaf && last.end == start => last.end = end,
        _ => out.push(Piece { start, end, leaf }),
    }
}

impl Walker<'_> {
    /// The side of a thread. One that was made within the window belongs to its maker's, until it is known better.
    pub fn side(&self, tid: i32) -> Side {
        let known = |tid: i32| self.sides.get(self.timelines.processes.get(&tid)?).copied();
        let makers =
            std::iter::successors(Some(tid), |tid| self.timelines.makers.get(tid).copied());
        makers.take(8).find_map(known).unwrap_or(Side::Other)
    }

    /// Adds the pieces of a thread's time between two times, in order, without a gap.
    pub fn walk(&self, tid: i32, from: u64, to: u64, chain: Chain, out: &mut Vec<Piece>) {
        self.step(
            At {
                tid,
                side: self.side(tid),
                chain,
                depth: 0,
            },
            from,
            to,
            out,
        );
    }

    /// One piece of a thread's time that nobody else had, if there is time for it.
    pub fn put(&self, tid: i32, kind: Kind, chain: Chain, span: (u64, u64), out: &mut Vec<Piece>) {
        put(
            Leaf {
                kind,
                side: self.side(tid),
                whom: Whom::Nobody,
                chain,
            },
            span,
            out,
        );
    }

    /// The walk goes on in another thread, from one of whom this one waited for.
    fn on_in(&self, at: At, tid: i32, link: Link) -> At {
        At {
            tid,
            side: self.side(tid),
            chain: at.chain.to(link, tid),
            depth: at.depth + 1,
        }
    }

    fn step(&self, at: At, from: u64, to: u64, out: &mut Vec<Piece>) {
        if to <= from {
            return;
        }
        let spans = self.timelines.between(at.tid, from, to);
        let begins = spans.first().map_or(to, |s| s.start.clamp(from, to));
        self.before_birth(at, from, begins, out);
        for span in spans {
            let (a, b) = (span.start.max(from), span.end.min(to));
            let whom = if at.side == Side::Other {
                Whom::Thread(at.tid)
            } else {
                Whom::Nobody
            };
            match span.doing {
                Doing::User => at.put(Kind::User, whom, (a, b), out),
                Doing::Call(n) => at.put(Kind::Call(n), whom, (a, b), out),
                Doing::Interrupt(kind) => at.put(Kind::Interrupt(kind), Whom::Nobody, (a, b), out),
                Doing::Memory(_) => at.put(Kind::Memory, whom, (a, b), out),
                Doing::Ready(cpu) => self.ready(at, cpu, (a, b), out),
                Doing::Blocked(blocked) => {
                    // A thread that was idle when the request arrived is given it by another one; one that was busy
                    // waits for a lock.
                    let handed = at.depth == 0
                        && at.chain == Chain::default().with(Link::Queue)
                        && span.start < from;
                    self.blocked(at, &blocked, handed, (a, b), out);
                }
                Doing::Silent(wait) => self.waits_on(at, wait, (a, b), out),
                Doing::Unknown => at.put(Kind::NotFollowed, Whom::Nobody, (a, b), out),
            }
        }
        let ends = spans.last().map_or(begins, |s| s.end.min(to));
        at.put(Kind::NotFollowed, Whom::Nobody, (ends.max(begins), to), out);
    }

    /// Before a thread was made, its maker had what it works on.
    fn before_birth(&self, at: At, from: u64, birth: u64, out: &mut Vec<Piece>) {
        match self.timelines.makers.get(&at.tid) {
            Some(&maker) if at.depth < DEEPEST && maker != at.tid => self.step(
                At {
                    tid: maker,
                    side: self.side(maker),
                    depth: at.depth + 1,
                    ..at
                },
                from,
                birth,
                out,
            ),
            _ => at.put(Kind::NotFollowed, Whom::Nobody, (from, birth), out),
        }
    }

    /// Waiting for a CPU, by who had it.
    fn ready(&self, at: At, cpu: u16, span: (u64, u64), out: &mut Vec<Piece>) {
        let mut reached = span.0;
        for (thread, a, b) in self.timelines.running(cpu, span.0, span.1) {
            let whom = if thread == 0 {
                Whom::Idle
            } else {
                self.whom(thread)
            };
            at.put(Kind::Cpu, Whom::Nobody, (reached, a), out);
            match whom {
                Whom::Server | Whom::Client if at.side == Side::Server => {
                    self.shared(at, cpu, whom, (a, b), out)
                }
                _ => at.put(Kind::Cpu, whom, (a, b), out),
            }
            reached = b.max(reached);
        }
        at.put(Kind::Cpu, Whom::Nobody, (reached, span.1), out);
    }

    /// Waiting for a CPU that the server or its client has. The thread would run on any of its CPUs that were free: a
    /// neighbour that has one of them all the time leaves the server and its client to take turns on the rest. So each
    /// CPU has the same part of the wait, and others than these two have the parts of the CPUs that they had. While one
    /// idles, the scheduler has the thread wait where it does, and no neighbour has. The parts follow one another
    /// within the stretch, which is as long as nobody leaves a CPU.
    fn shared(&self, at: At, cpu: u16, whom: Whom, span: (u64, u64), out: &mut Vec<Piece>) {
        let all = if self.cpus.contains(&cpu) {
            self.cpus
        } else {
            &[]
        };
        let beside: Vec<u16> = all.iter().copied().filter(|&c| c != cpu).collect();
        let mut from = span.0;
        while from < span.1 {
            let (others, until) = self.others_on(&beside, from, span.1);
            let each = (until - from) / (beside.len() as u64 + 1);
            let own = until - each * others.len() as u64;
            at.put(Kind::Cpu, whom, (from, own), out);
            for (begin, tid) in (own..).step_by(each.max(1) as usize).zip(others) {
                at.put(Kind::Cpu, Whom::Thread(tid), (begin, begin + each), out);
            }
            from = until;
        }
    }

    /// Threads that are neither the server's nor its client's and have one of these CPUs from a time on, and until when
    /// that is so, at most `to`. None while one of them idles, or no event tells who has it.
    fn others_on(&self, cpus: &[u16], from: u64, to: u64) -> (Vec<i32>, u64) {
        let (mut others, mut until) = (Vec::new(), to);
        for &cpu in cpus {
            let Some((tid, _, leaves)) = self.timelines.running(cpu, from, to).next() else {
                return (Vec::new(), to);
            };
            let ends = if cpus.len() <= FEW_BESIDE { leaves } else { to };
            if tid == 0 {
                return (Vec::new(), ends);
            }
            // Whose process a thread is no event may tell.
            let is_other =
                self.timelines.processes.contains_key(&tid) && self.side(tid) == Side::Other;
            others.extend(is_other.then_some(tid));
            until = until.min(ends);
        }
        (others, until)
    }

    fn blocked(
        &self,
        at: At,
        blocked: &Blocked,
        handed: bool,
        span: (u64, u64),
        out: &mut Vec<Piece>,
    ) {
        let wait = what_for(blocked);
        let Some(woken) = blocked.woken else {
            return self.waits_on(at, wait, span, out);
        };
        match woken.cause {
            _ if blocked.memory.is_some() => at.put(Kind::Memory, Whom::Nobody, span, out),
            Cause::Arrival(socket) => self.arrival(at, socket, woken, span, out),
            // A fault that the disk ends is memory's: a page that had to be read.
            Cause::Disk(_) if wait == Wait::Memory => at.put(Kind::Memory, Whom::Nobody, span, out),
            Cause::Disk(io) => self.disk(at, io, woken.at, span, out),
            Cause::Thread if handed => self.woken_by(at, Link::Handover, wait, woken, span, out),
            // A reader of a Unix socket makes room, and wakes whoever waits at the other end, be it for bytes.
            Cause::Thread | Cause::Interrupt
                if wait == Wait::Network && self.in_network_call(woken) =>
            {
                self.woken_by(at, Link::Peer, wait, woken, span, out);
            }
            Cause::Thread => self.woken_by(at, link(wait), wait, woken, span, out),
            Cause::Interrupt => {
                if wait == Wait::Lock
                    && let Some(by) = self.tried_again(at.tid, span.1)
                {
                    return self.woken_by(at, Link::Lock, wait, Woken { by, ..woken }, span, out);
                }
                let kind = match wait {
                    Wait::Timer | Wait::Network | Wait::Lock => Kind::Timer,
                    _ if blocked.uninterruptible => Kind::DiskOther,
                    other => unresolved(other),
                };
                at.put_wait(kind, span, out);
            }
        }
    }

    /// Who let a lock go for which a thread waits in turns, each with a time limit: behind the limit that ended at this
    /// time it waits again, without having done anything else, until that thread wakes it. Nothing where it went on, as
    /// after a sleep.
    fn tried_again(&self, tid: i32, from: u64) -> Option<i32> {
        let mut worked = 0;
        for span in self.timelines.between(tid, from, u64::MAX) {
            match span.doing {
                Doing::Blocked(blocked) if what_for(&blocked) == Wait::Lock => {
                    match blocked.woken?.cause {
                        Cause::Interrupt => {}
                        Cause::Thread => return blocked.woken.map(|woken| woken.by),
                        _ => return None,
                    }
                }
                Doing::Blocked(_) | Doing::Silent(_) | Doing::Unknown => return None,
                Doing::Ready(_) | Doing::Interrupt(_) => {}
                Doing::User | Doing::Call(_) | Doing::Memory(_) => worked += span.end - span.start,
            }
            if worked > BETWEEN_TRIES {
                return None;
            }
        }
        None
    }

    /// A wait that the window's end cut: for a child, what that does; else no event tells how it ended.
    fn waits_on(&self, at: At, wait: Wait, span: (u64, u64), out: &mut Vec<Piece>) {
        match self.busiest_child(at, span).filter(|_| wait == Wait::Child) {
            Some(child) => self.step(self.on_in(at, child, Link::Child), span.0, span.1, out),
            None => at.put_wait(unresolved(wait), span, out),
        }
    }

    /// The child that used the CPU most, for a wait for children that the window's end cut.
    fn busiest_child(&self, at: At, span: (u64, u64)) -> Option<i32> {
        let known = self
            .children
            .get(self.timelines.processes.get(&at.tid).unwrap_or(&at.tid));
        let made = self
            .timelines
            .makers
            .iter()
            .filter(|m| *m.1 == at.tid)
            .map(|m| *m.0);
        let children = known.into_iter().flatten().copied().chain(made);
        self.busiest(
            children.filter(|c| at.depth < DEEPEST && self.timelines.threads.contains_key(c)),
            span,
        )
    }

    /// The thread that used the CPU most in a stretch of time.
    fn busiest(&self, threads: impl Iterator<Item = i32>, span: (u64, u64)) -> Option<i32> {
        let on_cpu = |d: &Doing| {
            !matches!(
                d,
                Doing::Blocked(_) | Doing::Silent(_) | Doing::Unknown | Doing::Ready(_)
            )
        };
        let busy = |tid: &i32| -> u64 {
            self.timelines
                .between(*tid, span.0, span.1)
                .iter()
                .filter(|s| on_cpu(&s.doing))
                .map(|s| s.end - s.start)
                .sum()
        };
        threads
            .map(|tid| (busy(&tid), tid))
            .filter(|b| b.0 > 0)
            .max()
            .map(|b| b.1)
    }

    /// A program's time between two times: its first thread's; where that waits all the time for what others of the
    /// program do, the time of the one that worked most.
    pub fn walk_program(&self, pid: i32, from: u64, to: u64, out: &mut Vec<Piece>) {
        let waits = self
            .timelines
            .between(pid, from, to)
            .iter()
            .all(|s| matches!(s.doing, Doing::Blocked(_) | Doing::Silent(_)));
        let others = self
            .timelines
            .processes
            .iter()
            .filter(|&(&tid, &of)| of == pid && tid != pid)
            .map(|(&tid, _)| tid);
        match self.busiest(others, (from, to)).filter(|_| waits) {
            Some(tid) => self.walk(tid, from, to, Chain::default().with(Link::Thread), out),
            None => self.walk(pid, from, to, Chain::default(), out),
        }
    }

    /// Another thread ended the wait: the path goes on in it.
    fn woken_by(
        &self,
        at: At,
        link: Link,
        wait: Wait,
        woken: Woken,
        span: (u64, u64),
        out: &mut Vec<Piece>,
    ) {
        let until = span.1.min(woken.at);
        if at.depth >= DEEPEST
            || woken.by == at.tid
            || !self.timelines.threads.contains_key(&woken.by)
        {
            return at.put_wait(unresolved(wait), span, out);
        }
        if link == Link::Lock && self.idle_client(at, woken.by) {
            return at.put(Kind::Lock, Whom::Nobody, span, out);
        }
        let next = self.on_in(at, woken.by, link);
        let from = if link == Link::Disk {
            self.idle_worker(next, span.0, until, out)
        } else {
            span.0
        };
        self.step(next, from, until, out);
        at.put(unresolved(wait), Whom::Nobody, (until, span.1), out);
    }

    /// A worker of the kernel that ends I/O (a file system's, where it has more to do than to wake who waits) serves
    /// whoever has work for it: what it did before it was given this work was for others, and the wait was all along
    /// for what then woke it. Returns since when it worked.
    fn idle_worker(&self, at: At, from: u64, until: u64, out: &mut Vec<Piece>) -> u64 {
        let given = |s: &&Span| matches!(s.doing, Doing::Blocked(b) if !b.uninterruptible);
        let idle = self
            .timelines
            .between(at.tid, from, until)
            .iter()
            .rev()
            .find(given);
        let Some(&Span {
            end,
            doing: Doing::Blocked(blocked),
            ..
        }) = idle.filter(|_| self.of_kernel(at.tid))
        else {
            return from;
        };
        let span = (from, end.min(until));
        match (
            blocked.woken.map(|woken| woken.cause),
            self.disks.ended_at(span.1),
        ) {
            // Work may be given to a worker whose wake-up is told late, or not at all: what ended right then is what it
            // was given.
            (None | Some(Cause::Interrupt), Some(io)) => self.disk(at, io, span.1, span, out),
            (None | Some(Cause::Interrupt), None) => {
                at.put(Kind::DiskOther, Whom::Nobody, span, out)
            }
            (Some(_), _) => self.blocked(at, &blocked, false, span, out),
        }
        span.1
    }

    /// Whether a chain that began at the server would go on in the load generator.
    fn idle_client(&self, at: At, next: i32) -> bool {
        self.side(next) == Side::Client && at.side == Side::Server && at.chain != Chain::default()
    }

    /// Whether a chain that began at the server has come to a socket at which it answers.
    fn is_clients(&self, at: At, socket: u64) -> bool {
        at.chain != Chain::default()
            && at.side == Side::Server
            && self.connections.end(socket) == Some(End::Answers)
    }

    /// What waiting for a client is to a request that is not that client's.
    fn idle_kind(&self, at: At) -> Kind {
        let idle = at.depth == 0 && at.chain == Chain::default().with(Link::Queue);
        if idle {
            Kind::Wire
        } else if at.chain.has(Link::Lock) {
            Kind::Lock
        } else {
            Kind::Peer
        }
    }

    fn in_network_call(&self, woken: Woken) -> bool {
        let at = self
            .timelines
            .between(woken.by, woken.at.saturating_sub(1), woken.at);
        let waits = |call| {
            matches!(
                calls::wait(call, [0; 2], Role::Whole, |_| Fd::Socket),
                Wait::Network
            )
        };
        matches!(at.last().map(|s| s.doing), Some(Doing::Call(call)) if waits(call))
    }

    /// Bytes arrived: the path goes on in their sender, and on the way from there.
    fn arrival(&self, at: At, socket: u64, woken: Woken, span: (u64, u64), out: &mut Vec<Piece>) {
        let sending = self
            .connections
            .peer(socket)
            .and_then(|other| self.sockets.sending(other, woken.at));
        let (sender, sent) = match sending {
            Some(s) if s.begun <= woken.at && woken.at <= s.at => (s.tid, woken.at),
            Some(s) => (s.tid, s.at),
            // A thread of the service that has no request of its own waits for its client, who may be on another
            // machine.
            None if self.is_clients(at, socket) => {
                return at.put(self.idle_kind(at), Whom::Client, span, out);
            }
            None if self.in_network_call(woken) => (woken.by, woken.at),
            None => return at.put(Kind::Peer, Whom::Nobody, span, out),
        };
        if self.idle_client(at, sender) {
            // The holder of what is waited for had nothing to do itself: it waited for its own client. The server's own
            // thread was idle when the request arrived, and is being woken.
            return at.put(self.idle_kind(at), Whom::Client, span, out);
        }
        if at.depth >= DEEPEST || sender == at.tid {
            return at.put(Kind::Peer, Whom::Nobody, span, out);
        }
        let sent = sent.clamp(span.0, span.1);
        self.step(self.on_in(at, sender, Link::Peer), span.0, sent, out);
        at.put(Kind::Wire, Whom::Nobody, (sent, span.1), out);
    }

    /// Whether a thread is the kernel's own. Its I/O may be written on the server's behalf: whose it is no event tells.
    fn of_kernel(&self, tid: i32) -> bool {
        self.children
            .get(&KTHREADD)
            .is_some_and(|threads| threads.contains(&tid))
    }

    /// A thread that had what is waited for, by its side.
    fn whom(&self, tid: i32) -> Whom {
        match self.side(tid) {
            Side::Server => Whom::Server,
            Side::Client => Whom::Client,
            Side::Other => Whom::Thread(tid),
        }
    }

    /// A device ended the wait: held back, in the queue, in the device (and whose requests that had besides), and what
    /// the file system did after.
    fn disk(&self, at: At, io: Io, woken: u64, span: (u64, u64), out: &mut Vec<Piece>) {
        let Some(way) = self.disks.way(io, woken, at.tid) else {
            return at.put(Kind::DiskOther, Whom::Nobody, span, out);
        };
        let clip = |t: u64| t.clamp(span.0, span.1);
        let (submitted, completed) = (clip(way.submitted), clip(way.completed));
        let issued = clip(way.issued.unwrap_or(way.submitted));
        at.put(Kind::DiskHeld, Whom::Nobody, (span.0, submitted), out);
        let others = |tid: i32| tid != way.by && tid != at.tid && !self.of_kernel(tid);
        if issued > submitted {
            let before = self.disks.before(io.device, submitted, issued, others);
            let whom = before.map_or(Whom::Nobody, |tid| self.whom(tid));
            at.put(Kind::DiskQueue, whom, (submitted, issued), out);
        }
        let mut reached = issued;
        for (from, to, tid) in self.disks.beside(io.device, issued, completed, |tid| {
            others(tid) && self.side(tid) != Side::Server
        }) {
            at.put(Kind::DiskDevice, Whom::Nobody, (reached, from), out);
            at.put(Kind::DiskDevice, self.whom(tid), (from, to), out);
            reached = to;
        }
        at.put(Kind::DiskDevice, Whom::Nobody, (reached, completed), out);
        at.put(Kind::DiskOther, Whom::Nobody, (completed, span.1), out);
    }
}

/// What a blocked thread waited for, as far as its system call tells.
fn what_for(blocked: &Blocked) -> Wait {
    match blocked.call {
        Some(call) => match calls::wait(call, [0; 2], Role::Whole, |_| Fd::Unknown) {
            Wait::Other if blocked.uninterruptible => Wait::Disk,
            wait => wait,
        },
        None if blocked.fault => Wait::Memory,
        None if blocked.uninterruptible => Wait::Disk,
        None => Wait::Other,
    }
}

fn link(wait: Wait) -> Link {
    match wait {
        Wait::Lock | Wait::Commit => Link::Lock,
        Wait::Disk => Link::Disk,
        Wait::Child => Link::Child,
        Wait::Memory => Link::Memory,
        Wait::Network | Wait::Idle | Wait::Timer | Wait::Pipe | Wait::Other => Link::Pipe,
    }
}

/// The leaf of a wait that cannot be followed further.
fn unresolved(wait: Wait) -> Kind {
    match wait {
        Wait::Lock | Wait::Commit => Kind::Lock,
        Wait::Disk => Kind::DiskOther,
        Wait::Network | Wait::Idle => Kind::Peer,
        Wait::Timer => Kind::Timer,
        Wait::Memory => Kind::Memory,
        Wait::Child => Kind::Child,
        Wait::Pipe => Kind::Pipe,
        Wait::Other => Kind::NotFollowed,
    }
}

#[cfg(test)]
mod tests;
