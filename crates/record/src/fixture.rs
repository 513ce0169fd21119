//! A made-up run as a quick measurement of a small guest would leave it, for the tests of whatever reads runs.
//!
//! Deterministic: the same rows and samples each time. It has every outcome, several units, asymmetric intervals and parameters.

pub mod conform;
pub mod followed;
pub mod loaded;

use std::collections::BTreeMap;

use crate::host::{Cgroup, Cpu, Filesystem, Load, Swap};
use crate::{Answer, Asked, Change, Experiment, Measure, Pair};
use crate::{Better, Estimate, Host, Instrument, Measurement, Outcome, Params, Percentiles, Process, Profile, Run, SCHEMA, Tool, Unit};
use crate::{Budget, Finding, Layer, Observation, Part, Series, Status};

/// Probe, value in its unit, and parameters.
type Figure = (&'static str, f64, Params);

/// The run.
pub fn run() -> Run {
    Run {
        schema: SCHEMA.into(),
        id: "20260102T030405Z-0badcafe".into(),
        started: "2026-01-02T03:04:05Z".into(),
        duration_s: 58.25,
        profile: Profile::Quick,
        seed: 42,
        command: ["fingerpost", "run", "--profile", "quick"].map(String::from).to_vec(),
        label: None,
        note: None,
        complete: true,
        source: None,
        tool: Tool { version: "0.1.0".into(), commit: "0123abc".into() },
        instrument: Instrument { clock_ns: 21.4, resolution_ns: 1.0, loop_ns: 0.31, probe_resident_bytes: 917_504 },
        host: host(),
        measurements: measurements(),
        observations: vec![],
        budgets: vec![],
        paths: vec![],
        findings: vec![],
        experiments: vec![],
    }
}

/// The same host some time later: another id, all latencies 2 % higher.
pub fn later_run() -> Run {
    let mut run = run();
    run.id = "20260103T030405Z-00c0ffee".into();
    run.started = "2026-01-03T03:04:05Z".into();
    for m in run.measurements.iter_mut().filter(|m| m.better == Better::Lower) {
        if let Some(e) = &mut m.estimate {
            *e = Estimate { value: e.value * 1.02, low: e.low * 1.02, high: e.high * 1.02, confidence: e.confidence };
        }
    }
    run
}

/// The run under another id, measured when the id says.
pub fn with_id(id: &str) -> Run {
    let part = |range| id.get(range).unwrap_or_default();
    let started = format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13), part(13..15));
    Run { id: id.to_owned(), started, ..run() }
}

/// The run with an observed workload as well: every part of the record is there.
pub fn with_everything() -> Run {
    let params = Params::new().with("clients", 8);
    let mut run = run();
    run.source = Some("made up".into());
    run.observations = vec![Observation {
        workload: "database".into(),
        params: params.clone(),
        observer: "threads".into(),
        source: "/proc sampling".into(),
        series: vec![Series { name: "cpu.user".into(), unit: "CPUs".into(), points: vec![(0.0, 0.4), (1.0, 0.6)] }],
        totals: BTreeMap::from([("futex.seconds".into(), 0.8)]),
        self_cost: 0.02,
        lost: 3,
    }];
    run.budgets = vec![Budget {
        workload: "database".into(),
        params,
        transactions: 12_000,
        seconds_per_transaction: 0.0021,
        parts: vec![Part { layer: Layer::Storage, component: "fsync".into(), seconds_per_transaction: 0.0016, share: 0.762 }],
        unexplained: 0.031,
    }];
    run.paths = followed::slow_locks().paths;
    run.findings = vec![Finding {
        cause: "storage.latency".into(),
        layer: Layer::Storage,
        status: Status::Suspected,
        share: 0.762,
        evidence: vec!["1.6 ms of each transaction passed in fsync with the device busy".into()],
    }];
    run.experiments = vec![experiment()];
    run
}

/// An experiment on the observed workload: requests were 1.92 times faster without a quota.
pub fn experiment() -> Experiment {
    let asked = |requests| Asked { requests, seconds: 0.2, latency_ns: Some(8.0 * 0.2e9 / requests as f64) };
    Experiment {
        workload: "database".into(),
        params: Params::new().with("clients", 8),
        change: Change::Quota,
        what: "the CPU quota of /db lifted (0.5 CPUs)".into(),
        tests: vec!["cpu.quota".into()],
        by: Measure::Rate,
        pairs: (0..8).map(|n| Pair { base: asked(100 + n), changed: asked(192 + 2 * n) }).collect(),
        effect: Some(Estimate { value: 1.92, low: 1.85, high: 1.99, confidence: 0.95 }),
        answer: Answer::Faster,
        reason: None,
    }
}

fn host() -> Host {
    Host {
        hostname: "small-guest".into(),
        os: "Debian GNU/Linux 12 (bookworm)".into(),
        kernel: "6.1.0-18-cloud-amd64".into(),
        arch: "x86_64".into(),
        cmdline: Some("BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet".into()),
        cpu: Cpu {
            model: "Intel(R) Xeon(R) Processor @ 2.70GHz".into(),
            count: 2,
            online: 2,
            mhz: Some(2700.0),
            smt: Some("on".into()),
            turbo: None,
            caches: BTreeMap::from([("L1d".into(), 32 << 10), ("L2".into(), 1 << 20), ("L3".into(), 33 << 20)]),
            microcode: Some("0x1".into()),
        },
        memory_bytes: 8 << 30,
        virtualization: Some("kvm".into()),
        mitigations: BTreeMap::from([
            ("meltdown".into(), "Mitigation: PTI".into()),
            ("spectre_v2".into(), "Mitigation: Retpolines; IBPB: conditional".into()),
        ]),
        thp: Some("madvise".into()),
        clocksource: Some("kvm-clock".into()),
        preemption: Some("voluntary".into()),
        hz: Some(250),
        page_bytes: 4096,
        seccomp: Some(0),
        cgroup: Cgroup { version: Some(2), memory_limit: Some(4 << 30), ..Cgroup::default() },
        filesystem: Filesystem {
            path: "/tmp".into(),
            kind: "ext4".into(),
            device: "/dev/vda1".into(),
            options: "rw,relatime".into(),
            free_bytes: 12 << 30,
        },
        swap: vec![Swap { path: "/swapfile".into(), kind: "file".into(), bytes: 1 << 30, used_bytes: 0, priority: -2 }],
        libc: Some("glibc 2.36".into()),
        compilers: vec!["cc 12.2.0".into()],
        perf_event_paranoid: Some(3),
        before: Load { average: [0.1, 0.2, 0.1], steal: 0.013, steal_seconds: 812.0, runnable: 1 },
        after: Some(Load { average: [0.9, 0.4, 0.2], steal: 0.013, steal_seconds: 813.5, runnable: 2 }),
        doubts: vec![
            "Hardware counters are not allowed: instructions and cycles are missing; run `sysctl kernel.perf_event_paranoid=1` as root."
                .into(),
            "The hypervisor took 1.3 % of the CPUs' time since boot; expect wide intervals.".into(),
        ],
        ..Host::default()
    }
}

fn measurements() -> Vec<Measurement> {
    let mut rows: Vec<Measurement> = latencies().into_iter().enumerate().map(|(i, f)| row(i as u64, f, Unit::Nanoseconds)).collect();
    rows.extend(bandwidths().into_iter().enumerate().map(|(i, f)| row(100 + i as u64, f, Unit::BytesPerSecond)));
    if let Some(m) = rows.iter_mut().find(|m| m.probe == "process.exec_dynamic") {
        m.outcome = Outcome::Untrusted;
        m.reason = Some("the samples drifted by 12 % during the run".into());
    }
    rows.push(Measurement::without_figure(
        "ipc.tcp",
        1,
        Params::new().with("placement", "cross"),
        Unit::Nanoseconds,
        Better::Lower,
        Outcome::Failed,
        "the probe process was killed by signal 9 (out of memory)".into(),
    ));
    for probe in ["parallel.fs", "parallel.net", "parallel.vm"] {
        let reason = "it needs two CPUs, and this run may use one".to_owned();
        rows.push(Measurement::without_figure(probe, 1, Params::new(), Unit::Count, Better::Higher, Outcome::Skipped, reason));
    }
    rows
}

fn latencies() -> Vec<Figure> {
    let none = Params::new;
    let placed = |p: &str| Params::new().with("placement", p);
    let ring = |tasks: i64, footprint: i64| Params::new().with("tasks", tasks).with("footprint", footprint).with("placement", "same");
    vec![
        ("clock.gettime", 21.4, none()),
        ("syscall.null", 41.3, none()),
        ("syscall.read", 88.2, none()),
        ("syscall.write", 71.9, none()),
        ("syscall.stat", 512.0, none()),
        ("syscall.fstat", 143.0, none()),
        ("syscall.open_close", 1_105.0, none()),
        ("syscall.select", 1_450.0, Params::new().with("fds", 100)),
        ("syscall.select", 310.0, Params::new().with("fds", 10)),
        ("signal.install", 92.4, none()),
        ("signal.handle", 845.0, none()),
        ("process.fork", 133_000.0, none()),
        ("process.exec", 310_000.0, none()),
        ("process.exec_dynamic", 640_000.0, none()),
        ("process.shell", 1_340_000.0, none()),
        ("thread.create", 14_800.0, none()),
        ("switch.ring", 1_210.0, ring(2, 0)),
        ("switch.ring", 1_890.0, ring(2, 65_536)),
        ("switch.ring", 2_940.0, ring(16, 65_536)),
        ("ipc.pipe", 5_120.0, placed("same")),
        ("ipc.pipe", 11_300.0, placed("cross")),
        ("ipc.unix", 6_480.0, placed("same")),
        ("sync.mutex", 14.2, Params::new().with("threads", 1)),
        ("vm.mmap", 1_020.0, Params::new().with("pages", 1)),
        ("vm.fault_anon", 240.0, Params::new().with("pages", 1024)),
        ("fs.create", 8_900.0, Params::new().with("size", 0)),
        ("fs.fsync", 2_310_000.0, Params::new().with("size", 4096)),
        ("memory.latency", 1.9, Params::new().with("size", 16 << 10)),
        ("memory.latency", 94.0, Params::new().with("size", 256 << 20)),
        ("cpu.int", 0.37, none()),
        ("cpu.div", 6.7, none()),
    ]
}

fn bandwidths() -> Vec<Figure> {
    let size = |n: i64| Params::new().with("size", n);
    vec![
        ("bandwidth.pipe", 2.41e9, size(64 << 10)),
        ("bandwidth.unix", 5.9e9, size(64 << 10)),
        ("memory.copy", 11.2e9, size(8 << 20)),
        ("memory.read", 14.9e9, size(8 << 20)),
    ]
}

fn row(seed: u64, (probe, value, params): Figure, unit: Unit) -> Measurement {
    let processes: Vec<Process> = (0..8).map(|p| process(seed * 100 + p, value)).collect();
    // Every third interval is asymmetric, as those of two-process probes are.
    let reach = if seed % 3 == 2 { 0.021 } else { 0.004 };
    Measurement {
        probe: probe.into(),
        version: 1,
        params,
        unit,
        better: if unit == Unit::Nanoseconds { Better::Lower } else { Better::Higher },
        outcome: Outcome::Measured,
        reason: None,
        estimate: Some(Estimate { value, low: value * 0.996, high: value * (1.0 + reach), confidence: 0.95 }),
        percentiles: Some(Percentiles { p50: value * 1.01, p90: value * 1.06, p99: value * 1.4 }),
        processes,
    }
}

fn process(seed: u64, value: f64) -> Process {
    let samples: Vec<f64> = (0..20).map(|i| value * (1.0 + noise(seed * 64 + i))).collect();
    Process {
        value: Some(samples.iter().copied().fold(f64::INFINITY, f64::min)),
        samples,
        disturbed: if seed.is_multiple_of(4) { vec![3] } else { vec![] },
        batch: 1000,
        counters: BTreeMap::from([("instructions_user".into(), 12.0)]),
        ..Process::default()
    }
}

/// One-sided noise of some per cent from a fixed sequence (the finaliser of SplitMix64).
fn noise(n: u64) -> f64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f64 / (1 << 24) as f64 * 0.05
}
