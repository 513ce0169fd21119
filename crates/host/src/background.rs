//! What else uses the CPUs: the difference between two snapshots of `/proc`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::process;
use fingerpost_sys::procfs::system::{CpuTimes, Stat};
use fingerpost_sys::system;
use serde::Serialize;

/// What `/proc` says at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    taken: Instant,
    times: CpuTimes,
    cpus: usize,
    own: Duration,
    /// By pid and start, as a pid may pass to another process.
    processes: HashMap<(i32, u64), (String, u64)>,
}

impl Snapshot {
    /// Takes one.
    pub fn take(paths: &Paths) -> Self {
        let stat = Stat::parse(&paths.read("proc/stat").unwrap_or_default()).unwrap_or_default();
        let pids = paths
            .names("proc")
            .into_iter()
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
        let process =
            |pid: String| process::Stat::parse(&paths.read(format!("proc/{pid}/stat")).ok()?);
        let entry = |p: process::Stat| {
            (
                (p.pid, p.started),
                (p.name, p.user.saturating_add(p.system)),
            )
        };
        Self {
            taken: Instant::now(),
            times: stat.all,
            cpus: stat.cpus.len(),
            own: system::own_cpu_time(),
            processes: pids.filter_map(process).map(entry).collect(),
        }
    }
}

/// A process that used the CPU meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct User {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// CPUs' worth of time: 1 is one CPU, all the time.
    pub cpus: f64,
}

/// What went on between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Background {
    /// Seconds between them.
    pub seconds: f64,
    /// CPUs' worth of time that everybody but us used, short-lived processes and interrupts included.
    pub others: f64,
    /// Share of all CPUs' time, 0 to 1, that the hypervisor took.
    pub steal: f64,
    /// Share of all CPUs' time, 0 to 1, in which a CPU idled while a task waited for I/O.
    pub iowait: f64,
    /// The processes that used most, the first first; at most five, none below 0.5 % of a CPU.
    pub users: Vec<User>,
}

/// Users below this are left out: the kernel counts in ticks of 10 ms, and a single one is chance.
const LEAST: f64 = 0.005;
const MOST_USERS: usize = 5;

/// What was used between two snapshots by all but the calling process.
pub fn between(before: &Snapshot, after: &Snapshot) -> Background {
    evaluate(
        before,
        after,
        std::process::id() as i32,
        system::ticks_per_second() as f64,
    )
}

fn evaluate(
    before: &Snapshot,
    after: &Snapshot,
    own_pid: i32,
    ticks_per_second: f64,
) -> Background {
    let seconds = after
        .taken
        .saturating_duration_since(before.taken)
        .as_secs_f64();
    if seconds <= 0.0 {
        return Background::default();
    }
    let times = after.times.since(&before.times);
    let busy = times.busy() as f64 / ticks_per_second;
    let own = after.own.saturating_sub(before.own).as_secs_f64();
    let total = (times.total() as f64).max(1.0);
    let user = |(&(pid, started), (name, ticks)): (&(i32, u64), &(String, u64))| {
        // One that was not there before has used all that it has used since.
        let earlier = before
            .processes
            .get(&(pid, started))
            .map_or(0, |(_, ticks)| *ticks);
        let cpus = ticks.saturating_sub(earlier) as f64 / ticks_per_second / seconds;
        (pid != own_pid && cpus >= LEAST).then(|| User {
            pid,
            name: name.clone(),
            cpus,
        })
    };
    let mut users: Vec<User> = after.processes.iter().filter_map(user).collect();
    users.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
    users.truncate(MOST_USERS);
    Background {
        seconds,
        others: ((busy - own) / seconds).clamp(0.0, after.cpus.max(1) as f64),
        steal: times.steal as f64 / total,
        iowait: times.iowait as f64 / total,
        users,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Process<'a> = (i32, u64, &'a str, u64);

    fn snapshot(taken: Instant, times: CpuTimes, own_ms: u64, processes: &[Process]) -> Snapshot {
        let processes = processes
            .iter()
            .map(|(pid, started, name, ticks)| ((*pid, *started), ((*name).to_owned(), *ticks)))
            .collect();
        Snapshot {
            taken,
            times,
            cpus: 2,
            own: Duration::from_millis(own_ms),
            processes,
        }
    }

    #[test]
    fn others_are_all_but_us() {
        let start = Instant::now();
        let before = snapshot(
            start,
            CpuTimes::default(),
            0,
            &[(1, 1, "init", 50), (7, 5, "old", 900), (9, 9, "us", 0)],
        );
        let times = CpuTimes {
            user: 1500,
            system: 100,
            idle: 300,
            steal: 100,
            ..Default::default()
        };
        let after = snapshot(
            start + Duration::from_secs(10),
            times,
            10_000,
            &[
                (1, 1, "init", 52),
                (7, 800, "new owner of pid 7", 400),
                (9, 9, "us", 1000),
                (8, 8, "busy", 200),
            ],
        );
        let found = evaluate(&before, &after, 9, 100.0);
        assert!((found.others - 0.6).abs() < 1e-9, "{found:?}");
        assert_eq!(found.steal, 0.05);
        let users: Vec<(i32, f64)> = found
            .users
            .iter()
            .map(|user| (user.pid, user.cpus))
            .collect();
        assert_eq!(users, [(7, 0.4), (8, 0.2)]);
    }

    #[test]
    fn no_time_nothing_used() {
        let now = snapshot(Instant::now(), CpuTimes::default(), 0, &[]);
        assert_eq!(evaluate(&now, &now, 1, 100.0), Background::default());
    }

    #[test]
    fn this_machine_has_processes() {
        let taken = Snapshot::take(&Paths::system());
        assert!(
            taken.cpus > 0
                && taken
                    .processes
                    .keys()
                    .any(|(pid, _)| *pid == std::process::id() as i32)
        );
        assert_eq!(
            Snapshot::take(&Paths::under("/no/such/tree"))
                .processes
                .len(),
            0
        );
    }
}
