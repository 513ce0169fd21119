//! The processes and threads that are observed, and their counters from beginning to end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fingerpost_sys::cgroup::members;
use fingerpost_sys::procfs::process::{Schedstat, Status};
use fingerpost_sys::sample;
use fingerpost_sys::subjects::Subjects;
use fingerpost_sys::system;

use crate::calls::{Fd, Role, fd_kind};

/// Cumulative counters of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// CPU seconds.
    pub on_cpu_s: f64,
    /// Seconds ready, waiting for a CPU.
    pub waiting_s: f64,
    /// CPU seconds in user code, by the kernel's own split.
    pub user_s: f64,
    pub system_s: f64,
    /// Page faults without and with a device.
    pub faults: [u64; 2],
    /// Voluntary and involuntary switches.
    pub switches: [u64; 2],
}

impl Counters {
    /// Of two threads, or of one at two times, count by count.
    pub fn with(
        &self,
        other: &Counters,
        seconds: fn(f64, f64) -> f64,
        counts: fn(u64, u64) -> u64,
    ) -> Counters {
        Counters {
            on_cpu_s: seconds(self.on_cpu_s, other.on_cpu_s),
            waiting_s: seconds(self.waiting_s, other.waiting_s),
            user_s: seconds(self.user_s, other.user_s),
            system_s: seconds(self.system_s, other.system_s),
            faults: [0, 1].map(|i| counts(self.faults[i], other.faults[i])),
            switches: [0, 1].map(|i| counts(self.switches[i], other.switches[i])),
        }
    }
}

/// A thread that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub pid: i32,
    /// Its process's side.
    pub role: Role,
    pub comm: String,
    /// When it was first and last seen, in seconds after the beginning.
    pub seen: [f64; 2],
    /// Whether it ran or was ready to run at the last look.
    pub ready: bool,
    first: Counters,
    last: Counters,
}

impl Thread {
    /// What it did between the first and the last look.
    pub fn counters(&self) -> Counters {
        self.last.with(
            &self.first,
            |last, first| (last - first).max(0.0),
            u64::saturating_sub,
        )
    }
}

/// A process that was seen: what only the process as a whole counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Bytes read from and written to devices at the first and last look.
    pub io: [(u64, u64); 2],
    /// CPU seconds, user and system, of waited-for children at the first and last look.
    pub children: [[f64; 2]; 2],
    /// CPU seconds, user and system, of all its threads, ended ones too, at the first and last look.
    pub cpu: [[f64; 2]; 2],
    /// When it was last seen, in seconds after the beginning.
    pub seen: f64,
    pub name: String,
    pub parent: i32,
    /// Largest resident size seen, in bytes.
    pub resident: u64,
    /// At the last look.
    pub status: Status,
    pub nice: i64,
}

/// All processes and threads of a workload.
#[derive(Clone)]
pub struct Population {
    roots: Vec<(i32, Role)>,
    /// Control groups all of whose processes belong to the server.
    groups: Vec<PathBuf>,
    hz: f64,
    /// Own process: never observed.
    own: i32,
    /// Threads and processes by id.
    pub threads: HashMap<i32, Thread>,
    pub processes: BTreeMap<i32, Process>,
    /// Of the processes found so far.
    pub roles: HashMap<i32, Role>,
    /// Threads of the kernel's own, which never become anybody's child: most of what is in `/proc` of a small machine.
    kernel: HashSet<i32>,
}

impl Population {
    /// Finds the subjects' processes, their descendants and all their threads, and reads their counters.
    pub fn find(subjects: &Subjects) -> Population {
        let clients: BTreeSet<i32> = subjects
            .clients
            .iter()
            .copied()
            .filter(|p| !subjects.servers.contains(p))
            .collect();
        let server = if clients.is_empty() {
            Role::Whole
        } else {
            Role::Server
        };
        let roots = subjects
            .servers
            .iter()
            .map(|&p| (p, server))
            .chain(clients.into_iter().map(|p| (p, Role::Client)))
            .collect();
        Population::of(roots, Vec::new())
    }

    /// Finds a service's processes: these, their descendants, and all of these control groups (directories).
    pub fn of_service(pids: &[i32], groups: &[PathBuf]) -> Population {
        Population::of(
            pids.iter().map(|&pid| (pid, Role::Server)).collect(),
            groups.to_vec(),
        )
    }

    fn of(roots: Vec<(i32, Role)>, groups: Vec<PathBuf>) -> Population {
        let mut population = Population {
            roots,
            groups,
            hz: system::ticks_per_second() as f64,
            own: std::process::id() as i32,
            threads: HashMap::new(),
            processes: BTreeMap::new(),
            roles: HashMap::new(),
            kernel: HashSet::new(),
        };
        population.look(0.0, true);
        population
    }

    /// Looks again, `now` seconds after the beginning: new processes and threads are added, counters of all are read.
    /// `full` reads also what takes longer: switches, status, bytes.
    pub fn look(&mut self, now: f64, full: bool) {
        let mut budget = Budget::new();
        for (pid, parent, role) in self.descendants() {
            self.roles.insert(pid, role);
            self.look_at_process(pid, parent, now, full);
            self.look_at_threads(pid, role, now, full, &mut budget);
        }
    }

    /// Takes over the later looks of a copy of this population.
    pub fn take_over(&mut self, later: Population) {
        for (tid, thread) in later.threads {
            let known = self.threads.entry(tid).or_insert_with(|| thread.clone());
            if thread.seen[1] >= known.seen[1] {
                (known.last, known.seen[1], known.ready, known.comm) =
                    (thread.last, thread.seen[1], thread.ready, thread.comm);
            }
        }
        for (pid, process) in later.processes {
            let known = self.processes.entry(pid).or_insert_with(|| process.clone());
            if process.seen >= known.seen {
                let begin = (known.io[0], known.children[0], known.cpu[0]);
                let resident = known.resident.max(process.resident);
                *known = Process {
                    resident,
                    ..process
                };
                (known.io[0], known.children[0], known.cpu[0]) = begin;
            }
        }
        self.roles.extend(later.roles);
    }

    /// The first process that was asked for: a command's own.
    pub fn first(&self) -> Option<i32> {
        self.roots.first().map(|r| r.0)
    }

    /// The role of a process that was asked for by its id.
    pub fn role_of_root(&self, pid: i32) -> Option<Role> {
        self.roots
            .iter()
            .find(|(root, _)| *root == pid)
            .map(|(_, role)| *role)
    }

    /// CPU seconds, user and system, of a process and of its children that ended unseen.
    pub fn process_cpu(&self, pid: i32) -> [f64; 2] {
        let Some(p) = self.processes.get(&pid) else {
            return [0.0; 2];
        };
        let ended = |q: &&Process| q.parent == pid && q.seen < p.seen;
        [0, 1].map(|i| {
            let add = |sum: f64, q: &Process| {
                sum + q.cpu[1][i] - q.cpu[0][i] + q.children[1][i] - q.children[0][i]
            };
            let known = self.processes.values().filter(ended).fold(0.0, add);
            (p.cpu[1][i] - p.cpu[0][i]).max(0.0)
                + (p.children[1][i] - p.children[0][i] - known).max(0.0)
        })
    }

    fn descendants(&mut self) -> Vec<(i32, i32, Role)> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        let mut parents: HashMap<i32, i32> = HashMap::new();
        for pid in sample::numbers(Path::new("/proc")) {
            if self.kernel.contains(&pid) {
                continue;
            }
            if let Some(stat) = sample::process(pid) {
                if stat.kernel {
                    self.kernel.insert(pid);
                    continue;
                }
                children.entry(stat.parent).or_default().push(pid);
                parents.insert(pid, stat.parent);
            }
        }
        let mut found = Vec::new();
        let mut seen: HashSet<i32> = HashSet::from([self.own]);
        let mut todo: Vec<(i32, i32, Role)> = self.roots.iter().map(|&(p, r)| (p, 0, r)).collect();
        // Who is asked for its own children is not observed itself.
        if let Some(&(own, role)) = self.roots.iter().find(|(pid, _)| *pid == self.own) {
            todo.extend(
                children
                    .get(&own)
                    .into_iter()
                    .flatten()
                    .map(|&c| (c, own, role)),
            );
        }
        // Of a group's processes each is asked for, and one may be another's child.
        let members = self
            .groups
            .iter()
            .flat_map(|dir| members::of_directory(dir));
        todo.extend(
            members.map(|pid| (pid, parents.get(&pid).copied().unwrap_or(0), Role::Server)),
        );
        while let Some((pid, parent, role)) = todo.pop() {
            if seen.insert(pid) {
                found.push((pid, parent, role));
                todo.extend(
                    children
                        .get(&pid)
                        .into_iter()
                        .flatten()
                        .map(|&c| (c, pid, role)),
                );
            }
        }
        found
    }

    fn look_at_process(&mut self, pid: i32, parent: i32, now: f64, full: bool) {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        let Some(stat) = sample::stat(&dir) else {
            return;
        };
        let fresh = !self.processes.contains_key(&pid);
        let p = self.processes.entry(pid).or_default();
        p.parent = parent;
        p.seen = now;
        p.cpu[1] = [stat.user as f64 / self.hz, stat.system as f64 / self.hz];
        p.name = stat.name;
        p.nice = i64::from(stat.nice);
        p.children[1] = [
            stat.children_user as f64 / self.hz,
            stat.children_system as f64 / self.hz,
        ];
        if full || fresh {
            p.io[1] = sample::io_bytes(&dir).unwrap_or(p.io[1]);
            p.status = sample::status(&dir).unwrap_or_default();
            p.resident = p.resident.max(p.status.resident.unwrap_or(0));
        }
        // What was there at the beginning counts from there; what came later counts from nothing.
        if fresh && now == 0.0 {
            (p.io[0], p.children[0], p.cpu[0]) = (p.io[1], p.children[1], p.cpu[1]);
        }
    }

    fn look_at_threads(&mut self, pid: i32, role: Role, now: f64, full: bool, budget: &mut Budget) {
        for tid in sample::numbers(Path::new(&format!("/proc/{pid}/task"))) {
            if budget.is_spent() {
                return;
            }
            let dir = PathBuf::from(format!("/proc/{pid}/task/{tid}"));
            let Some(stat) = sample::stat(&dir) else {
                continue;
            };
            let old = self.threads.get(&tid).map(|t| t.last);
            let (user_s, system_s) = (stat.user as f64 / self.hz, stat.system as f64 / self.hz);
            // Without the scheduler's own account, ticks must do, and waiting is not known.
            let sched = sample::schedstat(&dir);
            let ns = |read: fn(&Schedstat) -> u64| sched.as_ref().map(|s| read(s) as f64 * 1e-9);
            let mut c = Counters {
                on_cpu_s: ns(|s| s.running_ns).unwrap_or(user_s + system_s),
                waiting_s: ns(|s| s.waiting_ns).unwrap_or(0.0),
                user_s,
                system_s,
                faults: [stat.minor_faults, stat.major_faults],
                switches: old.map_or([0; 2], |o| o.switches),
            };
            if full || old.is_none() {
                let s = sample::status(&dir).unwrap_or_default();
                c.switches = [
                    s.voluntary_switches.unwrap_or(0),
                    s.involuntary_switches.unwrap_or(0),
                ];
            }
            let t = self.threads.entry(tid).or_insert_with(|| Thread {
                pid,
                role,
                comm: stat.name.clone(),
                seen: [now, now],
                ready: false,
                first: if now == 0.0 { c } else { Counters::default() },
                last: c,
            });
            t.ready = stat.state == 'R';
            t.comm = stat.name;
            t.last = c;
            t.seen[1] = now;
        }
    }
}

/// What one look at threads may take: a process can have a hundred thousand of them, and each takes the kernel some
/// microseconds a file.
pub(crate) struct Budget {
    end: Instant,
    looked: usize,
}

impl Budget {
    /// As many are looked at however long it takes, so that a busy machine leaves no thread of a usual service out.
    const LEAST: usize = 4000;
    const LONGEST: Duration = Duration::from_millis(500);

    pub(crate) fn new() -> Budget {
        Budget {
            end: Instant::now() + Budget::LONGEST,
            looked: 0,
        }
    }

    /// Whether one more thread would be too much.
    pub(crate) fn is_spent(&mut self) -> bool {
        self.looked += 1;
        self.looked > Budget::LEAST && Instant::now() > self.end
    }
}

/// What descriptors refer to, looked up once and kept for a while: descriptors are reused.
#[derive(Default)]
pub struct Descriptors {
    known: HashMap<(i32, i32), Fd>,
}

impl Descriptors {
    /// What a process's descriptor refers to.
    pub fn kind(&mut self, pid: i32, fd: i32) -> Fd {
        *self.known.entry((pid, fd)).or_insert_with(|| {
            let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default();
            fd_kind(&link.to_string_lossy())
        })
    }

    /// Forgets what may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_and_its_threads_are_found_and_we_ourselves_are_not() {
        let mut child = fingerpost_sys::child::die_with_parent(
            std::process::Command::new("sh").args(["-c", "sleep 600; :"]),
        )
        .spawn()
        .unwrap();
        // Of our own process, as the launch laboratory asks for it: what we start, and not ourselves.
        let subjects = Subjects {
            servers: vec![std::process::id() as i32],
            clients: vec![],
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut population = Population::find(&subjects);
        while !population.threads.values().any(|t| t.comm == "sleep") {
            assert!(
                std::time::Instant::now() < deadline,
                "the grandchild was never found"
            );
            population.look(0.1, true);
        }
        assert!(
            !population
                .processes
                .contains_key(&(std::process::id() as i32))
        );
        assert!(population.threads.values().all(|t| t.role == Role::Whole));
        fingerpost_sys::child::signal_group(child.id() as i32, libc::SIGKILL).unwrap();
        child.wait().unwrap();
    }
}
