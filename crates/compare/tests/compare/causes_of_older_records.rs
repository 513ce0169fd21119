//! Records from before requests were followed: budgets with parts of other names, and no interval of any. The verdict
//! must name what differs first, and convicts nobody.

use fingerpost_compare::{Comparison, Options, compare};
use fingerpost_record::{
    Better, Budget, Estimate, Layer, Measurement, Observation, Outcome, Params, Part, Process, Run,
    Status, Unit,
};

/// Microseconds of a transaction by part.
type Parts<'a> = &'a [(Layer, &'a str, f64)];

/// A cause, what it does to a transaction, and what the observers see of it.
type Plant<'a> = (&'a str, Parts<'a>, &'a [(&'a str, f64)]);

const QUIET: Parts = &[
    (Layer::Application, "user code", 400.0),
    (Layer::Kernel, "kernel", 150.0),
    (Layer::Scheduler, "waiting for a CPU", 50.0),
    (Layer::Application, "waiting for locks", 20.0),
    (Layer::Storage, "waiting for the disk", 100.0),
    (Layer::Network, "waiting for the peer", 30.0),
    (Layer::Memory, "waiting for memory", 0.0),
    (Layer::Client, "idle for work", 20.0),
];

const TOTALS: &[(&str, f64)] = &[
    ("elapsed.seconds", 10.0),
    ("cpu.idle.seconds", 10.0),
    ("cpu.steal.seconds", 0.0),
    ("throttle.seconds", 0.0),
    ("server.cpus_allowed", 2.0),
    ("server.nice", 0.0),
    ("other.cpu.seconds", 0.2),
    ("server.seccomp.filters", 0.0),
    ("server.faults.minor", 1000.0),
    ("server.faults.major", 0.0),
    ("memory.swap_in.pages", 0.0),
    ("disk.flushes", 1000.0),
    ("disk.flush.seconds", 1.0),
    ("disk.busy.seconds", 1.0),
    ("other.disk.bytes", 1000.0),
    ("cgroup.disk_limits", 0.0),
    ("net.drops", 0.0),
    ("tcp.retransmits", 0.0),
    ("tcp.listen_overflows", 0.0),
    ("tcp.delayed_acks", 0.0),
    ("queue.network.mean", 10.0),
    ("server.blocked.lock.seconds", 0.2),
    ("client.cpu.seconds", 3.0),
    ("step.client.cpus", 1.0),
    ("server.call.read.count", 40_000.0),
];

fn run(change: Parts, totals: &[(&str, f64)]) -> Run {
    let params = Params::new().with("clients", 10);
    let micros = |layer: &Layer, name: &str, us: f64| {
        change
            .iter()
            .find(|c| c.0 == *layer && c.1 == name)
            .map_or(us, |c| c.2)
    };
    let parts: Vec<(Layer, &str, f64)> = QUIET
        .iter()
        .map(|(l, n, us)| (*l, *n, micros(l, n, *us)))
        .collect();
    let wall: f64 = parts.iter().map(|p| p.2).sum::<f64>() / 0.95 * 1e-6;
    let part = |(layer, name, us): &(Layer, &str, f64)| Part {
        layer: *layer,
        component: (*name).into(),
        seconds_per_transaction: us * 1e-6,
        share: us * 1e-6 / wall,
    };
    let throughput = 10.0 / wall;
    let mut observed: std::collections::BTreeMap<String, f64> =
        TOTALS.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    observed.extend(totals.iter().map(|(k, v)| ((*k).to_owned(), *v)));
    Run {
        id: "made-up".into(),
        measurements: vec![Measurement {
            probe: "database.throughput".into(),
            descriptor: None,
            version: 1,
            params: params.clone(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(Estimate {
                value: throughput,
                low: throughput * 0.99,
                high: throughput * 1.01,
                confidence: 0.95,
            }),
            percentiles: None,
            processes: [0.992, 0.995, 1.0, 1.005, 1.008]
                .iter()
                .map(|f| Process {
                    value: Some(f * throughput),
                    ..Process::default()
                })
                .collect(),
        }],
        observations: vec![Observation {
            workload: "database".into(),
            params: params.clone(),
            observer: "everything".into(),
            source: "made up".into(),
            totals: observed,
            ..Observation::default()
        }],
        budgets: vec![Budget {
            workload: "database".into(),
            params,
            transactions: 10_000,
            seconds_per_transaction: wall,
            parts: parts.iter().map(part).collect(),
            unexplained: 0.05,
        }],
        ..Run::default()
    }
}

fn against(change: Parts, totals: &[(&str, f64)]) -> Comparison {
    compare(
        &[run(&[], &[])],
        &[run(change, totals)],
        &Options::default(),
    )
}

const CPU_WAIT: Parts = &[(Layer::Scheduler, "waiting for a CPU", 900.0)];
const DISK: Parts = &[(Layer::Storage, "waiting for the disk", 1500.0)];
const NETWORK: Parts = &[(Layer::Network, "waiting for the peer", 1500.0)];

#[test]
fn each_plant_is_named_first_and_nothing_is_confirmed() {
    let cases: &[Plant] = &[
        ("cpu.quota", CPU_WAIT, &[("throttle.seconds", 5.0)]),
        ("cpu.affinity", CPU_WAIT, &[("server.cpus_allowed", 1.0)]),
        ("cpu.priority", CPU_WAIT, &[("server.nice", 15.0)]),
        (
            "cpu.contention",
            CPU_WAIT,
            &[("other.cpu.seconds", 12.0), ("other.cpu.hog.seconds", 11.5)],
        ),
        (
            "memory.limit",
            &[(Layer::Memory, "waiting for memory", 800.0)],
            &[("memory.swap_in.pages", 9000.0)],
        ),
        ("storage.throttle", DISK, &[("cgroup.disk_limits", 1.0)]),
        (
            "storage.contention",
            DISK,
            &[
                ("other.disk.bytes", 1e9),
                ("disk.busy.seconds", 9.0),
                ("disk.flush.seconds", 9.0),
            ],
        ),
        (
            "storage.latency",
            DISK,
            &[("disk.busy.seconds", 9.0), ("disk.flush.seconds", 9.0)],
        ),
        (
            "storage.durability",
            DISK,
            &[
                ("disk.flushes", 20_000.0),
                ("disk.flush.seconds", 20.0),
                ("disk.busy.seconds", 9.0),
            ],
        ),
        ("network.shaping", NETWORK, &[("net.drops", 50.0)]),
        (
            "network.accept_queue",
            NETWORK,
            &[("tcp.listen_overflows", 900.0)],
        ),
        ("network.delay", NETWORK, &[("tcp.delayed_acks", 10_000.0)]),
        (
            "app.lock",
            &[(Layer::Application, "waiting for locks", 2000.0)],
            &[("server.blocked.lock.seconds", 20.0)],
        ),
        (
            "app.work",
            &[(Layer::Application, "user code", 1200.0)],
            &[],
        ),
        (
            "syscall.entry",
            &[(Layer::Kernel, "kernel", 600.0)],
            &[("server.seccomp.filters", 1.0)],
        ),
        (
            "cpu.speed",
            &[
                (Layer::Application, "user code", 800.0),
                (Layer::Kernel, "kernel", 300.0),
            ],
            &[("client.cpu.seconds", 7.0)],
        ),
        (
            "client.saturated",
            &[(Layer::Client, "idle for work", 900.0)],
            &[("client.cpu.seconds", 9.9)],
        ),
    ];
    for (cause, parts, totals) in cases {
        let c = against(parts, totals);
        let first = c
            .causes
            .first()
            .unwrap_or_else(|| panic!("{cause}: nothing named"));
        assert_eq!(
            (first.cause.as_str(), first.status),
            (*cause, Status::Likely),
            "{:#?}",
            c.causes
        );
        assert!(
            c.causes.iter().all(|f| f.status != Status::Confirmed),
            "{:#?}",
            c.causes
        );
        assert!(first.share > 0.7, "{cause}: {}", first.share);
        assert!(c.unexplained < 0.3, "{cause}: {}", c.unexplained);
        assert!(
            c.causes.iter().filter(|f| !f.status.accuses()).count() >= 8,
            "{cause}"
        );
        assert!(
            c.headline.contains("A transaction of database"),
            "{}",
            c.headline
        );
    }
}

#[test]
fn nothing_is_accused_when_nothing_changed_or_the_plant_does_not_matter() {
    for totals in [
        &[][..],
        &[("other.disk.bytes", 1e9)],
        &[("net.drops", 50.0)],
    ] {
        let c = against(&[], totals);
        assert!(
            c.causes.iter().all(|f| !f.status.accuses()),
            "{:?}",
            c.causes
        );
    }
}

#[test]
fn a_layer_that_grew_without_any_clue_is_likely_as_a_layer() {
    let bare = |change: Parts| {
        let mut r = run(change, &[]);
        r.observations.clear();
        r
    };
    let c = compare(&[bare(&[])], &[bare(NETWORK)], &Options::default());
    let first = &c.causes[0];
    assert_eq!(
        (first.cause.as_str(), first.layer, first.status),
        ("network.unknown", Layer::Network, Status::Likely)
    );
}

#[test]
fn the_runs_own_findings_count_where_no_total_tells() {
    let mut slow = run(NETWORK, &[]);
    slow.observations.clear();
    slow.findings.push(fingerpost_record::Finding {
        cause: "network.delay".into(),
        layer: Layer::Network,
        status: Status::Confirmed,
        share: 0.8,
        evidence: vec![],
        step: None,
        relation: None,
    });
    let mut base = run(&[], &[]);
    base.observations.clear();
    let c = compare(&[base], &[slow], &Options::default());
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("network.delay", Status::Likely)
    );
}

#[test]
fn a_queue_before_few_threads_is_blamed_on_what_they_do() {
    let queue = |user: f64, queued: f64, threads: f64| {
        let parts = [
            (Layer::Application, "user code", user),
            (Layer::Application, "request waits for the server", queued),
        ];
        let mut run = run(
            &parts,
            &[("server.threads", threads), ("step.clients", 100.0)],
        );
        // The made-up budget has the parts of a quiet server; the queue comes on top.
        let budget = &mut run.budgets[0];
        let wall = budget.seconds_per_transaction + queued * 1e-6;
        budget.parts.push(Part {
            layer: Layer::Application,
            component: "request waits for the server".into(),
            seconds_per_transaction: queued * 1e-6,
            share: queued * 1e-6 / wall,
        });
        budget.seconds_per_transaction = wall;
        let slower = 400.0 / user;
        for process in &mut run.measurements[0].processes {
            process.value = process.value.map(|v| v * slower);
        }
        run
    };
    let named = |threads: f64| {
        // As many wait as before, each for a service that takes 400 µs more than 770.
        let (before, after) = (
            queue(400.0, 40_000.0, threads),
            queue(800.0, 40_000.0 * 1170.0 / 770.0, threads),
        );
        let c = compare(&[before], &[after], &Options::default());
        c.causes.first().map(|f| (f.cause.clone(), f.share > 0.9))
    };
    assert_eq!(named(2.0), Some(("app.work".to_owned(), true)));
    assert_ne!(
        named(100.0).map(|n| n.0),
        Some("app.work".to_owned()),
        "a thread of its own does not queue behind others"
    );
}
