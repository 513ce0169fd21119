//! What the suspects are judged by: plain figures of one step, derived from its totals and its budget.

use std::ops::Add;

use fingerpost_record::Budget;

use super::budget::component;
use super::{StepFigures, Totals};

/// The figures. Shares are of the wall time of a transaction, 0 to 1, unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Length of the observed pass in seconds.
    pub elapsed_s: f64,
    /// Transactions in it.
    pub transactions: f64,
    /// CPUs of the machine.
    pub cpus: f64,
    /// Share of all CPUs' time that was idle, spent waiting for disks included.
    pub idle: f64,
    /// Share of all CPUs' time that the hypervisor took.
    pub steal: f64,
    /// CPUs that the server kept busy, on average.
    pub server_cpus: f64,
    /// Share spent in the server's user code.
    pub user: f64,
    /// Share spent in the kernel on the server's behalf.
    pub kernel: f64,
    /// Share spent waiting for a CPU, server side.
    pub run_queue: f64,
    /// Share spent waiting for locks.
    pub lock: f64,
    /// Share spent waiting for disks, one's own or a group's.
    pub disk: f64,
    /// Share spent waiting for peers, and on the way between server and client.
    pub network: f64,
    /// Share spent waiting for memory.
    pub memory: f64,
    /// Share spent asleep.
    pub timer: f64,
    /// Share spent in the client: its code, its queue, its waiting for a CPU.
    pub client: f64,
    /// Of it, the share in which the client itself had the transaction: code and waiting for a CPU.
    pub client_own: f64,
    /// Share that nothing explains.
    pub unexplained: f64,

    /// Share, 0 to 1, of the waiting for a CPU in which a CPU idled; absent without a trace.
    pub waiting_while_idle: Option<f64>,
    /// Seconds that the quota stopped the server's group.
    pub throttled_s: f64,
    /// Share, 0 to 1, of the quota's periods that were cut short.
    pub throttled_periods: f64,
    /// CPUs' worth of time that the quota allows.
    pub quota: Option<f64>,
    /// CPUs that the server may run on.
    pub cpus_allowed: f64,
    /// The server's nice value.
    pub nice: f64,
    /// CPU weight relative to the usual, 1 where nothing was set.
    pub weight: f64,
    /// CPUs that other processes kept busy, and the busiest one's name.
    pub other_cpus: f64,
    /// See `other_cpus`.
    pub other_name: String,

    /// Waits for a lock per transaction that a thread of the same process ended.
    pub sibling_wakes: f64,
    /// Server threads that took part.
    pub server_threads: f64,
    /// Context switches of the server per transaction.
    pub switches: f64,
    /// Clients at the best throughput, and the throughput with the most clients as a share of the best; absent without a sweep.
    pub scaling: Option<Scaling>,
    /// Whether a query cache was on.
    pub query_cache: Option<bool>,

    /// fsync, fdatasync and their like per transaction.
    pub syncs: f64,
    /// Seconds that one of them took.
    pub sync_s: f64,
    /// Share, 0 to 1, of the time in which a disk was busy.
    pub disk_busy: f64,
    /// Bytes that the server had devices write per second, and read.
    pub written_per_s: f64,
    /// See `written_per_s`.
    pub read_per_s: f64,
    /// Seconds that a write, or flush, took on the device.
    pub device_write_s: f64,
    /// See `device_write_s`.
    pub device_flush_s: f64,
    /// Bytes of I/O per second of other processes, and the busiest one's name.
    pub other_disk_per_s: f64,
    /// See `other_disk_per_s`.
    pub other_disk_name: String,
    /// Limits on block I/O that are set on the server's control groups.
    pub disk_limits: f64,

    /// Received and sent, Mbit/s on average, and the peak of either.
    pub mbit_in: f64,
    /// See `mbit_in`.
    pub mbit_out: f64,
    /// See `mbit_in`.
    pub mbit_peak: f64,
    /// Connections, on average, with data on the way.
    pub on_the_way: f64,
    /// Connections.
    pub connections: f64,
    /// Packets dropped by interfaces and by full socket backlogs.
    pub drops: f64,
    /// Connections that found the accept queue full.
    pub listen_overflows: f64,
    /// Connections waiting to be accepted, at most, and how many may.
    pub accept_max: f64,
    /// See `accept_max`.
    pub accept_backlog: f64,
    /// TCP segments sent again.
    pub retransmits: f64,
    /// Acknowledgements that were delayed, per transaction.
    pub delayed_acks: f64,
    /// Smoothed round trip in microseconds.
    pub rtt_us: f64,

    /// System calls of the server per transaction; absent without a trace.
    pub calls: Option<f64>,
    /// CPU seconds of one of them.
    pub call_s: f64,
    /// Seccomp filters on the server.
    pub seccomp_filters: f64,
    /// Whether a speculation mitigation that is optional per task is on for the server.
    pub speculation_mitigated: bool,
    /// Processes and threads made, per transaction, and the share of time in making them.
    pub creations: f64,
    /// See `creations`.
    pub creation_share: f64,

    /// Pages swapped in and out per second.
    pub swap_per_s: f64,
    /// Major faults of the server per second.
    pub major_per_s: f64,
    /// Share, 0 to 1, of the time in which some task waited for memory.
    pub memory_pressure: f64,
    /// The limit on the server's memory in bytes, and how much of it was used, 0 to 1.
    pub memory_limit: Option<f64>,
    /// See `memory_limit`.
    pub memory_used: f64,
    /// Minor faults of the server per transaction.
    pub minor_faults: f64,

    /// Why the client was the limit, in its own words.
    pub client_saturated: Option<String>,
    /// Share, 0 to 1, of the CPUs it could use that the client used.
    pub client_busy: f64,
    /// Errors of the client.
    pub client_errors: f64,
    /// Share, 0 to 1, of the time in which no transaction completed.
    pub stalled: f64,
}

/// How throughput went with the number of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scaling {
    /// Clients at the best throughput.
    pub best_clients: f64,
    /// The best throughput, in transactions a second.
    pub best: f64,
    /// The most clients.
    pub most_clients: f64,
    /// Throughput with the most clients, as a share of the best.
    pub kept: f64,
}

fn scaling(sweep: &[(f64, f64)]) -> Option<Scaling> {
    let best = sweep.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = sweep.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    if sweep.len() < 2 || best.1 <= 0.0 {
        return None;
    }
    Some(Scaling { best_clients: best.0, best: best.1, most_clients: most.0, kept: most.1 / best.1 })
}

fn largest<'a>(of: impl Iterator<Item = (&'a str, f64)>) -> (String, f64) {
    of.max_by(|a, b| a.1.total_cmp(&b.1)).map_or((String::new(), 0.0), |(n, v)| (n.to_owned(), v))
}

impl Facts {
    /// The facts of one step. `budget` is the step's own.
    ///
    /// A request that waits behind others waits for what those do: the share of `component::AT_SERVER` is spread over the
    /// server's own parts, so that a queue is blamed on its cause.
    pub fn of(step: &StepFigures, t: &Totals, budget: &Budget) -> Facts {
        let mut f = Facts { elapsed_s: step.elapsed_s, transactions: step.transactions as f64, ..Facts::default() };
        f.take_shares(budget);
        f.take_cpu(t);
        f.take_storage(t);
        f.take_network(t);
        f.take_calls(t);
        f.take_memory(t);
        f.sibling_wakes = f.per_transaction(t.get("server.lock.woken_by_sibling") + t.get("background.lock.woken_by_sibling"));
        f.server_threads = t.get("server.threads");
        f.switches = f.per_transaction(t.get("server.switches.voluntary") + t.get("server.switches.involuntary"));
        f.scaling = scaling(&step.sweep);
        f.query_cache = step.query_cache;
        f.client_saturated.clone_from(&step.client_saturated);
        f.client_busy = f.rate(t.get("client.cpu.seconds")) / (step.client_cpus.max(1) as f64);
        f.client_errors = step.client_errors as f64;
        f.stalled = f.rate(step.stalled_s);
        f
    }

    fn rate(&self, total: f64) -> f64 {
        if self.elapsed_s > 0.0 { total / self.elapsed_s } else { 0.0 }
    }

    fn per_transaction(&self, total: f64) -> f64 {
        if self.transactions > 0.0 { total / self.transactions } else { 0.0 }
    }

    fn take_shares(&mut self, budget: &Budget) {
        let share = |test: &dyn Fn(&str) -> bool| budget.parts.iter().filter(|p| test(&p.component)).map(|p| p.share).fold(0.0, f64::add);
        self.user = share(&|c| c == component::USER || c == "user code");
        self.kernel = share(&|c| c.starts_with(component::KERNEL));
        self.run_queue = share(&|c| c == component::RUN_QUEUE);
        self.lock = share(&|c| c == "waiting for a lock");
        self.disk = share(&|c| c == "waiting for the disk" || c.contains("group commit"));
        self.memory = share(&|c| c == "waiting for memory");
        self.timer = share(&|c| c == "sleeping");
        let peer = share(&|c| c == "waiting for a peer");
        self.client_own = share(&|c| c == component::CLIENT || c == component::CLIENT_RUN_QUEUE || c == component::CLIENT_WAITS);
        self.client = self.client_own + share(&|c| c == component::AT_CLIENT);
        self.unexplained = budget.unexplained;
        let own = self.user + self.kernel + self.run_queue + self.lock + self.disk + self.memory + self.timer + peer;
        let behind = share(&|c| c == component::AT_SERVER || c == component::OWN_QUEUE);
        let factor = if own > 0.0 { 1.0 + behind / own } else { 1.0 };
        let spread =
            [&mut self.user, &mut self.kernel, &mut self.run_queue, &mut self.lock, &mut self.disk, &mut self.memory, &mut self.timer];
        spread.into_iter().for_each(|s| *s *= factor);
        self.network = peer * factor + share(&|c| c == component::ON_THE_WAY);
    }

    fn take_cpu(&mut self, t: &Totals) {
        let cpu = |what: &str| t.get(&format!("cpu.{what}.seconds"));
        let busy = cpu("user") + cpu("system") + cpu("interrupts");
        let all = (busy + cpu("idle") + cpu("iowait") + cpu("steal")).max(1e-9);
        self.cpus = t.find("machine.cpus").unwrap_or(t.get("cpu.count")).max(1.0);
        self.idle = (cpu("idle") + cpu("iowait")) / all;
        self.steal = cpu("steal") / all;
        self.server_cpus = self.rate(t.get("server.user.seconds") + t.get("server.kernel.seconds"));
        self.waiting_while_idle = t.find("runqueue.while_idle.share");
        self.throttled_s = t.get("throttle.seconds");
        self.throttled_periods = t.get("throttle.throttled_periods") / t.get("throttle.periods").max(1.0);
        self.quota = t.find("cgroup.cpu_quota.cpus");
        self.cpus_allowed = t.find("server.cpus_allowed").unwrap_or(self.cpus);
        self.nice = t.get("server.nice");
        // Version 1 counts shares around 1024, version 2 weights around 100.
        self.weight = t
            .find("cgroup.cpu_weight")
            .map_or(1.0, |w| if w == 100.0 || w == 1024.0 { 1.0 } else { w / if w > 300.0 { 1024.0 } else { 100.0 } });
        self.other_cpus = self.rate(t.get("other.cpu.seconds"));
        self.other_name = largest(t.between("other.cpu.", ".seconds").filter(|(n, _)| !n.is_empty())).0;
    }

    fn take_storage(&mut self, t: &Totals) {
        let sync = ["fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"];
        let sum = |what: &str| -> f64 {
            let of = |side: &str| sync.iter().map(|c| t.get(&format!("{side}.call.{c}.{what}"))).sum::<f64>();
            of("server") + of("background")
        };
        let (count, seconds) = (sum("count"), sum("seconds"));
        let flushes = t.get("disk.flushes");
        self.syncs = self.per_transaction(count);
        self.sync_s = if count > 0.0 { seconds / count } else { 0.0 };
        self.disk_busy = self.rate(t.get("disk.busy.seconds")).min(1.0);
        self.written_per_s = self.rate(t.get("server.disk.write.bytes"));
        self.read_per_s = self.rate(t.get("server.disk.read.bytes"));
        self.device_write_s = t.get("disk.write.seconds") / t.get("disk.writes").max(1.0);
        self.device_flush_s = t.get("disk.flush.seconds") / flushes.max(1.0);
        self.other_disk_per_s = self.rate(t.get("other.disk.bytes"));
        self.other_disk_name = largest(t.between("other.disk.", ".bytes").filter(|(n, _)| !n.is_empty())).0;
        self.disk_limits = t.get("cgroup.disk_limits");
    }

    fn take_network(&mut self, t: &Totals) {
        self.mbit_in = t.get("net.in.mbit_s");
        self.mbit_out = t.get("net.out.mbit_s");
        self.mbit_peak = t.get("net.in.peak.mbit_s").max(t.get("net.out.peak.mbit_s"));
        self.on_the_way = t.get("queue.network.mean");
        self.connections = t.get("connections.mean");
        self.drops = t.get("net.drops") + t.get("tcp.backlog_drops");
        self.listen_overflows = t.get("tcp.listen_overflows").max(t.get("tcp.listen_drops")) + t.get("tcp.request_queue_drops");
        self.accept_max = t.get("accept.queue.max");
        self.accept_backlog = t.get("accept.backlog");
        self.retransmits = t.get("tcp.retransmits");
        self.delayed_acks = self.per_transaction(t.get("tcp.delayed_acks"));
        self.rtt_us = t.get("sockets.rtt.us");
    }

    fn take_calls(&mut self, t: &Totals) {
        let count: f64 = t.between("server.call.", ".count").map(|c| c.1).sum();
        let cpu: f64 = t.between("server.call.", ".cpu_seconds").map(|c| c.1).sum();
        self.calls = (count > 0.0).then(|| self.per_transaction(count));
        self.call_s = if count > 0.0 { cpu / count } else { 0.0 };
        self.seccomp_filters = t.get("server.seccomp.filters").max(if t.get("server.seccomp.mode") > 0.0 { 1.0 } else { 0.0 });
        self.speculation_mitigated = t.get("server.store_bypass.mitigated") > 0.0 || t.get("server.indirect_branch.mitigated") > 0.0;
        let making = ["clone", "clone3", "fork", "vfork", "execve", "execveat"];
        let made: f64 = making[..4].iter().map(|c| t.get(&format!("server.call.{c}.count"))).fold(0.0, f64::add);
        // Calls are counted in windows and scaled up; the kernel counts all that the whole machine made.
        self.creations = self.per_transaction(t.find("machine.forks").map_or(made, |all| made.min(all)));
        let seconds: f64 = making.iter().map(|c| t.get(&format!("server.call.{c}.cpu_seconds"))).sum();
        self.creation_share = if cpu > 0.0 { self.kernel * seconds / cpu } else { 0.0 };
    }

    fn take_memory(&mut self, t: &Totals) {
        self.swap_per_s = self.rate(t.get("memory.swap_in.pages") + t.get("memory.swap_out.pages"));
        self.major_per_s = self.rate(t.get("server.faults.major"));
        self.memory_pressure = self.rate(t.get("psi.memory.some.seconds")).min(1.0);
        self.memory_limit = t.find("cgroup.memory.limit.bytes");
        self.memory_used = self.memory_limit.map_or(0.0, |l| t.get("cgroup.memory.used.bytes") / l.max(1.0));
        self.minor_faults = self.per_transaction(t.get("server.faults.minor"));
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Layer, Params, Part};

    use super::*;

    fn budget(parts: &[(&str, f64)]) -> Budget {
        let part =
            |&(c, share): &(&str, f64)| Part { layer: Layer::Kernel, component: c.to_owned(), seconds_per_transaction: share, share };
        Budget {
            workload: String::new(),
            params: Params::new(),
            transactions: 1,
            seconds_per_transaction: 1.0,
            parts: parts.iter().map(part).collect(),
            unexplained: 0.0,
        }
    }

    #[test]
    fn a_queue_is_blamed_on_what_those_in_front_do() {
        let b = budget(&[(component::USER, 0.05), ("waiting for a lock", 0.15), (component::AT_SERVER, 0.8)]);
        let f = Facts::of(&StepFigures::default(), &Totals::default(), &b);
        assert!((f.user - 0.25).abs() < 1e-9 && (f.lock - 0.75).abs() < 1e-9, "{f:?}");
    }

    #[test]
    fn a_sweep_tells_where_throughput_was_best_and_what_is_left_of_it() {
        let s = scaling(&[(1.0, 100.0), (2.0, 150.0), (50.0, 60.0)]).unwrap();
        assert_eq!((s.best_clients, s.most_clients, s.kept), (2.0, 50.0, 0.4));
        assert_eq!(scaling(&[(1.0, 100.0)]), None);
        assert_eq!(scaling(&[]), None);
    }
}
