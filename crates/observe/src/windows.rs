//! Windows of the kernel's tracepoints: opened for a moment, closed, read, and paused so long that watching stays cheap.

use std::time::Duration;

use fingerpost_sys::trace::{Point, Raw, Rings, monotonic_ns};
use fingerpost_sys::tracefs::{self, Tracepoint};

use crate::calls::Fd;
use crate::population::{Descriptors, Population};
use crate::states;
use crate::tracer::{Event, Left, Stamped, Tracer};

/// How long a window is open: long against a scheduler tick and most waits, short enough for the rings.
pub const WINDOW: Duration = Duration::from_millis(40);
/// The share of all CPUs' time that tracing and reading what was traced may take.
const COST_SHARE: f64 = 0.02;
/// What the kernel spends on writing one event, in seconds: an upper estimate, measured on virtual machines.
const EVENT_COST: f64 = 0.7e-6;
const RING_BYTES: usize = 8 << 20;
/// How often an open window looks how full its rings are, and the share from which on it closes before its time: a server that makes a
/// million calls a second fills a ring sooner than a window ends.
const SLICE: Duration = Duration::from_millis(5);
const FULL: f64 = 0.5;
/// From this share on a ring has dropped something, or may have: a record is a hundred bytes.
const BRIMFUL: f64 = 0.999;

const NAMES: [&str; 5] =
    ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_switch", "sched/sched_waking", "sched/sched_process_fork"];

/// Where the fields that we read lie.
struct Layout {
    ids: [u32; 5],
    enter: [usize; 2],
    exit: [usize; 2],
    switch: [usize; 2],
    waking: usize,
    fork: usize,
}

impl Layout {
    fn of(points: &[Tracepoint]) -> Option<Layout> {
        let [enter, exit, switch, waking, fork] = points else { return None };
        Some(Layout {
            ids: [enter.id, exit.id, switch.id, waking.id, fork.id],
            enter: [enter.slot("id")?, enter.slot("args")?],
            exit: [exit.slot("id")?, exit.slot("ret")?],
            switch: [switch.slot("prev_state")?, switch.slot("next_pid")?],
            waking: waking.slot("pid")?,
            fork: fork.slot("child_pid")?,
        })
    }

    /// Turns a raw sample into an event.
    fn event(&self, raw: &Raw) -> Option<Stamped> {
        let long = |at: usize| raw.data.get(at..at + 8).and_then(|b| b.try_into().ok()).map(i64::from_ne_bytes);
        let int = |at: usize| raw.data.get(at..at + 4).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
        let id = raw.id();
        let event = if id == self.ids[0] {
            let args = [long(self.enter[1])? as u64, long(self.enter[1] + 8)? as u64];
            Event::Enter { number: long(self.enter[0])?, args }
        } else if id == self.ids[1] {
            Event::Exit { number: long(self.exit[0])?, result: long(self.exit[1])? }
        } else if id == self.ids[2] {
            Event::Switch { left: left(long(self.switch[0])?), next: int(self.switch[1])? }
        } else if id == self.ids[3] {
            Event::Waking { who: int(self.waking)? }
        } else if id == self.ids[4] {
            Event::Fork { child: int(self.fork)? }
        } else {
            return None;
        };
        Some(Stamped { time: raw.time, cpu: raw.cpu, pid: raw.pid, tid: raw.tid, event })
    }
}

/// The kernel's state bits: dead or zombie, then anything that is a sleep; bit 8 and above mark a preemption.
fn left(state: i64) -> Left {
    match state & 0xff {
        0 => Left::Ready,
        s if s & 0x30 != 0 => Left::Ended,
        s if s & 2 != 0 => Left::Uninterruptible,
        _ => Left::Blocked,
    }
}

/// Tracepoint windows of a session.
pub struct Windows {
    rings: Rings,
    layout: Layout,
    tracer: Tracer,
    buffer: Vec<Stamped>,
    own: i32,
    /// Events that did not fit into a ring.
    pub lost: u64,
    /// Events that were read.
    pub events: u64,
    /// Windows that were opened.
    pub count: u64,
    /// Windows that lost events and were left out.
    pub torn: u64,
}

impl Windows {
    /// Opens the tracepoints, switched off.
    ///
    /// # Errors
    /// One sentence that says why tracing is not possible here.
    pub fn open() -> Result<Windows, String> {
        let points = tracefs::tracepoints(&NAMES)?;
        let layout = Layout::of(&points).ok_or("the kernel's tracepoints lack fields that are needed")?;
        let rings = Rings::open(&layout.ids.map(Point::from), RING_BYTES).map_err(|e| format!("tracepoints cannot be opened: {e}"))?;
        let own = std::process::id() as i32;
        Ok(Windows { rings, layout, tracer: Tracer::new(), buffer: Vec::new(), own, lost: 0, events: 0, count: 0, torn: 0 })
    }

    /// Traces one window. `wait` sleeps, and returns true when the end was asked for. Returns how long to pause before the next, so that the cost keeps within its share.
    pub fn trace(
        &mut self,
        population: &Population,
        descriptors: &mut Descriptors,
        wait: impl FnMut(Duration) -> bool,
    ) -> std::io::Result<Duration> {
        let cpu_before = fingerpost_sys::trace::thread_cpu_seconds();
        for (&tid, thread) in &population.threads {
            self.tracer.watch(thread.pid, tid, thread.role);
        }
        self.rings.enable()?;
        let start = monotonic_ns();
        self.let_flow(start, wait);
        let end = monotonic_ns();
        self.rings.disable()?;
        self.read(start, end, descriptors);
        let spent = fingerpost_sys::trace::thread_cpu_seconds() - cpu_before + self.buffer.len() as f64 * EVENT_COST;
        let cpus = self.rings.cpus().max(1) as f64;
        let pause = (spent / (COST_SHARE * cpus) - (end - start) as f64 * 1e-9).clamp(0.01, 5.0);
        Ok(Duration::from_secs_f64(pause))
    }

    /// Keeps the window open for its time, or until a ring is about to be full.
    fn let_flow(&self, start: u64, mut wait: impl FnMut(Duration) -> bool) {
        let left = || WINDOW.saturating_sub(Duration::from_nanos(monotonic_ns() - start));
        while !left().is_zero() && self.rings.fullness() < FULL {
            if wait(left().min(SLICE)) {
                return;
            }
        }
    }

    fn read(&mut self, start: u64, end: u64, descriptors: &mut Descriptors) {
        self.buffer.clear();
        let (layout, buffer) = (&self.layout, &mut self.buffer);
        // What the kernel could not write it reports with the next record that it can write: into the next window, if this one is full.
        let full = self.rings.fullness() > BRIMFUL;
        let lost = u64::from(full)
            + self.rings.drain(|raw| {
                buffer.extend(layout.event(&raw).filter(|e| e.time >= start && e.time <= end));
            });
        self.count += 1;
        self.events += self.buffer.len() as u64;
        self.lost += lost;
        if lost > 0 {
            // A window with holes would book time to the wrong cause.
            self.torn += 1;
            return;
        }
        self.buffer.sort_by_key(|e| e.time);
        descriptors.forget();
        let own = self.own;
        let mut fd = |pid: i32, n: i32| if pid == own { Fd::Unknown } else { descriptors.kind(pid, n) };
        self.tracer.open(start);
        for e in &self.buffer {
            self.tracer.event(e, &mut fd);
        }
        let silent = self.tracer.close(end, &mut fd);
        let seconds = (end - start) as f64 * 1e-9;
        for (pid, tid) in silent {
            let role = self.tracer.role(pid);
            if let Some(state) = states::state(pid, tid, role, descriptors, &mut 0) {
                self.tracer.whole_window(tid, seconds, state);
            }
        }
    }

    /// What was traced.
    pub fn finish(self) -> Tracer {
        self.tracer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_in_which_a_thread_leaves_its_cpu() {
        assert_eq!(left(0), Left::Ready);
        assert_eq!(left(0x100), Left::Ready);
        assert_eq!(left(1), Left::Blocked);
        assert_eq!(left(2), Left::Uninterruptible);
        assert_eq!(left(0x10), Left::Ended);
        assert_eq!(left(0x20), Left::Ended);
    }

    #[test]
    fn raw_samples_become_events_by_the_layout_that_the_kernel_gives() {
        let layout = Layout { ids: [1, 2, 3, 4, 5], enter: [8, 16], exit: [8, 16], switch: [32, 56], waking: 24, fork: 44 };
        let mut data = vec![0u8; 64];
        data[0] = 3;
        data[32] = 2;
        data[56..60].copy_from_slice(&77i32.to_ne_bytes());
        fn raw(data: &[u8]) -> Raw<'_> {
            Raw { cpu: 1, time: 5, pid: 10, tid: 11, data }
        }
        let e = layout.event(&raw(&data)).unwrap();
        assert_eq!((e.time, e.cpu, e.tid, e.event), (5, 1, 11, Event::Switch { left: Left::Uninterruptible, next: 77 }));
        data[0] = 1;
        data[8] = 202;
        data[16] = 9;
        assert_eq!(layout.event(&raw(&data)).unwrap().event, Event::Enter { number: 202, args: [9, 0] });
        assert_eq!(layout.event(&raw(&data[..20])), None, "a sample that is too short");
        data[0] = 9;
        assert_eq!(layout.event(&raw(&data)), None);
    }
}
