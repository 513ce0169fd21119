//! What lies outside of the requests that were followed: the load generator's own time and the windows' ends tell it.

use fingerpost_compare::{Options, compare};
use fingerpost_record::{Layer, Status};

use super::{Row, accused, between, of};
use crate::runs::{run, slower};

#[test]
fn connections_that_were_not_let_in_are_told_by_the_load_generators_own_time() {
    // What was let in waited a little longer for a CPU; what was not lies outside of what was followed.
    let with = |extra: &[Row], totals: &[(&str, f64)]| {
        let mut run = run(extra, &[]);
        let step = [("step.clients", 16.0), ("step.elapsed.seconds", 1.0)];
        run.observations[0].totals.extend(
            step.iter()
                .chain(totals)
                .map(|(name, n)| ((*name).to_owned(), *n)),
        );
        run
    };
    let cpu: Row = (
        Layer::Scheduler,
        "waiting for a CPU",
        "stress",
        &[],
        [200.0; 3],
    );
    let base = with(&[], &[("step.transactions", 4000.0)]);
    let refused = [("step.transactions", 300.0), ("tcp.listen_overflows", 90.0)];
    let c = compare(
        std::slice::from_ref(&base),
        &[with(&[cpu], &refused)],
        &Options::default(),
    );
    assert_eq!(
        accused(&c, Status::Confirmed),
        ["network.accept_queue"],
        "{:#?}",
        c.causes
    );
    // Few are enough where each costs a second: 1 in 1,000 of transactions of 4 ms.
    let few = [("step.transactions", 3000.0), ("tcp.listen_overflows", 3.0)];
    let c = compare(
        std::slice::from_ref(&base),
        &[slower(with(&[], &few), 0.75)],
        &Options::default(),
    );
    assert_eq!(
        accused(&c, Status::Confirmed),
        ["network.accept_queue"],
        "{:#?}",
        c.causes
    );
    // Without overflows the time outside may be anything that clients do between requests.
    let c = compare(&[base], &[with(&[cpu], &refused[..1])], &Options::default());
    assert_eq!(c.causes[0].cause, "cpu.contention", "{:#?}", c.causes);
}

#[test]
fn a_listen_queue_that_is_shorter_than_the_clients_are_many_is_full_between_looks_too() {
    let with = |transactions: f64, totals: &[(&str, f64)]| {
        let mut run = run(&[], &[]);
        let step = [
            ("step.clients", 4.0),
            ("step.elapsed.seconds", 1.0),
            ("step.transactions", transactions),
        ];
        run.observations[0].totals.extend(
            step.iter()
                .chain(totals)
                .map(|(name, n)| ((*name).to_owned(), *n)),
        );
        run
    };
    let let_in = [
        ("connecting.mean", 0.0),
        ("accept.backlog", 511.0),
        ("accept.queue.max", 1.0),
        ("tcp.listen_overflows", 0.0),
    ];
    let base = || with(4000.0, &let_in);
    let waiting = |backlog: f64| {
        let waits = [
            ("connecting.mean", 2.0),
            ("accept.backlog", backlog),
            ("accept.queue.max", 0.6),
            ("tcp.listen_overflows", 0.0),
        ];
        slower(with(2000.0, &waits), 0.5)
    };
    let c = between(base(), waiting(1.0));
    assert_eq!(
        accused(&c, Status::Confirmed),
        ["network.accept_queue"],
        "{:#?}",
        c.causes
    );
    let c = between(base(), waiting(511.0));
    assert!(
        !of(&c, "network.accept_queue").status.accuses(),
        "the queue has room: {:#?}",
        c.causes
    );
}

#[test]
fn a_client_that_a_quota_stops_is_the_clients_matter_and_acknowledges_late() {
    let with = |transactions: f64, stopped: f64, late: f64| {
        let mut run = run(
            &[],
            &[
                ("client.throttle.seconds", stopped),
                ("tcp.delayed_acks", late),
            ],
        );
        let step = [
            ("step.clients", 4.0),
            ("step.elapsed.seconds", 1.0),
            ("step.transactions", transactions),
        ];
        run.observations[0]
            .totals
            .extend(step.map(|(name, n)| (name.to_owned(), n)));
        run
    };
    let c = between(with(4000.0, 0.0, 0.0), slower(with(2000.0, 6.0, 60.0), 0.5));
    assert_eq!(
        accused(&c, Status::Confirmed),
        ["client.saturated"],
        "{:#?}",
        c.causes
    );
    let c = between(with(4000.0, 0.0, 0.0), slower(with(2000.0, 0.2, 60.0), 0.5));
    assert_ne!(
        c.causes[0].cause, "client.saturated",
        "stops that make little: {:#?}",
        c.causes
    );
}

#[test]
fn a_throttled_disk_is_likely_of_what_outlasts_the_windows_where_its_limit_was_set() {
    let with = |transactions: f64, limits: f64| {
        let mut run = run(&[], &[("cgroup.disk_limits", limits)]);
        let step = [
            ("step.clients", 16.0),
            ("step.elapsed.seconds", 1.0),
            ("step.transactions", transactions),
        ];
        run.observations[0]
            .totals
            .extend(step.map(|(name, n)| (name.to_owned(), n)));
        run
    };
    let c = between(with(4000.0, 0.0), slower(with(300.0, 1.0), 0.075));
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("storage.throttle", Status::Likely),
        "{:#?}",
        c.causes
    );
    assert!(c.causes[0].share > 0.7, "{:?}", c.causes[0]);
    let c = between(with(4000.0, 0.0), slower(with(300.0, 0.0), 0.075));
    assert!(
        c.headline.contains("A transaction of database"),
        "{}",
        c.headline
    );
    assert!(
        c.causes
            .iter()
            .all(|f| f.cause != "storage.throttle" || !f.status.accuses()),
        "{:#?}",
        c.causes
    );
    let c = between(with(4000.0, 0.0), with(3990.0, 1.0));
    assert!(
        c.causes.iter().all(|f| !f.status.accuses()),
        "a limit that holds nothing up: {:#?}",
        c.causes
    );
}
