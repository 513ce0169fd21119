//! Requests that are under way for longer than most take, while no window is open: what one is opened for.
//!
//! Windows at even distances see a stall of a busy service as seldom as they are open, and cut it. The account that the
//! kernel keeps of every connection tells it while it lasts.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::event::{Event, What};
use super::pace;
use super::source::Window;
use super::whole::{Connection, Whole};

/// How often the connections are looked at, at most, and the share of one CPU that this may take.
const EVERY: Duration = Duration::from_millis(5);
const SHARE: f64 = 0.005;
/// A request is slow that takes so many times as long as nine in ten, and so long at least; and how long one is until so
/// many were counted.
const TIMES: f64 = 2.0;
const LEAST: Duration = Duration::from_millis(2);
const AT_FIRST: Duration = Duration::from_millis(50);
const ENOUGH: u64 = 100;
/// A window for slow requests is open for this long at most, or for so many times as long as the longest that was
/// counted, up to the last: one that never has an answer must not take the place of all other windows.
const SHORT: Duration = pace::LONGEST;
const TIMES_LONGEST: f64 = 1.5;
const LONGEST: Duration = Duration::from_secs(30);
/// How often it is learned how long nine in ten take.
const LEARN_EVERY: Duration = Duration::from_secs(1);
/// Events that are kept of such windows: half as many as of the others.
const MOST_EVENTS: usize = super::taking::MOST_EVENTS / 2;

/// A request: its socket, and when it began.
type Key = (u64, u64);

/// What is known of requests under way.
pub struct Waiting {
    threshold: Duration,
    length: Duration,
    /// Requests that were counted so far.
    counted: u64,
    learned: Option<Instant>,
    looked: Instant,
    every: Duration,
    /// Before that, what earlier windows cost is not made up for.
    rests_until: Instant,
    /// Those for which a window was opened, of those that were there at the last look, and those of the present one.
    had: HashSet<Key>,
    present: HashSet<Key>,
    kept: usize,
}

impl Default for Waiting {
    fn default() -> Waiting {
        let now = Instant::now();
        Waiting {
            threshold: AT_FIRST,
            length: SHORT,
            counted: 0,
            learned: None,
            looked: now,
            every: EVERY,
            rests_until: now,
            had: HashSet::new(),
            present: HashSet::new(),
            kept: 0,
        }
    }
}

impl Waiting {
    /// How long until the next look.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// How long a window for slow requests is open at most.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Whether any request was counted.
    pub fn has_counted(&self) -> bool {
        self.counted > 0
    }

    /// Learns how long most requests take.
    fn learn(&mut self, whole: &Whole) -> std::io::Result<()> {
        if self.learned.is_some_and(|at| at.elapsed() < LEARN_EVERY) {
            return Ok(());
        }
        self.learned = Some(Instant::now());
        let counted = whole.counted()?;
        self.length = length(counted.longest);
        self.counted = counted.requests;
        if let Some(most) = counted.quantile(0.9).filter(|_| counted.requests >= ENOUGH) {
            self.threshold = Duration::from_nanos((TIMES * most) as u64).max(LEAST);
        }
        Ok(())
    }

    /// Whether a window is to be opened now.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn look(&mut self, whole: &Whole) -> std::io::Result<bool> {
        let before = fingerpost_sys::trace::thread_cpu_seconds();
        self.learn(whole)?;
        if self.kept >= MOST_EVENTS || Instant::now() < self.rests_until {
            return Ok(false);
        }
        let now = fingerpost_sys::trace::monotonic_ns();
        let slow = self.slow(&whole.connections()?, now);
        // One that never has an answer is seen once.
        self.present = slow.difference(&self.had).copied().collect();
        self.had.retain(|key| slow.contains(key));
        let cost = fingerpost_sys::trace::thread_cpu_seconds() - before;
        self.every = EVERY.max(Duration::from_secs_f64(cost / SHARE));
        self.had.extend(&self.present);
        Ok(!self.present.is_empty())
    }

    fn slow(&self, connections: &[Connection], now: u64) -> HashSet<Key> {
        let threshold = self.threshold.as_nanos() as u64;
        let waits = |c: &Connection| Some((c.socket, c.waits_since()?));
        connections
            .iter()
            .filter_map(waits)
            .filter(|(_, since)| now.saturating_sub(*since) > threshold)
            .collect()
    }

    /// Whether all that the window was opened for have their answers.
    pub fn is_over(&mut self, whole: &Whole) -> bool {
        if self.looked.elapsed() < self.every {
            return false;
        }
        self.looked = Instant::now();
        let Ok(connections) = whole.connections() else {
            return true;
        };
        !connections
            .iter()
            .filter_map(|c| Some((c.socket, c.waits_since()?)))
            .any(|key| self.present.contains(&key))
    }

    /// No window is opened for so many seconds.
    pub fn spent(&mut self, seconds: f64) {
        let rest = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(3600));
        self.rests_until = Instant::now() + rest.min(Duration::from_secs(3600));
    }

    /// Whether so many events more are kept.
    pub fn has_room(&mut self, events: usize) -> bool {
        let fits = self.kept + events <= MOST_EVENTS;
        self.kept += if fits { events } else { 0 };
        fits
    }
}

/// How long a window is open at most where the longest request took so many nanoseconds.
fn length(longest: u64) -> Duration {
    Duration::from_nanos((TIMES_LONGEST * longest as f64) as u64).clamp(SHORT, LONGEST)
}

/// Puts the requests that were under way before into a window that was opened for some of them: their arrivals, their
/// ports, and who had read them, as if all of it had been at its beginning.
pub fn begin(window: &mut Window, connections: &[Connection], process: impl Fn(i32) -> i32) {
    let start = window.start;
    let event = |(pid, tid), what| Event {
        time: start,
        cpu: 0,
        interrupt: tid == 0,
        pid,
        tid,
        what,
    };
    let nobody = (0, 0);
    let before: Vec<(&Connection, u64)> = connections
        .iter()
        .filter_map(|c| Some((c, c.waits_since().filter(|&since| since < start)?)))
        .collect();
    let mut events = Vec::new();
    for (c, _) in &before {
        events.push(event(nobody, What::Arrived { socket: c.socket }));
    }
    for (c, _) in &before {
        if let Some([local, remote]) = c.ends {
            let what = What::Ports {
                socket: c.socket,
                local: local.port(),
                remote: remote.port(),
                pair: 0,
            };
            events.push(event(nobody, what));
        }
        if c.read.is_some_and(|read| read < start) && c.tid > 0 {
            let what = What::Received {
                socket: c.socket,
                bytes: 1,
            };
            events.push(event((process(c.tid), c.tid), what));
        }
    }
    window.events.splice(0..0, events);
    window.slow = Some(before.iter().map(|(_, since)| *since).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(socket: u64, begun: u64, read: Option<u64>, answered: Option<u64>) -> Connection {
        Connection {
            socket,
            begun: Some(begun),
            read,
            answered,
            cookie: 0,
            requests: 0,
            bytes: [0; 2],
            tid: 7,
            ends: Some(["127.0.0.1:80", "127.0.0.1:4000"].map(|a| a.parse().unwrap())),
        }
    }

    #[test]
    fn slow_is_what_waits_for_longer_than_the_threshold() {
        let waiting = Waiting::default();
        let now = 1_000_000_000;
        let all = [
            connection(1, now - 60_000_000, None, None),
            connection(2, now - 40_000_000, None, None),
            connection(3, now - 900_000_000, Some(now - 1), Some(now)),
        ];
        assert_eq!(
            waiting.slow(&all, now),
            HashSet::from([(1, now - 60_000_000)])
        );
    }

    #[test]
    fn a_window_outlasts_the_longest_request_not_for_ever() {
        let seconds = |n: u64| length(n * 1_000_000_000).as_secs_f64();
        assert_eq!([0, 3, 3600].map(seconds), [2.0, 4.5, 30.0]);
    }

    #[test]
    fn what_was_under_way_before_a_window_begins_with_it() {
        let mut window = Window {
            start: 100,
            end: 200,
            ..Window::default()
        };
        let all = [
            connection(1, 10, Some(20), None),
            connection(2, 30, None, None),
            connection(3, 40, Some(50), Some(60)),
            connection(4, 110, None, None),
        ];
        begin(&mut window, &all, |tid| tid - 1);
        assert_eq!(window.slow, Some(vec![10, 30]));
        let arrived = |socket| What::Arrived { socket };
        assert_eq!(
            [window.events[0].what, window.events[1].what],
            [arrived(1), arrived(2)]
        );
        let read: Vec<_> = window
            .events
            .iter()
            .filter(|e| matches!(e.what, What::Received { .. }))
            .map(|e| (e.time, e.pid, e.tid))
            .collect();
        assert_eq!(read, [(100, 6, 7)], "the other one nobody had read");
    }
}
