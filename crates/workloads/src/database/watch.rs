//! The watcher of the load generator: looks now and then whether anything completes, and what goes on when nothing
//! does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_sys::procfs::{Paths, process, system};
use fingerpost_sys::system::{own_cpu_time, ticks_per_second};

use crate::database::stalls::Sample;
use crate::stalls::shortest_ns;

/// How often it looks. A look reads a counter for each client: some microseconds.
const TICK: Duration = Duration::from_millis(10);
/// It looks closer at most this often in a step, because looking costs.
const MOST_SAMPLES: usize = 500;

/// A counter in a cache line of its own, of what a client completed, for the watcher to read.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Progress(pub AtomicU64);

/// What was seen over the step.
#[derive(Debug, Default)]
pub struct Watched {
    /// CPU seconds of this process.
    pub cpu_seconds: f64,
    /// Share of all CPU time of the machine that was spent working.
    pub busy: f64,
    /// Moments at which nothing completed.
    pub samples: Vec<Sample>,
}

/// Sleeps until a step starts, and watches these clients of these servers until it ends.
pub fn watch(servers: &[i32], progress: &[Progress], start: Instant, end: Instant) -> Watched {
    let paths = Paths::system();
    let machine = || Some(system::Stat::parse(&paths.read("proc/stat").ok()?)?.all);
    let all_completed = || {
        progress
            .iter()
            .map(|p| p.0.load(Ordering::Relaxed))
            .sum::<u64>()
    };
    thread::sleep(start.saturating_duration_since(Instant::now()));
    let (cpu_before, machine_before) = (own_cpu_time(), machine());
    let completed_before = all_completed();
    let mut watched = Watched::default();
    let (mut last, mut last_change) = (completed_before, start);
    let mut stolen = machine_before.map_or(0, |m| m.steal);
    loop {
        let due = (Instant::now() + TICK).min(end);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let late = now.saturating_duration_since(due);
        let completed = all_completed();
        let spent = (now - start).as_nanos() as u64 * progress.len() as u64;
        // The median is not known before the end.
        let mean = spent
            .checked_div(completed.saturating_sub(completed_before))
            .unwrap_or(0);
        let quiet = (now - last_change).as_nanos() as u64 > shortest_ns(mean) / 2;
        if completed != last {
            (last, last_change) = (completed, now);
        }
        if (quiet || late > TICK) && watched.samples.len() < MOST_SAMPLES {
            let steal = machine().map_or(stolen, |m| m.steal);
            watched.samples.push(Sample {
                at: (now - start).as_nanos() as u64,
                late: if late > TICK {
                    late.as_nanos() as u64
                } else {
                    0
                },
                stolen: steal.saturating_sub(stolen) * 1_000_000_000 / ticks_per_second(),
                server: server_threads(&paths, servers),
            });
            stolen = steal;
        }
        if now >= end {
            break;
        }
    }
    watched.cpu_seconds = own_cpu_time().saturating_sub(cpu_before).as_secs_f64();
    if let (Some(after), Some(before)) = (machine(), machine_before) {
        let spent = after.since(&before);
        watched.busy = spent.busy() as f64 / spent.total().max(1) as f64;
    }
    watched
}

/// The threads of the server's processes, and of the processes that they started, by state.
fn server_threads(paths: &Paths, servers: &[i32]) -> BTreeMap<char, usize> {
    let mut states = BTreeMap::new();
    for pid in servers.iter().flat_map(|pid| family(paths, *pid)) {
        for tid in paths.names(format!("proc/{pid}/task")) {
            let Ok(text) = paths.read(format!("proc/{pid}/task/{tid}/stat")) else {
                continue;
            };
            let Some(stat) = process::Stat::parse(&text) else {
                continue;
            };
            *states.entry(stat.state).or_default() += 1;
        }
    }
    states
}

/// A process and its children.
fn family(paths: &Paths, pid: i32) -> Vec<i32> {
    let children = paths
        .read(format!("proc/{pid}/task/{pid}/children"))
        .unwrap_or_default();
    std::iter::once(pid)
        .chain(
            children
                .split_ascii_whitespace()
                .filter_map(|c| c.parse().ok()),
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_nothing_completes_it_tells_what_the_server_did() {
        let progress = [Progress::default()];
        let me = [std::process::id() as i32];
        let start = Instant::now();
        let watched = watch(&me, &progress, start, start + Duration::from_millis(60));
        assert!(!watched.samples.is_empty());
        // This thread, at the least, was running when it looked.
        assert!(
            watched.samples.iter().any(|g| g.server.contains_key(&'R')),
            "{watched:?}"
        );
        assert!((0.0..=1.0).contains(&watched.busy));
    }
}
