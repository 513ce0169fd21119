//! Windows that were taken, followed when the load has ended: what that costs then slows nobody.

use std::collections::HashMap;
use std::mem::take;
use std::time::{Duration, Instant};

use fingerpost_record::stacks::StackClass;
use fingerpost_record::{Paths, WholeLook};
use fingerpost_sys::stamps::Stamp;
use fingerpost_sys::trace::thread_cpu_seconds;

use super::answering::Ends;
use super::leaf::Side;
use super::sockets::Generations;
use super::source::Window;
use super::timeline::Silent;
use super::{AtPorts, Follower, Requested, Stretch};
use crate::Limits;
use crate::calls::Role;
use crate::hardware::Recorded as Counts;
use crate::machine::Totals;
use crate::stacks::Left;
use crate::stacks::held::{Held, Holds};
use crate::stacks::of_requests::{Absences, graphs};
use crate::stacks::windows::Taken;

/// Windows that were taken, to be followed when the load has ended.
pub struct Recorded {
    pub(super) service: Option<Ends>,
    /// CPUs that any thread of a service may use.
    pub(super) cpus: Vec<u16>,
    pub(super) groups: HashMap<i32, String>,
    pub(super) source: String,
    /// Why programs in the kernel could not have the events.
    pub(super) no_programs: Option<String>,
    pub(super) roles: HashMap<i32, Role>,
    pub(super) parents: HashMap<i32, i32>,
    pub(super) first: Option<i32>,
    pub(super) windows: Vec<(Window, Silent)>,
    pub(super) stacks: Option<Taken>,
    pub(super) hardware: Option<Result<Counts, String>>,
    pub(super) turns: Vec<Stamp>,
    pub(super) lost: u64,
    pub(super) torn: u64,
    pub(super) spent: f64,
    /// Every request of the whole look, or why they were not counted.
    pub(super) whole: Option<Result<WholeLook, String>>,
    /// CPU seconds that an event costs the thread that causes it.
    pub(super) event_cost: f64,
}

impl Recorded {
    /// Follows the requests of all windows. The workload's name and parameters are for the caller to fill in.
    pub fn follow(mut self) -> Paths {
        let what = match self
            .first
            .filter(|pid| self.roles.get(pid) == Some(&Role::Whole))
        {
            None => Requested::ByClients,
            Some(pid) if self.turns.is_empty() => Requested::Command(pid),
            Some(_) => Requested::ByThreads,
        };
        self.number();
        self.followed(what, None).0.paths
    }

    /// Follows the requests that were made at a service, or, where there were none, the time of its processes, and names
    /// functions, both within limits. What windows are left then is not followed, and the source says how many.
    pub fn follow_service(mut self, following: Limits, naming: Limits) -> FollowedService {
        let mut found = self.follow_windows(following, naming);
        match self.whole.take() {
            Some(Ok(whole)) => {
                found.paths.whole_rate = Some(whole.rate()).filter(|_| whole.latency.count > 0);
                found.paths.whole = Some(whole);
            }
            Some(Err(why)) => found.paths.source += &format!(" in windows alone ({why})"),
            None => (),
        }
        found
    }

    fn follow_windows(&mut self, following: Limits, naming: Limits) -> FollowedService {
        self.number();
        let taken = self.stacks.take().unwrap_or_default();
        let absences = Absences::of(self.windows.iter().map(|(w, _)| w));
        let (mut found, [held, held_slow]) = self.followed(Requested::ByArrivals, Some(following));
        let paths = &mut found.paths;
        if paths.followed + paths.cut > 0 {
            // The rank of the 99th percentile, as the sums have it.
            let slow = (paths.latency.p99 * 1e9).round() as u64;
            let all = Holds::of(&held, 0);
            let slow = Holds::of(
                &[held, held_slow].concat(),
                self.slow_from().unwrap_or(slow),
            );
            let classes = [
                (StackClass::Requests, Some(&all)),
                (StackClass::SlowRequests, Some(&slow)),
            ];
            (paths.graphs, found.left) = graphs(taken, &absences, &classes, naming);
            return FollowedService {
                hardware: self.counters(&all, &slow),
                ..found
            };
        }
        let spent = paths.self_cost - self.spent;
        *paths = self.followed(Requested::Programs, Some(following)).0.paths;
        paths.self_cost += spent;
        let whole = [(StackClass::Service, None)];
        (paths.graphs, found.left) = graphs(taken, &absences, &whole, naming);
        let none = Holds::default();
        FollowedService {
            stretches: Vec::new(),
            hardware: self.counters(&none, &none),
            ..found
        }
    }

    /// What hardware counters counted, by side, and while threads had any request or one of the slowest; or why there
    /// is nothing.
    fn counters(&self, all: &Holds, slow: &Holds) -> (String, Totals) {
        let whose = |pid: i32| self.inherited(pid).unwrap_or(Side::Other);
        match &self.hardware {
            Some(Ok(counted)) => (counted.source(), counted.totals(whose, all, slow)),
            Some(Err(why)) => (format!("none: {why}"), Totals::new()),
            None => ("none: not asked for".to_owned(), Totals::new()),
        }
    }

    /// Gives every socket in the windows a number of its own.
    fn number(&mut self) {
        let mut generations = Generations::default();
        self.windows
            .iter_mut()
            .filter(|(w, _)| w.lost == 0)
            .for_each(|(w, _)| generations.number(&mut w.events));
    }

    /// The requests, without what hardware counters counted; and when which thread had one. Where there are
    /// limits, windows are taken from all over the look, so that those which are left out are an even part of it.
    fn followed(
        &self,
        what: Requested,
        limits: Option<Limits>,
    ) -> (FollowedService, [Vec<Held>; 2]) {
        let before = thread_cpu_seconds();
        let mut follower = Follower {
            sides: self
                .roles
                .keys()
                .chain(self.parents.keys())
                .filter_map(|&pid| Some((pid, self.inherited(pid)?)))
                .collect(),
            groups: self.groups.clone(),
            cpus: self.cpus.clone(),
            ..Follower::default()
        };
        self.parents
            .iter()
            .for_each(|(&child, &parent)| follower.children.entry(parent).or_default().push(child));
        if let Some((ports, answer)) = &self.service {
            follower
                .connections
                .service(ports.clone(), answer.iter().copied());
        }
        // Which sockets belong together is learned from all windows before any is followed.
        self.windows
            .iter()
            .for_each(|(w, _)| follower.learn_numbered(w));
        if let Some(least) = self.slow_from() {
            follower.sums.slow_from(least);
        }
        let turns: Vec<(i32, u64, u64)> =
            self.turns.iter().map(|t| (t.tid, t.start, t.end)).collect();
        let mut stretches = vec![Vec::new(); self.windows.len()];
        let mut followed = 0;
        let is_over = |limits: Limits| {
            let used = Duration::from_secs_f64((thread_cpu_seconds() - before).max(0.0));
            used > limits.cpu || Instant::now() > limits.until
        };
        for at in order(self.windows.len(), limits.is_some()) {
            if followed > 0 && limits.is_some_and(is_over) {
                break;
            }
            let (window, silent) = &self.windows[at];
            follower.window(window, silent, &turns, what);
            stretches[at] = take(&mut follower.stretches);
            followed += 1;
        }
        let stretches = stretches.concat();
        let held = [&mut follower.held, &mut follower.held_slow].map(take);
        let at_ports = follower.at_ports;
        let left = self.windows.len() - followed;
        let source = match left {
            0 => self.source.clone(),
            _ => format!(
                "{} ({left} of {} windows were not followed, for want of time)",
                self.source,
                self.windows.len()
            ),
        };
        if self.service.is_some() {
            follower.name_programs();
        }
        let mut paths = follower.finish(source);
        paths.no_programs = self.no_programs.clone();
        (paths.lost, paths.windows, paths.event_cost) =
            (self.lost, paths.windows + self.torn, self.event_cost);
        paths.self_cost = self.spent + thread_cpu_seconds() - before;
        (
            FollowedService {
                paths,
                stretches,
                at_ports,
                ..FollowedService::default()
            },
            held,
        )
    }

    /// What the slowest 1 % of all requests take at least, in nanoseconds, where they were counted.
    fn slow_from(&self) -> Option<u64> {
        let whole = self.whole.as_ref()?.as_ref().ok()?;
        (whole.latency.count > 0).then(|| (whole.latency.p99 * 1e9).round() as u64)
    }

    /// The side of a process that was not looked for: that of the nearest of its ancestors that was.
    fn inherited(&self, pid: i32) -> Option<Side> {
        inherited(pid, &self.parents, |pid| Some(side(*self.roles.get(&pid)?)))
    }
}

/// The numbers below `n`, one after the other or spread: in steps of nearly the golden section, so that any that come
/// first lie all over the range.
fn order(n: usize, spread: bool) -> impl Iterator<Item = usize> {
    let divides = |step: usize| (2..=step).any(|d| step.is_multiple_of(d) && n.is_multiple_of(d));
    let nearly = (n as f64 * 0.618) as usize;
    let step = (nearly.max(1)..).find(|step| !divides(*step)).unwrap_or(1);
    (0..n).map(move |at| if spread { at * step % n } else { at })
}

/// What is known of a process, else of the nearest of its ancestors of which anything is.
pub(super) fn inherited<T>(
    pid: i32,
    parents: &HashMap<i32, i32>,
    known: impl Fn(i32) -> Option<T>,
) -> Option<T> {
    std::iter::successors(Some(pid), |pid| parents.get(pid).copied())
        .take(16)
        .find_map(known)
}

/// The requests of a service.
#[derive(Default)]
pub struct FollowedService {
    /// Where their time went; of a service without requests, that of its processes.
    pub paths: Paths,
    /// What each window showed; empty for a service without requests.
    pub stretches: Vec<Stretch>,
    /// What hardware counters counted while windows were open, and how that was had.
    pub hardware: (String, Totals),
    /// What came at its ports in the windows.
    pub at_ports: AtPorts,
    /// What was left out of its functions.
    pub left: Left,
}

/// Of a service's requests in windows, those at its ports are at least this share, for the kernel's account of their
/// bytes to tell of all.
const AT_PORTS: f64 = 0.99;
/// The kernel's account of the bytes that a service's connections received is of at least this share of the time that
/// it was watched.
const ACCOUNTED: f64 = 0.5;

impl FollowedService {
    /// Learns how many requests a second there were in all of the time, from the bytes that the kernel counted on the
    /// same connections in so many seconds, of those that the service was watched. Windows are a tenth of a long time,
    /// and requests wait for their events. Where every request was counted there is nothing to learn.
    pub fn count_by_bytes(&mut self, bytes: f64, seconds: f64, watched: f64) {
        if self.paths.whole.is_some() {
            return;
        }
        let AtPorts {
            bytes: in_windows,
            requests,
        } = self.at_ports;
        let all_there = in_windows > 0 && requests as f64 >= AT_PORTS * self.paths.followed as f64;
        let known = all_there && bytes > 0.0 && seconds > ACCOUNTED * watched;
        let each = in_windows as f64 / self.paths.requests();
        self.paths.whole_rate =
            Some(bytes / seconds / each).filter(|rate| known && rate.is_finite());
    }
}

fn side(role: Role) -> Side {
    if role == Role::Client {
        Side::Client
    } else {
        Side::Server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_taken_each_once_and_the_first_from_all_over() {
        for n in [0, 1, 2, 3, 10, 97, 100, 360] {
            let mut all: Vec<usize> = order(n, true).collect();
            if n >= 100 {
                let mut first: Vec<usize> = all[..n / 10].to_vec();
                first.sort_unstable();
                assert!(first.windows(2).all(|w| w[1] - w[0] <= n / 4), "{first:?}");
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..n), "{n}");
        }
        assert!(order(5, false).eq(0..5));
    }

    #[test]
    fn requests_of_all_of_the_time_are_counted_by_their_bytes() {
        let rate = |at_ports: (u64, u64), [bytes, seconds, watched]: [f64; 3]| {
            let paths = Paths {
                followed: 99,
                cut: 2,
                seconds: 0.5,
                ..Paths::default()
            };
            let at_ports = AtPorts {
                bytes: at_ports.0,
                requests: at_ports.1,
            };
            let mut service = FollowedService {
                paths,
                stretches: Vec::new(),
                hardware: Default::default(),
                at_ports,
                left: Left::default(),
            };
            service.count_by_bytes(bytes, seconds, watched);
            (service.paths.whole_rate, service.paths.rate())
        };
        // 99 requests and two halves had 50 bytes each in half a second; 110,000 bytes came in ten seconds.
        assert_eq!(
            rate((5_000, 99), [110_000.0, 10.0, 10.3]),
            (Some(220.0), 220.0)
        );
        let by_windows = (None, 200.0);
        assert_eq!(
            rate((4_500, 90), [110_000.0, 10.0, 10.3]),
            by_windows,
            "others came by a Unix socket"
        );
        assert_eq!(
            rate((5_000, 99), [50_000.0, 4.0, 10.3]),
            by_windows,
            "its connections were others later"
        );
        assert_eq!(rate((0, 0), [50_000.0, 10.0, 10.3]), by_windows);
        assert_eq!(rate((5_000, 99), [0.0, 0.0, 0.0]), by_windows);
    }
}
