//! Windows that were taken, followed when the load has ended: what that costs then slows nobody.

use std::collections::HashMap;

use fingerpost_record::Paths;
use fingerpost_record::stacks::StackClass;
use fingerpost_sys::stamps::Stamp;
use fingerpost_sys::trace::thread_cpu_seconds;

use super::answering::Ends;
use super::leaf::Side;
use super::sockets::Generations;
use super::source::Window;
use super::timeline::Silent;
use super::{Follower, Requested, Stretch};
use crate::calls::Role;
use crate::hardware::{Recorded as Counts, Whose};
use crate::machine::Totals;
use crate::stacks::held::{Held, Holds};
use crate::stacks::of_requests::{Absences, graphs};
use crate::stacks::windows::Taken;

/// Windows that were taken, to be followed when the load has ended.
pub struct Recorded {
    pub(super) service: Option<Ends>,
    pub(super) groups: HashMap<i32, String>,
    pub(super) source: String,
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
    /// CPU seconds that an event costs the thread that causes it.
    pub(super) event_cost: f64,
}

impl Recorded {
    /// Follows the requests of all windows. The workload's name and parameters are for the caller to fill in.
    pub fn follow(mut self) -> Paths {
        let what = match self.first.filter(|pid| self.roles.get(pid) == Some(&Role::Whole)) {
            None => Requested::ByClients,
            Some(pid) if self.turns.is_empty() => Requested::Command(pid),
            Some(_) => Requested::ByThreads,
        };
        self.number();
        self.followed(what).paths
    }

    /// Follows the requests that were made at a service, or, where there were none, the time of its processes.
    pub fn follow_service(mut self) -> FollowedService {
        self.number();
        let taken = self.stacks.take().unwrap_or_default();
        let absences = Absences::of(self.windows.iter().map(|(w, _)| w));
        let Followed { mut paths, stretches, held } = self.followed(Requested::ByArrivals);
        if paths.followed + paths.cut > 0 {
            // The rank of the 99th percentile, as the sums have it.
            let slow = (paths.latency.p99 * 1e9).round() as u64;
            let classes = [(StackClass::Requests, 0), (StackClass::SlowRequests, slow)];
            let classes = classes.map(|(class, least)| (class, Some(Holds::of(&held, least))));
            let hardware = self.counters(&classes);
            paths.graphs = graphs(taken, &absences, &classes);
            return FollowedService { paths, stretches, hardware };
        }
        let spent = paths.self_cost - self.spent;
        paths = self.followed(Requested::Programs).paths;
        paths.self_cost += spent;
        paths.graphs = graphs(taken, &absences, &[(StackClass::Service, None)]);
        FollowedService { paths, stretches: Vec::new(), hardware: self.counters(&[]) }
    }

    /// What hardware counters counted, by side and class; or why there are none.
    fn counters(&mut self, classes: &[(StackClass, Option<Holds>)]) -> (String, Totals) {
        let counted = match self.hardware.take() {
            Some(Ok(counted)) => counted,
            Some(Err(why)) => return (format!("none: {why}"), Totals::new()),
            None => return ("none: not asked for".to_owned(), Totals::new()),
        };
        let none = Holds::default();
        let of = |wanted: StackClass| classes.iter().find(|c| c.0 == wanted).and_then(|c| c.1.as_ref()).unwrap_or(&none);
        let whose = |pid: i32| match self.roles.get(&pid).map(|role| side(*role)).or_else(|| self.inherited(pid)) {
            Some(Side::Client) => Whose::Client,
            Some(_) => Whose::Server,
            None => Whose::Other,
        };
        (counted.source(), counted.totals(whose, of(StackClass::Requests), of(StackClass::SlowRequests)))
    }

    /// Gives every socket in the windows a number of its own.
    fn number(&mut self) {
        let mut generations = Generations::default();
        self.windows.iter_mut().filter(|(w, _)| w.lost == 0).for_each(|(w, _)| generations.number(&mut w.events));
    }

    fn followed(&self, what: Requested) -> Followed {
        let before = thread_cpu_seconds();
        let mut follower = Follower::default();
        for (&pid, role) in &self.roles {
            follower.side(pid, side(*role));
        }
        for &pid in self.parents.keys() {
            if let Some(side) = self.inherited(pid) {
                follower.side(pid, side);
            }
        }
        self.parents.iter().for_each(|(&child, &parent)| follower.child(parent, child));
        if let Some((ports, ends)) = &self.service {
            follower.service(ports.clone(), ends.iter().copied());
        }
        self.groups.iter().for_each(|(&pid, group)| follower.group(pid, format!("({group})")));
        // Which sockets belong together is learned from all windows before any is followed.
        self.windows.iter().for_each(|(w, _)| follower.learn_numbered(w));
        let turns: Vec<(i32, u64, u64)> = self.turns.iter().map(|t| (t.tid, t.start, t.end)).collect();
        for (window, silent) in &self.windows {
            follower.window(window, silent, &turns, what);
        }
        let (stretches, held) = (follower.stretches(), follower.held());
        let mut paths = follower.finish(self.source.clone());
        (paths.lost, paths.windows, paths.event_cost) = (self.lost, paths.windows + self.torn, self.event_cost);
        paths.self_cost = self.spent + thread_cpu_seconds() - before;
        Followed { paths, stretches, held }
    }

    /// The side of a process that was not looked for: that of the nearest of its ancestors that was.
    fn inherited(&self, pid: i32) -> Option<Side> {
        let mut at = pid;
        for _ in 0..16 {
            if let Some(role) = self.roles.get(&at) {
                return Some(side(*role));
            }
            at = *self.parents.get(&at)?;
        }
        None
    }
}

/// What following gave.
struct Followed {
    paths: Paths,
    stretches: Vec<Stretch>,
    held: Vec<Held>,
}

/// The requests of a service.
pub struct FollowedService {
    /// Where their time went; of a service without requests, that of its processes.
    pub paths: Paths,
    /// What each window showed; empty for a service without requests.
    pub stretches: Vec<Stretch>,
    /// What hardware counters counted while windows were open, and how that was had.
    pub hardware: (String, Totals),
}

fn side(role: Role) -> Side {
    if role == Role::Client { Side::Client } else { Side::Server }
}
