//! From threads to totals: what each side of the workload did, with stable names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fingerpost_sys::subjects::WATCHER;

use crate::calls::{self, Role, Wait, Waits};
use crate::machine::Totals;
use crate::population::{Counters, Population, Thread};
use crate::states::Looks;
use crate::tracer::{CallTime, Traced};

/// What was seen of threads' states, by whichever way there was.
pub enum Seen {
    /// Nothing: only counters.
    Counters,
    /// Windows of tracepoints, open for this many seconds in all; the seconds in which a thread was ready while a CPU
    /// idled.
    Traced(HashMap<i32, (i32, Role, Traced)>, f64, f64),
    /// Samples of `/proc`.
    Sampled(HashMap<i32, Looks>),
}

/// The sums of one side. `background` holds the server's threads that no transaction waits for directly.
#[derive(Default)]
struct Side {
    threads: u64,
    wall: f64,
    counters: Counters,
    after_idle: f64,
    blocked: Waits,
    woken_by_sibling: f64,
    woken_otherwise: f64,
    /// Within the windows, scaled up to all of the time.
    calls: BTreeMap<i64, CallTime>,
    /// Calls of all kinds as they were counted within the windows, not scaled.
    calls_in_windows: u64,
    /// Times that its threads gave up their CPUs: within the windows, and in all by the kernel's own count.
    gave_up: [u64; 2],
    parked: u64,
}

/// So many times must threads be seen to give up their CPUs for these times to be a measure: one part in ten by chance.
/// With nine of a busy web server's, counts were off by a factor of five.
const ENOUGH: u64 = 100;

/// Whether a thread is a load generator's that only watches the others. A server's thread may call itself so, and is
/// counted.
fn watches(thread: &Thread) -> bool {
    thread.role != Role::Server && thread.comm == WATCHER
}

/// Threads' totals (observer `threads`) and system calls' totals (observer `syscalls`) over `elapsed` seconds.
pub fn totals(population: &Population, seen: &Seen, elapsed: f64) -> (Totals, Totals) {
    let mut sides: BTreeMap<&'static str, Side> = BTreeMap::new();
    let moving: BTreeSet<Role> = population
        .threads
        .values()
        .filter(|t| !is_parked(t))
        .map(|t| t.role)
        .collect();
    for (&tid, thread) in population.threads.iter().filter(|(_, t)| !watches(t)) {
        let mut c = thread.counters();
        let alive = (thread.seen[1] - thread.seen[0]).max(c.on_cpu_s + c.waiting_s);
        // The scheduler counts a wait for a CPU when it ends. A thread that never blocked and is ready is in the middle
        // of one.
        if thread.ready && c.switches[0] == 0 && c.switches[1] > 0 {
            c.waiting_s = alive - c.on_cpu_s;
        }
        let (waits, after_idle) = shares(seen, tid, &c);
        let name = side_name(tid, thread.role, seen, &waits, &c);
        let side = sides.entry(name).or_default();
        side.counters = side
            .counters
            .with(&c, |sum, of| sum + of, |sum, of| sum + of);
        if moving.contains(&thread.role) && is_parked(thread) {
            side.parked += 1;
            continue;
        }
        side.threads += 1;
        side.wall += alive;
        side.after_idle += c.waiting_s * after_idle;
        let blocked = (alive - c.on_cpu_s - c.waiting_s).max(0.0);
        for (sum, share) in side.blocked.iter_mut().zip(waits) {
            *sum += blocked * share;
        }
        if let Seen::Traced(threads, window, _) = seen
            && let Some((_, _, traced)) = threads.get(&tid)
        {
            side.add_calls(traced, scale(elapsed, *window));
            side.gave_up[0] += traced.gave_up;
            side.gave_up[1] += c.switches[0];
        }
    }
    if let Seen::Traced(all, window, _) = seen {
        // Threads that lived between two looks and yet within a window: only their calls are known.
        for (_, (_, role, traced)) in all
            .iter()
            .filter(|(tid, _)| !population.threads.contains_key(tid))
        {
            sides
                .entry(plain_name(*role))
                .or_default()
                .add_calls(traced, scale(elapsed, *window));
        }
        sides
            .values_mut()
            .for_each(|side| side.correct_counts(scale(elapsed, *window)));
    }
    let mut threads = Totals::from([("elapsed.seconds".to_owned(), elapsed)]);
    let mut syscalls = Totals::new();
    for (name, side) in &sides {
        side.write(
            name,
            !matches!(seen, Seen::Counters),
            &mut threads,
            &mut syscalls,
        );
    }
    add_processes(population, &mut threads);
    if let Seen::Traced(all, _, while_idle) = seen {
        let ready: f64 = all.values().map(|t| t.2.ready).sum();
        threads.insert(
            "runqueue.while_idle.share".into(),
            if ready > 0.0 {
                (while_idle / ready).min(1.0)
            } else {
                0.0
            },
        );
    }
    (threads, syscalls)
}

fn scale(elapsed: f64, window: f64) -> f64 {
    if window > 0.0 { elapsed / window } else { 0.0 }
}

/// The shares of blocked time by cause, and of waiting for a CPU that followed a wait for the next request.
fn shares(seen: &Seen, tid: i32, c: &Counters) -> (Waits, f64) {
    let normal = |mut waits: Waits| {
        let sum: f64 = waits.iter().sum();
        if sum > 0.0 {
            waits.iter_mut().for_each(|w| *w /= sum);
        } else {
            waits[Wait::Other as usize] = 1.0;
        }
        waits
    };
    match seen {
        Seen::Counters => (normal([0.0; Wait::ALL.len()]), 0.0),
        Seen::Traced(threads, _, _) => {
            let Some((_, _, t)) = threads.get(&tid) else {
                return (normal([0.0; Wait::ALL.len()]), 0.0);
            };
            (
                normal(t.blocked),
                if t.ready > 0.0 {
                    t.ready_after_idle / t.ready
                } else {
                    0.0
                },
            )
        }
        Seen::Sampled(threads) => {
            let waits = normal(threads.get(&tid).copied().unwrap_or_default().blocked);
            // Whoever gave up the CPU of its own accord waits for it afresh when it is woken.
            let switches = c.switches.iter().sum::<u64>().max(1) as f64;
            (
                waits,
                (waits[Wait::Idle as usize] + waits[Wait::Network as usize]) * c.switches[0] as f64
                    / switches,
            )
        }
    }
}

/// What the side that a process is on is called in the names of totals.
pub fn side_of(population: &Population, pid: i32) -> &'static str {
    plain_name(population.roles.get(&pid).copied().unwrap_or(Role::Whole))
}

fn plain_name(role: Role) -> &'static str {
    if role == Role::Client {
        "client"
    } else {
        "server"
    }
}

/// A server's thread that never asks for a request works on no transaction of its own accord: a purger, a log writer.
/// One that was seen to end no more than a call may be in the middle of one transaction, unless it waits for a lock all
/// the time: so waits a thread that looks every second whether there is something to do.
fn side_name(tid: i32, role: Role, seen: &Seen, waits: &Waits, c: &Counters) -> &'static str {
    let serves = match seen {
        Seen::Counters => true,
        Seen::Traced(threads, _, _) => threads.get(&tid).is_none_or(|(_, _, t)| {
            let calls: u64 = t.calls.values().map(|c| c.count).sum();
            t.asked || (calls < 2 && waits[Wait::Lock as usize] < 0.99)
        }),
        Seen::Sampled(_) => false,
    };
    let serves = serves || waits[Wait::Idle as usize] > 0.0 || c.waiting_s + c.on_cpu_s == 0.0;
    if role == Role::Server && !serves && waits[Wait::Other as usize] < 1.0 {
        "background"
    } else {
        plain_name(role)
    }
}

/// A thread that hardly ever moved waits for the end, not for a transaction: a main thread in join, a signal thread.
fn is_parked(thread: &Thread) -> bool {
    let c = thread.counters();
    let alive = thread.seen[1] - thread.seen[0];
    let switches = c.switches.iter().sum::<u64>() as f64;
    alive > 0.5 && switches < 5.0 + 2.0 * alive && c.on_cpu_s < 0.002 * alive
}

/// Adds what processes as a whole count: CPU by name, bytes, memory.
fn add_processes(population: &Population, t: &mut Totals) {
    for (pid, p) in &population.processes {
        let role = side_of(population, *pid);
        let [user, system] = population.process_cpu(*pid);
        let mut add = |name: String, value: f64| *t.entry(name).or_default() += value;
        add(format!("{role}.user.seconds"), user);
        add(format!("{role}.kernel.seconds"), system);
        add(format!("process.{}.cpu.seconds", p.name), user + system);
        add(format!("{role}.processes"), 1.0);
        add(
            format!("{role}.disk.read.bytes"),
            p.io[1].0.saturating_sub(p.io[0].0) as f64,
        );
        add(
            format!("{role}.disk.write.bytes"),
            p.io[1].1.saturating_sub(p.io[0].1) as f64,
        );
        add(format!("{role}.resident.bytes"), p.resident as f64);
        add(
            format!("{role}.swapped.bytes"),
            p.status.swapped.unwrap_or(0) as f64,
        );
    }
}

impl Side {
    fn add_calls(&mut self, traced: &Traced, scale: f64) {
        self.woken_by_sibling += traced.woken_by_sibling as f64 * scale;
        self.woken_otherwise += traced.woken_otherwise as f64 * scale;
        for (&number, time) in &traced.calls {
            let sum = self.calls.entry(number).or_default();
            sum.count += (time.count as f64 * scale).round() as u64;
            sum.seconds += time.seconds * scale;
            sum.on_cpu += time.on_cpu * scale;
            self.calls_in_windows += time.count;
        }
    }

    /// Counts of a window are too low where tracing slows the thread: a call of 0.1 µs takes ten times as long while it
    /// is traced, and so fewer are made. How often threads give up their CPUs is known exactly for all of the time, and
    /// slows down alike.
    fn correct_counts(&mut self, by_time: f64) {
        let [windows, all] = self.gave_up;
        if windows < ENOUGH || all == 0 || by_time <= 0.0 {
            return;
        }
        let factor = all as f64 / windows as f64 / by_time;
        self.woken_by_sibling *= factor;
        self.woken_otherwise *= factor;
        for time in self.calls.values_mut() {
            time.count = (time.count as f64 * factor).round() as u64;
        }
    }

    fn write(&self, name: &str, states: bool, threads: &mut Totals, syscalls: &mut Totals) {
        let mut put = |what: &str, value: f64| threads.insert(format!("{name}.{what}"), value);
        put("threads", self.threads as f64);
        put("threads.parked", self.parked as f64);
        put("wall.seconds", self.wall);
        put("cpu.seconds", self.counters.on_cpu_s);
        put("thread_user.seconds", self.counters.user_s);
        put("thread_kernel.seconds", self.counters.system_s);
        put("runqueue.seconds", self.counters.waiting_s);
        put("switches.voluntary", self.counters.switches[0] as f64);
        put("switches.involuntary", self.counters.switches[1] as f64);
        put("faults.minor", self.counters.faults[0] as f64);
        put("faults.major", self.counters.faults[1] as f64);
        if states {
            put("runqueue_after_idle.seconds", self.after_idle);
            for ((wait, name), seconds) in Wait::ALL.into_iter().zip(self.blocked) {
                let blocked = if wait == Wait::Idle { "" } else { "blocked." };
                put(&format!("{blocked}{name}.seconds"), seconds);
            }
            put("lock.woken_by_sibling", self.woken_by_sibling);
            put("lock.woken_otherwise", self.woken_otherwise);
        }
        for (&number, time) in &self.calls {
            let call = calls::name(number);
            syscalls.insert(format!("{name}.call.{call}.count"), time.count as f64);
            syscalls.insert(format!("{name}.call.{call}.seconds"), time.seconds);
            syscalls.insert(format!("{name}.call.{call}.cpu_seconds"), time.on_cpu);
        }
        if !self.calls.is_empty() {
            syscalls.insert(
                format!("{name}.calls.in_windows"),
                self.calls_in_windows as f64,
            );
        }
    }
}

/// Settings of the subjects' tasks that explain: allowed CPUs, nice, seccomp, speculation.
pub fn task_settings(population: &Population) -> Totals {
    let mut t = Totals::new();
    let servers = population
        .processes
        .iter()
        .filter(|(pid, _)| population.roles.get(pid) != Some(&Role::Client));
    for (_, p) in servers {
        let s = &p.status;
        let mut most = |name: &str, value: f64| {
            let v = t.entry(format!("server.{name}")).or_insert(value);
            *v = v.max(value);
        };
        most("nice", p.nice as f64);
        most("seccomp.mode", f64::from(s.seccomp.unwrap_or(0)));
        most("seccomp.filters", f64::from(s.seccomp_filters.unwrap_or(0)));
        let mitigated = |text: &Option<String>| {
            f64::from(u8::from(text.as_deref().is_some_and(|s| {
                s.contains("mitigated") || s.contains("disabled")
            })))
        };
        most("store_bypass.mitigated", mitigated(&s.store_bypass));
        most("indirect_branch.mitigated", mitigated(&s.indirect_branch));
        most(
            "thp_disabled",
            f64::from(u8::from(s.thp_enabled == Some(false))),
        );
        if let Some(tracer) = s.tracer {
            *t.entry("server.traced".into()).or_insert(0.0) += f64::from(u8::from(tracer != 0));
        }
        if let Some(allowed) = s
            .cpus_allowed
            .as_deref()
            .and_then(fingerpost_sys::procfs::parse_list)
        {
            let v = t
                .entry("server.cpus_allowed".into())
                .or_insert(allowed.len() as f64);
            *v = v.min(allowed.len() as f64);
        }
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_what_is_known_exactly_not_stretched_time() {
        let traced = Traced {
            calls: [(
                libc::SYS_getppid,
                CallTime {
                    count: 1500 * 100,
                    seconds: 0.03,
                    on_cpu: 0.03,
                },
            )]
            .into(),
            gave_up: 100,
            woken_by_sibling: 100,
            ..Traced::default()
        };
        let mut side = Side {
            gave_up: [100, 4000],
            ..Side::default()
        };
        side.add_calls(&traced, 10.0);
        side.correct_counts(10.0);
        let time = side.calls[&libc::SYS_getppid];
        assert_eq!((time.count, side.woken_by_sibling), (1500 * 4000, 4000.0));
        assert_eq!(side.calls_in_windows, 150_000);
        assert!(
            (time.seconds - 0.3).abs() < 1e-9,
            "times are shares of the time"
        );

        let mut few = Side {
            gave_up: [99, 4000],
            ..Side::default()
        };
        few.add_calls(&traced, 10.0);
        few.correct_counts(10.0);
        assert_eq!(
            few.calls[&libc::SYS_getppid].count,
            1_500_000,
            "99 say too little"
        );
    }

    #[test]
    fn a_thread_that_asks_for_requests_serves_though_it_never_waits() {
        let mut waits = [0.0; Wait::ALL.len()];
        waits[Wait::Disk as usize] = 1.0;
        let counters = Counters {
            on_cpu_s: 0.1,
            ..Counters::default()
        };
        let name = |waits: &Waits, asked: bool, calls: u64| {
            let traced = Traced {
                asked,
                calls: [(
                    libc::SYS_fdatasync,
                    CallTime {
                        count: calls,
                        ..CallTime::default()
                    },
                )]
                .into(),
                ..Traced::default()
            };
            side_name(
                7,
                Role::Server,
                &Seen::Traced([(7, (7, Role::Server, traced))].into(), 1.0, 0.0),
                waits,
                &counters,
            )
        };
        assert_eq!(
            (
                name(&waits, true, 50),
                name(&waits, false, 50),
                name(&waits, false, 1)
            ),
            ("server", "background", "server")
        );
        let mut looks_now_and_then = [0.0; Wait::ALL.len()];
        looks_now_and_then[Wait::Lock as usize] = 1.0;
        assert_eq!(
            (
                name(&looks_now_and_then, false, 1),
                name(&looks_now_and_then, true, 1)
            ),
            ("background", "server")
        );
    }
}
