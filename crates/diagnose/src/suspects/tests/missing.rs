//! Readings that tell a cause from another, taken away: nothing is confirmed without them, and what is missing is said.

use super::*;

/// What is judged of these rows, with these readings, without those whose names begin so.
fn without(rows: &[Row], with: &[(&str, f64)], left_out: &[&str]) -> Vec<Finding> {
    let read = QUIET
        .iter()
        .chain(with)
        .filter(|(name, _)| !left_out.iter().any(|of| name.starts_with(of)));
    let by_name: BTreeMap<String, f64> = read.map(|(k, v)| ((*k).to_owned(), *v)).collect();
    let read = Readings::by("all", "made up", by_name);
    suspects(&Facts::of(&step(), &read, Some(&followed(rows))))
}

#[test]
fn a_quota_that_nobody_read_would_fit_as_well() {
    let beside = [("cpu.idle.seconds", 0.0), ("other.cpu.seconds", 12.0)];
    for (cause, row, with, known) in [
        (
            "cpu.affinity",
            cpu("idle CPU", &[], 300.0),
            &[("server.cpus_allowed", 1.0)][..],
            Status::Confirmed,
        ),
        (
            "cpu.contention",
            cpu("stress", &[], 300.0),
            &beside,
            Status::Confirmed,
        ),
        (
            "cpu.saturated",
            cpu("the server itself", &[], 300.0),
            &[("server.user.seconds", 16.0)],
            Status::Likely,
        ),
    ] {
        let found = without(&[row], with, &[]);
        assert_eq!(status(&found, cause), known, "{found:#?}");
        assert!(!lacks(&found, cause, "throttle.seconds"), "{found:#?}");
        let found = without(&[row], with, &["throttle."]);
        assert_eq!(status(&found, cause), Status::Likely, "{found:#?}");
        assert!(lacks(&found, cause, "throttle.seconds"), "{found:#?}");
    }
}

#[test]
fn a_priority_that_nobody_read_would_fit_as_well() {
    let beside = [("cpu.idle.seconds", 0.0), ("other.cpu.seconds", 12.0)];
    let stress = [cpu("stress", &[], 300.0)];
    let found = without(&stress, &beside, &["server.nice"]);
    assert_eq!(
        status(&found, "cpu.contention"),
        Status::Likely,
        "{found:#?}"
    );
    assert!(
        lacks(&found, "cpu.contention", "server.nice")
            && lacks(&found, "cpu.contention", "cgroup.cpu_weight.version"),
        "{found:#?}"
    );
    let weight = [
        &beside[..],
        &[
            ("cgroup.cpu_weight", 100.0),
            ("cgroup.cpu_weight.version", 2.0),
        ],
    ]
    .concat();
    assert_eq!(
        status(
            &without(&stress, &weight, &["server.nice"]),
            "cpu.contention"
        ),
        Status::Confirmed,
        "one of them is enough"
    );
}

#[test]
fn acknowledgements_that_nobody_counted_would_make_a_peer_wait_as_well() {
    let peer: [Row; 1] = [(
        Layer::Network,
        "waiting for a peer",
        "billing",
        &["peer billing"],
        [900.0; 3],
    )];
    assert_eq!(
        status(&without(&peer, &[], &[]), "peer.slow"),
        Status::Confirmed
    );
    let found = without(&peer, &[], &["tcp.delayed_acks"]);
    assert_eq!(status(&found, "peer.slow"), Status::Likely, "{found:#?}");
    assert!(lacks(&found, "peer.slow", "tcp.delayed_acks"), "{found:#?}");
}

/// Contention was ruled out with 41 % of a request, beside a server with a raised nice value.
#[test]
fn what_is_told_of_another_cause_is_not_ruled_out() {
    let beside = [
        ("cpu.idle.seconds", 0.0),
        ("other.cpu.seconds", 12.0),
        ("server.nice", 19.0),
    ];
    let found = without(&[cpu("stress", &[], 300.0)], &beside, &[]);
    assert_eq!(
        (found[0].cause.as_str(), found[0].status),
        ("cpu.priority", Status::Confirmed),
        "{found:#?}"
    );
    let contention = found.iter().find(|f| f.cause == "cpu.contention").unwrap();
    assert_eq!(
        (contention.status, contention.share),
        (Status::NotObserved, 0.0),
        "{contention:#?}"
    );
    assert!(
        facts(&found, "cpu.contention", Metric::CountedFor)
            .any(|fact| fact.cause.as_deref() == Some("cpu.priority")),
        "{contention:#?}"
    );
    let found = without(&[cpu("stress", &[], 2.0)], &beside, &[]);
    assert_eq!(
        status(&found, "cpu.contention"),
        Status::RuledOut,
        "next to nothing is waited there, whoever goes first"
    );
    let confined = [
        ("throttle.seconds", 5.0),
        ("throttle.throttled_periods", 90.0),
        ("server.cpus_allowed", 1.0),
    ];
    let found = without(&[cpu("idle CPU", &[], 300.0)], &confined, &[]);
    assert_eq!(
        (status(&found, "cpu.quota"), status(&found, "cpu.affinity")),
        (Status::Confirmed, Status::NotObserved),
        "{found:#?}"
    );
}

#[test]
fn few_events_convict_nobody() {
    let outside = |overflows: f64| {
        let mut paths = followed(&[]);
        paths.generator = Some(fingerpost_record::paths::Latency {
            count: 1000,
            mean: paths.latency.mean * 2.0,
            ..paths.latency
        });
        status(
            &judged(
                &step(),
                &[("tcp.listen_overflows", overflows)],
                Some(&paths),
            ),
            "network.accept_queue",
        )
    };
    assert_eq!(
        (outside(1.0), outside(30.0)),
        (Status::Likely, Status::Confirmed),
        "one overflow may be chance"
    );
    // Twelve per cent of all CPU time, of a short look and of a long one.
    let stolen = |times: f64| {
        let seconds = [
            ("cpu.user.seconds", 0.4),
            ("cpu.system.seconds", 0.1),
            ("cpu.idle.seconds", 0.38),
            ("cpu.steal.seconds", 0.12),
        ];
        status(
            &judged(
                &step(),
                &seconds.map(|(name, s)| (name, s * times)),
                Some(&followed(&[])),
            ),
            "host.steal",
        )
    };
    assert_eq!(
        (stolen(1.0), stolen(40.0)),
        (Status::Likely, Status::Confirmed)
    );
}
