//! Made-up budgets and observations with one known difference each: the verdict must name it and clear its neighbours.

use fingerpost_compare::{Comparison, Options, compare};
use fingerpost_diagnose::{StepFigures, Totals, explain};
use fingerpost_record::{
    Better, Budget, Estimate, Layer, Measurement, Observation, Outcome, Params, Part, Process, Run, Status, Unit, fixture,
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
    ("client.cpu_share", 0.3),
    ("server.call.read.count", 40_000.0),
];

fn run(change: Parts, totals: &[(&str, f64)]) -> Run {
    let params = Params::new().with("clients", 10);
    let micros = |layer: &Layer, name: &str, us: f64| change.iter().find(|c| c.0 == *layer && c.1 == name).map_or(us, |c| c.2);
    let parts: Vec<(Layer, &str, f64)> = QUIET.iter().map(|(l, n, us)| (*l, *n, micros(l, n, *us))).collect();
    let wall: f64 = parts.iter().map(|p| p.2).sum::<f64>() / 0.95 * 1e-6;
    let part = |(layer, name, us): &(Layer, &str, f64)| Part {
        layer: *layer,
        component: (*name).into(),
        seconds_per_transaction: us * 1e-6,
        share: us * 1e-6 / wall,
    };
    let throughput = 10.0 / wall;
    let mut observed: std::collections::BTreeMap<String, f64> = TOTALS.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    observed.extend(totals.iter().map(|(k, v)| ((*k).to_owned(), *v)));
    Run {
        id: "made-up".into(),
        measurements: vec![Measurement {
            probe: "database.throughput".into(),
            version: 1,
            params: params.clone(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(Estimate { value: throughput, low: throughput * 0.99, high: throughput * 1.01, confidence: 0.95 }),
            percentiles: None,
            processes: [0.992, 0.995, 1.0, 1.005, 1.008]
                .iter()
                .map(|f| Process { value: Some(f * throughput), ..Process::default() })
                .collect(),
        }],
        observations: vec![Observation {
            workload: "database".into(),
            params: params.clone(),
            observer: "everything".into(),
            source: "made up".into(),
            series: Vec::new(),
            totals: observed,
            self_cost: 0.0,
            lost: 0,
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
    compare(&[run(&[], &[])], &[run(change, totals)], &Options::default())
}

const CPU_WAIT: Parts = &[(Layer::Scheduler, "waiting for a CPU", 900.0)];
const DISK: Parts = &[(Layer::Storage, "waiting for the disk", 1500.0)];
const NETWORK: Parts = &[(Layer::Network, "waiting for the peer", 1500.0)];

#[test]
fn each_plant_is_named_first_and_alone_is_guilty() {
    let cases: &[Plant] = &[
        ("cpu.quota", CPU_WAIT, &[("throttle.seconds", 5.0)]),
        ("cpu.affinity", CPU_WAIT, &[("server.cpus_allowed", 1.0)]),
        ("cpu.priority", CPU_WAIT, &[("server.nice", 15.0)]),
        ("cpu.contention", CPU_WAIT, &[("other.cpu.seconds", 12.0), ("other.cpu.hog.seconds", 11.5)]),
        ("memory.limit", &[(Layer::Memory, "waiting for memory", 800.0)], &[("memory.swap_in.pages", 9000.0)]),
        ("storage.throttle", DISK, &[("cgroup.disk_limits", 1.0)]),
        ("storage.contention", DISK, &[("other.disk.bytes", 1e9), ("disk.busy.seconds", 9.0), ("disk.flush.seconds", 9.0)]),
        ("storage.latency", DISK, &[("disk.busy.seconds", 9.0), ("disk.flush.seconds", 9.0)]),
        ("storage.durability", DISK, &[("disk.flushes", 20_000.0), ("disk.flush.seconds", 20.0), ("disk.busy.seconds", 9.0)]),
        ("network.shaping", NETWORK, &[("net.drops", 50.0)]),
        ("network.accept_queue", NETWORK, &[("tcp.listen_overflows", 900.0)]),
        ("network.delay", NETWORK, &[("tcp.delayed_acks", 10_000.0)]),
        ("app.lock", &[(Layer::Application, "waiting for locks", 2000.0)], &[("server.blocked.lock.seconds", 20.0)]),
        ("app.work", &[(Layer::Application, "user code", 1200.0)], &[]),
        ("syscall.entry", &[(Layer::Kernel, "kernel", 600.0)], &[("server.seccomp.filters", 1.0)]),
        ("cpu.speed", &[(Layer::Application, "user code", 800.0), (Layer::Kernel, "kernel", 300.0)], &[]),
        ("client.saturated", &[(Layer::Client, "idle for work", 900.0)], &[("client.cpu_share", 0.99)]),
    ];
    for (cause, parts, totals) in cases {
        let c = against(parts, totals);
        let first = c.causes.first().unwrap_or_else(|| panic!("{cause}: nothing named"));
        assert_eq!((first.cause.as_str(), first.status), (*cause, Status::Guilty), "{:#?}", c.causes);
        let guilty: Vec<&str> = c.causes.iter().filter(|f| f.status == Status::Guilty).map(|f| f.cause.as_str()).collect();
        assert_eq!(guilty, [*cause]);
        assert!(first.share > 0.7, "{cause}: {}", first.share);
        assert!(c.unexplained < 0.3, "{cause}: {}", c.unexplained);
        assert!(c.causes.iter().filter(|f| f.status == Status::Cleared).count() >= 8, "{cause}");
        assert!(c.headline.contains("A transaction of database"), "{}", c.headline);
    }
}

#[test]
fn the_named_process_and_the_better_direction_are_told() {
    let slow = run(CPU_WAIT, &[("other.cpu.seconds", 12.0), ("other.cpu.hog.seconds", 11.5)]);
    let c = compare(&[slow], &[run(&[], &[])], &Options::default());
    assert_eq!(c.causes[0].cause, "cpu.contention");
    assert!(c.causes[0].evidence[0].contains("most of it hog"), "{:?}", c.causes[0].evidence);
}

#[test]
fn two_plants_at_once_are_both_guilty_with_their_shares() {
    let both: Parts = &[(Layer::Scheduler, "waiting for a CPU", 900.0), (Layer::Storage, "waiting for the disk", 500.0)];
    let c = against(both, &[("throttle.seconds", 5.0), ("cgroup.disk_limits", 1.0)]);
    let guilty: Vec<(&str, f64)> = c.causes.iter().filter(|f| f.status == Status::Guilty).map(|f| (f.cause.as_str(), f.share)).collect();
    assert_eq!(guilty.iter().map(|g| g.0).collect::<Vec<_>>(), ["cpu.quota", "storage.throttle"]);
    assert!(guilty[0].1 > guilty[1].1 && guilty[0].1 + guilty[1].1 <= 1.0);
}

#[test]
fn nothing_is_accused_when_nothing_changed_or_the_plant_does_not_matter() {
    for totals in [&[][..], &[("other.disk.bytes", 1e9)], &[("net.drops", 50.0)]] {
        let c = against(&[], totals);
        assert!(c.causes.iter().all(|f| f.status == Status::Cleared), "{:?}", c.causes);
    }
}

#[test]
fn a_layer_that_grew_without_any_clue_is_suspected_as_a_layer() {
    let bare = |change: Parts| {
        let mut r = run(change, &[]);
        r.observations.clear();
        r
    };
    let c = compare(&[bare(&[])], &[bare(NETWORK)], &Options::default());
    let first = &c.causes[0];
    assert_eq!((first.cause.as_str(), first.layer, first.status), ("network.unknown", Layer::Network, Status::Suspected));
}

#[test]
fn the_runs_own_findings_count_where_no_total_tells() {
    let mut slow = run(NETWORK, &[]);
    slow.observations.clear();
    slow.findings.push(fingerpost_record::Finding {
        cause: "network.delay".into(),
        layer: Layer::Network,
        status: Status::Guilty,
        share: 0.8,
        evidence: vec!["40 ms steps".into()],
    });
    let mut base = run(&[], &[]);
    base.observations.clear();
    let c = compare(&[base], &[slow], &Options::default());
    assert_eq!((c.causes[0].cause.as_str(), c.causes[0].status), ("network.delay", Status::Guilty));
}

#[test]
fn unit_costs_times_counts_predict_their_part() {
    let with_probe = |mut run: Run, ns: f64| {
        let mut row = run.measurements[0].clone();
        row.probe = "syscall.read".into();
        row.params = Params::new();
        row.unit = Unit::Nanoseconds;
        row.better = Better::Lower;
        row.estimate = Some(Estimate { value: ns, low: ns * 0.999, high: ns * 1.001, confidence: 0.95 });
        row.processes.clear();
        run.measurements.push(row);
        run
    };
    // Four reads a transaction, each 10 µs dearer: 40 of the 40 µs that the kernel part grows by.
    let base = with_probe(run(&[], &[]), 200.0);
    let new = with_probe(run(&[(Layer::Kernel, "kernel", 190.0)], &[]), 10_200.0);
    let c = compare(&[base], &[new], &Options::default());
    let share = c.waterfalls[0].predicted_share.unwrap();
    assert!((share - 0.95).abs() < 0.01, "{share}");
    assert!(c.waterfalls[0].predictions[0].contains("read: 4.0 → 4.0"), "{:?}", c.waterfalls[0].predictions);
}

#[test]
fn a_queue_before_few_threads_is_blamed_on_what_they_do() {
    let queue = |user: f64, queued: f64, threads: f64| {
        let parts = [(Layer::Application, "user code", user), (Layer::Application, "request waits for the server", queued)];
        let mut run = run(&parts, &[("server.threads", threads), ("step.clients", 100.0)]);
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
        let (before, after) = (queue(400.0, 40_000.0, threads), queue(800.0, 40_000.0 * 1170.0 / 770.0, threads));
        let c = compare(&[before], &[after], &Options::default());
        c.causes.first().map(|f| (f.cause.clone(), f.share > 0.9))
    };
    assert_eq!(named(2.0), Some(("app.work".to_owned(), true)));
    assert_ne!(named(100.0).map(|n| n.0), Some("app.work".to_owned()), "a thread of its own does not queue behind others");
}

#[test]
fn a_device_that_is_slower_for_all_is_not_the_neighbours_that_was_always_beside() {
    let beside = |us: f64| -> fixture::followed::Row { (Layer::Storage, "disk: in the device", "backup", &["disk"], [us; 3]) };
    let alone = |us: f64| -> fixture::followed::Row { (Layer::Storage, "disk: in the device", "", &["lock", "disk"], [us; 3]) };
    let [base, new] = [1.0, 5.0].map(|times| followed(&[beside(times * 300.0), alone(times * 200.0)]));
    let c = compare(&[base], &[new], &Options::default());
    assert_eq!(c.causes[0].cause, "storage.latency", "{:#?}", c.causes);
}

#[test]
fn connections_that_were_not_let_in_are_told_by_the_load_generators_own_time() {
    // What was let in waited a little longer for a CPU; what was not lies outside of what was followed.
    let with = |extra: &[fixture::followed::Row], totals: &[(&str, f64)]| {
        let mut run = followed(extra);
        let step = [("step.clients", 16.0), ("step.elapsed.seconds", 1.0)];
        run.observations[0].totals.extend(step.iter().chain(totals).map(|(name, n)| ((*name).to_owned(), *n)));
        run
    };
    let cpu: fixture::followed::Row = (Layer::Scheduler, "waiting for a CPU", "stress", &[], [200.0; 3]);
    let base = with(&[], &[("step.transactions", 4000.0)]);
    let refused = [("step.transactions", 300.0), ("tcp.listen_overflows", 90.0)];
    let c = compare(std::slice::from_ref(&base), &[with(&[cpu], &refused)], &Options::default());
    let accused: Vec<&str> = c.causes.iter().filter(|f| f.status != Status::Cleared).map(|f| f.cause.as_str()).collect();
    assert_eq!(accused, ["network.accept_queue"], "{:#?}", c.causes);
    // Without overflows the time outside may be anything that clients do between requests.
    let c = compare(&[base], &[with(&[cpu], &refused[..1])], &Options::default());
    assert_eq!(c.causes[0].cause, "cpu.contention", "{:#?}", c.causes);
}

/// A run whose requests were followed, with these leaves on top of what a quiet one has, in microseconds.
fn followed(extra: &[fixture::followed::Row]) -> Run {
    let quiet: [fixture::followed::Row; 3] = [
        (Layer::Application, "server user code", "", &[], [400.0; 3]),
        (Layer::Kernel, "kernel: read", "", &[], [150.0; 3]),
        (Layer::Storage, "disk: in the device", "", &["disk"], [100.0; 3]),
    ];
    let mut run = run(&[], &[]);
    let mut paths = fixture::followed::paths(&[&quiet[..], extra].concat(), 0.01);
    paths.params = run.budgets[0].params.clone();
    let (mut budget, _) = explain(&StepFigures::default(), &Totals::default(), Some(&paths));
    budget.params = paths.params.clone();
    let throughput = 10.0 / budget.seconds_per_transaction;
    let row = &mut run.measurements[0];
    row.estimate = Some(Estimate { value: throughput, low: throughput * 0.99, high: throughput * 1.01, confidence: 0.95 });
    for (process, f) in row.processes.iter_mut().zip([0.992, 0.995, 1.0, 1.005, 1.008]) {
        process.value = Some(f * throughput);
    }
    run.budgets = vec![budget];
    run.paths = vec![paths];
    run
}

#[test]
fn followed_requests_tell_causes_apart_that_no_counter_tells() {
    let on = |layer, component, whom, chain| -> fixture::followed::Row { (layer, component, whom, chain, [900.0; 3]) };
    for (cause, leaf) in [
        ("cpu.contention", on(Layer::Scheduler, "waiting for a CPU", "stress", &[][..])),
        ("storage.throttle", on(Layer::Storage, "disk: held back before the queue", "", &["disk"])),
        ("storage.contention", on(Layer::Storage, "disk: in the queue", "backup", &["disk"])),
        ("storage.contention", on(Layer::Storage, "disk: in the device", "backup", &["disk"])),
        ("storage.latency", on(Layer::Storage, "disk: in the device", "", &["lock", "disk"])),
        ("app.lock", on(Layer::Application, "server user code", "db", &["lock"])),
        ("app.wait", on(Layer::Application, "sleeping", "", &[])),
        ("peer.slow", on(Layer::Network, "waiting for a peer", "billing", &["peer"])),
        ("network.shaping", on(Layer::Network, "on the way between server and client", "", &[])),
    ] {
        let c = compare(&[followed(&[])], &[followed(&[leaf])], &Options::default());
        let guilty: Vec<&str> = c.causes.iter().filter(|f| f.status == Status::Guilty).map(|f| f.cause.as_str()).collect();
        assert_eq!(guilty, [cause], "{:#?}", c.causes);
        assert_eq!(c.causes[0].cause, cause);
        let back = compare(&[followed(&[leaf])], &[followed(&[])], &Options::default());
        assert_eq!(back.causes[0].cause, cause, "the same when it goes away");
    }
}

#[test]
fn growth_outside_of_calls_is_the_kernels_where_ticks_say_so() {
    let traced = (Layer::Application, "server user code", "", &[][..], [900.0; 3]);
    let with = |extra: &[fixture::followed::Row], ticks: [f64; 2], filters: f64, calls: f64| {
        let mut run = followed(extra);
        run.observations[0].totals.extend(
            [
                ("step.transactions", 10_000.0),
                ("server.cpu.seconds", ticks[0] + ticks[1]),
                ("server.thread_user.seconds", ticks[0]),
                ("server.thread_kernel.seconds", ticks[1]),
                ("server.call.read.count", calls * 10_000.0),
                ("server.call.read.cpu_seconds", 1.5),
                ("server.seccomp.filters", filters),
            ]
            .map(|(k, v)| (k.to_owned(), v)),
        );
        run
    };
    let (kernel, own) = ([4.1, 10.4], [13.0, 1.5]);
    // The same by the trace. Without a filter four calls do not take 890 µs to enter, and all the same it is no code of the server's.
    for (ticks, filters, calls, guilty) in [
        (kernel, 1.0, 4.0, &["syscall.entry"][..]),
        (kernel, 0.0, 400.0, &["syscall.entry"]),
        (kernel, 0.0, 4.0, &[]),
        (own, 0.0, 400.0, &["app.work"]),
        // Too few ticks tell nothing: with a filter it may be either.
        ([0.08, 0.2], 1.0, 400.0, &[]),
    ] {
        let c = compare(&[with(&[], [4.0, 1.5], 0.0, calls)], &[with(&[traced], ticks, filters, calls)], &Options::default());
        let found: Vec<&str> = c.causes.iter().filter(|f| f.status == Status::Guilty).map(|f| f.cause.as_str()).collect();
        assert_eq!(found, guilty, "{ticks:?}, {filters} filters, {calls} calls: {:#?}", c.causes);
        let status = |cause: &str| c.causes.iter().find(|f| f.cause == cause).map(|f| f.status);
        assert_eq!(status("app.work") == Some(Status::Cleared), ticks == kernel, "{:#?}", c.causes);
        let words = "of 900.0 µs more that the trace sees outside of calls, ticks count 890.0 µs as the kernel's";
        let told = c.causes.iter().any(|f| f.cause == "syscall.entry" && f.evidence[0].contains(words));
        assert_eq!(told, ticks == kernel, "{:#?}", c.causes);
    }
}

#[test]
fn the_waterfall_of_followed_requests_leads_from_one_to_the_other() {
    let lock: fixture::followed::Row = (Layer::Application, "server user code", "db", &["queue", "lock"], [900.0; 3]);
    let c = compare(&[followed(&[])], &[followed(&[lock])], &Options::default());
    let fall = &c.waterfalls[0];
    assert_eq!(fall.steps[0].component, "waiting for a lock");
    let sum: f64 = fall.steps.iter().map(|s| s.new_seconds - s.base_seconds).sum::<f64>() + fall.unexplained_seconds;
    assert!((sum - (fall.new_seconds - fall.base_seconds)).abs() < 1e-12);
}

#[test]
fn without_followed_requests_counters_point_and_nobody_is_guilty() {
    let unfollowed = |totals: &[(&str, f64)], slower: f64| {
        let mut run = run(&[], totals);
        run.budgets[0].parts.clear();
        run.budgets[0].unexplained = 1.0;
        run.budgets[0].seconds_per_transaction *= slower;
        let estimate = run.measurements[0].estimate.as_mut().unwrap();
        *estimate = Estimate { value: estimate.value / slower, low: estimate.low / slower, high: estimate.high / slower, confidence: 0.95 };
        run.measurements[0].processes.iter_mut().for_each(|p| p.value = p.value.map(|v| v / slower));
        run
    };
    let c = compare(&[unfollowed(&[], 1.0)], &[unfollowed(&[("throttle.seconds", 5.0)], 3.0)], &Options::default());
    assert_eq!((c.causes[0].cause.as_str(), c.causes[0].status), ("cpu.quota", Status::Suspected), "{:#?}", c.causes);
    assert!(c.causes.iter().all(|f| f.status != Status::Guilty));
    assert!(c.causes[0].evidence.iter().any(|e| e.contains("CAP_PERFMON")));
}
