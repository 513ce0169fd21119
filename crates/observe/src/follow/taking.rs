//! Windows of events while a workload runs, and the requests followed when it is over.
//!
//! Following takes more CPU time than taking, so it waits until the load has ended: what it costs then slows nobody.

use std::time::Duration;

use fingerpost_record::Paths;
use fingerpost_sys::trace::thread_cpu_seconds;

use super::event::{Event, What};
use super::leaf::Side;
use super::source::{Source, Window};
use super::{Follower, pace::Pace};
use crate::calls::{Fd, Role};
use crate::population::{Descriptors, Population};
use crate::states;
use crate::tracer::{self, Stamped, Tracer};

/// Events that are kept to be followed: with 56 bytes each, some 80 MB.
const MOST_EVENTS: usize = 1_500_000;

/// A turn of the load generator's own account: thread, beginning and end, in nanoseconds on the monotonic clock.
pub type Turn = (i32, u64, u64);

/// Takes windows.
pub struct Taking {
    source: Box<dyn Source + Send>,
    pace: Pace,
    tracer: Tracer,
    windows: Vec<Window>,
    kept: usize,
    own: i32,
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
        Taking { source, pace, tracer: Tracer::new(), windows: Vec::new(), kept: 0, own, lost: 0, events: 0, count: 0, torn: 0 }
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
        for (&tid, thread) in &population.threads {
            self.tracer.watch(thread.pid, tid, thread.role);
        }
        let Some(window) = self.source.window(self.pace.length(), wait)? else { return Ok(Duration::from_secs(1)) };
        self.count += 1;
        self.events += window.events.len() as u64;
        self.lost += window.lost;
        let (length, events) = (Duration::from_nanos(window.end - window.start), window.events.len() as u64);
        if window.lost > 0 {
            // A window with holes would book time to the wrong cause.
            self.torn += 1;
        } else {
            self.trace(&window, descriptors);
            if self.kept + window.events.len() <= MOST_EVENTS {
                self.kept += window.events.len();
                self.windows.push(window);
            }
        }
        Ok(self.pace.pause(length, events, thread_cpu_seconds() - before))
    }

    /// Adds up threads' states and calls, while their descriptors are still open.
    fn trace(&mut self, window: &Window, descriptors: &mut Descriptors) {
        descriptors.forget();
        let own = self.own;
        let mut fd = |pid: i32, n: i32| if pid == own { Fd::Unknown } else { descriptors.kind(pid, n) };
        self.tracer.open(window.start);
        for e in window.events.iter().filter_map(stamped) {
            self.tracer.event(&e, &mut fd);
        }
        let silent = self.tracer.close(window.end, &mut fd);
        let seconds = (window.end - window.start) as f64 * 1e-9;
        for (pid, tid) in silent {
            let role = self.tracer.role(pid);
            if let Some(state) = states::state(pid, tid, role, descriptors, &mut 0) {
                self.tracer.whole_window(tid, seconds, state);
            }
        }
    }

    /// Follows the requests of all windows. `turns` are the load generator's own.
    pub fn finish(mut self, population: &Population, turns: &[Turn]) -> (Tracer, Paths) {
        let before = thread_cpu_seconds();
        let mut follower = Follower::default();
        let mut whole = false;
        for (&pid, role) in population.roles() {
            whole |= *role == Role::Whole;
            follower.side(pid, if *role == Role::Client { Side::Client } else { Side::Server });
        }
        // Which sockets belong together is learned from all windows before any is followed.
        self.windows.iter_mut().for_each(|w| follower.learn(w));
        for window in &self.windows {
            follower.window(window, turns, whole);
        }
        let mut paths = follower.finish(self.source.describe(), 0.0);
        paths.lost = self.lost;
        paths.self_cost = thread_cpu_seconds() - before;
        (self.tracer, paths)
    }
}

/// The event as the sums of threads' states take it.
fn stamped(e: &Event) -> Option<Stamped> {
    let event = match e.what {
        What::Enter { call, args } => tracer::Event::Enter { number: call, args: [args[0], args[1]] },
        What::Exit { call, result } => tracer::Event::Exit { number: call, result },
        What::Switch { left, next } => tracer::Event::Switch { left, next },
        What::Waking { who, .. } => tracer::Event::Waking { who },
        What::Fork { child } => tracer::Event::Fork { child },
        _ => return None,
    };
    Some(Stamped { time: e.time, cpu: usize::from(e.cpu), pid: e.pid, tid: e.tid, event })
}
