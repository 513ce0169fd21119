//! What the suspects are judged by: the places of followed requests, and counters of the server and the machine.

use fingerpost_record::paths::Share;
use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Paths, Readings};

use super::StepFigures;
use super::entering::Entering;
use super::places::{Place, Places, Sum, add, places};
use super::windows::{all_calls, calls_per_transaction};

/// What followed requests tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// Where their time went.
    pub places: Places,
    /// The share of it, 0 to 1, that could not be followed.
    pub not_followed: f64,
    /// The share of the load generator's mean latency, 0 to 1, that lies outside of what was followed: connecting, or a
    /// request that was never let in. `None` without its account.
    pub outside: Option<f64>,
}

/// The total by which a step says that nothing was asked of a service: its time is that of its processes.
pub const PROGRAMS: Name = name::SERVICE_PROGRAMS;

/// The figures. What no observer read is `None`, never 0: it neither clears nor convicts. Shares are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts<'a> {
    /// What observers read: a rule takes from it by name what no other needs.
    pub readings: Option<&'a Readings>,
    /// Followed requests; `None` where none could be.
    pub followed: Option<Followed>,
    /// Transactions of the observed pass.
    pub transactions: f64,
    /// How long that was, in seconds.
    pub elapsed_s: f64,

    /// CPUs of the machine.
    pub cpus: Option<f64>,
    /// Share of all CPUs' time that was idle, spent waiting for disks included.
    pub idle: Option<f64>,
    /// Share of all CPUs' time that the hypervisor took.
    pub steal: Option<f64>,
    /// All CPUs' time in the ticks that the kernel counts it in.
    pub cpu_ticks: Option<f64>,
    /// CPUs that the server kept busy, on average.
    pub server_cpus: Option<f64>,
    /// Share of the quota's periods that it cut short.
    pub throttled_periods: Option<f64>,
    /// CPU weight relative to the usual.
    pub weight: Option<f64>,
    /// CPUs that other processes kept busy.
    pub other_cpus: Option<f64>,

    /// How throughput went with the number of clients.
    pub scaling: Option<Scaling>,
    /// Whether a query cache was on.
    pub query_cache: Option<bool>,

    /// fsync, fdatasync and their like per transaction.
    pub syncs: Option<f64>,
    /// Seconds that one of them took.
    pub sync_s: Option<f64>,
    /// Share of the time in which a disk was busy.
    pub disk_busy: Option<f64>,
    /// Bytes that the server had devices read and write per second.
    pub disk_per_s: Option<f64>,
    /// Bytes of I/O per second of other processes.
    pub other_disk_per_s: Option<f64>,

    /// Packets dropped by interfaces and by full socket backlogs.
    pub drops: Option<f64>,
    /// Acknowledgements that were delayed, per transaction.
    pub delayed_acks: Option<f64>,

    /// System calls of the server per transaction.
    pub calls: Option<f64>,
    /// A request's time on a CPU by the trace and by ticks: tells kernel time outside of traced calls, per call.
    pub entering: Option<Entering>,
    /// Seccomp filters on the server.
    pub seccomp_filters: Option<f64>,

    /// Major faults of the server per second.
    pub major_per_s: Option<f64>,
    /// Share of the time in which some task waited for memory.
    pub memory_pressure: Option<f64>,

    /// Why the client was the limit, in its own words.
    pub client_saturated: Option<String>,
    /// Share of the CPUs it could use that the client used.
    pub client_busy: Option<f64>,
    /// Errors of the client.
    pub client_errors: f64,
    /// Share of the time in which no transaction completed.
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
    Some(Scaling {
        best_clients: best.0,
        best: best.1,
        most_clients: most.0,
        kept: most.1 / best.1,
    })
}

/// Packets that were dropped, at interfaces and for full backlogs of sockets.
pub(super) fn drops(t: &Readings) -> Option<f64> {
    sum([name::NET_DROPS, name::TCP_BACKLOG_DROPS].map(|k| t.known(k)))
}

/// The sum of those that were read; nothing where none was.
pub(super) fn sum(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().flatten().reduce(|a, b| a + b)
}

impl Followed {
    fn of(paths: &Paths) -> Option<Followed> {
        let told = paths.generator.filter(|g| g.mean > 0.0 && g.count > 0);
        let outside = told.map(|g| ((g.mean - paths.latency.mean) / g.mean).clamp(0.0, 1.0));
        (paths.followed > 0).then(|| Followed {
            places: places(paths),
            not_followed: paths.not_followed,
            outside,
        })
    }
}

impl<'a> Facts<'a> {
    /// The facts of one step.
    pub fn of(step: &StepFigures, t: &'a Readings, paths: Option<&Paths>) -> Facts<'a> {
        let mut f = Facts {
            readings: Some(t),
            followed: paths.and_then(Followed::of),
            transactions: step.transactions as f64,
            elapsed_s: step.elapsed_s,
            ..Facts::default()
        };
        f.take_cpu(t);
        f.take_storage(t);
        f.drops = drops(t);
        f.delayed_acks = f.each(name::TCP_DELAYED_ACKS);
        f.take_calls(
            t,
            paths.and_then(|paths| calls_per_transaction(t, paths, step.turns_per_transaction)),
        );
        f.major_per_s = f.a_second(name::SERVER_FAULTS_MAJOR);
        f.memory_pressure = f
            .a_second(name::PSI_MEMORY_SOME_SECONDS)
            .map(|share| share.min(1.0));
        f.entering = paths.and_then(|paths| {
            Entering::of(f.transactions * step.turns_per_transaction, 1, t, paths)
        });
        f.scaling = scaling(&step.sweep);
        f.query_cache = step.query_cache;
        f.client_saturated.clone_from(&step.client_saturated);
        f.client_busy = f
            .a_second(name::CLIENT_CPU_SECONDS)
            .map(|cpus| cpus / (step.client_cpus.max(1) as f64));
        f.client_errors = step.client_errors as f64;
        f.stalled = f.per_second(step.stalled_s).unwrap_or(0.0).clamp(0.0, 1.0);
        f
    }

    /// What followed requests spent in these places, all together; nothing where none was followed.
    pub fn share(&self, of: &[Place]) -> Option<Share> {
        let followed = self.followed.as_ref()?;
        let mut whole = Share::default();
        of.iter()
            .filter_map(|place| followed.places.get(place))
            .for_each(|sum| add(&mut whole, &sum.share));
        Some(whole)
    }

    /// One place, where requests were followed and came there.
    pub fn place(&self, of: Place) -> Option<&Sum> {
        self.followed.as_ref()?.places.get(&of)
    }

    /// The ends of CPUs that were kept busy for all of the time: their time is counted in ticks.
    pub fn busy_cpus(&self, used: f64) -> [f64; 2] {
        let ticks = self.elapsed_s * TICKS;
        if ticks > 0.0 {
            crate::counts::interval(used * ticks).map(|n| n / ticks)
        } else {
            [0.0, f64::INFINITY]
        }
    }

    /// A reading where it is known.
    pub fn known(&self, name: Name) -> Option<f64> {
        self.readings?.known(name)
    }

    /// How often the server made a system call, where calls were counted.
    pub fn called(&self, call: &str) -> Option<f64> {
        self.readings?
            .known_as(&format!("server.call.{call}.count"))
    }

    /// A reading of a second.
    pub fn a_second(&self, name: Name) -> Option<f64> {
        self.per_second(self.known(name)?)
    }

    /// A reading of a transaction.
    pub fn each(&self, name: Name) -> Option<f64> {
        self.per_transaction(self.known(name)?)
    }

    /// What of a total comes in a second.
    pub fn per_second(&self, total: f64) -> Option<f64> {
        (self.elapsed_s > 0.0).then(|| total / self.elapsed_s)
    }

    /// What of a total comes in a transaction.
    pub fn per_transaction(&self, total: f64) -> Option<f64> {
        (self.transactions > 0.0).then(|| total / self.transactions)
    }

    fn take_cpu(&mut self, t: &Readings) {
        let cpu = |what: &str| t.known_as(&format!("cpu.{what}.seconds"));
        let all = sum(["user", "system", "interrupts", "idle", "iowait", "steal"].map(cpu))
            .filter(|all| *all > 0.0);
        let of_all = |part: Option<f64>| Some(part? / all?);
        self.cpus = t.known(name::MACHINE_CPUS).or(t.known(name::CPU_COUNT));
        self.idle = of_all(sum(["idle", "iowait"].map(cpu)));
        self.steal = of_all(cpu("steal"));
        self.cpu_ticks = all.map(|seconds| seconds * TICKS);
        self.server_cpus =
            sum([name::SERVER_USER_SECONDS, name::SERVER_KERNEL_SECONDS].map(|k| t.known(k)))
                .and_then(|s| self.per_second(s));
        let periods = t
            .known(name::THROTTLE_PERIODS)
            .zip(t.known(name::THROTTLE_THROTTLED_PERIODS));
        self.throttled_periods = periods.map(|(all, cut)| cut / all.max(1.0));
        let usual = t
            .known(name::CGROUP_CPU_WEIGHT_VERSION)
            .and_then(usual_weight);
        self.weight = t
            .known(name::CGROUP_CPU_WEIGHT)
            .zip(usual)
            .map(|(weight, usual)| weight / usual);
        self.other_cpus = self.a_second(name::OTHER_CPU_SECONDS);
    }

    fn take_storage(&mut self, t: &Readings) {
        let sync = [
            "fsync",
            "fdatasync",
            "sync_file_range",
            "msync",
            "sync",
            "syncfs",
        ];
        let calls = |what: &str| {
            let of = |side: &str| sum(sync.map(|c| t.known_as(&format!("{side}.call.{c}.{what}"))));
            sum([of("server"), of("background")])
        };
        let count = calls("count");
        self.syncs = count.and_then(|n| self.per_transaction(n));
        self.sync_s = count
            .filter(|n| *n > 0.0)
            .and_then(|n| Some(calls("seconds")? / n));
        self.disk_busy = self
            .a_second(name::DISK_BUSY_SECONDS)
            .map(|busy| busy.min(1.0));
        self.disk_per_s =
            sum(["write", "read"].map(|w| t.known_as(&format!("server.disk.{w}.bytes"))))
                .and_then(|b| self.per_second(b));
        self.other_disk_per_s = self.a_second(name::OTHER_DISK_BYTES);
    }

    fn take_calls(&mut self, t: &Readings, in_windows: Option<f64>) {
        self.calls = in_windows.or_else(|| self.per_transaction(all_calls(t, ".count")?));
        let mode = t
            .known(name::SERVER_SECCOMP_MODE)
            .map(|mode| f64::from(u8::from(mode > 0.0)));
        self.seccomp_filters = t
            .known(name::SERVER_SECCOMP_FILTERS)
            .into_iter()
            .chain(mode)
            .reduce(f64::max);
    }
}

/// The usual CPU weight by the version of the control groups that it is of: version 1 counts shares around 1024,
/// version 2 weights around 100. What a weight of another version means is not known.
pub(crate) fn usual_weight(version: f64) -> Option<f64> {
    match version as i64 {
        1 => Some(1024.0),
        2 => Some(100.0),
        _ => None,
    }
}

/// Ticks of a second in which `/proc/stat` tells CPU time (`USER_HZ`, include/asm-generic/param.h).
pub(crate) const TICKS: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_observer_read_is_not_zero() {
        let step = StepFigures {
            transactions: 100,
            elapsed_s: 2.0,
            ..StepFigures::default()
        };
        let none = Readings::default();
        let f = Facts::of(&step, &none, None);
        assert_eq!(
            f,
            Facts {
                readings: Some(&none),
                transactions: 100.0,
                elapsed_s: 2.0,
                ..Facts::default()
            }
        );
        let read = [
            ("throttle.seconds", 0.0),
            ("other.cpu.seconds", 1.0),
            ("server.call.read.count", 200.0),
        ];
        let t = Readings::by("all", "made up", read.map(|(k, v)| (k.to_owned(), v)));
        let f = Facts::of(&step, &t, None);
        assert_eq!(
            (
                f.known(name::THROTTLE_SECONDS),
                f.other_cpus,
                f.calls,
                f.syncs,
                f.disk_busy
            ),
            (Some(0.0), Some(0.5), Some(2.0), Some(0.0), None)
        );
    }

    #[test]
    fn a_sweep_tells_where_throughput_was_best_and_what_is_left_of_it() {
        let s = scaling(&[(1.0, 100.0), (2.0, 150.0), (50.0, 60.0)]).unwrap();
        assert_eq!((s.best_clients, s.most_clients, s.kept), (2.0, 50.0, 0.4));
        assert_eq!(scaling(&[(1.0, 100.0)]), None);
        assert_eq!(scaling(&[]), None);
    }
}
