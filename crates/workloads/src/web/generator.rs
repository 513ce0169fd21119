//! The load generator: one process, one event loop, any number of connections.
//!
//! It differs from wrk in four ways that matter for the figures. The next request is sent as soon as an answer is
//! complete, without going back to the kernel to ask whether the socket is writable. Every latency is kept. In an open
//! loop a request has a time at which it is due, and its latency is told from there as well. And it watches itself: its
//! CPU time, its errors, its stalls.

mod alarm;
mod exchange;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use fingerpost_sys::stamps::{ThreadWriter, Writer};
use fingerpost_sys::system::own_cpu_time;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::Timespec;

use self::alarm::Alarm;
use super::connection::{Connection, Stage};
use super::errors;
use super::http::HeadCache;
use super::kernel::{self, Scheduled, Sockets};
use super::protocol::{Input, Load, Order, Reply, Report, STRETCH_NS, answer, now_ns};
use super::stall::{Noted, StallWatch};
use super::tally::{Pace, Tally, Window};
use crate::stalls::Stall;
use crate::worker::Ended;

/// The worker's name.
pub const NAME: &str = "web-generator";

/// Longest sleep of the loop: how soon a stall is looked at.
const TICK_NS: u64 = 10_000_000;
/// How long connections may take to have had their first answer before the generator says that it is ready anyway: a
/// connection that was turned away is tried again by the kernel after one and after three seconds.
const READY_NS: u64 = 3_500_000_000;
/// How long answers that are under way at the end of the window are waited for.
const DRAIN_NS: u64 = 2_000_000_000;
/// Pause after a connection that could not be made, and after one that broke.
const PAUSE_NS: (u64, u64) = (10_000_000, 1_000_000);
/// How many new connections may be without their first answer before more are opened, so that the beginning of a load
/// does not overflow an accept queue that the load itself would not; and how long that is waited for.
const UNANSWERED: usize = 128;
const OPEN_WAIT_NS: u64 = 100_000_000;
const BUFFER: usize = 64 << 10;
const STDIN_TOKEN: u64 = u64::MAX;
const ALARM_TOKEN: u64 = u64::MAX - 1;

/// The process: takes orders until its input ends.
pub fn main(_args: Vec<OsString>) -> Ended {
    let descriptors = getrlimit(Resource::Nofile);
    // Where it is not allowed the lower limit stays, and a load that does not fit is refused with a sentence.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: descriptors.maximum,
            ..descriptors
        },
    );
    let mut input = Input::default();
    let thread_writer = Writer::find().map(|w| w.of_thread());
    loop {
        match input.wait() {
            Some(Order::Load(load)) => {
                let Some(reply) = run(load, thread_writer.clone(), &mut input) else {
                    return Ok(());
                };
                answer(&reply);
            }
            Some(Order::Measure { .. }) => {
                answer(&Reply::Cannot("there is no load to measure".to_owned()))
            }
            None => return Ok(()),
        }
    }
}

/// Makes one load from its order to its report; nothing when the input ended, which means that nobody waits for the
/// report any more.
fn run(load: Load, thread_writer: Option<ThreadWriter>, input: &mut Input) -> Option<Reply> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if load.connections as u64 + 16 > limit {
        return Some(Reply::Cannot(format!(
            "{} connections need more descriptors than the {limit} that a process may have here; raise the hard limit \
             (ulimit -Hn) or use fewer connections",
            load.connections
        )));
    }
    match Generator::new(load, thread_writer) {
        Ok(mut generator) => generator.run(input),
        Err(e) => Some(Reply::Cannot(format!(
            "the load generator could not be set up: {}",
            std::io::Error::from(e)
        ))),
    }
}

/// One load under way.
struct Generator {
    load: Load,
    /// Stamps round trips, where this process was given a place for that.
    thread_writer: Option<ThreadWriter>,
    /// What is sent, in turn; one unless the load has several paths.
    requests: Vec<Vec<u8>>,
    turn: usize,
    /// Which of them each connection has under way.
    turns: Vec<usize>,
    epoll: OwnedFd,
    /// Set to the time at which the next request of an open loop is due.
    alarm: Option<Alarm>,
    connections: Vec<Connection>,
    /// Places whose first connection is still to be opened, and when the last one was.
    unopened: usize,
    opened_at: u64,
    /// Whether every connection has had an answer, or has waited for one for long enough.
    ready: bool,
    /// Connections that have had their first answer and wait until all have: a server that is kept busy by the first of
    /// them accepts the others late (nginx takes one connection between any two rounds of requests), and each would be
    /// starved for seconds.
    early: Vec<u32>,
    /// Connections that are free to take a request of an open loop.
    free: Vec<u32>,
    /// Requests of an open loop that are due and wait for a connection.
    queue: VecDeque<u64>,
    pace: Option<Pace>,
    /// Connections that pause after an error, with the time to go on.
    pausing: Vec<(u64, u32)>,
    busy: usize,
    answered: usize,
    buffer: Vec<u8>,
    heads: HeadCache,
    tally: Tally,
    watch: StallWatch,
    /// Those of the window, once it is over.
    stalls: Vec<Stall>,
    last_error: Option<String>,
    due: u64,
    /// Readings at the window's beginning and end.
    at_start: Option<(Duration, Scheduled, Sockets)>,
    at_end: Option<(Duration, Scheduled, Sockets)>,
}

impl Generator {
    fn new(load: Load, thread_writer: Option<ThreadWriter>) -> Result<Generator, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            rustix::stdio::stdin(),
            epoll::EventData::new_u64(STDIN_TOKEN),
            EventFlags::IN,
        )?;
        let now = now_ns();
        let pace = load.rate.map(|rate| Pace::new(now, rate, load.phase));
        let alarm = pace.map(|_| Alarm::new(&epoll, ALARM_TOKEN)).transpose()?;
        let connection = if load.keep_alive {
            ""
        } else {
            "Connection: close\r\n"
        };
        let request = |path: &String| {
            format!(
                "GET {path} HTTP/1.1\r\nHost: {}\r\n{connection}\r\n",
                load.host
            )
            .into_bytes()
        };
        Ok(Generator {
            requests: load.paths.iter().map(request).collect(),
            turn: 0,
            turns: vec![0; load.connections],
            epoll,
            alarm,
            connections: (0..load.connections)
                .map(|_| Connection::default())
                .collect(),
            unopened: load.connections,
            opened_at: now,
            ready: false,
            early: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            pace,
            pausing: Vec::new(),
            busy: 0,
            answered: 0,
            buffer: vec![0; BUFFER],
            heads: HeadCache::default(),
            tally: Tally::new(load.rate.is_some(), load.requests),
            watch: StallWatch::new(now, Noted::new()),
            stalls: Vec::new(),
            last_error: None,
            due: 0,
            at_start: None,
            at_end: None,
            load,
            thread_writer,
        })
    }

    fn run(&mut self, input: &mut Input) -> Option<Reply> {
        let began = now_ns();
        let mut renew_at = began;
        let mut events = Vec::with_capacity(1024);
        let mut woken = began;
        loop {
            let turn = now_ns();
            if let Some(report) = self.finished(turn) {
                return Some(report);
            }
            if !self.ready && (self.answered == self.connections.len() || turn > began + READY_NS) {
                self.ready = true;
                answer(&Reply::Ready);
                std::mem::take(&mut self.early)
                    .into_iter()
                    .for_each(|index| self.next(index, turn));
            }
            if turn >= renew_at {
                renew_at = turn + STRETCH_NS;
                self.watch.renew(self.tally.latencies.quantile(0.5));
            }
            self.open_some(turn);
            let asleep = self.sleep(turn);
            events.clear();
            match self.wait(&mut events, &asleep) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(e) => {
                    return Some(Reply::Cannot(format!(
                        "the load generator cannot wait for its sockets: {}",
                        std::io::Error::from(e)
                    )));
                }
            }
            // From one waking to the next it should take no longer than the sleep and a little work.
            let meant = asleep.tv_sec as u64 * 1_000_000_000 + asleep.tv_nsec as u64;
            let last = std::mem::replace(&mut woken, now_ns());
            self.watch.notes.absent_ns += (woken - last).saturating_sub(meant + TICK_NS / 2);
            for event in &events {
                match event.data.u64() {
                    STDIN_TOKEN => {
                        input.read();
                        match input.take() {
                            Some(Order::Measure {
                                start_ns,
                                length_ns,
                            }) => self.open_window(start_ns, length_ns),
                            Some(Order::Load(_)) => {
                                return Some(Reply::Cannot(
                                    "a load is already under way".to_owned(),
                                ));
                            }
                            None if input.ended => return None,
                            None => {}
                        }
                    }
                    ALARM_TOKEN => {}
                    token => self.on_event(token, event.flags),
                }
                // What has become due meanwhile does not wait for the rest of the events.
                if self.pace.is_some() {
                    self.take_due(now_ns());
                }
            }
            self.after_events();
        }
    }

    fn open_window(&mut self, start: u64, length_ns: u64) {
        self.tally.open(Window {
            start,
            end: start + length_ns,
        });
        if let Some(rate) = self.load.rate {
            // The window has a schedule of its own, so that it holds exactly the requests that were due in it.
            self.queue.clear();
            self.pace = Some(Pace::new(start, rate, self.load.phase));
        }
    }

    /// Waits for events, or for the next request that is due.
    fn wait(&mut self, events: &mut Vec<epoll::Event>, asleep: &Timespec) -> Result<(), Errno> {
        if let (Some(alarm), Some(pace)) = (&mut self.alarm, &self.pace) {
            alarm.set(pace.due())?;
        }
        epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(events),
            Some(asleep),
        )
        .map(drop)
    }

    /// How long the loop may sleep: until the next thing that has a time, a tick at most.
    fn sleep(&self, now: u64) -> Timespec {
        let mut until = now + TICK_NS;
        if self.may_open(now) {
            until = now;
        }
        if let Some(w) = self.tally.window {
            until = until.min(if now < w.start {
                w.start
            } else {
                w.end.max(now)
            });
        }
        for (at, _) in &self.pausing {
            until = until.min((*at).max(now));
        }
        // Whole milliseconds, rounded up: older kernels have no finer sleep, and an open loop has its alarm.
        let ms = (until - now).div_ceil(1_000_000);
        Timespec {
            tv_sec: 0,
            tv_nsec: (ms * 1_000_000) as i64,
        }
    }

    /// What has a time: the window's edges, requests that are due, pauses that are over.
    fn after_events(&mut self) {
        let now = now_ns();
        if self.at_start.is_none() && self.tally.begun(now) {
            self.at_start = Some((own_cpu_time(), kernel::scheduled_self(), Sockets::read()));
            self.watch.open(self.tally.window.map_or(now, |w| w.start));
        }
        if self.at_end.is_none() && self.tally.over(now) {
            self.at_end = Some((own_cpu_time(), kernel::scheduled_self(), Sockets::read()));
            if let Some(window) = self.tally.window {
                // A stall that goes on is judged by what is known now; how the wait for the last answers goes is no
                // part of it.
                self.stalls = self.watch.end(window.end);
            }
        }
        self.take_due(now);
        let mut i = 0;
        while i < self.pausing.len() {
            if self.pausing[i].0 <= now {
                let (_, index) = self.pausing.swap_remove(i);
                self.connections[index as usize].stage = Stage::Idle;
                self.next(index, now);
            } else {
                i += 1;
            }
        }
        if self.busy == 0 && self.pausing.is_empty() {
            self.watch.restart(now);
        } else if self.watch.wants_a_look(now) {
            let doing = self.doing();
            self.watch.look(doing);
        }
    }

    /// Sends, or queues, the requests that an open loop's schedule has due by now.
    fn take_due(&mut self, now: u64) {
        let Some(mut pace) = self.pace else { return };
        let until = self
            .tally
            .window
            .map_or(now, |w| now.min(w.end.saturating_sub(1)));
        while let Some(due) = pace.take(until) {
            if self.tally.begun(due) {
                self.due += 1;
            }
            match self.free.pop() {
                Some(index) => self.begin(index, now_ns(), due),
                None => self.queue.push_back(due),
            }
        }
        self.pace = Some(pace);
    }

    /// Opens first connections, as long as not too many of them wait for their first answer.
    fn open_some(&mut self, now: u64) {
        while self.may_open(now) {
            let index = (self.connections.len() - self.unopened) as u32;
            self.unopened -= 1;
            // Each asks once whatever the schedule, so that every connection is known to work before the window.
            self.begin(index, now, now);
            if self.unopened.is_multiple_of(UNANSWERED) {
                self.opened_at = now;
            }
        }
    }

    fn may_open(&self, now: u64) -> bool {
        let waiting = self.connections.len() - self.unopened - self.answered;
        self.unopened > 0 && (waiting < UNANSWERED || now > self.opened_at + OPEN_WAIT_NS)
    }

    /// The report, once the window is over and nothing is under way, or what is under way has been waited for long
    /// enough.
    fn finished(&mut self, now: u64) -> Option<Reply> {
        let (window, at_end) = (self.tally.window?, self.at_end?);
        if self.busy > 0 && now < window.end + DRAIN_NS {
            return None;
        }
        for connection in self.connections.iter().filter(|c| c.busy()) {
            self.tally.latency(connection.times, now);
            self.tally.error(errors::UNANSWERED, now);
        }
        for due in std::mem::take(&mut self.queue) {
            self.tally.never_sent(due, now);
        }
        let at_start = self.at_start.unwrap_or(at_end);
        Some(Reply::Report(Box::new(Report {
            completed: self.tally.completed,
            elapsed_ns: window.end - window.start,
            stretches: std::mem::take(&mut self.tally.stretches),
            latencies: self.tally.latencies.counted(),
            intended: self.tally.intended.counted(),
            errors: std::mem::take(&mut self.tally.errors),
            stalls: std::mem::take(&mut self.stalls),
            cpu_ns: at_end.0.saturating_sub(at_start.0).as_nanos() as u64,
            wait_ns: at_end.1.since(at_start.1).wait_ns,
            due: self.due,
            time_wait: at_end.2.time_wait,
            listen_overflows: at_end
                .2
                .listen_overflows
                .saturating_sub(at_start.2.listen_overflows),
        })))
    }
}
