//! From tracepoints to time: what each thread did in a window of the trace.
//!
//! Pure: it takes events in order of time and keeps, per thread, whether it is on a CPU, ready and waiting for one, or
//! blocked, and in which system call. What it was doing when the window opened is not known; the first event that
//! concerns it tells in retrospect. Threads without any event in a window are asked for by [`Tracer::close`], and
//! looked up by the caller.

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::calls::{self, Fd, Role, Wait, Waits};
use crate::follow::event::{Event, Left, What};

/// What a kind of system call took, within the windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTime {
    /// Calls that ended within a window.
    pub count: u64,
    /// Seconds from entry to exit.
    pub seconds: f64,
    /// Of these, seconds on a CPU.
    pub on_cpu: f64,
}

/// What one thread did, within the windows, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    pub on_cpu: f64,
    /// Ready, waiting for a CPU.
    pub ready: f64,
    /// Of `ready`, what followed a wait for the next request: the thread held no request meanwhile.
    pub ready_after_idle: f64,
    pub blocked: Waits,
    pub calls: BTreeMap<i64, CallTime>,
    /// Times that it left its CPU of its own accord.
    pub gave_up: u64,
    /// Whether it was seen to ask for a request, were there one waiting or not: on a busy machine a server may never
    /// have to wait.
    pub asked: bool,
    /// Waits for a lock that ended because a thread of the same process woke this one.
    pub woken_by_sibling: u64,
    /// Waits for a lock that ended otherwise: a timeout, another process.
    pub woken_otherwise: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Unknown,
    Cpu,
    Ready { after_idle: bool },
    Blocked,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Unknown,
    User,
    Call {
        number: i64,
        args: [u64; 2],
        since: u64,
        on_cpu: f64,
    },
}

struct Thread {
    pid: i32,
    place: Place,
    since: u64,
    mode: Mode,
    /// Blocked time of this window in a call that is not known yet.
    unresolved: f64,
    /// Whether its wait can be interrupted; what waits so is a device, whatever its descriptor has become meanwhile.
    uninterruptible: bool,
    /// When it last waited for the disk.
    disk: (u64, u64),
    traced: Traced,
}

/// The state of all threads that are watched.
#[derive(Default)]
pub struct Tracer {
    roles: HashMap<i32, Role>,
    threads: HashMap<i32, Thread>,
    /// What a call was last found to wait for, per process: for calls that were entered before the window.
    last_wait: HashMap<(i32, i64), Wait>,
    start: u64,
    now: u64,
    idle: HashMap<u16, bool>,
    /// Seconds that windows were open.
    pub window_seconds: f64,
    /// Seconds, within the windows, in which a watched thread was ready while a CPU idled.
    pub ready_while_idle: f64,
}

const NS: f64 = 1e-9;

impl Tracer {
    pub fn watch(&mut self, pid: i32, tid: i32, role: Role) {
        self.roles.insert(pid, role);
        self.threads
            .entry(tid)
            .or_insert_with(|| Thread::new(pid, Place::Unknown, 0));
    }

    pub fn open(&mut self, start: u64) {
        (self.start, self.now) = (start, start);
        self.idle.clear();
        for t in self
            .threads
            .values_mut()
            .filter(|t| t.place != Place::Ended)
        {
            (t.place, t.since, t.mode, t.unresolved) = (Place::Unknown, start, Mode::Unknown, 0.0);
        }
    }

    /// Takes one event. Events must come in order of time. `fd` tells what a process's descriptor refers to.
    pub fn event(&mut self, e: &Event, fd: &mut impl FnMut(i32, i32) -> Fd) {
        let of_threads = matches!(
            e.what,
            What::Enter { .. }
                | What::Exit { .. }
                | What::Switch { .. }
                | What::Waking { .. }
                | What::Fork { .. }
        );
        if e.time < self.start || !of_threads {
            return;
        }
        self.overlap_with_idle(e.time);
        if self.roles.contains_key(&e.pid) {
            self.threads
                .entry(e.tid)
                .or_insert_with(|| Thread::new(e.pid, Place::Unknown, e.time));
        }
        if e.tid != 0 {
            self.idle.insert(e.cpu, false);
            self.wake_lost(e.tid, e.time, fd);
        }
        match e.what {
            What::Enter { call, args } => {
                if let Some(t) = self.threads.get_mut(&e.tid) {
                    t.runs(e.time);
                    t.settle_unresolved(Wait::Memory);
                    t.mode = Mode::Call {
                        number: call.into(),
                        args,
                        since: e.time,
                        on_cpu: 0.0,
                    };
                }
            }
            What::Exit { call, result } => self.exit(e, call.into(), result, fd),
            What::Switch { left, next } => {
                self.wake_lost(next, e.time, fd);
                self.switch(e, left, next);
            }
            What::Waking { who, .. } => self.waking(e, who, fd),
            What::Fork { child } if self.threads.contains_key(&e.tid) => {
                // Whether it is a thread or a process shows when it acts; until then it counts as its parent's.
                self.threads.insert(
                    child,
                    Thread::new(e.pid, Place::Ready { after_idle: false }, e.time),
                );
            }
            _ => {}
        }
        self.adopt(e);
    }

    /// A watched thread that acts under another process id is that process's first.
    fn adopt(&mut self, e: &Event) {
        let Some(t) = self.threads.get_mut(&e.tid) else {
            return;
        };
        if t.pid != e.pid && e.pid > 0 && e.tid > 0 {
            if let Some(role) = self.roles.get(&t.pid).copied() {
                self.roles.insert(e.pid, role);
            }
            t.pid = e.pid;
        }
    }

    fn exit(&mut self, e: &Event, number: i64, result: i64, fd: &mut impl FnMut(i32, i32) -> Fd) {
        let Some(t) = self.threads.get_mut(&e.tid) else {
            return;
        };
        t.runs(e.time);
        let role = role_of(&self.roles, t.pid);
        if t.unresolved > 0.0 {
            let guess = self.last_wait.get(&(t.pid, number)).copied();
            let wait = guess.unwrap_or_else(|| calls::wait(number, [0; 2], role, |_| Fd::Unknown));
            let timed_out = wait == Wait::Network && result == 0 && calls::is_poll(number);
            t.settle_unresolved(if timed_out { Wait::Timer } else { wait });
        }
        if role == Role::Server && !t.traced.asked {
            let wait = match t.mode {
                Mode::Call { args, .. } => calls::wait(number, args, role, |n| fd(t.pid, n)),
                _ => calls::wait(number, [0; 2], role, |_| Fd::Unknown),
            };
            t.traced.asked = wait == Wait::Idle;
        }
        let stat = t.traced.calls.entry(number).or_default();
        stat.count += 1;
        if let Mode::Call { since, on_cpu, .. } = t.mode {
            stat.seconds += (e.time - since) as f64 * NS;
            stat.on_cpu += on_cpu;
        }
        t.mode = Mode::User;
    }

    fn switch(&mut self, e: &Event, left: Left, next: i32) {
        self.idle.insert(e.cpu, next == 0);
        if let Some(t) = self.threads.get_mut(&e.tid) {
            t.runs(e.time);
            t.uninterruptible = left == Left::Uninterruptible;
            t.traced.gave_up += u64::from(matches!(left, Left::Blocked | Left::Uninterruptible));
            t.place = match left {
                Left::Ready => Place::Ready { after_idle: false },
                Left::Blocked | Left::Uninterruptible => Place::Blocked,
                Left::Ended => Place::Ended,
            };
        }
        if let Some(t) = self.threads.get_mut(&next) {
            match t.place {
                // What could have run on an idle CPU was not ready; what it waited for shows when its call ends.
                Place::Unknown if e.tid == 0 => {
                    t.unresolved += e.time.saturating_sub(t.since) as f64 * NS
                }
                // Nothing woke it within the window, so it was ready from the start.
                Place::Unknown => t.place = Place::Ready { after_idle: false },
                _ => {}
            }
            t.settle(e.time);
            t.place = Place::Cpu;
        }
    }

    /// A blocked thread that acts has been woken. Some kernels show nothing that happens in an interrupt of an idle
    /// CPU: neither the waking, which is most devices' and timers', nor the switch from the idle task. An idle CPU
    /// takes a thread at once, so that the time was the wait's.
    fn wake_lost(&mut self, who: i32, time: u64, fd: &mut impl FnMut(i32, i32) -> Fd) {
        if self
            .threads
            .get(&who)
            .is_some_and(|t| t.place == Place::Blocked)
        {
            self.woken(who, time, None, fd);
        }
    }

    fn waking(&mut self, e: &Event, who: i32, fd: &mut impl FnMut(i32, i32) -> Fd) {
        let waker = self.threads.get(&e.tid).map(|t| (t.pid, t.disk));
        if self
            .threads
            .get(&who)
            .is_some_and(|t| matches!(t.place, Place::Blocked | Place::Unknown))
        {
            self.woken(who, e.time, waker, fd);
        }
    }

    /// Ends a thread's wait. `waker` is the watched thread that did, by its process, and when that last waited for the
    /// disk.
    fn woken(
        &mut self,
        who: i32,
        time: u64,
        waker: Option<(i32, (u64, u64))>,
        fd: &mut impl FnMut(i32, i32) -> Fd,
    ) {
        let Some(t) = self.threads.get_mut(&who) else {
            return;
        };
        let seconds = time.saturating_sub(t.since) as f64 * NS;
        let role = role_of(&self.roles, t.pid);
        let mut wait = match t.mode {
            Mode::Unknown => None,
            Mode::User => Some(Wait::Memory),
            Mode::Call { number, args, .. } => {
                let wait = match calls::wait(number, args, role, |n| fd(t.pid, n)) {
                    Wait::Pipe | Wait::Other if t.uninterruptible => Wait::Disk,
                    wait => wait,
                };
                self.last_wait.insert((t.pid, number), wait);
                Some(wait)
            }
        };
        let sibling = waker.filter(|w| w.0 == t.pid);
        if wait == Some(Wait::Lock) {
            match sibling {
                Some((_, disk)) if overlap(disk, (t.since, time)) * 2 > time - t.since => {
                    wait = Some(Wait::Commit)
                }
                Some(_) => t.traced.woken_by_sibling += 1,
                None => t.traced.woken_otherwise += 1,
            }
        }
        match wait {
            Some(wait) => t.traced.blocked[wait as usize] += seconds,
            None => t.unresolved += seconds,
        }
        if wait == Some(Wait::Disk) {
            t.disk = (t.since, time);
        }
        let after_idle =
            wait == Some(Wait::Idle) || (role == Role::Client && wait == Some(Wait::Network));
        (t.place, t.since) = (Place::Ready { after_idle }, time);
    }

    /// Adds up the time in which a watched thread was ready while a CPU idled: affinity, a quota, or a slow wake-up.
    fn overlap_with_idle(&mut self, time: u64) {
        let span = time.saturating_sub(self.now) as f64 * NS;
        self.now = time.max(self.now);
        let idle = self.idle.values().filter(|i| **i).count();
        if idle > 0 && span > 0.0 {
            let ready = self
                .threads
                .values()
                .filter(|t| matches!(t.place, Place::Ready { .. }))
                .count();
            self.ready_while_idle += span * ready.min(idle) as f64;
        }
    }

    /// Closes the window. Returns the threads without an event: their state did not change in the whole
    /// window. For threads that are blocked in a call which the window did not see begin, too, [`Tracer::whole_window`]
    /// says in which.
    pub fn close(&mut self, end: u64, fd: &mut impl FnMut(i32, i32) -> Fd) -> Vec<(i32, i32)> {
        self.overlap_with_idle(end);
        self.window_seconds += end.saturating_sub(self.start) as f64 * NS;
        let mut silent = Vec::new();
        for (&tid, t) in &mut self.threads {
            let role = role_of(&self.roles, t.pid);
            match (t.place, t.mode) {
                (Place::Unknown, _) => silent.push((t.pid, tid)),
                (Place::Blocked, Mode::Call { number, args, .. }) => {
                    let wait = calls::wait(number, args, role, |n| fd(t.pid, n));
                    t.traced.blocked[wait as usize] += end.saturating_sub(t.since) as f64 * NS;
                }
                (Place::Blocked, Mode::User) => {
                    t.traced.blocked[Wait::Memory as usize] +=
                        end.saturating_sub(t.since) as f64 * NS
                }
                _ => t.settle(end),
            }
            if let Mode::Call {
                number,
                since,
                on_cpu,
                ..
            } = t.mode
            {
                let stat = t.traced.calls.entry(number).or_default();
                stat.seconds += end.saturating_sub(since) as f64 * NS;
                stat.on_cpu += on_cpu;
            }
        }
        silent
    }

    /// Says what a silent thread did during the whole window: waiting for something, or, with `None`, ready to run.
    pub fn whole_window(&mut self, tid: i32, seconds: f64, wait: Option<Wait>) {
        if let Some(t) = self.threads.get_mut(&tid) {
            match wait {
                Some(wait) => t.traced.blocked[wait as usize] += seconds,
                None => t.traced.ready += seconds,
            }
        }
    }

    /// The side that a process is on.
    pub fn role(&self, pid: i32) -> Role {
        role_of(&self.roles, pid)
    }

    /// What every thread did, with its process.
    pub fn into_threads(self) -> std::collections::HashMap<i32, (i32, Role, Traced)> {
        self.threads
            .into_iter()
            .map(|(tid, t)| (tid, (t.pid, role_of(&self.roles, t.pid), t.traced)))
            .collect()
    }
}

impl Thread {
    fn new(pid: i32, place: Place, since: u64) -> Thread {
        Thread {
            pid,
            place,
            since,
            mode: Mode::Unknown,
            unresolved: 0.0,
            uninterruptible: false,
            disk: (0, 0),
            traced: Traced::default(),
        }
    }

    /// It is on a CPU now, and was since its last event.
    fn runs(&mut self, time: u64) {
        if self.place == Place::Unknown {
            self.place = Place::Cpu;
        }
        self.settle(time);
        self.place = Place::Cpu;
    }

    /// Books the time since the last change.
    fn settle(&mut self, time: u64) {
        let seconds = time.saturating_sub(self.since) as f64 * NS;
        match self.place {
            Place::Cpu => {
                self.traced.on_cpu += seconds;
                if let Mode::Call { on_cpu, .. } = &mut self.mode {
                    *on_cpu += seconds;
                }
            }
            Place::Ready { after_idle } => {
                self.traced.ready += seconds;
                if after_idle {
                    self.traced.ready_after_idle += seconds;
                }
            }
            Place::Unknown | Place::Blocked | Place::Ended => {}
        }
        self.since = time;
    }

    fn settle_unresolved(&mut self, wait: Wait) {
        self.traced.blocked[wait as usize] += self.unresolved;
        self.unresolved = 0.0;
    }
}

fn role_of(roles: &HashMap<i32, Role>, pid: i32) -> Role {
    roles.get(&pid).copied().unwrap_or(Role::Whole)
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

#[cfg(test)]
mod tests;
