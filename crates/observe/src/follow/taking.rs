//! Windows of events while a workload runs, and the requests followed when it is over.
//!
//! Following takes more CPU time than taking, so it waits until the load has ended: what it costs then slows nobody.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use fingerpost_sys::affinity;
use fingerpost_sys::cgroup::members;
use fingerpost_sys::sample;
use fingerpost_sys::stamps::{Stamp, Stamps};
use fingerpost_sys::trace::thread_cpu_seconds;

use super::answering::{Answerers, Answering, AtOnce};
use super::event::{Event, What};
use super::pace::{COST_SHARE, Pace};
use super::source::{About, Source, Window};
use super::taken::inherited;
pub use super::taken::{FollowedService, Recorded};
pub use super::timeline::Silent;
use super::waiting;
use super::waiting::Waiting;
use super::whole::Whole;
use crate::calls::{Fd, Role};
use crate::hardware::Counters;
use crate::machine::Totals;
use crate::mappings::Mappings;
use crate::population::{Descriptors, Population};
use crate::stacks::windows::InWindows;
use crate::states;
use crate::tracer::Tracer;

/// Events that are kept to be followed: with 48 bytes each, 48 MB.
pub const MOST_EVENTS: usize = 1_000_000;

/// How often samples are taken over while a window is open: their rings hold as much as comes in a second.
const DRAIN_EVERY: Duration = Duration::from_millis(250);

/// How often who wants to know is given the latest windows, and how many events of them: following these takes some 30
/// ms.
const TELL_EVERY: Duration = Duration::from_secs(1);
const MOST_LATELY: usize = 30_000;

/// What is known of a load before it is watched.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The load generators' own account of each round trip, where they keep one.
    pub stamps: Option<Stamps>,
    /// How long a request takes: nearly all of them, where that is known, else in the mean.
    pub latency: Option<Duration>,
    /// Where it answers, of a service that somebody else started and whose clients are not known.
    pub service: Option<Answering>,
    /// Whether a CPU quota of its own control group, or of one above, may stop that service.
    pub quota: bool,
    /// How long it is to be watched, so that what can be kept is spread over that time.
    pub length: Option<Duration>,
    /// Who follows the latest windows while the others are still to come.
    pub lately: Option<Sender<Recorded>>,
}

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
    answerers: Option<Answerers>,
    /// Of a service: counts every request in the kernel, or why that cannot be.
    whole: Option<Result<Whole, String>>,
    /// Which requests are under way for long.
    waiting: Waiting,
    mappings: Mappings,
    /// The control group of each process that is not the service's.
    groups: HashMap<i32, String>,
    length: Option<Duration>,
    begun: Instant,
    /// Of a service: samples and counters while windows are open, or why there are none.
    stacks: Option<Result<InWindows, String>>,
    hardware: Option<Result<Counters, String>>,
    /// Who is given the latest windows, when that was done last, and how many there were then.
    lately: Option<(Sender<Recorded>, Instant, usize)>,
    /// CPU seconds of this thread.
    spent: f64,
    /// Events that were lost, and that were read.
    pub lost: u64,
    pub events: u64,
    /// Windows that lost events and were left out.
    pub torn: u64,
    /// When each window was opened, and how long it was open, in nanoseconds on the monotonic clock.
    pub opened: Vec<(u64, u64)>,
    /// The same of those that were opened for requests that were under way for long.
    pub opened_for_slow: Vec<(u64, u64)>,
}

/// Windows of which one begins where the one before it ended, as one: no request is cut there.
fn joined(windows: Vec<(Window, Silent)>) -> Vec<(Window, Silent)> {
    let mut all: Vec<(Window, Silent)> = Vec::new();
    for (window, silent) in windows {
        match all.last_mut() {
            Some((before, quiet))
                if before.slow.is_none()
                    && before.end == window.start
                    && before.lost + window.lost == 0 =>
            {
                before.end = window.end;
                before.events.extend(window.events);
                before.names = window.names;
                // A thread that had no event in either still waits for the same.
                quiet.retain(|tid, waits| silent.get(tid) == Some(&*waits));
            }
            _ => all.push((window, silent)),
        }
    }
    all
}

/// Numbers of processes.
type Pids = foldhash::HashSet<i32>;

/// The processes that a window shows. There are some tens of them to tens of thousands of events, on a machine that is
/// busy then.
fn processes_in(window: &Window) -> Pids {
    let mut seen = Pids::default();
    let mut last = 0;
    for pid in window.events.iter().map(|e| e.pid).filter(|pid| *pid > 0) {
        if pid != last {
            seen.insert(pid);
            last = pid;
        }
    }
    seen
}

/// CPUs that any thread of a service may use. A thread that has ended says nothing.
fn allowed_to_all(population: &Population) -> Vec<u16> {
    let mut allowed = population
        .threads
        .keys()
        .filter_map(|&tid| affinity::allowed_cpus_of(tid).ok());
    let mut all = allowed.next().unwrap_or_default();
    // Nearly always each may use the same.
    allowed.for_each(|of_one| {
        if of_one != all {
            all.retain(|cpu| of_one.binary_search(cpu).is_ok());
        }
    });
    all.into_iter()
        .filter_map(|cpu| cpu.try_into().ok())
        .collect()
}

impl Taking {
    /// From a source. The load generators keep their own account while windows are open, and these are long enough for
    /// what is known.
    pub fn new(mut source: Box<dyn Source + Send>, known: Known) -> Taking {
        if known.service.is_some() {
            source.without_gaps();
        }
        let mut pace = Pace::new(COST_SHARE, source.about().cpus, source.about().event_cost);
        known
            .latency
            .into_iter()
            .for_each(|latency| pace.expect(latency));
        if known.service.is_some() {
            pace.spare();
        }
        if known.quota {
            pace.may_be_stopped();
        }
        Taking {
            source,
            pace,
            tracer: Tracer::default(),
            stamps: known.stamps,
            turns: Vec::new(),
            windows: Vec::new(),
            kept: 0,
            parents: HashMap::new(),
            own: std::process::id() as i32,
            stacks: known.service.is_some().then(InWindows::open),
            hardware: known.service.is_some().then(Counters::open),
            whole: known.service.as_ref().map(Whole::open),
            waiting: Waiting::default(),
            answerers: known.service.map(Answerers::new),
            mappings: Mappings::default(),
            groups: HashMap::new(),
            length: known.length,
            begun: Instant::now(),
            lately: known.lately.map(|sender| (sender, Instant::now(), 0)),
            spent: 0.0,
            lost: 0,
            events: 0,
            torn: 0,
            opened: Vec::new(),
            opened_for_slow: Vec::new(),
        }
    }

    /// How the events are had.
    pub fn about(&self) -> &About {
        self.source.about()
    }

    /// Takes one window. `wait` sleeps, and returns true when the end was asked for. Returns how long to pause before
    /// the next.
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
        if !matches!(pause, Ok(Duration::ZERO)) {
            self.source.rest();
        }
        self.tell_lately(population);
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
        let window = self.window(population, self.pace.length(), wait);
        let turns = self.stamps.as_ref().map(|stamps| {
            stamps.set(false);
            stamps.drain()
        });
        let window = window?;
        self.opened.push((window.start, window.end - window.start));
        self.events += window.events.len() as u64;
        self.lost += window.lost;
        let (length, events) = (
            Duration::from_nanos(window.end - window.start),
            window.events.len() as u64,
        );
        if window.lost > 0 {
            // A window with holes would book time to the wrong cause.
            self.torn += 1;
        } else {
            let seen = processes_in(&window);
            self.find_parents(&window, &seen);
            self.mappings.window(window.end, &window.events);
            self.look(&window, &seen, length, population);
            let silent = self.trace(&window, descriptors);
            if self.lately.is_some() && self.kept + window.events.len() > MOST_EVENTS {
                self.keep_every_other();
            }
            if self.kept + window.events.len() <= MOST_EVENTS {
                self.kept += window.events.len();
                self.windows.push((window, silent));
                let turns = turns.map(|t| t.stamps).unwrap_or_default();
                self.learn(length, &turns);
                self.turns.extend(turns);
            }
        }
        let pause = self
            .pace
            .pause(length, events, thread_cpu_seconds() - before);
        // Of a long time no more is kept than of a short one: then windows are further apart.
        let due = self.length.map_or(Duration::ZERO, |length| {
            length.mul_f64(self.kept as f64 / MOST_EVENTS as f64)
        });
        let pause = pause.max(due.saturating_sub(self.begun.elapsed()));
        // Who looks on is shown something new each second, whatever that costs.
        Ok(if self.lately.is_some() {
            pause.min(TELL_EVERY)
        } else {
            pause
        })
    }

    /// Pauses for so long, and opens a window meanwhile as soon as requests are under way for longer than most take. True
    /// when the end was asked for.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn pause(
        &mut self,
        length: Duration,
        population: &Population,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> std::io::Result<bool> {
        let Some(Ok(whole)) = self.whole.take() else {
            return Ok(wait(length));
        };
        let ended = self.pause_beside(&whole, length, population, wait);
        self.whole = Some(Ok(whole));
        ended
    }

    fn pause_beside(
        &mut self,
        whole: &Whole,
        length: Duration,
        population: &Population,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> std::io::Result<bool> {
        let begun = Instant::now();
        loop {
            let left = length.saturating_sub(begun.elapsed());
            if wait(left.min(self.waiting.every())) {
                return Ok(true);
            }
            if begun.elapsed() >= length {
                return Ok(false);
            }
            let before = thread_cpu_seconds();
            if self.waiting.look(whole)? {
                self.take_slow(whole, population, wait, before)?;
            }
            self.spent += thread_cpu_seconds() - before;
            // Windows before showed no request, and now there are some.
            if self.pace.is_searching() && self.waiting.has_counted() {
                return Ok(false);
            }
        }
    }

    /// Takes a window of requests that are under way for long, until they have their answers.
    fn take_slow(
        &mut self,
        whole: &Whole,
        population: &Population,
        wait: &mut dyn FnMut(Duration) -> bool,
        before: f64,
    ) -> std::io::Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut at_opening = None;
        let length = waiting.length();
        let window = self.window(population, length, &mut |length| {
            // The window is open: what is under way now, and was before, has no arrival in it.
            if at_opening.is_none() {
                at_opening = whole.connections().ok();
            }
            wait(length) || waiting.is_over(whole)
        });
        self.waiting = waiting;
        self.source.rest();
        let mut window = window?;
        let length = window.end - window.start;
        self.opened_for_slow.push((window.start, length));
        let events = window.events.len();
        let spent = events as f64 * self.source.about().event_cost + thread_cpu_seconds() - before;
        self.waiting
            .spent(spent / (COST_SHARE * self.source.about().cpus as f64));
        if window.lost > 0 || !self.waiting.has_room(events) {
            return Ok(());
        }
        let process = |tid: i32| population.threads.get(&tid).map_or(tid, |t| t.pid);
        waiting::begin(&mut window, &at_opening.unwrap_or_default(), process);
        let seen = processes_in(&window);
        self.find_parents(&window, &seen);
        if let Some(answerers) = &mut self.answerers {
            answerers.look(&window, |pid| population.processes.contains_key(&pid));
        }
        self.windows.push((window, Silent::default()));
        Ok(())
    }

    /// Makes room for further windows, with those that stay spread over all of the time.
    fn keep_every_other(&mut self) {
        let mut nth = 0;
        self.windows.retain(|_| {
            nth += 1;
            nth % 2 == 0
        });
        self.kept = self.windows.iter().map(|(w, _)| w.events.len()).sum();
    }

    /// Opens a window, with samples of stacks and counters where these are wanted.
    fn window(
        &mut self,
        population: &Population,
        length: Duration,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> std::io::Result<Window> {
        let mut stacks = self.stacks.as_mut().and_then(|s| s.as_mut().ok());
        let mut hardware = self.hardware.as_mut().and_then(|h| h.as_mut().ok());
        stacks
            .iter_mut()
            .for_each(|s| s.begin(population.processes.keys().copied()));
        hardware.iter().for_each(|h| h.begin());
        let mut drained = Instant::now();
        let mut wait_and_drain = |length: Duration| {
            let ended = wait(length);
            // Seldom: what this takes of a CPU is time that the requests of the window have not.
            if drained.elapsed() >= DRAIN_EVERY {
                drained = Instant::now();
                stacks.iter_mut().for_each(|s| s.drain());
                hardware.iter_mut().for_each(|h| h.drain());
            }
            ended
        };
        let window = self.source.window(length, &mut wait_and_drain);
        hardware.iter_mut().for_each(|h| h.end());
        stacks.iter_mut().for_each(|s| s.end(window.as_ref().ok()));
        window
    }

    /// What a window tells of a service at once: how long its requests take, which sockets answer, and who else was
    /// there.
    fn look(&mut self, window: &Window, seen: &Pids, open: Duration, population: &Population) {
        let Some(answerers) = &mut self.answerers else {
            return;
        };
        let parents = &self.parents;
        let known = |pid: &i32| population.processes.contains_key(pid);
        let (ours, others): (Pids, Pids) = seen
            .iter()
            .partition(|pid| known(pid) || parents.get(pid).is_some_and(known));
        for pid in others {
            self.groups
                .entry(pid)
                .or_insert_with(|| members::group_of(pid).unwrap_or_default());
        }
        let AtOnce {
            latencies,
            cut,
            cut_after,
        } = answerers.look(window, |pid| ours.contains(&pid));
        let p99 = latencies.get(latencies.len() * 99 / 100).copied();
        if !latencies.is_empty() || cut > 0 {
            self.pace.learn_cut(cut_after);
            self.pace.learn(open, p99, latencies.len() as u64, cut);
        }
    }

    /// Windows become long against requests, as the load generator's own account tells of them: of each connection the
    /// request that is under way when a window ends is cut.
    fn learn(&mut self, open: Duration, turns: &[Stamp]) {
        let mut latencies: Vec<u64> = turns
            .iter()
            .map(|t| t.end.saturating_sub(t.start))
            .collect();
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).copied();
        let connections: HashSet<(i32, u32)> =
            turns.iter().map(|t| (t.tid, t.connection)).collect();
        if !turns.is_empty() {
            self.pace.learn(
                open,
                p99.map(Duration::from_nanos),
                turns.len() as u64,
                connections.len() as u64,
            );
        }
    }

    /// Looks up the parents of processes that a window shows for the first time: the window itself tells those of
    /// processes that began in it, and may have ended in it; the others are asked for as long as they live.
    fn find_parents(&mut self, window: &Window, seen: &Pids) {
        let forked = |e: &Event| match e.what {
            What::Fork { child } => Some((child, e.pid)),
            _ => None,
        };
        let created: HashMap<i32, i32> = window.events.iter().filter_map(forked).collect();
        for &pid in seen {
            let asked = || sample::process(pid).map_or(0, |stat| stat.parent);
            self.parents
                .entry(pid)
                .or_insert_with(|| created.get(&pid).copied().unwrap_or_else(asked));
        }
    }

    /// Adds up threads' states and calls, while their descriptors are still open.
    fn trace(&mut self, window: &Window, descriptors: &mut Descriptors) -> Silent {
        descriptors.forget();
        let own = self.own;
        let mut fd = |pid: i32, n: i32| {
            if pid == own {
                Fd::Unknown
            } else {
                descriptors.kind(pid, n)
            }
        };
        self.tracer.open(window.start);
        for e in &window.events {
            self.tracer.event(e, &mut fd);
        }
        let without_event = self.tracer.close(window.end, &mut fd);
        let seconds = (window.end - window.start) as f64 * 1e-9;
        let mut silent = Silent::default();
        for (pid, tid) in without_event {
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

    /// How soon the memory that the subjects' processes asked for was touched; empty where the kernel tells no faults.
    pub fn mappings(&self, population: &Population) -> Totals {
        // A child of this process, which is not observed itself, may have begun and ended between two looks.
        let root = population.role_of_root(self.own);
        let role = |pid: i32| {
            population
                .roles
                .get(&pid)
                .copied()
                .or_else(|| root.filter(|_| pid == self.own))
        };
        // The nearest ancestor that was looked for says whose a process is, as of requests.
        let ours =
            |pid: i32| inherited(pid, &self.parents, role).is_some_and(|role| role != Role::Client);
        self.mappings.totals(|pid| pid != self.own && ours(pid))
    }

    /// Gives the latest windows to whoever wants to follow them at once.
    fn tell_lately(&mut self, population: &Population) {
        let Some((sender, told, windows)) = &self.lately else {
            return;
        };
        if told.elapsed() < TELL_EVERY || self.opened.len() == *windows || self.windows.is_empty() {
            return;
        }
        let mut events = 0;
        let fits = |(window, _): &&(Window, Silent)| {
            events += window.events.len();
            events <= MOST_LATELY
        };
        let latest = self.windows.iter().rev().take_while(fits).count().max(1);
        let lately = self.windows[self.windows.len() - latest..].to_vec();
        // Nobody listens any more where this fails.
        let listens = sender.send(self.recorded(population, lately)).is_ok();
        let now = (Instant::now(), self.opened.len());
        match &mut self.lately {
            Some(lately) if listens => (lately.1, lately.2) = now,
            lately => *lately = None,
        }
    }

    /// Windows with what is needed to follow them.
    fn recorded(&self, population: &Population, windows: Vec<(Window, Silent)>) -> Recorded {
        let of_service: HashSet<String> = population
            .processes
            .keys()
            .filter_map(|&pid| members::group_of(pid))
            .collect();
        let others = self
            .groups
            .iter()
            .filter(|(_, group)| !group.is_empty() && !of_service.contains(*group));
        let parents = self.parents.iter().map(|(&pid, &parent)| (pid, parent));
        Recorded {
            service: self.answerers.as_ref().map(Answerers::ends),
            cpus: if self.answerers.is_some() {
                allowed_to_all(population)
            } else {
                Vec::new()
            },
            groups: others
                .map(|(&pid, group)| (pid, members::short(group)))
                .collect(),
            source: self.source.about().described.clone(),
            no_programs: self.source.about().no_programs.clone(),
            roles: population.roles.clone(),
            parents: parents
                .chain(population.processes.iter().map(|(&pid, p)| (pid, p.parent)))
                .collect(),
            first: population.first(),
            windows,
            stacks: None,
            hardware: None,
            turns: Vec::new(),
            lost: self.lost,
            torn: self.torn,
            spent: self.spent,
            whole: None,
            event_cost: self.source.about().event_cost,
        }
    }

    /// Ends taking: the sums of threads' states, what is to be followed, and the source, still open.
    pub fn finish(mut self, population: &Population) -> (Tracer, Recorded, Box<dyn Source + Send>) {
        self.source.rest();
        let windows = joined(std::mem::take(&mut self.windows));
        let whole = self.whole.take().map(|whole| {
            let failed = |e: std::io::Error| format!("requests cannot be counted: {e}");
            whole?.look().map_err(failed)
        });
        let recorded = Recorded {
            whole,
            stacks: self
                .stacks
                .take()
                .and_then(Result::ok)
                .map(InWindows::finish),
            hardware: self.hardware.take().map(|h| h.map(Counters::finish)),
            turns: std::mem::take(&mut self.turns),
            ..self.recorded(population, windows)
        };
        (self.tracer, recorded, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Wait;
    use crate::follow::event::Left;

    fn window(start: u64, end: u64) -> Window {
        let event = |time| Event {
            time,
            cpu: 0,
            interrupt: false,
            pid: 1,
            tid: 1,
            what: What::Switch {
                left: Left::Ready,
                next: 0,
            },
        };
        Window {
            start,
            end,
            events: vec![event(start), event(end)],
            ..Window::default()
        }
    }

    #[test]
    fn windows_without_a_gap_between_are_one_and_others_are_not() {
        let silent =
            |tids: &[i32]| -> Silent { tids.iter().map(|&tid| (tid, (1, Wait::Lock))).collect() };
        let all = joined(vec![
            (window(10, 20), silent(&[5, 6])),
            (window(20, 30), silent(&[6, 7])),
            (window(31, 40), silent(&[])),
        ]);
        let spans: Vec<_> = all.iter().map(|(w, _)| (w.start, w.end)).collect();
        assert_eq!(spans, [(10, 30), (31, 40)]);
        assert_eq!(all[0].0.events.len(), 4);
        assert!(all[0].0.events.is_sorted_by_key(|e| e.time));
        assert_eq!(
            all[0].1.keys().collect::<Vec<_>>(),
            [&6],
            "a thread that did something in one of them is told by its events"
        );
    }
}
