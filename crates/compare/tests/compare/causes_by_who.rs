//! Who had the CPU, and whom a cause spares: made-up followed requests that only these tell apart.

use crate::runs::{QUIET, run, with_rows};
use fingerpost_compare::{Comparison, Options, compare};
use fingerpost_record::fixture::followed::Row;
use fingerpost_record::{Finding, Layer, Metric, Run, Status};

fn confirmed(c: &Comparison) -> Vec<&str> {
    c.causes
        .iter()
        .filter(|f| f.status == Status::Confirmed)
        .map(|f| f.cause.as_str())
        .collect()
}

fn of<'a>(c: &'a Comparison, cause: &str) -> &'a Finding {
    c.causes
        .iter()
        .find(|f| f.cause == cause)
        .unwrap_or_else(|| panic!("{cause} was not looked at: {:#?}", c.causes))
}

fn between(base: Run, new: Run) -> Comparison {
    compare(&[base], &[new], &Options::default())
}

const fn row<'a>(layer: Layer, component: &'a str, whom: &'a str, us: f64) -> Row<'a> {
    (layer, component, whom, &[], [us; 3])
}

/// The row of the load generator, as many times slower as it saw.
fn slower(mut run: Run, by: &[f64; 5]) -> Run {
    let row = &mut run.measurements[0];
    let middle = by[2];
    row.estimate.iter_mut().for_each(|e| {
        [&mut e.value, &mut e.low, &mut e.high]
            .into_iter()
            .for_each(|v| *v /= middle)
    });
    row.processes
        .iter_mut()
        .zip(by)
        .for_each(|(p, by)| p.value = p.value.map(|v| v / by));
    run
}

/// A second of sixteen clients with so many transactions, and these readings besides.
fn second(transactions: f64, readings: &[(&str, f64)]) -> Run {
    let step = [
        ("step.clients", 16.0),
        ("step.elapsed.seconds", 1.0),
        ("step.transactions", transactions),
        ("client.cpu.seconds", 3.0 * transactions / 4000.0),
    ];
    run(&[], &[&step, readings].concat())
}

#[test]
fn a_load_generator_on_the_same_machine_that_is_as_fast_as_before_clears_the_cpu() {
    let doubled: Vec<Row> = QUIET
        .iter()
        .map(|r| {
            if r.1 == "server user code" || r.1 == "kernel: read" {
                row(r.0, r.1, r.2, r.4[0] * 2.0)
            } else {
                *r
            }
        })
        .collect();
    let c = between(run(&[], &[]), with_rows(&doubled, &[], 0.01));
    assert_eq!(
        of(&c, "cpu.speed").status,
        Status::RuledOut,
        "{:#?}",
        of(&c, "cpu.speed")
    );
    assert!(
        of(&c, "cpu.speed")
            .evidence
            .iter()
            .any(|e| e.metric == Metric::ClientWorkTimes && e.value == Some(1.0)),
        "{:?}",
        of(&c, "cpu.speed")
    );
    assert_eq!(c.causes[0].cause, "app.work", "{:#?}", c.causes);
}

#[test]
fn a_load_generator_whose_own_code_is_as_fast_in_its_requests_clears_the_cpu_although_it_wakes_more_often()
 {
    let doubled = |client: f64| -> Vec<Row> {
        let times = |r: &Row| {
            if r.1 == "server user code" || r.1 == "kernel: read" {
                2.0
            } else {
                1.0
            }
        };
        QUIET
            .iter()
            .map(|r| {
                row(
                    r.0,
                    r.1,
                    r.2,
                    r.4[0]
                        * if r.1 == "client user and kernel" {
                            client
                        } else {
                            times(r)
                        },
                )
            })
            .collect()
    };
    let with = |client: f64| {
        between(
            run(&[], &[]),
            with_rows(&doubled(client), &[("client.cpu.seconds", 6.0)], 0.01),
        )
    };
    assert_eq!(
        of(&with(1.0), "cpu.speed").status,
        Status::RuledOut,
        "{:#?}",
        of(&with(1.0), "cpu.speed")
    );
    assert_eq!(
        confirmed(&with(2.0)),
        ["cpu.speed"],
        "{:#?}",
        with(2.0).causes
    );
}

#[test]
fn filters_that_no_ticks_tell_from_the_servers_code_convict_neither() {
    let code = [row(Layer::Application, "server user code", "", 400.0)];
    let ticks = |user: f64| {
        let threads = [
            ("server.thread_user.seconds", user),
            ("server.thread_kernel.seconds", 1.5),
            ("server.cpu.seconds", user + 1.5),
        ];
        [
            &threads[..],
            &[
                ("server.call.read.cpu_seconds", 1.5),
                ("server.faults.minor", 0.0),
                ("server.faults.major", 0.0),
            ],
        ]
        .concat()
    };
    let with = |rows: &[Row], user: f64, filters: f64| {
        run(
            rows,
            &[&ticks(user)[..], &[("server.seccomp.filters", filters)]].concat(),
        )
    };
    let c = between(with(&[], 4.0, 0.0), with(&code, 4.2, 64.0));
    assert_eq!(
        of(&c, "app.work").status,
        Status::NotObserved,
        "{:#?}",
        c.causes
    );
    assert!(!of(&c, "syscall.entry").status.accuses(), "{:#?}", c.causes);
    let c = between(with(&[], 4.0, 0.0), with(&code, 8.0, 64.0));
    assert_eq!(confirmed(&c), ["app.work"], "{:#?}", c.causes);
}

#[test]
fn who_finds_a_file_locked_by_a_commit_sleeps_because_of_its_flushes() {
    let slept = [
        row(Layer::Application, "sleeping", "", 400.0),
        row(Layer::Storage, "disk: in the device", "", 150.0),
    ];
    let with = |rows: &[Row], locks: f64, flushes: f64| {
        let calls = [
            ("server.call.fcntl.count", locks),
            ("server.call.fdatasync.count", flushes),
            ("server.call.fdatasync.seconds", flushes * 1e-4),
        ];
        run(rows, &calls)
    };
    let c = between(
        with(&[], 80_000.0, 10_000.0),
        with(&slept, 80_000.0, 80_000.0),
    );
    assert_eq!(confirmed(&c), ["storage.durability"], "{:#?}", c.causes);
    assert!(
        of(&c, "storage.durability").share > 0.9,
        "{:?}",
        of(&c, "storage.durability")
    );
    // Not where no file is locked, nor where no more is flushed.
    for (base, new) in [
        (with(&[], 0.0, 10_000.0), with(&slept, 0.0, 80_000.0)),
        (
            with(&[], 80_000.0, 10_000.0),
            with(&slept[..1], 80_000.0, 10_000.0),
        ),
    ] {
        let c = between(base, new);
        assert_eq!(c.causes[0].cause, "app.wait", "{:#?}", c.causes);
    }
}

#[test]
fn few_flushes_matter_where_they_are_a_good_part_of_a_longer_request() {
    let with = |rows: &[Row], flushes: f64| {
        let calls = [
            ("server.call.fsync.count", flushes),
            ("server.call.fsync.seconds", flushes * 1e-3),
        ];
        run(
            rows,
            &[
                &calls[..],
                &[
                    ("disk.flushes", flushes),
                    ("disk.flush.seconds", flushes * 1e-3),
                ],
            ]
            .concat(),
        )
    };
    let on_the_disk = [row(Layer::Storage, "disk: in the device", "", 200.0)];
    let c = between(with(&[], 0.0), with(&on_the_disk, 70.0));
    assert_eq!(confirmed(&c), ["storage.durability"], "{:#?}", c.causes);
    let elsewhere = [row(Layer::Application, "waiting for a lock", "", 200.0)];
    let c = between(with(&[], 0.0), with(&elsewhere, 70.0));
    assert_eq!(
        of(&c, "storage.durability").status,
        Status::RuledOut,
        "{:#?}",
        c.causes
    );
}

#[test]
fn a_client_that_reads_what_comes_in_more_pieces_does_no_more_of_its_own() {
    let rows = [
        row(
            Layer::Client,
            "client waiting for a CPU",
            "the client",
            400.0,
        ),
        row(Layer::Kernel, "kernel: write", "", 150.0),
    ];
    let with = |rows: &[Row], calls: f64, client: f64| {
        run(
            rows,
            &[
                ("server.call.read.count", calls),
                ("client.cpu.seconds", client),
            ],
        )
    };
    let its_own = |c: &Comparison| {
        of(c, "client.saturated")
            .evidence
            .iter()
            .any(|e| e.metric == Metric::ClientWork)
    };
    let c = between(with(&[], 40_000.0, 3.0), with(&rows, 40_000.0, 6.6));
    assert!(
        its_own(&c) && confirmed(&c).contains(&"client.saturated"),
        "{:#?}",
        c.causes
    );
    let c = between(with(&[], 40_000.0, 3.0), with(&rows, 85_000.0, 6.6));
    assert!(
        !its_own(&c) && !confirmed(&c).contains(&"client.saturated"),
        "{:#?}",
        c.causes
    );
}

#[test]
fn a_cause_that_takes_cpus_has_what_was_waited_for_while_it_had_them() {
    let rows = [
        row(Layer::Scheduler, "waiting for a CPU", "stress", 300.0),
        row(
            Layer::Client,
            "client waiting for a CPU",
            "the client",
            700.0,
        ),
    ];
    let c = between(run(&[], &[]), run(&rows, &[("client.cpu.seconds", 7.0)]));
    assert_eq!(
        confirmed(&c),
        ["client.saturated", "cpu.contention"],
        "{:#?}",
        c.causes
    );
    assert!(
        (of(&c, "cpu.contention").share - 0.3).abs() < 0.02,
        "{:?}",
        of(&c, "cpu.contention")
    );
    // A quota on the server does not make the load generator wait for itself.
    let throttled = [
        ("throttle.seconds", 5.0),
        ("throttle.throttled_periods", 90.0),
    ];
    let c = between(run(&[], &[]), run(&rows[1..], &throttled));
    assert!(
        !of(&c, "cpu.quota").status.accuses(),
        "{:#?}",
        of(&c, "cpu.quota")
    );
}

#[test]
fn acknowledgements_that_outlast_the_windows_are_told_by_their_number() {
    let with = |transactions: f64, acks: f64| second(transactions, &[("tcp.delayed_acks", acks)]);
    // What was followed is the same: 3 of the 4 ms that a turn takes longer are 150 times 40 ms.
    let c = between(with(4000.0, 0.0), slower(with(2000.0, 150.0), &[2.0; 5]));
    assert_eq!(confirmed(&c), ["network.delay"], "{:#?}", c.causes);
    // A server that a quota stops acknowledges late, too.
    let mut stopped = slower(with(2000.0, 150.0), &[2.0; 5]);
    stopped.observations[0]
        .totals
        .insert("throttle.seconds".into(), 0.5);
    let c = between(with(4000.0, 0.0), stopped);
    assert!(
        c.causes
            .iter()
            .all(|f| f.cause != "network.delay" || !f.status.accuses()),
        "{:#?}",
        c.causes
    );
    let c = between(with(4000.0, 0.0), slower(with(2000.0, 0.0), &[2.0; 5]));
    assert!(confirmed(&c).is_empty(), "{:#?}", c.causes);
}

#[test]
fn segments_that_are_sent_again_outlast_the_windows_and_are_told_by_their_number() {
    let with = |transactions: f64, again: f64| second(transactions, &[("tcp.retransmits", again)]);
    // 40 times 200 ms are all that 2,000 turns of 4 ms more take.
    let c = between(with(4000.0, 0.0), slower(with(2000.0, 40.0), &[2.0; 5]));
    assert_eq!(confirmed(&c), ["network.shaping"], "{:#?}", c.causes);
    let c = between(with(4000.0, 0.0), slower(with(2000.0, 4.0), &[2.0; 5]));
    assert!(
        c.causes.iter().all(|f| !f.status.accuses()),
        "{:#?}",
        c.causes
    );
}

#[test]
fn one_call_that_takes_longer_is_no_slower_entry() {
    let calls = [
        ("server.call.read.count", 40_000.0),
        ("server.call.write.count", 40_000.0),
    ];
    let with = |read: f64, write: f64| {
        run(
            &[
                row(Layer::Kernel, "kernel: read", "", read),
                row(Layer::Kernel, "kernel: write", "", write),
            ],
            &calls,
        )
    };
    let c = between(with(0.0, 150.0), with(0.0, 1050.0));
    assert_eq!(
        of(&c, "syscall.entry").status,
        Status::RuledOut,
        "{:#?}",
        of(&c, "syscall.entry")
    );
    assert!(
        of(&c, "syscall.entry").evidence[0].metric == Metric::OneCall
            && of(&c, "syscall.entry").evidence[0].name.as_deref() == Some("write"),
        "{:?}",
        of(&c, "syscall.entry")
    );
    let c = between(with(0.0, 150.0), with(450.0, 600.0));
    assert_eq!(confirmed(&c), ["syscall.entry"], "{:#?}", c.causes);
}

#[test]
fn what_is_surely_slower_and_not_surely_by_much_has_suspects_and_nothing_confirmed() {
    let options = Options {
        threshold: 0.1,
        paired: true,
        ..Options::default()
    };
    let by = |lock: f64, by: [f64; 5]| {
        let lock = (
            Layer::Application,
            "server user code",
            "db",
            &["lock"][..],
            [lock; 3],
        );
        compare(
            &[run(&[], &[])],
            &[slower(run(&[lock], &[]), &by)],
            &options,
        )
    };
    let unsure = by(150.0, [0.932, 0.972, 1.0, 1.028, 1.068]);
    let ratio = unsure.rows[0].ratio.unwrap();
    assert!(ratio.low > 1.0 && ratio.low < 1.1, "{ratio:?}");
    assert_eq!(
        of(&unsure, "app.lock").status,
        Status::Likely,
        "{:#?}",
        unsure.causes
    );
    assert!(
        of(&unsure, "app.lock")
            .evidence
            .iter()
            .any(|e| e.metric == Metric::MayBeTooSmall),
        "{:?}",
        of(&unsure, "app.lock")
    );
    assert_eq!(
        confirmed(&by(230.0, [0.99, 1.0, 1.0, 1.0, 1.01])),
        ["app.lock"]
    );
    // One pair of equal systems in fifty differs by as much.
    let chance = by(230.0, [0.86, 0.94, 1.0, 1.07, 1.15]);
    assert!(
        chance.rows[0].ratio.unwrap().low > 1.0
            && chance.causes.iter().all(|f| !f.status.accuses()),
        "{:#?}",
        chance.causes
    );
    // What may be no difference at all has no cause.
    assert!(
        by(230.0, [0.5, 0.8, 1.0, 1.3, 2.0])
            .causes
            .iter()
            .all(|f| !f.status.accuses())
    );
}

#[test]
fn others_that_came_leave_the_servers_threads_to_wait_for_each_other() {
    let busy = [("server.user.seconds", 8.0), ("server.kernel.seconds", 3.0)];
    let waits = [row(
        Layer::Scheduler,
        "waiting for a CPU",
        "the server itself",
        700.0,
    )];
    let with = |rows: &[Row], others: f64, more: &[(&str, f64)]| {
        run(
            rows,
            &[&busy[..], &[("other.cpu.seconds", others)], more].concat(),
        )
    };
    let c = between(with(&[], 0.2, &[]), with(&waits, 6.0, &[]));
    assert_eq!(confirmed(&c), ["cpu.contention"], "{:#?}", c.causes);
    assert!(
        of(&c, "cpu.contention").evidence.iter().any(|e| {
            e.quantity() == fingerpost_record::Quantity::Cpus
                && e.base.is_some_and(|cpus| (cpus - 0.02).abs() < 1e-9)
                && e.value.is_some_and(|cpus| (cpus - 0.6).abs() < 1e-9)
        }),
        "{:?}",
        of(&c, "cpu.contention")
    );
    // That the others are behind these waits is concluded from middle values: it accuses nobody else, and clears
    // nobody.
    assert_eq!(of(&c, "cpu.saturated").status, Status::NotObserved);
    // The same others on both sides, a server with more to do, and one with fewer CPUs of its own wait for themselves.
    let c = between(with(&[], 6.0, &[]), with(&waits, 6.0, &[]));
    assert_eq!(confirmed(&c), ["cpu.saturated"], "{:#?}", c.causes);
    let works = |wait: f64| {
        let rows = [
            row(
                Layer::Scheduler,
                "waiting for a CPU",
                "the server itself",
                wait,
            ),
            row(Layer::Application, "server user code", "", 400.0),
        ];
        between(with(&[], 0.2, &[]), with(&rows, 6.0, &[]))
    };
    assert!(
        !of(&works(100.0), "cpu.contention").status.accuses(),
        "{:#?}",
        works(100.0).causes
    );
    // Waits that are far more than the longer work makes are the others' although there is more to do.
    assert_eq!(
        confirmed(&works(700.0)),
        ["cpu.contention", "app.work"],
        "{:#?}",
        works(700.0).causes
    );
    let c = between(
        with(&[], 0.2, &[]),
        with(&waits, 6.0, &[("server.cpus_allowed", 1.0)]),
    );
    assert!(
        !of(&c, "cpu.contention").status.accuses(),
        "{:#?}",
        c.causes
    );
}

#[test]
fn the_same_calls_take_longer_beside_others_in_both_modes_and_that_is_no_more_work() {
    let slow = [
        row(Layer::Application, "server user code", "", 160.0),
        row(Layer::Kernel, "kernel: read", "", 70.0),
        row(Layer::Scheduler, "waiting for a CPU", "sh", 120.0),
    ];
    let with = |rows: &[Row], others: f64, calls: f64| {
        run(
            rows,
            &[
                ("other.cpu.seconds", others),
                ("server.call.read.count", calls),
                ("client.cpu.seconds", 3.0),
            ],
        )
    };
    let c = between(with(&[], 0.2, 40_000.0), with(&slow, 7.0, 40_000.0));
    assert_eq!(confirmed(&c), ["cpu.contention"], "{:#?}", c.causes);
    assert!(
        of(&c, "cpu.contention").share > 0.9,
        "{:?}",
        of(&c, "cpu.contention")
    );
    assert_eq!(of(&c, "app.work").status, Status::NotObserved);
    // Without others, and with more work in the one mode alone, it is the server's.
    let c = between(with(&[], 0.2, 40_000.0), with(&slow[..2], 0.2, 40_000.0));
    assert!(
        !of(&c, "cpu.contention").status.accuses(),
        "{:#?}",
        c.causes
    );
    let c = between(
        with(&[], 0.2, 40_000.0),
        with(&[slow[0], slow[2]], 7.0, 40_000.0),
    );
    assert_eq!(
        confirmed(&c),
        ["app.work", "cpu.contention"],
        "{:#?}",
        c.causes
    );
}

#[test]
fn calls_on_files_that_come_with_the_first_flushes_belong_to_how_it_commits() {
    let rows = [
        row(Layer::Kernel, "kernel: newfstatat", "", 500.0),
        row(Layer::Kernel, "kernel: pread64", "", 200.0),
        row(Layer::Storage, "disk: in the device", "", 200.0),
    ];
    let with = |rows: &[Row], flushes: f64| {
        let stats = rows.len() as f64 * 60_000.0;
        run(
            rows,
            &[
                ("server.call.fsync.count", flushes),
                ("server.call.fsync.seconds", flushes * 1e-4),
                ("disk.flushes", flushes),
                ("server.call.newfstatat.count", stats),
            ],
        )
    };
    let c = between(with(&[], 0.0), with(&rows, 500.0));
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("storage.durability", Status::Confirmed),
        "{:#?}",
        c.causes
    );
    assert!(
        c.causes[0].share > 0.9 && of(&c, "app.calls").status == Status::NotObserved,
        "{:#?}",
        c.causes
    );
    // A server that flushed as often before makes more calls.
    let c = between(with(&[], 500.0), with(&rows[..2], 500.0));
    assert_eq!(c.causes[0].cause, "app.calls", "{:#?}", c.causes);
}

#[test]
fn a_queueing_discipline_that_only_the_slower_side_has_holds_up_the_calls_that_send() {
    let sends = [
        row(Layer::Kernel, "kernel: writev", "", 600.0),
        row(Layer::Kernel, "interrupts", "", 100.0),
    ];
    let with = |rows: &[Row], shapers: f64| {
        run(
            rows,
            &[
                ("net.shapers", shapers),
                ("server.call.writev.count", 10_000.0),
            ],
        )
    };
    let c = between(with(&[], 0.0), with(&sends, 1.0));
    assert_eq!(confirmed(&c), ["network.shaping"], "{:#?}", c.causes);
    assert!(
        of(&c, "network.shaping").share > 0.9,
        "{:?}",
        of(&c, "network.shaping")
    );
    // On both sides it makes no difference, and where something else grew it is not what holds it up.
    let c = between(with(&[], 1.0), with(&sends, 1.0));
    assert!(
        !of(&c, "network.shaping").status.accuses(),
        "{:#?}",
        c.causes
    );
    let c = between(
        with(&[], 0.0),
        with(
            &[row(Layer::Application, "server user code", "", 700.0)],
            1.0,
        ),
    );
    assert_eq!(confirmed(&c), ["app.work"], "{:#?}", c.causes);
}

#[test]
fn what_a_queueing_discipline_lets_go_together_waits_for_a_cpu_because_of_it() {
    let waits = [
        row(
            Layer::Scheduler,
            "waiting for a CPU",
            "the server itself",
            300.0,
        ),
        row(Layer::Client, "client waiting for a CPU", "idle CPU", 200.0),
    ];
    let with = |rows: &[Row], shapers: f64, others: f64| {
        run(
            rows,
            &[("net.shapers", shapers), ("other.cpu.seconds", others)],
        )
    };
    let c = between(with(&[], 0.0, 0.0), with(&waits, 1.0, 0.0));
    assert_eq!(confirmed(&c), ["network.shaping"], "{:#?}", c.causes);
    assert!(
        of(&c, "network.shaping").share > 0.9,
        "{:?}",
        of(&c, "network.shaping")
    );
    // Not where both sides have it, where others came, or where there is more to do.
    let more = [
        &waits[..],
        &[row(Layer::Application, "server user code", "", 700.0)],
    ]
    .concat();
    for (base, new) in [
        (with(&[], 1.0, 0.0), with(&waits, 1.0, 0.0)),
        (with(&[], 0.0, 0.0), with(&waits, 1.0, 9.0)),
        (with(&[], 0.0, 0.0), with(&more, 1.0, 0.0)),
    ] {
        let c = between(base, new);
        assert!(
            !of(&c, "network.shaping").status.accuses(),
            "{:#?}",
            c.causes
        );
    }
}

#[test]
fn more_flushes_that_take_no_longer_each_are_no_slower_disk() {
    let slept = |us: f64| row(Layer::Storage, "disk: in the device", "", us);
    let with = |us: f64, flushes: f64, each: f64| {
        let calls = [
            ("server.call.fdatasync.count", flushes),
            ("server.call.fdatasync.seconds", flushes * each),
        ];
        run(&[slept(us)], &calls)
    };
    let c = between(with(50.0, 10_000.0, 1e-4), with(500.0, 80_000.0, 1e-4));
    assert_eq!(confirmed(&c), ["storage.durability"], "{:#?}", c.causes);
    assert!(
        !of(&c, "storage.latency").status.accuses(),
        "{:#?}",
        c.causes
    );
    // As many that take longer are.
    let c = between(with(50.0, 10_000.0, 1e-4), with(500.0, 10_000.0, 1e-3));
    assert_eq!(c.causes[0].cause, "storage.latency", "{:#?}", c.causes);
}

#[test]
fn others_that_came_are_likely_of_waits_for_a_cpu_that_nothing_else_explains() {
    let waits = [row(
        Layer::Scheduler,
        "waiting for a CPU",
        "idle CPU",
        400.0,
    )];
    let with = |rows: &[Row], others: f64| run(rows, &[("other.cpu.seconds", others)]);
    let c = between(with(&[], 0.0), with(&waits, 9.0));
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("cpu.contention", Status::Likely),
        "{:#?}",
        c.causes
    );
    let share = c.causes[0].share;
    assert!(
        share > 0.9 && share + c.unexplained <= 1.0 + 1e-9,
        "what is theirs is not unexplained as well: {share} and {}",
        c.unexplained
    );
    let c = between(with(&[], 0.0), with(&waits, 0.0));
    assert_eq!(c.causes[0].cause, "scheduler.unknown", "{:#?}", c.causes);
}

#[test]
fn acknowledgements_are_late_where_a_limit_on_the_disk_stops_the_server() {
    let with = |transactions: f64, acks: f64, limits: f64| {
        second(
            transactions,
            &[("tcp.delayed_acks", acks), ("cgroup.disk_limits", limits)],
        )
    };
    let c = between(
        with(4000.0, 0.0, 0.0),
        slower(with(2000.0, 150.0, 1.0), &[2.0; 5]),
    );
    assert!(!of(&c, "network.delay").status.accuses(), "{:#?}", c.causes);
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("storage.throttle", Status::Likely),
        "{:#?}",
        c.causes
    );
}

#[test]
fn threads_that_sleep_in_a_flush_wait_for_a_cpu_because_of_it() {
    let slept = row(Layer::Storage, "disk: in the device", "", 200.0);
    let waits = [
        row(
            Layer::Scheduler,
            "waiting for a CPU",
            "the server itself",
            300.0,
        ),
        row(Layer::Client, "client waiting for a CPU", "idle CPU", 200.0),
    ];
    let with = |rows: &[Row], flushes: f64, others: f64| {
        let fsyncs = [
            ("server.call.fsync.count", flushes),
            ("disk.flushes", flushes),
            ("disk.flush.seconds", flushes * 2e-4),
        ];
        run(
            rows,
            &[&fsyncs[..], &[("other.cpu.seconds", others)]].concat(),
        )
    };
    let all = [&[slept][..], &waits].concat();
    let c = between(with(&[], 100.0, 0.0), with(&all, 2000.0, 0.0));
    assert_eq!(confirmed(&c), ["storage.durability"], "{:#?}", c.causes);
    assert!(
        of(&c, "storage.durability").share > 0.9,
        "{:?}",
        of(&c, "storage.durability")
    );
    // Waits alone, without sleeping in flushes, are not theirs; nor are they where as many were flushed before.
    for (base, new) in [(100.0, &waits[..]), (2000.0, &all[..])] {
        let c = between(with(&[], base, 0.0), with(new, 2000.0, 0.0));
        assert!(of(&c, "storage.durability").share < 0.4, "{:#?}", c.causes);
    }
    // Neighbours that are on both sides run in between; those that came are a cause of their own.
    let beside = [
        slept,
        row(Layer::Scheduler, "waiting for a CPU", "make", 500.0),
    ];
    let c = between(with(&[], 100.0, 8.0), with(&beside, 2000.0, 9.0));
    assert_eq!(confirmed(&c), ["storage.durability"], "{:#?}", c.causes);
    let c = between(with(&[], 100.0, 0.0), with(&beside, 2000.0, 9.0));
    assert_eq!(c.causes[0].cause, "cpu.contention", "{:#?}", c.causes);
}

#[test]
fn threads_that_a_lock_lets_go_wait_for_a_cpu_because_of_it_unless_they_wait_there_for_longer() {
    let rows = |lock: f64, cpu: f64| {
        [
            row(Layer::Application, "waiting for a lock", "", lock),
            row(
                Layer::Scheduler,
                "waiting for a CPU",
                "the server itself",
                cpu,
            ),
        ]
    };
    let c = between(run(&[], &[]), run(&rows(500.0, 300.0), &[]));
    assert_eq!(confirmed(&c), ["app.lock"], "{:#?}", c.causes);
    assert!(of(&c, "app.lock").share > 0.9, "{:?}", of(&c, "app.lock"));
    let c = between(run(&[], &[]), run(&rows(300.0, 500.0), &[]));
    assert!(of(&c, "app.lock").share < 0.5, "{:#?}", c.causes);
}
