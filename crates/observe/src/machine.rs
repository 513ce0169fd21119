//! Counters of the whole machine, read before and after: CPUs, devices, interfaces, protocols, pressure, quotas, other
//! processes.

mod counters;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fingerpost_sys::cgroup::{Controller, Hierarchies, Throttlings};
use fingerpost_sys::procfs::memory::parse_counters;
use fingerpost_sys::procfs::system::{Pressure, Stat};
use fingerpost_sys::procfs::{Paths, parse_list};
use fingerpost_sys::sample;
use fingerpost_sys::system::ticks_per_second;

pub use counters::{Disk, parse_disks, parse_interfaces, parse_protocols};

/// Totals by name.
pub type Totals = BTreeMap<String, f64>;

/// The protocol counters that totals carry, by the name they get.
pub(crate) static PROTOCOLS: &[(&str, &str)] = &[
    ("TcpExt.ListenOverflows", "tcp.listen_overflows"),
    ("TcpExt.ListenDrops", "tcp.listen_drops"),
    ("TcpExt.TCPBacklogDrop", "tcp.backlog_drops"),
    ("TcpExt.TCPReqQFullDrop", "tcp.request_queue_drops"),
    ("TcpExt.TCPReqQFullDoCookies", "tcp.request_queue_cookies"),
    ("TcpExt.DelayedACKs", "tcp.delayed_acks"),
    ("TcpExt.TCPTimeouts", "tcp.timeouts"),
    ("TcpExt.TCPSynRetrans", "tcp.syn_retransmits"),
    ("Tcp.RetransSegs", "tcp.retransmits"),
    ("Tcp.OutRsts", "tcp.resets"),
    ("Tcp.AttemptFails", "tcp.failed_connects"),
    ("Tcp.PassiveOpens", "tcp.accepted"),
];

/// The memory counters that totals carry.
pub(crate) static MEMORY: &[(&str, &str)] = &[
    ("pswpin", "memory.swap_in.pages"),
    ("pswpout", "memory.swap_out.pages"),
    ("pgmajfault", "memory.major_faults"),
    ("pgfault", "memory.faults"),
    ("pgscan_direct", "memory.direct_scan.pages"),
    ("pgsteal_direct", "memory.direct_reclaim.pages"),
    ("allocstall_normal", "memory.allocation_stalls"),
    ("thp_fault_alloc", "memory.thp_faults"),
    ("thp_fault_fallback", "memory.thp_fallbacks"),
    ("thp_split_page", "memory.thp_splits"),
];

#[derive(Clone, Debug, PartialEq)]
struct Usage {
    name: String,
    cpu_s: f64,
    /// Nothing where it may not be read: another user's, without root.
    io_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Processes {
    by_pid: BTreeMap<i32, Usage>,
    /// Whether those of other users can be seen, too: `/proc` may be mounted such that it hides them (`hidepid`).
    all: bool,
}

/// One reading of everything.
#[derive(Default)]
pub struct Reading {
    stat: Stat,
    disks: BTreeMap<String, Disk>,
    interfaces: ([u64; 2], u64),
    protocols: BTreeMap<String, u64>,
    memory: BTreeMap<String, u64>,
    pressure: BTreeMap<&'static str, Pressure>,
    throttlings: Throttlings,
    processes: Processes,
}

impl Reading {
    /// Reads everything. `groups` are the control groups that count ([`groups_of`]).
    pub fn take(paths: &Paths, groups: &Hierarchies) -> Reading {
        let read = |name: &str| paths.read(name).unwrap_or_default();
        let whole = paths.names("sys/block").into_iter().collect();
        let pressure = ["cpu", "memory", "io"];
        let mut protocols = parse_protocols(&read("proc/net/netstat"));
        protocols.append(&mut parse_protocols(&read("proc/net/snmp")));
        let light = Reading::light(paths);
        Reading {
            disks: parse_disks(&read("proc/diskstats"), &whole),
            protocols,
            memory: parse_counters(&read("proc/vmstat")),
            pressure: pressure
                .into_iter()
                .filter_map(|p| Some((p, Pressure::parse(&read(&format!("proc/pressure/{p}")))?)))
                .collect(),
            throttlings: groups.throttlings(),
            processes: processes(paths),
            ..light
        }
    }

    /// Reads only what series are made of: CPUs and interfaces.
    pub fn light(paths: &Paths) -> Reading {
        let read = |name: &str| paths.read(name).unwrap_or_default();
        Reading {
            stat: Stat::parse(&read("proc/stat")).unwrap_or_default(),
            interfaces: parse_interfaces(&read("proc/net/dev")),
            ..Reading::default()
        }
    }

    /// CPUs' totals: seconds by kind, over all CPUs and per CPU.
    pub fn cpu_since(&self, before: &Reading) -> Totals {
        let hz = ticks_per_second() as f64;
        let all = self.stat.all.since(&before.stat.all);
        let mut t = Totals::new();
        t.insert("cpu.count".into(), self.stat.cpus.len() as f64);
        for (name, ticks) in [
            ("user", all.user + all.nice),
            ("system", all.system),
            ("interrupts", all.irq + all.softirq),
            ("idle", all.idle),
            ("iowait", all.iowait),
            ("steal", all.steal),
        ] {
            t.insert(format!("cpu.{name}.seconds"), ticks as f64 / hz);
        }
        for (cpu, times) in &self.stat.cpus {
            if let Some((_, old)) = before.stat.cpus.iter().find(|(n, _)| n == cpu) {
                t.insert(
                    format!("cpu{cpu}.busy.seconds"),
                    times.since(old).busy() as f64 / hz,
                );
            }
        }
        let count = |now: Option<u64>, then: Option<u64>| {
            now.unwrap_or(0).saturating_sub(then.unwrap_or(0)) as f64
        };
        t.insert(
            "machine.switches".into(),
            count(self.stat.switches, before.stat.switches),
        );
        t.insert(
            "machine.forks".into(),
            count(self.stat.forks, before.stat.forks),
        );
        t
    }

    /// CPUs busy and steal in CPUs, for a series.
    pub fn busy_cpus_since(&self, before: &Reading) -> [f64; 2] {
        let all = self.stat.all.since(&before.stat.all);
        let cpus = self.stat.cpus.len() as f64;
        let total = all.total().max(1) as f64;
        [
            all.busy() as f64 / total * cpus,
            all.steal as f64 / total * cpus,
        ]
    }

    /// Disks' totals, over all disks.
    pub fn disk_since(&self, before: &Reading) -> Totals {
        let mut t = Totals::new();
        let mut busiest = 0.0f64;
        for (name, now) in &self.disks {
            let old = before.disks.get(name).copied().unwrap_or_default();
            let since = |a: u64, b: u64| a.saturating_sub(b) as f64;
            let mut add = |name: String, more: f64| *t.entry(name).or_default() += more;
            for (i, (what, count)) in [("read", "reads"), ("write", "writes"), ("flush", "flushes")]
                .into_iter()
                .enumerate()
            {
                add(
                    format!("disk.{count}"),
                    since(now.operations[i], old.operations[i]),
                );
                add(
                    format!("disk.{what}.seconds"),
                    since(now.milliseconds[i], old.milliseconds[i]) / 1e3,
                );
            }
            add("disk.read.bytes".into(), since(now.bytes[0], old.bytes[0]));
            add("disk.write.bytes".into(), since(now.bytes[1], old.bytes[1]));
            busiest = busiest.max(since(now.busy_ms, old.busy_ms) / 1e3);
        }
        t.insert("disk.busy.seconds".into(), busiest);
        t
    }

    /// Bytes in and out of all interfaces, loopback included.
    pub fn network_bytes_since(&self, before: &Reading) -> [u64; 2] {
        [0, 1].map(|i| self.interfaces.0[i].saturating_sub(before.interfaces.0[i]))
    }

    /// Network totals but the rates.
    pub fn network_since(&self, before: &Reading) -> Totals {
        let mut t = named_since(PROTOCOLS, &self.protocols, &before.protocols);
        let [received, sent] = self.network_bytes_since(before);
        t.insert("net.in.bytes".into(), received as f64);
        t.insert("net.out.bytes".into(), sent as f64);
        t.insert(
            "net.drops".into(),
            self.interfaces.1.saturating_sub(before.interfaces.1) as f64,
        );
        t
    }

    pub fn memory_since(&self, before: &Reading) -> Totals {
        named_since(MEMORY, &self.memory, &before.memory)
    }

    pub fn pressure_since(&self, before: &Reading) -> Totals {
        let mut t = Totals::new();
        for (name, now) in &self.pressure {
            let Some(old) = before.pressure.get(name) else {
                continue;
            };
            let seconds = |a: u64, b: u64| a.saturating_sub(b) as f64 / 1e6;
            t.insert(
                format!("psi.{name}.some.seconds"),
                seconds(now.some_us, old.some_us),
            );
            if let (Some(now), Some(old)) = (now.full_us, old.full_us) {
                t.insert(format!("psi.{name}.full.seconds"), seconds(now, old));
            }
        }
        if let Some((stopped, above)) = self.throttlings.since(&before.throttlings) {
            t.insert("throttle.periods".into(), stopped.periods as f64);
            t.insert(
                "throttle.throttled_periods".into(),
                stopped.throttled_periods as f64,
            );
            t.insert("throttle.seconds".into(), stopped.throttled_seconds);
            t.insert("throttle.levels_above".into(), above as f64);
        }
        t
    }

    /// What other processes used: in all, and the largest five by name. What of them could not be read is not zero:
    /// there is no total of I/O where one's may not be read, and none at all where others' processes are hidden. A
    /// process calls itself what it likes: where processes of several users have one name, each user's are told apart,
    /// and `user` says whose a process is.
    pub fn others_since(
        &self,
        before: &Reading,
        ours: &BTreeSet<i32>,
        user: impl Fn(i32) -> Option<u32>,
    ) -> Totals {
        let mut t = Totals::new();
        if !self.processes.all {
            return t;
        }
        let old = |pid: &i32| before.processes.by_pid.get(pid);
        let others = || {
            self.processes
                .by_pid
                .iter()
                .filter(|(pid, _)| !ours.contains(pid))
        };
        let cpu: BTreeMap<i32, f64> = others()
            .map(|(pid, now)| {
                let then = old(pid).map_or(0.0, |o| o.cpu_s);
                (*pid, (now.cpu_s - then).max(0.0))
            })
            .collect();
        // What a process did before the first look counts as old; of one that could not be read then, nothing is known.
        let io: BTreeMap<i32, Option<f64>> = others()
            .map(|(pid, now)| {
                let then = old(pid).map_or(Some(0), |o| o.io_bytes);
                let since = now
                    .io_bytes
                    .zip(then)
                    .map(|(now, then)| now.saturating_sub(then));
                (*pid, since.map(|bytes| bytes as f64))
            })
            .collect();
        let did = |pid: &i32| cpu[pid] > 0.0 || io[pid].is_some_and(|bytes| bytes > 0.0);
        let names = told_apart(
            others()
                .filter(|(pid, _)| did(pid))
                .map(|(pid, now)| (*pid, now.name.as_str())),
            user,
        );
        let name = |pid: &i32| {
            names
                .get(pid)
                .map_or(self.processes.by_pid[pid].name.as_str(), String::as_str)
        };
        let of_cpu = cpu.iter().map(|(pid, used)| (name(pid), Some(*used)));
        add_by_name(&mut t, ("other.cpu", "seconds"), of_cpu);
        add_by_name(
            &mut t,
            ("other.disk", "bytes"),
            io.iter().map(|(pid, used)| (name(pid), *used)),
        );
        t
    }

    /// How other processes were seen, and why totals of them are missing where some are.
    pub fn others_source(&self, ours: &BTreeSet<i32>) -> String {
        let unread = self
            .processes
            .by_pid
            .iter()
            .filter(|(pid, usage)| !ours.contains(pid) && usage.io_bytes.is_none())
            .count();
        match unread {
            _ if !self.processes.all => {
                "/proc counters (other users' processes are hidden, hidepid)".to_owned()
            }
            0 => "/proc counters".to_owned(),
            n => format!(
                "/proc counters (the I/O of other users' processes is readable by root only, here of {n})"
            ),
        }
    }
}

/// How many of the largest are told by name, of each resource.
const LARGEST: usize = 5;
/// The longest name in bytes, as a control group's is its path: a container's of Kubernetes has 191, and anybody may
/// make one of 4095. Of a longer one the beginning, which tells whose it is, and the end are kept.
const LONGEST: usize = 300;
const BEGINNING: usize = 200;

/// Names with their users, for processes that share one with another user's.
fn told_apart<'a>(
    processes: impl Iterator<Item = (i32, &'a str)>,
    user: impl Fn(i32) -> Option<u32>,
) -> BTreeMap<i32, String> {
    let mut by_name: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (pid, name) in processes {
        by_name.entry(name).or_default().push(pid);
    }
    let mut names = BTreeMap::new();
    for (name, pids) in by_name.into_iter().filter(|(_, pids)| pids.len() > 1) {
        let users: Vec<_> = pids.into_iter().map(|pid| (pid, user(pid))).collect();
        if users.iter().any(|(_, user)| *user != users[0].1) {
            names.extend(users.iter().map(|(pid, user)| {
                let user = user.map_or_else(|| "unknown".to_owned(), |uid| uid.to_string());
                (*pid, format!("{name} of user {user}"))
            }));
        }
    }
    names
}

/// A name that fits: nobody is left out for a long one.
fn fitting(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return Cow::Borrowed(name);
    }
    let (start, end) = (
        name.floor_char_boundary(BEGINNING),
        name.ceil_char_boundary(name.len() - (LONGEST - BEGINNING - "…".len())),
    );
    Cow::Owned(format!("{}…{}", &name[..start], &name[end..]))
}

/// Adds `PREFIX.SUFFIX`, the sum, and `PREFIX.NAME.SUFFIX` of the largest names; nothing where a value is missing,
/// which the sum would lack.
pub(crate) fn add_by_name<'a>(
    t: &mut Totals,
    (prefix, suffix): (&str, &str),
    values: impl Iterator<Item = (&'a str, Option<f64>)>,
) {
    let mut by_name: BTreeMap<Cow<'a, str>, f64> = BTreeMap::new();
    for (name, value) in values {
        let Some(value) = value else { return };
        *by_name.entry(fitting(name)).or_default() += value;
    }
    t.insert(format!("{prefix}.{suffix}"), by_name.values().sum());
    let mut names: Vec<_> = by_name
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    t.extend(
        names
            .iter()
            .take(LARGEST)
            .map(|(name, value)| (format!("{prefix}.{name}.{suffix}"), *value)),
    );
}

/// The control groups of the process that is watched, else our own. They are looked up while it lives: of one that has
/// ended, version 1 tells the root, which nothing limits.
pub fn groups_of(paths: &Paths, subject: Option<i32>) -> Hierarchies {
    Hierarchies::of_process(
        paths,
        &subject.map_or_else(|| "self".to_owned(), |pid| pid.to_string()),
    )
}

fn named_since(
    names: &[(&str, &str)],
    now: &BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> Totals {
    let since =
        |key: &str| Some(now.get(key)?.saturating_sub(*before.get(key).unwrap_or(&0)) as f64);
    names
        .iter()
        .filter_map(|(key, name)| Some(((*name).to_owned(), since(key)?)))
        .collect()
}

fn processes(paths: &Paths) -> Processes {
    let hz = ticks_per_second() as f64;
    let usage = |pid: i32| {
        let dir = paths.path(format!("proc/{pid}"));
        let stat = sample::stat(&dir)?;
        let io_bytes = sample::io_bytes(&dir).map(|(r, w)| r + w);
        // A process that ended between the two looks has nothing more to read, which is not that it may not be read.
        if io_bytes.is_none() && !dir.exists() {
            return None;
        }
        Some((
            pid,
            Usage {
                name: stat.name,
                cpu_s: (stat.user + stat.system) as f64 / hz,
                io_bytes,
            },
        ))
    };
    let by_pid: BTreeMap<i32, Usage> = sample::numbers(&paths.path("proc"))
        .into_iter()
        .filter_map(usage)
        .collect();
    // Every name space of processes has a first one; where it cannot be seen, others are hidden, too.
    Processes {
        all: by_pid.contains_key(&1),
        by_pid,
    }
}

/// What the subject may use: limits of its control groups, and settings of the machine that explain.
pub fn limits(paths: &Paths, groups: &Hierarchies) -> Totals {
    let limits = groups.limits();
    let mut t = Totals::new();
    let mut put =
        |name: &str, value: Option<f64>| t.extend(value.map(|value| (name.to_owned(), value)));
    put("cgroup.cpu_quota.cpus", limits.cpu_quota);
    put("cgroup.cpu_weight", limits.cpu_weight.map(|w| w as f64));
    // A weight says nothing without the version that it is of: the usual one is 1024 of version 1 and 100 of version 2.
    let version = groups.version().map(|version| f64::from(version.number()));
    put(
        "cgroup.cpu_weight.version",
        version.filter(|_| limits.cpu_weight.is_some()),
    );
    put("cgroup.memory.limit.bytes", limits.memory.map(|m| m as f64));
    put(
        "cgroup.cpus",
        limits
            .cpuset
            .and_then(|s| parse_list(&s))
            .map(|l| l.len() as f64),
    );
    let first = |name: &str| {
        groups
            .files(Controller::Memory, name)
            .into_iter()
            .next()
            .and_then(|(_, text)| text.trim().parse().ok())
    };
    put(
        "cgroup.memory.used.bytes",
        first("memory.usage_in_bytes").or_else(|| first("memory.current")),
    );
    put("cgroup.memory.limit_hits", first("memory.failcnt"));
    let first_version = ["read_bps", "write_bps", "read_iops", "write_iops"]
        .map(|what| format!("blkio.throttle.{what}_device"));
    let throttles = first_version.iter().map(String::as_str).chain(["io.max"]);
    let limited = throttles
        .flat_map(|f| groups.files(Controller::Io, f))
        .filter(|(_, text)| !text.trim().is_empty())
        .count();
    put("cgroup.disk_limits", Some(limited as f64));
    let thp = paths.value("sys/kernel/mm/transparent_hugepage/enabled");
    put(
        "thp.always",
        thp.map(|t| f64::from(u8::from(t.contains("[always]")))),
    );
    put(
        "machine.cpus",
        paths
            .value("sys/devices/system/cpu/online")
            .and_then(|l| parse_list(&l))
            .map(|l| l.len() as f64),
    );
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these processes: id, name, clock ticks of CPU, bytes read, where they may be read.
    fn machine_of(processes: &[(i32, &str, u64, Option<u64>)]) -> (tempfile::TempDir, Reading) {
        let dir = tempfile::tempdir().unwrap();
        for (pid, name, ticks, io) in processes {
            let of = dir.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&of).unwrap();
            let stat = format!(
                "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 0 0 {}",
                "0 ".repeat(28)
            );
            std::fs::write(of.join("stat"), stat).unwrap();
            if let Some(bytes) = io {
                std::fs::write(
                    of.join("io"),
                    format!("rchar: 1\nread_bytes: {bytes}\nwrite_bytes: 0\n"),
                )
                .unwrap();
            }
        }
        let reading = Reading::take(&Paths::under(dir.path()), &Hierarchies::default());
        (dir, reading)
    }

    #[test]
    fn what_cannot_be_read_of_others_is_missing_and_not_zero() {
        let hz = ticks_per_second();
        let take = |init_io, dd_ticks, dd_io| {
            machine_of(&[
                (1, "init", 0, init_io),
                (5, "dd", dd_ticks, dd_io),
                (9, "ours", 0, None),
            ])
            .1
        };
        let ours = BTreeSet::from([9]);
        let before = take(Some(0), 0, Some(100));
        let all = take(Some(0), 3 * hz, Some(4196)).others_since(&before, &ours, |_| None);
        let expected = [
            ("other.cpu.seconds", 3.0),
            ("other.cpu.dd.seconds", 3.0),
            ("other.disk.bytes", 4096.0),
            ("other.disk.dd.bytes", 4096.0),
        ];
        assert_eq!(
            all,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );

        let after = take(None, 3 * hz, Some(4196));
        let names: Vec<String> = after
            .others_since(&before, &ours, |_| None)
            .into_keys()
            .collect();
        assert_eq!(
            names,
            ["other.cpu.dd.seconds", "other.cpu.seconds"],
            "one that may not be read leaves no total"
        );
        assert!(
            after
                .others_source(&ours)
                .ends_with("readable by root only, here of 1)")
        );
        assert_eq!(
            take(Some(0), 0, Some(0)).others_source(&ours),
            "/proc counters",
            "our own do not count"
        );

        let hidden = machine_of(&[(5, "dd", 0, Some(0))]).1;
        assert_eq!(hidden.others_since(&before, &ours, |_| None), Totals::new());
        assert!(hidden.others_source(&ours).contains("hidepid"));
    }

    #[test]
    fn who_takes_the_name_of_another_users_program_is_told_apart() {
        let hz = ticks_per_second();
        let take = |ticks: [u64; 4]| {
            let [a, b, c, d] = ticks.map(|n| n * hz);
            let of = |pid, name, ticks| (pid, name, ticks, Some(0));
            let all = [
                of(1, "init", 0),
                of(5, "db", a),
                of(6, "db", b),
                of(7, "cc", c),
                of(8, "cc", d),
            ];
            machine_of(&all).1
        };
        let user = |pid| Some(if pid == 6 { 1000 } else { 0 });
        let after = take([1, 9, 1, 1]);
        let told = after.others_since(&take([0; 4]), &BTreeSet::new(), user);
        let expected = [
            ("other.cpu.cc.seconds", 2.0),
            ("other.cpu.db of user 0.seconds", 1.0),
            ("other.cpu.db of user 1000.seconds", 9.0),
            ("other.cpu.seconds", 12.0),
            ("other.disk.bytes", 0.0),
        ];
        assert_eq!(
            told,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
    }

    #[test]
    fn a_quota_of_an_ancestor_is_the_throttling_of_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/7/cgroup", "0::/pod/server\n");
        write(
            "proc/self/mountinfo",
            "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        write("cg/cgroup.controllers", "cpu\n");
        write(
            "cg/pod/server/cpu.stat",
            "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
        );
        write(
            "cg/pod/cpu.stat",
            "nr_periods 50\nnr_throttled 10\nthrottled_usec 1000000\n",
        );
        let paths = Paths::under(dir.path());
        let groups = groups_of(&paths, Some(7));
        let before = Reading::take(&paths, &groups);
        write(
            "cg/pod/cpu.stat",
            "nr_periods 150\nnr_throttled 90\nthrottled_usec 5500000\n",
        );
        // The process has ended, and the kernel of version 1 says of it that it is in the root.
        write("proc/7/cgroup", "0::/\n");
        let after = Reading::take(&paths, &groups);
        let expected = [
            ("levels_above", 1.0),
            ("periods", 100.0),
            ("seconds", 4.5),
            ("throttled_periods", 80.0),
        ];
        assert_eq!(
            after.pressure_since(&before),
            expected
                .map(|(name, value)| (format!("throttle.{name}"), value))
                .into()
        );
        assert_eq!(
            after.pressure_since(&Reading::take(&paths, &groups_of(&paths, Some(8)))),
            Totals::new(),
            "of another process's groups nothing is known"
        );
    }

    #[test]
    fn two_readings_of_this_machine_differ_by_nothing_negative() {
        let paths = Paths::system();
        let groups = groups_of(&paths, None);
        let (before, after) = (
            Reading::take(&paths, &groups),
            Reading::take(&paths, &groups),
        );
        let ours = BTreeSet::new();
        for t in [
            after.cpu_since(&before),
            after.disk_since(&before),
            after.network_since(&before),
            after.memory_since(&before),
        ] {
            assert!(!t.is_empty());
            assert!(t.values().all(|v| *v >= 0.0 && v.is_finite()), "{t:?}");
        }
        assert!(after.pressure_since(&before).values().all(|v| *v >= 0.0));
        assert!(
            after
                .others_since(&before, &ours, |_| None)
                .contains_key("other.cpu.seconds")
        );
        assert!(limits(&paths, &groups)["machine.cpus"] >= 1.0);
    }
}
