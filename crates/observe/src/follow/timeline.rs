//! What every thread did in one window, and which thread every CPU had.
//!
//! Pure: events in the order of time go in, spans that cover the window without a gap come out. What a thread did when
//! the window opened is not known; the first event that concerns it tells in retrospect (one that is woken was blocked,
//! one that leaves a system call was in it). What no event tells stays [`Doing::Unknown`].

use foldhash::HashMap;

use crate::calls::Wait;

use super::event::{DiskStep, Event, InterruptKind, Io, Left, MemoryWork, What};
use super::source::Window;

/// Threads of a window that no event concerned, with their processes and what they waited for all the time.
pub type Silent = HashMap<i32, (i32, Wait)>;

/// A stretch of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Nanoseconds on the monotonic clock.
    pub start: u64,
    pub end: u64,
    pub doing: Doing,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doing {
    /// On a CPU, in user code (a kernel thread: its own code).
    User,
    /// On a CPU, in a system call.
    Call(i64),
    /// On a CPU that served an interrupt.
    Interrupt(InterruptKind),
    /// On a CPU, freeing or moving memory for itself.
    Memory(MemoryWork),
    /// Ready, on the queue of this CPU.
    Ready(u16),
    Blocked(Blocked),
    /// In one wait all the time, as `/proc` told when the window had ended: no event concerned it.
    Silent(Wait),
    /// No event tells.
    Unknown,
}

/// How a thread was blocked, and how that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocked {
    /// The system call that it was blocked in.
    pub call: Option<i64>,
    /// Whether it was in user code: a fault. Neither this nor a call is a thread of the kernel's, or not told by any
    /// event.
    pub fault: bool,
    /// Whether no signal could interrupt it: a device, a page.
    pub uninterruptible: bool,
    /// The work on memory that it was in.
    pub memory: Option<MemoryWork>,
    /// What woke it; nothing when the window ended first.
    pub woken: Option<Woken>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Woken {
    pub at: u64,
    /// The thread that was current.
    pub by: i32,
    pub cause: Cause,
}

/// What made a wake-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// The current thread itself.
    Thread,
    /// Bytes that arrived in this socket.
    Arrival(u64),
    /// A request that a device completed.
    Disk(Io),
    /// Another interrupt: a timer, a device.
    Interrupt,
}

/// Which thread a CPU had, from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnCpu {
    pub since: u64,
    /// The thread; 0 is idle.
    pub tid: i32,
}

/// One window's threads and CPUs.
#[derive(Clone, Debug, Default)]
pub struct Timelines {
    /// Spans of each thread, in order, without a gap.
    pub threads: HashMap<i32, Vec<Span>>,
    /// Process of each thread that was current at some time.
    pub processes: HashMap<i32, i32>,
    /// What each CPU ran, in order.
    pub cpus: HashMap<u16, Vec<OnCpu>>,
    /// When each thread entered system calls, in order.
    pub entries: HashMap<i32, Vec<u64>>,
    /// Which thread made a thread that was made within the window.
    pub makers: HashMap<i32, i32>,
}

/// A wake-up follows the arrival or the completed request that caused it within this many nanoseconds, on the same CPU
/// and with no other cause between: the kernel does both in one go.
const ONE_GO: u64 = 100_000;

/// A wake-up may be told before the thread has left its CPU, by at most this many nanoseconds.
const EARLY: u64 = 100_000;

#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Unknown,
    Cpu,
    Ready(u16),
    Blocked {
        uninterruptible: bool,
    },
    Ended,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    #[default]
    Unknown,
    User,
    Call(i64),
}

#[derive(Default)]
struct Thread {
    place: Place,
    mode: Mode,
    since: u64,
    memory: Option<MemoryWork>,
    interrupt: Option<InterruptKind>,
    early: Option<Woken>,
    /// Spans whose system call is told by the next exit.
    unresolved: Vec<usize>,
    spans: Vec<Span>,
}

impl Thread {
    fn call(&self) -> Option<i64> {
        match self.mode {
            Mode::Call(n) => Some(n),
            Mode::User | Mode::Unknown => None,
        }
    }

    /// Closes the span that is open.
    fn put(&mut self, now: u64, woken: Option<Woken>) {
        if now <= self.since {
            return;
        }
        let doing = match self.place {
            Place::Unknown | Place::Ended => Doing::Unknown,
            Place::Cpu => match (self.interrupt, self.memory, self.mode) {
                (Some(kind), _, _) => Doing::Interrupt(kind),
                (_, Some(work), _) => Doing::Memory(work),
                (_, _, Mode::Call(n)) => Doing::Call(n),
                (_, _, Mode::User | Mode::Unknown) => Doing::User,
            },
            Place::Ready(cpu) => Doing::Ready(cpu),
            Place::Blocked { uninterruptible } => {
                let fault = self.mode == Mode::User;
                Doing::Blocked(Blocked {
                    call: self.call(),
                    fault,
                    uninterruptible,
                    memory: self.memory,
                    woken,
                })
            }
        };
        if self.mode == Mode::Unknown && matches!(self.place, Place::Cpu | Place::Blocked { .. }) {
            self.unresolved.push(self.spans.len());
        }
        self.spans.push(Span {
            start: self.since,
            end: now,
            doing,
        });
        self.since = now;
    }

    /// The thread acts: whatever it was thought to do until now, it is on a CPU.
    fn runs(&mut self, now: u64, mode_before: Mode) {
        self.resolve(mode_before);
        match self.place {
            // Its first event in the window: it ran before that.
            Place::Cpu | Place::Unknown => {}
            // No event told that it got a CPU: that one was lost, and with it how long the thread waited.
            Place::Ready(_) | Place::Blocked { .. } | Place::Ended => {
                self.place = Place::Unknown;
                self.put(now, None);
            }
        }
        self.place = Place::Cpu;
    }

    /// The thread, which is on a CPU, goes from one mode into another.
    fn crosses(&mut self, now: u64, from: Mode, to: Mode) {
        self.runs(now, from);
        self.put(now, None);
        (self.mode, self.early) = (to, None);
    }

    /// An event tells in which mode the thread was all along.
    fn resolve(&mut self, mode: Mode) {
        if self.mode != Mode::Unknown || mode == Mode::Unknown {
            return;
        }
        self.mode = mode;
        for at in self.unresolved.drain(..) {
            match (&mut self.spans[at].doing, mode) {
                (doing @ Doing::User, Mode::Call(n)) => *doing = Doing::Call(n),
                (Doing::Blocked(b), Mode::Call(n)) => b.call = Some(n),
                (Doing::Blocked(b), _) => b.fault = true,
                _ => {}
            }
        }
    }
}

#[derive(Default)]
struct Builder {
    start: u64,
    threads: HashMap<i32, Thread>,
    /// The last cause of wake-ups that each CPU has seen, and when.
    recent: HashMap<u16, (u64, Cause)>,
    /// All but the spans.
    made: Timelines,
}

pub fn timelines(window: &Window) -> Timelines {
    let mut builder = Builder {
        start: window.start,
        ..Builder::default()
    };
    window.events.iter().for_each(|e| builder.event(e));
    builder.finish(window.end)
}

impl Builder {
    fn thread(&mut self, tid: i32) -> &mut Thread {
        self.threads.entry(tid).or_insert_with(|| Thread {
            since: self.start,
            ..Thread::default()
        })
    }

    fn event(&mut self, e: &Event) {
        if e.tid != 0 {
            self.made.processes.insert(e.tid, e.pid);
        }
        let ran = self.made.cpus.entry(e.cpu).or_default();
        if ran.is_empty() {
            ran.push(OnCpu {
                since: self.start,
                tid: e.tid,
            });
        }
        if matches!(
            e.what,
            What::Enter { .. } | What::Exit { .. } | What::Switch { .. }
        ) {
            // A wake-up and its cause lie in one interrupt, or in one stretch of one call.
            self.recent.remove(&e.cpu);
        }
        match e.what {
            What::Enter { call, .. } => {
                self.thread(e.tid)
                    .crosses(e.time, Mode::User, Mode::Call(call.into()));
                self.made.entries.entry(e.tid).or_default().push(e.time);
            }
            What::Exit { call, .. } => {
                self.thread(e.tid)
                    .crosses(e.time, Mode::Call(call.into()), Mode::User)
            }
            What::Switch { left, next } => self.switch(e, left, next),
            What::Waking { who, target } => self.waking(e, who, target),
            What::Fork { child } => {
                let mut t = Thread {
                    since: e.time,
                    ..Thread::default()
                };
                (t.place, t.mode) = (Place::Ready(e.cpu), Mode::User);
                self.threads.insert(child, t);
                self.made.makers.insert(child, e.tid);
            }
            What::Arrived { socket } => {
                _ = self.recent.insert(e.cpu, (e.time, Cause::Arrival(socket)))
            }
            What::Disk {
                step: DiskStep::Completed,
                io,
            } => _ = self.recent.insert(e.cpu, (e.time, Cause::Disk(io))),
            What::Memory { work, begin } => {
                let t = self.thread(e.tid);
                t.put(e.time, None);
                t.memory = begin.then_some(work);
            }
            What::Interrupt { kind, begin } if e.tid != 0 => {
                let t = self.thread(e.tid);
                // A deferred interrupt within a device's is that one's; the outermost names the time.
                if begin == t.interrupt.is_none() {
                    t.runs(e.time, Mode::Unknown);
                    t.put(e.time, None);
                    t.interrupt = begin.then_some(kind);
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, e: &Event, left: Left, next: i32) {
        if e.tid != 0 {
            let cpu = e.cpu;
            let t = self.thread(e.tid);
            t.interrupt = None;
            t.runs(e.time, Mode::Unknown);
            t.put(e.time, None);
            t.place = match left {
                Left::Ready => Place::Ready(cpu),
                Left::Blocked => Place::Blocked {
                    uninterruptible: false,
                },
                Left::Uninterruptible => Place::Blocked {
                    uninterruptible: true,
                },
                Left::Ended => Place::Ended,
            };
            if matches!(t.place, Place::Blocked { .. })
                && t.early.take().is_some_and(|w| w.at + EARLY > e.time)
            {
                t.place = Place::Ready(cpu);
            }
        }
        if next != 0 {
            let cpu = e.cpu;
            let t = self.thread(next);
            if t.place == Place::Unknown {
                t.place = Place::Ready(cpu);
            }
            t.put(e.time, None);
            t.place = Place::Cpu;
        }
        self.made.cpus.entry(e.cpu).or_default().push(OnCpu {
            since: e.time,
            tid: next,
        });
    }

    fn waking(&mut self, e: &Event, who: i32, target: u16) {
        let recent = self
            .recent
            .get(&e.cpu)
            .filter(|(at, _)| e.time - at < ONE_GO)
            .map(|(_, cause)| *cause);
        let cause = match recent {
            // A thread that sends to a socket of this machine delivers the bytes itself, in an interrupt of its own
            // call or (Unix) in it.
            Some(Cause::Arrival(socket)) => Cause::Arrival(socket),
            Some(cause) if e.interrupt || e.tid == 0 => cause,
            _ if e.interrupt || e.tid == 0 => Cause::Interrupt,
            _ => Cause::Thread,
        };
        let woken = Woken {
            at: e.time,
            by: e.tid,
            cause,
        };
        let t = self.thread(who);
        match t.place {
            Place::Unknown => {
                t.place = Place::Blocked {
                    uninterruptible: false,
                }
            }
            Place::Blocked { .. } => {}
            Place::Cpu => return t.early = Some(woken),
            Place::Ready(_) | Place::Ended => return,
        }
        t.put(e.time, Some(woken));
        t.place = Place::Ready(target);
    }

    fn finish(mut self, end: u64) -> Timelines {
        self.threads.values_mut().for_each(|t| t.put(end, None));
        let threads = self
            .threads
            .into_iter()
            .map(|(tid, t)| (tid, t.spans))
            .collect();
        Timelines {
            threads,
            ..self.made
        }
    }
}

impl Timelines {
    /// Adds threads that no event concerned.
    pub fn add_silent(&mut self, silent: &Silent, start: u64, end: u64) {
        for (&tid, &(pid, wait)) in silent {
            self.processes.entry(tid).or_insert(pid);
            self.threads.entry(tid).or_insert_with(|| {
                vec![Span {
                    start,
                    end,
                    doing: Doing::Silent(wait),
                }]
            });
        }
    }

    /// The spans of a thread that overlap a stretch of time.
    pub fn between(&self, tid: i32, from: u64, to: u64) -> &[Span] {
        let Some(spans) = self.threads.get(&tid) else {
            return &[];
        };
        let first = spans.partition_point(|s| s.end <= from);
        let last = spans.partition_point(|s| s.start < to);
        spans.get(first..last).unwrap_or(&[])
    }

    /// Who had a CPU in a stretch of time: the thread, from when, until when.
    pub fn running(
        &self,
        cpu: u16,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (i32, u64, u64)> + '_ {
        let ran = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        let first = ran.partition_point(|t| t.since <= from).saturating_sub(1);
        (first..ran.len()).map_while(move |i| {
            let ends = ran.get(i + 1).map_or(u64::MAX, |n| n.since);
            let (a, b) = (ran[i].since.max(from), ends.min(to));
            (ran[i].since < to).then_some((ran[i].tid, a, b))
        })
    }

    /// When the system call began in which a thread was at a time: the last entry before it.
    pub fn entered(&self, tid: i32, at: u64) -> Option<u64> {
        let entries = self.entries.get(&tid)?;
        entries[..entries.partition_point(|&t| t <= at)]
            .last()
            .copied()
    }
}

#[cfg(test)]
mod tests;
