//! Every cause on made-up paths and counters: it must be named first, and its neighbours must not be confirmed.

use std::collections::BTreeMap;

use fingerpost_record::fixture::followed::{Row, paths};
use fingerpost_record::{Blocker, Evidence, Layer, Metric, Paths, Readings};

use super::super::{PROGRAMS, StepFigures};
use super::*;

mod intervals;
mod missing;

/// What observers read of a server on two CPUs with nothing wrong.
const QUIET: &[(&str, f64)] = &[
    ("machine.cpus", 2.0),
    ("server.cpus_allowed", 2.0),
    ("server.nice", 0.0),
    ("cpu.user.seconds", 8.0),
    ("cpu.system.seconds", 2.0),
    ("cpu.idle.seconds", 10.0),
    ("cpu.steal.seconds", 0.0),
    ("server.user.seconds", 4.0),
    ("server.kernel.seconds", 2.0),
    ("throttle.seconds", 0.0),
    ("throttle.periods", 100.0),
    ("throttle.throttled_periods", 0.0),
    ("other.cpu.seconds", 0.1),
    ("other.disk.bytes", 4096.0),
    ("disk.busy.seconds", 0.2),
    ("server.disk.write.bytes", 1e6),
    ("cgroup.disk_limits", 0.0),
    ("net.drops", 0.0),
    ("tcp.retransmits", 0.0),
    ("tcp.listen_overflows", 0.0),
    ("tcp.delayed_acks", 0.0),
    ("server.call.read.count", 60_000.0),
    ("server.seccomp.filters", 0.0),
    ("server.store_bypass.mitigated", 0.0),
    ("server.faults.minor", 100.0),
    ("server.faults.major", 0.0),
    ("memory.swap_in.pages", 0.0),
    ("memory.thp_faults", 0.0),
    ("psi.memory.some.seconds", 0.0),
    ("client.cpu.seconds", 2.0),
    ("server.traced", 0.0),
    ("audit.rules", 0.0),
    ("tracing.events", 0.0),
    ("tracing.tracers", 0.0),
    ("tracing.programs", 0.0),
];

/// What requests of that server spend, in microseconds.
const WORK: [Row; 4] = [
    (Layer::Application, "server user code", "", &[], [200.0; 3]),
    (Layer::Kernel, "kernel: read", "", &[], [150.0; 3]),
    (
        Layer::Storage,
        "disk: in the device",
        "",
        &["disk"],
        [30.0; 3],
    ),
    (Layer::Client, "client user and kernel", "", &[], [40.0; 3]),
];

fn totals(with: &[(&str, f64)]) -> Readings {
    let mut t: BTreeMap<String, f64> = QUIET.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    t.extend(with.iter().map(|(k, v)| ((*k).to_owned(), *v)));
    Readings::by("all", "made up", t)
}

fn step() -> StepFigures {
    StepFigures {
        transactions: 10_000,
        elapsed_s: 10.0,
        clients: 4.0,
        client_cpus: 2,
        ..StepFigures::default()
    }
}

fn followed(extra: &[Row]) -> Paths {
    Paths {
        generator: None,
        ..paths(&[&WORK, extra].concat(), 0.01)
    }
}

fn judged(step: &StepFigures, with: &[(&str, f64)], paths: Option<&Paths>) -> Vec<Finding> {
    let read = totals(with);
    suspects(&Facts::of(step, &read, paths))
}

/// The cause must be named first and confirmed, and alone be confirmed; returns all findings.
fn first(cause: &str, extra: &[Row], with: &[(&str, f64)]) -> Vec<Finding> {
    let found = judged(&step(), with, Some(&followed(extra)));
    let confirmed: Vec<&str> = found
        .iter()
        .filter(|f| f.status == Status::Confirmed)
        .map(|f| f.cause.as_str())
        .collect();
    assert_eq!(confirmed, [cause], "{found:#?}");
    assert_eq!(found[0].cause, cause, "it is named first");
    // Without the paths the same counters point to it at most.
    let unfollowed = judged(&step(), with, None);
    assert!(
        unfollowed.iter().all(|f| f.status != Status::Confirmed),
        "{unfollowed:#?}"
    );
    found
}

fn status(found: &[Finding], cause: &str) -> Status {
    found
        .iter()
        .find(|f| f.cause == cause)
        .unwrap_or_else(|| panic!("{cause} was not looked at"))
        .status
}

/// What of this kind is said of a cause.
fn facts<'a>(
    found: &'a [Finding],
    cause: &'a str,
    metric: Metric,
) -> impl Iterator<Item = &'a Evidence> {
    found
        .iter()
        .filter(move |f| f.cause == cause)
        .flat_map(|f| &f.evidence)
        .filter(move |fact| fact.metric == metric)
}

fn says(found: &[Finding], cause: &str, metric: Metric) -> bool {
    facts(found, cause, metric).next().is_some()
}

/// The figure of such a fact.
fn figure(found: &[Finding], cause: &str, metric: Metric) -> Option<f64> {
    facts(found, cause, metric).find_map(|fact| fact.value)
}

/// Whether it is said that a reading is missing, because of which another cause would fit.
fn lacks(found: &[Finding], cause: &str, reading: &str) -> bool {
    facts(found, cause, Metric::Missing)
        .flat_map(|fact| &fact.missing)
        .any(|missing| missing.reading == reading)
}

/// Whether this one is named among those that had what was waited for, or as who moved or used the most.
fn names(found: &[Finding], cause: &str, name: &str) -> bool {
    let facts = || {
        found
            .iter()
            .filter(|f| f.cause == cause)
            .flat_map(|f| &f.evidence)
    };
    facts().any(|fact| fact.name.as_deref() == Some(name))
        || facts()
            .flat_map(|fact| &fact.who)
            .any(|held| held.by == Blocker::thread(name))
}

/// Whether a chain of these links that ends so is told.
fn led(found: &[Finding], cause: &str, links: &[&str], end: &str) -> bool {
    facts(found, cause, Metric::LedBy)
        .flat_map(|fact| &fact.chains)
        .any(|chain| {
            chain
                .links
                .iter()
                .map(|link| link.as_str())
                .eq(links.iter().copied())
                && chain.end.name() == end
        })
}

const fn cpu<'a>(whom: &'a str, chain: &'a [&'a str], us: f64) -> Row<'a> {
    (Layer::Scheduler, "waiting for a CPU", whom, chain, [us; 3])
}

const fn disk<'a>(component: &'a str, whom: &'a str, us: f64) -> Row<'a> {
    (Layer::Storage, component, whom, &["disk"], [us; 3])
}

#[test]
fn nothing_is_confirmed_of_a_healthy_server_and_everybody_has_a_figure() {
    let found = judged(&step(), &[], Some(&followed(&[])));
    assert!(
        found.iter().all(|f| f.status != Status::Confirmed),
        "{found:#?}"
    );
    let figure =
        |e: &Evidence| e.value.is_some() || matches!(e.metric, Metric::Quota | Metric::QueryCache);
    assert!(
        found
            .iter()
            .all(|f| f.status != Status::NotObserved || f.cause == "memory.page_size"),
        "{found:#?}"
    );
    assert!(
        found.iter().all(|f| f.evidence.first().is_some_and(figure)),
        "{found:#?}"
    );
    assert!(found.len() >= 20, "{}", found.len());
}

#[test]
fn who_had_the_cpu_decides_among_the_causes_of_waiting_for_one() {
    let busy = [
        ("cpu.idle.seconds", 0.0),
        ("other.cpu.seconds", 12.0),
        ("other.cpu.stress.seconds", 11.0),
    ];
    let found = first("cpu.contention", &[cpu("stress", &[], 300.0)], &busy);
    assert!(names(&found, "cpu.contention", "stress"));
    let lowered = [&busy[..], &[("server.nice", 19.0)]].concat();
    first("cpu.priority", &[cpu("stress", &[], 300.0)], &lowered);
    let weight = [
        &busy[..],
        &[
            ("cgroup.cpu_weight", 2.0),
            ("cgroup.cpu_weight.version", 2.0),
        ],
    ]
    .concat();
    first("cpu.priority", &[cpu("stress", &[], 300.0)], &weight);
    let throttled = [
        ("throttle.seconds", 5.0),
        ("throttle.throttled_periods", 90.0),
        ("cgroup.cpu_quota.cpus", 0.5),
    ];
    let found = first("cpu.quota", &[cpu("idle CPU", &[], 300.0)], &throttled);
    assert!(
        !says(&found, "cpu.quota", Metric::QuotaLevelsAbove),
        "its own group's, or of a record that does not tell whose"
    );
    for levels in [1.0, 3.0] {
        let found = first(
            "cpu.quota",
            &[cpu("idle CPU", &[], 300.0)],
            &[&throttled[..], &[("throttle.levels_above", levels)]].concat(),
        );
        assert_eq!(
            figure(&found, "cpu.quota", Metric::QuotaLevelsAbove),
            Some(levels)
        );
    }
    let busy_meanwhile = judged(
        &step(),
        &throttled,
        Some(&followed(&[cpu("stress", &[], 300.0)])),
    );
    assert_eq!(
        status(&busy_meanwhile, "cpu.quota"),
        Status::Confirmed,
        "it stood still for so long, whoever ran meanwhile"
    );
    let shorter = [&throttled[..], &[("throttle.seconds", 0.5)]].concat();
    let busy_meanwhile = judged(
        &step(),
        &shorter,
        Some(&followed(&[cpu("stress", &[], 300.0)])),
    );
    assert_eq!(
        status(&busy_meanwhile, "cpu.quota"),
        Status::Likely,
        "a quota that cut its periods short is not ruled out by who ran meanwhile"
    );
    assert_eq!(
        status(&busy_meanwhile, "cpu.contention"),
        Status::Likely,
        "nor is who ran meanwhile confirmed"
    );
    first(
        "cpu.affinity",
        &[cpu("idle CPU", &[], 300.0)],
        &[("server.cpus_allowed", 1.0)],
    );
    let busy_server = [("server.user.seconds", 16.0)];
    let own = judged(
        &step(),
        &busy_server,
        Some(&followed(&[cpu("the server itself", &[], 300.0)])),
    );
    assert_eq!(
        (
            status(&own, "cpu.saturated"),
            status(&own, "cpu.contention")
        ),
        (Status::Likely, Status::RuledOut)
    );
    let clients = judged(
        &step(),
        &[],
        Some(&followed(&[cpu("the client", &[], 300.0)])),
    );
    assert_eq!(
        (
            status(&clients, "client.saturated"),
            status(&clients, "cpu.contention")
        ),
        (Status::Likely, Status::RuledOut)
    );
}

#[test]
fn a_lock_is_its_holders_work_and_not_its_holders_waiting() {
    let held = |component, layer| -> Row<'_> {
        (layer, component, "mariadbd", &["queue", "lock"], [400.0; 3])
    };
    let found = first(
        "app.lock",
        &[held("server user code", Layer::Application)],
        &[],
    );
    assert!(
        led(&found, "app.lock", &["queue", "lock"], "server user code"),
        "{found:#?}"
    );
    first("app.lock", &[held("sleeping", Layer::Application)], &[]);
    let in_device = (
        Layer::Storage,
        "disk: in the device",
        "",
        &["queue", "lock"][..],
        [400.0; 3],
    );
    let found = first("storage.latency", &[in_device], &[]);
    assert!(
        led(
            &found,
            "storage.latency",
            &["queue", "lock"],
            "disk: in the device"
        ),
        "told as one chain"
    );
    assert_eq!(status(&found, "app.lock"), Status::RuledOut);
    first(
        "cpu.contention",
        &[cpu("stress", &["lock"], 400.0)],
        &[("other.cpu.seconds", 12.0)],
    );
    let cached = StepFigures {
        query_cache: Some(true),
        ..step()
    };
    let found = judged(
        &cached,
        &[],
        Some(&followed(&[held("server user code", Layer::Application)])),
    );
    assert_eq!(status(&found, "app.query_cache"), Status::Likely);
}

#[test]
fn storage_is_told_apart_by_where_in_the_disk_requests_wait() {
    first(
        "storage.throttle",
        &[disk("disk: held back before the queue", "", 500.0)],
        &[("cgroup.disk_limits", 1.0)],
    );
    first(
        "storage.throttle",
        &[disk("disk: held back before the queue", "", 500.0)],
        &[],
    );
    first(
        "storage.latency",
        &[disk("disk: in the device", "", 500.0)],
        &[],
    );
    first(
        "storage.latency",
        &[disk("disk: in the queue", "the server itself", 500.0)],
        &[],
    );
    let found = first(
        "storage.contention",
        &[disk("disk: in the queue", "backup", 500.0)],
        &[],
    );
    assert!(names(&found, "storage.contention", "backup"));
    let beside = [
        ("other.disk.bytes", 5e8),
        ("disk.busy.seconds", 9.0),
        ("other.disk.dd.bytes", 5e8),
    ];
    let found = first(
        "storage.contention",
        &[
            disk("disk: in the queue", "dd", 100.0),
            disk("disk: in the device", "", 500.0),
        ],
        &beside,
    );
    assert!(names(&found, "storage.contention", "dd"));
    let found = first(
        "storage.contention",
        &[disk("disk: in the device", "dd", 500.0)],
        &beside,
    );
    assert!(names(&found, "storage.contention", "dd"));
    let often = judged(
        &step(),
        &[("server.call.fsync.count", 40_000.0)],
        Some(&followed(&[disk("disk: in the device", "", 500.0)])),
    );
    assert_eq!(status(&often, "storage.durability"), Status::Likely);
}

#[test]
fn the_network_is_told_apart_by_peers_drops_overflows_and_delayed_acknowledgements() {
    let way: Row = (
        Layer::Network,
        "on the way between server and client",
        "",
        &[],
        [900.0; 3],
    );
    first("network.shaping", &[way], &[("net.drops", 500.0)]);
    first("network.shaping", &[way], &[]);
    first("network.delay", &[way], &[("tcp.delayed_acks", 9000.0)]);
    let peer: Row = (
        Layer::Network,
        "waiting for a peer",
        "billing",
        &["peer billing"],
        [900.0; 3],
    );
    let found = first("peer.slow", &[peer], &[]);
    assert!(names(&found, "peer.slow", "billing"));
    // What the other process did was seen: acknowledgements that come late while it takes its time are no cause.
    let seen: Row = (
        Layer::Application,
        "sleeping of another process",
        "php-fpm",
        &["peer"],
        [900.0; 3],
    );
    let found = first("peer.slow", &[seen], &[("tcp.delayed_acks", 9000.0)]);
    assert_eq!(status(&found, "network.delay"), Status::RuledOut);
    let mut outside = followed(&[]);
    outside.generator = Some(fingerpost_record::paths::Latency {
        count: 1000,
        mean: outside.latency.mean * 5.0,
        ..outside.latency
    });
    let found = judged(&step(), &[("tcp.listen_overflows", 300.0)], Some(&outside));
    assert_eq!(
        (found[0].cause.as_str(), found[0].status),
        ("network.accept_queue", Status::Confirmed),
        "{found:#?}"
    );
}

#[test]
fn sleeping_memory_and_the_making_of_processes_have_their_causes() {
    first(
        "app.wait",
        &[(Layer::Application, "sleeping", "", &[], [500.0; 3])],
        &[],
    );
    let swapping = [
        ("memory.swap_in.pages", 20_000.0),
        ("psi.memory.some.seconds", 4.0),
    ];
    first(
        "memory.limit",
        &[(
            Layer::Memory,
            "waiting for memory",
            "",
            &["memory"],
            [500.0; 3],
        )],
        &swapping,
    );
    first(
        "memory.limit",
        &[(
            Layer::Storage,
            "disk: in the device",
            "",
            &["memory", "disk"],
            [500.0; 3],
        )],
        &swapping,
    );
    first(
        "process.creation",
        &[(Layer::Kernel, "kernel: clone3", "", &[], [500.0; 3])],
        &[],
    );
}

#[test]
fn a_client_that_is_the_limit_says_why() {
    let told = StepFigures {
        client_saturated: Some("its 1 CPU was 99 % busy".into()),
        ..step()
    };
    let found = judged(
        &told,
        &[],
        Some(&followed(&[(
            Layer::Client,
            "client waiting for a CPU",
            "",
            &[],
            [500.0; 3],
        )])),
    );
    assert_eq!(
        (found[0].cause.as_str(), found[0].status),
        ("client.saturated", Status::Confirmed)
    );
    let says = &found[0].evidence[0];
    assert_eq!(says.metric, Metric::ClientSaysLimit);
    assert!(
        says.text
            .as_deref()
            .is_some_and(|text| text.contains("99 %"))
    );
    assert_eq!(
        status(&judged(&told, &[], None), "client.saturated"),
        Status::Likely
    );
}

#[test]
fn nobody_but_the_load_generator_is_confirmed_on_an_untrusted_row() {
    let told = StepFigures {
        client_saturated: Some("its 1 CPU was 99 % busy".into()),
        ..step()
    };
    let rows: [Row; 2] = [
        (Layer::Application, "sleeping", "", &[], [900.0; 3]),
        (
            Layer::Client,
            "client waiting for a CPU",
            "",
            &[],
            [500.0; 3],
        ),
    ];
    let mut found = judged(&told, &[], Some(&followed(&rows)));
    assert_eq!(
        (status(&found, "app.wait"), found[0].cause.as_str()),
        (Status::Confirmed, "app.wait")
    );
    doubt(&mut found, "the client was the limit");
    assert_eq!(
        (
            status(&found, "app.wait"),
            status(&found, "client.saturated")
        ),
        (Status::Likely, Status::Confirmed)
    );
    assert_eq!(
        found[0].cause, "client.saturated",
        "who is confirmed comes first: {found:#?}"
    );
    assert!(
        facts(&found, "app.wait", Metric::RowNotTrusted)
            .any(|fact| fact.text.as_deref() == Some("the client was the limit")),
        "{found:#?}"
    );
}

#[test]
fn what_follows_from_what_is_said_once_on_an_untrusted_row() {
    let rows = [
        (
            Layer::Application,
            "server user code",
            "",
            &[][..],
            [600.0; 3],
        ),
        cpu("the server itself", &[], 2000.0),
    ];
    let mut found = judged(
        &step(),
        &[("server.user.seconds", 18.0)],
        Some(&followed(&rows)),
    );
    doubt(&mut found, "one in ten failed");
    let saturated = found.iter().find(|f| f.cause == "cpu.saturated").unwrap();
    assert_eq!(
        chain::follows_from(saturated),
        Some("app.work"),
        "{saturated:#?}"
    );
}

#[test]
fn steal_is_the_hosts() {
    first("host.steal", &[], &[("cpu.steal.seconds", 8.0)]);
}

#[test]
fn what_only_a_comparison_can_prove_is_likely_at_most() {
    let extra: [Row; 2] = [
        (Layer::Kernel, "kernel: read", "", &[], [900.0; 3]),
        (Layer::Application, "server user code", "", &[], [900.0; 3]),
    ];
    let found = judged(
        &step(),
        &[
            ("server.seccomp.filters", 3.0),
            ("server.store_bypass.mitigated", 1.0),
        ],
        Some(&followed(&extra)),
    );
    for cause in ["syscall.entry", "cpu.mitigation", "app.work"] {
        assert_eq!(status(&found, cause), Status::Likely, "{cause}");
    }
}

#[test]
fn filters_before_each_call_are_no_code_of_the_servers() {
    // 10,000 requests: 1000 µs outside of calls by the trace; ticks count 200 of them as the server's own and 850 as
    // the kernel's.
    let extra: [Row; 1] = [(Layer::Application, "server user code", "", &[], [800.0; 3])];
    let ticks = [
        ("server.cpu.seconds", 10.5),
        ("server.thread_user.seconds", 2.0),
        ("server.thread_kernel.seconds", 8.5),
        ("server.call.read.cpu_seconds", 1.5),
    ];
    let found = judged(
        &step(),
        &[&ticks[..], &[("server.seccomp.filters", 1.0)]].concat(),
        Some(&followed(&extra)),
    );
    // What is left of the code is 24 % by its middle and may be 33: less than much, and not surely.
    assert_eq!(
        (status(&found, "app.work"), status(&found, "syscall.entry")),
        (Status::NotObserved, Status::Likely),
        "{found:#?}"
    );
    assert!(
        facts(&found, "syscall.entry", Metric::OutsideOfCalls).any(|fact| {
            fact.of.is_some_and(|of| (of - 1e-3).abs() < 1e-9)
                && fact
                    .value
                    .is_some_and(|value| (value - 700e-6).abs() < 1e-6)
        }),
        "{found:#?}"
    );
    // Without a filter, and with one whose work ticks do not show, the code is the server's.
    let found = judged(&step(), &ticks, Some(&followed(&extra)));
    assert_eq!(status(&found, "app.work"), Status::Likely);
    let found = judged(
        &step(),
        &[("server.seccomp.filters", 1.0)],
        Some(&followed(&extra)),
    );
    assert_eq!(status(&found, "app.work"), Status::Likely);
}

#[test]
fn without_followed_requests_counters_point_and_nothing_is_confirmed() {
    for (cause, with) in [
        (
            "cpu.quota",
            &[
                ("throttle.seconds", 5.0),
                ("throttle.throttled_periods", 90.0),
            ][..],
        ),
        (
            "cpu.contention",
            &[("other.cpu.seconds", 12.0), ("cpu.idle.seconds", 0.0)],
        ),
        ("storage.throttle", &[("cgroup.disk_limits", 1.0)]),
        (
            "storage.contention",
            &[("other.disk.bytes", 5e8), ("disk.busy.seconds", 9.0)],
        ),
        ("network.shaping", &[("net.drops", 100.0)]),
        ("network.accept_queue", &[("tcp.listen_overflows", 100.0)]),
        ("network.delay", &[("tcp.delayed_acks", 9000.0)]),
        ("memory.limit", &[("memory.swap_in.pages", 9000.0)]),
    ] {
        let found = judged(&step(), with, None);
        assert_eq!(status(&found, cause), Status::Likely, "{cause}");
        assert!(
            says(&found, cause, Metric::NotFollowed),
            "{cause}: it says what would allow following"
        );
        assert!(
            found.iter().all(|f| f.status != Status::Confirmed),
            "{found:#?}"
        );
    }
    let shaped = |shapers: f64| {
        status(
            &judged(&step(), &[("net.shapers", shapers)], None),
            "network.shaping",
        )
    };
    assert_eq!(
        (shaped(0.0), shaped(1.0)),
        (Status::RuledOut, Status::NotObserved),
        "what a shaper queues it need not drop"
    );
    assert_eq!(
        status(&judged(&step(), &[], None), "network.shaping"),
        Status::NotObserved,
        "nobody looked whether the network limits"
    );
    let sleeping = judged(&step(), &[("server.blocked.lock.seconds", 900.0)], None);
    assert_eq!(
        status(&sleeping, "app.lock"),
        Status::NotObserved,
        "sleeping threads convict nobody"
    );
    let nothing = suspects(&Facts::of(
        &StepFigures::default(),
        &Readings::default(),
        None,
    ));
    assert!(
        nothing.len() > 20 && nothing.iter().all(|f| f.status == Status::NotObserved),
        "where nothing was read, nobody is judged"
    );
    assert!(
        lacks(&nothing, "network.delay", "tcp.delayed_acks"),
        "{nothing:#?}"
    );
}

/// Sixty per cent of a request on the way were ruled out because nobody had counted late acknowledgements.
#[test]
fn acknowledgements_that_nobody_counted_clear_no_network() {
    let of = |way_us: f64| {
        let read = QUIET
            .iter()
            .filter(|(name, _)| *name != "tcp.delayed_acks")
            .map(|(k, v)| ((*k).to_owned(), *v));
        let read = Readings::by("all", "made up", read);
        let way: Row = (
            Layer::Network,
            "on the way between server and client",
            "",
            &[],
            [way_us; 3],
        );
        suspects(&Facts::of(&step(), &read, Some(&followed(&[way]))))
    };
    let found = of(600.0);
    assert_eq!(
        status(&found, "network.shaping"),
        Status::NotObserved,
        "{found:#?}"
    );
    assert!(
        lacks(&found, "network.shaping", "tcp.delayed_acks"),
        "{found:#?}"
    );
    assert_eq!(
        status(&of(1.0), "network.shaping"),
        Status::RuledOut,
        "next to nothing is spent there, whatever it is"
    );
}

/// Major faults alone ruled it out, with swapping that nobody had read.
#[test]
fn memory_is_not_ruled_out_by_half_of_what_tells() {
    let of = |left_out: &[&str]| {
        let read = QUIET
            .iter()
            .filter(|(name, _)| !left_out.contains(name))
            .map(|(k, v)| ((*k).to_owned(), *v));
        let read = Readings::by("all", "made up", read);
        status(&suspects(&Facts::of(&step(), &read, None)), "memory.limit")
    };
    assert_eq!(of(&[]), Status::RuledOut);
    for left_out in ["memory.swap_in.pages", "server.faults.major"] {
        assert_eq!(of(&[left_out]), Status::NotObserved, "{left_out}");
    }
}

#[test]
fn pages_that_are_read_again_for_lack_of_memory_are_no_slow_disk() {
    let from_disk = || followed(&[disk("disk: in the device", "", 500.0)]);
    let lacking = [
        ("server.faults.major", 4000.0),
        ("psi.memory.some.seconds", 2.0),
    ];
    let found = judged(&step(), &lacking, Some(&from_disk()));
    assert_eq!(
        (found[0].cause.as_str(), found[0].status),
        ("memory.limit", Status::Confirmed),
        "{found:#?}"
    );
    assert_eq!(status(&found, "storage.latency"), Status::Likely);
    // Files that are read for the first time, and commits, wait for the disk.
    for with in [
        [
            ("server.faults.major", 4000.0),
            ("psi.memory.some.seconds", 0.0),
        ],
        [("server.call.fsync.count", 40_000.0), lacking[1]],
    ] {
        let found = judged(&step(), &with, Some(&from_disk()));
        assert_eq!(
            status(&found, "storage.latency"),
            Status::Confirmed,
            "{with:?}"
        );
    }
}

#[test]
fn idle_cpus_are_not_saturated_and_uncounted_calls_are_not_observed() {
    // 0.15 of 2 CPUs, which the server's threads wait for all the same: one of them had it.
    let idle = [("server.user.seconds", 1.0), ("server.kernel.seconds", 0.5)];
    let found = judged(
        &step(),
        &idle,
        Some(&followed(&[cpu("the server itself", &[], 1600.0)])),
    );
    assert_eq!(
        status(&found, "cpu.saturated"),
        Status::RuledOut,
        "{found:#?}"
    );
    let used = facts(&found, "cpu.saturated", Metric::ServerCpus)
        .next()
        .unwrap();
    assert_eq!((used.value, used.of), (Some(0.15), Some(2.0)));
    let mut untraced: BTreeMap<String, f64> =
        QUIET.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    untraced.remove("server.call.read.count");
    let read = Readings::by("all", "made up", untraced);
    let kernel: [Row; 1] = [(Layer::Kernel, "kernel: read", "", &[], [5000.0; 3])];
    let found = suspects(&Facts::of(&step(), &read, Some(&followed(&kernel))));
    assert_eq!(
        status(&found, "syscall.entry"),
        Status::NotObserved,
        "{found:#?}"
    );
}

#[test]
fn what_is_told_of_another_cause_says_so_in_its_data() {
    // The server may use one CPU of two, and a quota stops it: whose the waiting is, the quota's rule tells.
    let waits = followed(&[cpu("idle CPU", &[], 300.0)]);
    let read = [
        ("server.cpus_allowed", 1.0),
        ("throttle.seconds", 3.0),
        ("throttle.throttled_periods", 80.0),
    ];
    let found = judged(&step(), &read, Some(&waits));
    let of = |cause: &str| found.iter().find(|f| f.cause == cause).unwrap();
    assert_eq!(
        (of("cpu.affinity").status, &of("cpu.affinity").relation),
        (
            Status::NotObserved,
            &Some(Relation::ToldOf("cpu.quota".into()))
        )
    );
    assert_eq!(of("cpu.quota").relation, None);
}

#[test]
fn more_threads_than_cpus_follows_from_their_work() {
    let extra: [Row; 1] = [(Layer::Application, "server user code", "", &[], [600.0; 3])];
    let rows = [&extra[..], &[cpu("the server itself", &[], 2000.0)]].concat();
    let found = judged(
        &step(),
        &[("server.user.seconds", 18.0)],
        Some(&followed(&rows)),
    );
    let names: Vec<&str> = found
        .iter()
        .filter(|f| f.status.accuses())
        .map(|f| f.cause.as_str())
        .collect();
    assert_eq!(names, ["app.work", "cpu.saturated"], "{found:#?}");
    assert_eq!(chain::follows_from(&found[1]), Some("app.work"));
}

#[test]
fn a_tracer_and_audit_rules_are_told() {
    let kernel: [Row; 1] = [(Layer::Kernel, "kernel: read", "", &[], [900.0; 3])];
    let found = judged(&step(), &[("server.traced", 1.0)], Some(&followed(&kernel)));
    assert_eq!(status(&found, "kernel.trace"), Status::Likely);
    let found = judged(&step(), &[("audit.rules", 3.0)], Some(&followed(&kernel)));
    assert_eq!(
        figure(&found, "kernel.trace", Metric::AuditRules),
        Some(3.0)
    );
    for (name, metric) in [
        ("tracing.events", Metric::TraceEvents),
        ("tracing.tracers", Metric::Tracers),
        ("tracing.programs", Metric::TracingPrograms),
    ] {
        let found = judged(&step(), &[(name, 2.0)], Some(&followed(&kernel)));
        assert_eq!(status(&found, "kernel.trace"), Status::Likely, "{name}");
        assert_eq!(figure(&found, "kernel.trace", metric), Some(2.0));
    }
    assert_eq!(
        status(
            &judged(&step(), &[], Some(&followed(&kernel))),
            "kernel.trace"
        ),
        Status::RuledOut
    );
    // What could not be seen clears nobody.
    let read = QUIET
        .iter()
        .filter(|(name, _)| !name.starts_with("tracing."))
        .map(|(k, v)| ((*k).to_owned(), *v));
    let read = Readings::by("all", "made up", read);
    let found = suspects(&Facts::of(&step(), &read, Some(&followed(&kernel))));
    assert_eq!(status(&found, "kernel.trace"), Status::NotObserved);
    assert!(
        lacks(&found, "kernel.trace", "tracing.events"),
        "{found:#?}"
    );
}

#[test]
fn a_service_of_which_nothing_is_asked_accuses_nothing() {
    let waits = || followed(&[(Layer::Network, "waiting for a peer", "", &[], [900.0; 3])]);
    let of = |totals: &[(&str, f64)]| status(&judged(&step(), totals, Some(&waits())), "peer.slow");
    let unasked = [
        (PROGRAMS.as_str(), 1.0),
        ("accept.queue.max", 0.0),
        ("accept.backlog", 128.0),
    ];
    assert_eq!(
        of(&unasked),
        Status::NotObserved,
        "its threads wait for clients"
    );
    assert_eq!(
        of(&unasked[..1]),
        Status::Confirmed,
        "a program that does not listen waits for somebody"
    );
    assert_eq!(of(&unasked[1..]), Status::Confirmed);
}
