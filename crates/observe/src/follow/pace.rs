//! How long windows are, and how far apart: long enough for the requests, and so rare that watching stays cheap.

use std::time::Duration;

/// The share of all CPUs' time that taking events, and reading them, may take: what a load loses is some times as much,
/// as events come where it is busiest, and looking at processes and sockets comes on top (`bench/follow cost`).
pub const COST_SHARE: f64 = 0.004;
/// The same until so many requests were followed that a hundredth of them says something: where requests are rare, or
/// windows went by without one, a window costs little, and a step has time for few.
const FIRST_SHARE: f64 = 0.02;
const ENOUGH: u64 = 500;
/// The part of the share that it may take of a service that others use, once so many requests were followed that thirty
/// of them are beyond the 99th percentile: what more of them say costs a busy server more than it tells. Windows at the
/// share above took 1.3 % (1.0 to 1.6) of PostgreSQL's throughput in ten seconds (`bench/attach cost`).
const LATER_SHARE: f64 = 0.5;
const PLENTY: u64 = 3_000;
/// The share of one CPU that may be spent on a service that others use without any pause: windows then follow each other
/// without a gap for all of the time, and cut no request.
const WITHOUT_PAUSE: f64 = 0.01;
/// As long as no request was seen at all, windows follow each other, for so many seconds together: a short step on a
/// busy machine would be over before the next one.
const SEARCH: f64 = 0.5;
/// The length of the first window: long against a scheduler tick and most waits.
pub const FIRST: Duration = Duration::from_millis(40);
/// The shortest window of a service that has a CPU quota: two and a half of the usual periods of 100 ms
/// (Documentation/scheduler/sched-bwc.rst), as a stop lasts for up to one, and requests that lie in it would be longer
/// than a window of the usual length, which cuts them out.
const OF_STOPPED: Duration = Duration::from_millis(250);
/// Windows are this many times as long as the longest time that a request was under way when one of them cut it, up to
/// the length above. Where a lock is held for as long as a window, requests that wait for it are all cut, and of short
/// ones there are so many that the cut are few.
const CUT: f64 = 2.5;
pub const LONGEST: Duration = Duration::from_secs(2);
/// How many times as long as the 99th percentile of latency a window is at least.
const LATENCIES: f64 = 20.0;
/// The share of requests that windows may cut at most: the longest ones would be missing.
const MOST_CUT: f64 = 0.02;
/// A window is at most this many times as long as the one before: one window with few requests says little about their
/// length.
const GROWTH: f64 = 4.0;
/// Weight of the latest window in what is known of all.
const LATEST: f64 = 0.5;

/// Decides on windows by what the ones before it cost and caught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    share: f64,
    cpus: f64,
    event_cost: f64,
    /// The shortest window, in seconds.
    least: f64,
    length: f64,
    /// Requests that were followed to their end, per second of open windows; requests that one window cut.
    followed_rate: f64,
    cut: f64,
    /// The longest, in seconds, that one of these had been under way.
    cut_after: f64,
    seen: bool,
    /// Requests that were followed to their end so far.
    followed: u64,
    /// Seconds of windows before the first of them.
    searched: f64,
    /// The part of the share that is left when plenty were followed.
    later: f64,
}

impl Pace {
    /// With this share of these CPUs' time once enough was seen, and this many CPU seconds that an event costs the
    /// thread that causes it.
    pub fn new(share: f64, cpus: usize, event_cost: f64) -> Pace {
        let (share, cpus) = (share.clamp(1e-6, 1.0), cpus.max(1) as f64);
        let least = FIRST.as_secs_f64();
        Pace {
            share,
            cpus,
            event_cost,
            least,
            length: least,
            later: 1.0,
            ..Pace::default()
        }
    }

    /// Whether no window has shown a request yet.
    pub fn is_searching(&self) -> bool {
        !self.seen
    }

    pub fn length(&self) -> Duration {
        Duration::from_secs_f64(self.length)
    }

    /// Makes the first window long enough for requests that are known to take so long in the mean.
    pub fn expect(&mut self, latency: Duration) {
        self.length = (LATENCIES * latency.as_secs_f64()).clamp(self.least, LONGEST.as_secs_f64());
    }

    /// Has windows be further apart once plenty of requests were followed: for a service that others use.
    pub fn spare(&mut self) {
        self.later = LATER_SHARE;
    }

    /// Has every window be long against the stops that a CPU quota makes.
    pub fn may_be_stopped(&mut self) {
        self.least = OF_STOPPED.as_secs_f64();
        self.length = self.length.max(self.least);
    }

    /// Learns from a window that was open for so long: the 99th percentile of the latency of all requests so far, how
    /// many it followed to their end, and how many its own ends cut.
    pub fn learn(&mut self, open: Duration, p99: Option<Duration>, followed: u64, cut: u64) {
        let open = open.as_secs_f64().max(1e-6);
        let weight = if self.seen { LATEST } else { 1.0 };
        self.seen = true;
        self.followed += followed;
        self.followed_rate += weight * (followed as f64 / open - self.followed_rate);
        self.cut += weight * (cut as f64 - self.cut);
        let by_latency = p99.map_or(0.0, |l| LATENCIES * l.as_secs_f64());
        let by_cut = (CUT * self.cut_after).min(OF_STOPPED.as_secs_f64());
        let wanted = by_latency
            .max(self.for_few_cut())
            .max(by_cut)
            .clamp(self.least, LONGEST.as_secs_f64());
        self.length = wanted.min(self.length * GROWTH);
    }

    /// Learns that a window cut a request that had been under way in it for so long.
    pub fn learn_cut(&mut self, under_way: Duration) {
        self.cut_after = self.cut_after.max(under_way.as_secs_f64());
    }

    /// The length with which few enough requests are cut: a window's ends cut as many in a short one as in a long one.
    fn for_few_cut(&self) -> f64 {
        if self.cut <= 0.0 {
            0.0
        } else if self.followed_rate <= 0.0 {
            // Requests are longer than the windows were.
            f64::INFINITY
        } else {
            self.cut * (1.0 / MOST_CUT - 1.0) / self.followed_rate
        }
    }

    /// How long to pause after a window that was open for so long, had so many events, and took the observer so many
    /// CPU seconds itself. Zero where the cost keeps within its share without a pause.
    pub fn pause(&mut self, open: Duration, events: u64, own: f64) -> Duration {
        if self.followed == 0 && self.searched < SEARCH {
            self.searched += open.as_secs_f64();
            return Duration::ZERO;
        }
        // What a window with few events did not spend is not saved up for one with many, whose requests it would slow.
        let spent = events as f64 * self.event_cost + own;
        if self.later < 1.0 && spent <= WITHOUT_PAUSE * open.as_secs_f64() {
            return Duration::ZERO;
        }
        let share = match self.followed {
            0..ENOUGH => self.share.max(FIRST_SHARE),
            ENOUGH..PLENTY => self.share,
            PLENTY.. => self.share * self.later,
        };
        let pause = spent / (share * self.cpus) - open.as_secs_f64();
        Duration::try_from_secs_f64(pause.max(0.0)).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// One that has seen a request.
    fn pace() -> Pace {
        Pace {
            followed: 1,
            ..Pace::new(0.02, 2, 1e-6)
        }
    }

    #[test]
    fn a_pause_makes_a_window_and_itself_cost_the_share_and_no_more() {
        // 20,000 events and 10 ms of the observer's own are 30 ms: of two CPUs' time that is 2 % of 750 ms.
        let pause = pace().pause(40 * MS, 20_000, 0.010);
        assert!((pause.as_secs_f64() - 0.710).abs() < 1e-9, "{pause:?}");
    }

    #[test]
    fn windows_follow_until_a_request_was_seen_not_for_ever() {
        let mut p = Pace::new(COST_SHARE, 2, 1e-6);
        assert_eq!(p.pause(40 * MS, 20_000, 0.010), Duration::ZERO);
        p.learn(40 * MS, Some(MS), 1, 0);
        assert!(!p.pause(40 * MS, 20_000, 0.010).is_zero());
        let mut idle = Pace::new(COST_SHARE, 2, 1e-6);
        let windows = (0..100)
            .take_while(|_| idle.pause(40 * MS, 20_000, 0.010).is_zero())
            .count();
        assert_eq!(windows, 13);
    }

    #[test]
    fn until_enough_was_followed_windows_are_nearer() {
        let mut p = Pace {
            followed: 1,
            ..Pace::new(COST_SHARE, 2, 1e-6)
        };
        let near = p.pause(40 * MS, 20_000, 0.010);
        p.learn(40 * MS, Some(MS), ENOUGH - 2, 0);
        assert_eq!(p.pause(40 * MS, 20_000, 0.010), near);
        p.learn(40 * MS, Some(MS), 1, 0);
        let far = p.pause(40 * MS, 20_000, 0.010);
        assert!(
            (near.as_secs_f64() - 0.710).abs() < 1e-9 && (far.as_secs_f64() - 3.710).abs() < 1e-9,
            "{near:?} {far:?}"
        );
        p.spare();
        p.learn(40 * MS, Some(MS), PLENTY - ENOUGH - 1, 0);
        assert_eq!(p.pause(40 * MS, 20_000, 0.010), far);
        p.learn(40 * MS, Some(MS), 1, 0);
        let farthest = p.pause(40 * MS, 20_000, 0.010);
        assert!(
            (farthest.as_secs_f64() - 7.460).abs() < 1e-9,
            "{farthest:?}"
        );
    }

    #[test]
    fn windows_follow_each_other_where_the_events_are_few() {
        let mut p = pace();
        assert_eq!(p.pause(1000 * MS, 10_000, 0.010), Duration::ZERO);
        assert_eq!(p.pause(1000 * MS, 0, 0.0), Duration::ZERO);
        assert!(
            !p.pause(40 * MS, 20_000, 0.0).is_zero(),
            "a quiet time is not saved up"
        );
    }

    #[test]
    fn a_cheap_service_is_watched_without_a_pause() {
        let mut p = Pace {
            followed: 1,
            ..Pace::new(COST_SHARE, 2, 1e-6)
        };
        p.spare();
        p.learn(1000 * MS, Some(MS), PLENTY, 0);
        assert_eq!(p.pause(1000 * MS, 5_000, 0.005), Duration::ZERO);
        assert!(!p.pause(1000 * MS, 5_000, 0.006).is_zero());
    }

    #[test]
    fn windows_are_twenty_times_as_long_as_nearly_all_requests() {
        let mut p = pace();
        assert_eq!(p.length(), FIRST);
        p.learn(40 * MS, Some(MS / 10), 1000, 1);
        assert_eq!(p.length(), FIRST);
        p.learn(40 * MS, Some(6 * MS), 1000, 1);
        assert_eq!(p.length(), 120 * MS);
        p.learn(120 * MS, Some(5 * MS), 1000, 1);
        assert_eq!(p.length(), 100 * MS);
    }

    #[test]
    fn a_window_cuts_at_most_two_requests_in_a_hundred() {
        let mut p = pace();
        // 50 clients, each with a request under way at either end: 100 cut of 2000.
        p.learn(40 * MS, Some(MS), 1900, 100);
        let length = p.length().as_secs_f64();
        let followed = 1900.0 / 0.040 * length;
        assert!((100.0 / (100.0 + followed) - 0.02).abs() < 1e-6, "{length}");
    }

    #[test]
    fn requests_longer_than_windows_make_them_grow_step_by_step() {
        let mut p = pace();
        let mut lengths = Vec::new();
        for _ in 0..4 {
            p.learn(p.length(), None, 0, 3);
            lengths.push(p.length().as_millis());
        }
        assert_eq!(lengths, [160, 640, 2000, 2000]);
    }

    #[test]
    fn cut_long_requests_lengthen_windows_but_not_for_ever() {
        let mut p = pace();
        p.learn_cut(10 * MS);
        p.learn(40 * MS, Some(MS), 1000, 4);
        assert_eq!(p.length(), FIRST, "a quarter of the window");
        p.learn_cut(36 * MS);
        p.learn(40 * MS, Some(MS), 1000, 4);
        assert_eq!(p.length(), 90 * MS);
        p.learn_cut(MS);
        p.learn(90 * MS, Some(MS), 1000, 4);
        assert_eq!(p.length(), 90 * MS, "a lock may be free in this one");
        p.learn_cut(1000 * MS);
        p.learn(90 * MS, Some(MS), 1000, 4);
        assert_eq!(
            p.length(),
            OF_STOPPED,
            "who never answers has windows no longer"
        );
    }

    #[test]
    fn an_idle_server_leaves_the_length_as_it_is() {
        let mut p = pace();
        p.learn(40 * MS, None, 0, 0);
        assert_eq!(p.length(), FIRST);
    }

    #[test]
    fn a_first_window_is_long_against_known_long_requests() {
        let mut pace = Pace::new(0.02, 2, 1e-7);
        pace.expect(Duration::from_millis(25));
        assert_eq!(pace.length(), Duration::from_millis(500));
        pace.expect(Duration::from_micros(25));
        assert_eq!(pace.length(), FIRST);
        pace.expect(Duration::from_secs(25));
        assert_eq!(pace.length(), LONGEST);
    }

    #[test]
    fn windows_of_a_service_with_a_quota_outlast_its_stops() {
        let mut pace = Pace::new(0.01, 1, 1e-6);
        pace.may_be_stopped();
        assert!(pace.length() >= 200 * MS);
        pace.learn(250 * MS, Some(MS), 10_000, 2);
        assert!(
            pace.length() >= 200 * MS,
            "also where requests are short: {:?}",
            pace.length()
        );
    }
}
