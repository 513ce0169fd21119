//! What was changed is named before any hardware is, and what is the same on both sides is not blamed.

mod compilers;
mod launches;

use fingerpost_compare::select::{parse, part};
use fingerpost_compare::{Comparison, Options, Verdict, compare, references};
use fingerpost_record::{
    Better, Estimate, Finding, Layer, Measurement, Observation, Outcome, Param, Params, Process,
    Run, Status, Unit, fixture,
};

fn load(text: &str) -> Run {
    let (name, wanted) = parse(text).unwrap();
    part(
        references::load(name).unwrap_or_else(|| panic!("{name}")),
        &wanted,
    )
    .unwrap()
}

fn between(base: &str, new: &str) -> Comparison {
    compare(&[load(base)], &[load(new)], &Options::default())
}

fn named(c: &Comparison) -> Vec<&Finding> {
    c.causes
        .iter()
        .filter(|f| f.status != Status::RuledOut)
        .collect()
}

fn row(probe: &str, params: Params, value: f64) -> Measurement {
    let process = |i: i32| Process {
        value: Some(value * (1.0 + 0.0005 * f64::from(i))),
        ..Process::default()
    };
    Measurement {
        estimate: Some(Estimate {
            value,
            low: value * 0.998,
            high: value * 1.002,
            confidence: 0.95,
        }),
        outcome: Outcome::Measured,
        reason: None,
        processes: (-3..4).map(process).collect(),
        ..Measurement::without_figure(
            probe,
            1,
            params,
            Unit::PerSecond,
            Better::Higher,
            Outcome::Skipped,
            String::new(),
        )
    }
}

fn run(rows: Vec<Measurement>) -> Run {
    let bare = Run {
        budgets: Vec::new(),
        paths: Vec::new(),
        observations: Vec::new(),
        findings: Vec::new(),
        ..fixture::run()
    };
    Run {
        measurements: rows,
        ..bare
    }
}

/// The Xeon and the Opteron ran SLES 9 on Linux 2.6.5 both: what differs is not the kernel.
#[test]
fn one_kernel_on_two_processors_is_not_confirmed() {
    for (base, new) in [
        ("xeon-3.6-linux", "opteron-850-linux"),
        ("opteron-850-linux", "xeon-3.6-linux"),
    ] {
        let c = between(base, new);
        let below = [Layer::Kernel, Layer::Scheduler, Layer::Network];
        assert!(
            named(&c).iter().all(|f| !below.contains(&f.layer)),
            "{:#?}",
            c.causes
        );
        let cpu = c
            .causes
            .iter()
            .find(|f| f.cause == "cpu.speed")
            .unwrap_or_else(|| panic!("{:#?}", c.causes));
        assert_eq!(cpu.status, Status::Likely);
        assert!(
            !c.causes
                .iter()
                .flat_map(|f| &f.evidence)
                .any(|e| e.metric == fingerpost_record::Metric::ClockRate),
            "{:#?}",
            c.causes
        );
        assert!(
            c.headline.contains("another processor") && !c.headline.contains("slower CPU"),
            "{}",
            c.headline
        );
    }
}

/// 2700 MHz of one processor and 2404 of another say nothing of either.
#[test]
fn clocks_of_different_processors_are_not_compared() {
    for other in ["opteron-850-linux", "xeon-3.6-linux"] {
        let c = between(other, "g5-2.7-darwin");
        assert!(
            c.causes.iter().all(|f| f.cause != "cpu.speed"),
            "{:#?}",
            c.causes
        );
    }
}

#[test]
fn one_kernel_on_one_machine_is_likely_at_most() {
    let of = |factor: f64| {
        run(["process.fork", "process.exec", "cpu.int"]
            .map(|p| {
                row(
                    p,
                    Params::new(),
                    if p == "cpu.int" { 1e6 } else { 1e6 / factor },
                )
            })
            .to_vec())
    };
    let c = compare(&[of(1.0)], &[of(2.0)], &Options::default());
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("kernel.process", Status::Likely),
        "{:#?}",
        c.causes
    );
    let mut newer = of(2.0);
    newer.host.kernel = "9.9.9".into();
    let c = compare(&[of(1.0)], &[newer], &Options::default());
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("kernel.process", Status::Confirmed),
        "{:#?}",
        c.causes
    );
}

/// “faster … a slower CPU”: the slower CPU is the base's, and the sentence says so.
#[test]
fn a_faster_run_is_not_said_to_have_the_slower_cpu() {
    let of = |name: &str, mhz: f64, factor: f64| {
        let mut run = run(["cpu.int", "cpu.div", "syscall.null"]
            .map(|p| row(p, Params::new(), 1e6 * factor))
            .to_vec());
        run.host.hostname = name.into();
        run.host.cpu.mhz = Some(mhz);
        run
    };
    let c = compare(
        &[of("old", 2000.0, 1.0)],
        &[of("young", 3000.0, 1.5)],
        &Options::default(),
    );
    assert!(
        c.headline.starts_with("young is faster than old")
            && c.headline.contains("a slower CPU on old"),
        "{}",
        c.headline
    );
}

fn queries(cache: &str, rates: [f64; 3]) -> Run {
    let of = |clients: i64| {
        Params::new()
            .with("engine", "mariadb")
            .with("query_cache", cache)
            .with("clients", clients)
    };
    run([1, 2, 5]
        .into_iter()
        .zip(rates)
        .map(|(n, rate)| row("database.throughput", of(n), rate))
        .collect())
}

/// They had “no row in common”.
#[test]
fn rows_that_differ_as_a_whole_are_put_side_by_side() {
    let (on, off) = (
        queries("on", [900.0, 1800.0, 4000.0]),
        queries("off", [300.0, 600.0, 1300.0]),
    );
    let c = compare(std::slice::from_ref(&on), &[off], &Options::default());
    assert_eq!((c.rows.len(), c.not_compared.len()), (3, 0));
    assert!(
        c.rows
            .iter()
            .all(|r| r.verdict == Verdict::Slower && r.params.get("query_cache").is_none())
    );
    assert_eq!(
        c.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
        ["query_cache: on → off"]
    );
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("app.setting", Status::Confirmed),
        "{:#?}",
        c.causes
    );
    assert!(
        c.headline.contains("query_cache: on → off"),
        "{}",
        c.headline
    );
    // Another number of clients is another measurement, and two values on a side are no setting of the whole.
    let mut ten = on.clone();
    ten.measurements
        .iter_mut()
        .for_each(|m| m.params = m.params.clone().with("clients", 10));
    ten.measurements.truncate(1);
    assert!(
        compare(
            std::slice::from_ref(&ten),
            &[queries("on", [1.0, 2.0, 3.0])],
            &Options::default()
        )
        .rows
        .is_empty()
    );
    let mut mixed = on.clone();
    mixed.measurements[0].params = mixed.measurements[0]
        .params
        .clone()
        .with("query_cache", "demand");
    assert!(
        compare(
            &[mixed],
            &[queries("off", [1.0, 2.0, 3.0])],
            &Options::default()
        )
        .rows
        .is_empty()
    );
}

/// With another engine its own parameters come and go.
#[test]
fn another_engine_takes_its_parameters_along() {
    let mut embedded = queries("on", [500.0, 900.0, 1100.0]);
    for m in &mut embedded.measurements {
        m.params.0.remove("query_cache");
        m.params
            .0
            .insert("engine".into(), Param::Text("sqlite".into()));
    }
    let c = compare(
        &[queries("on", [900.0, 1800.0, 4000.0])],
        &[embedded],
        &Options::default(),
    );
    assert_eq!((c.rows.len(), c.not_compared.len()), (3, 0));
    assert_eq!(
        c.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
        ["engine: mariadb → sqlite", "query_cache: on → none"]
    );
}

/// A variable that only one side sets, and one that both do, are settings that differ: the rows lie side by side.
#[test]
fn what_a_server_was_told_is_a_setting_and_no_other_row() {
    let rates = [900.0, 1800.0, 4000.0];
    let of = |key: &str, value: Option<i64>, factor: f64| {
        let mut run = queries("off", rates.map(|rate| rate * factor));
        for m in &mut run.measurements {
            m.params = value.map_or(m.params.clone(), |value| m.params.clone().with(key, value));
        }
        run
    };
    for (key, base, new, words) in [
        (
            "server.sync_binlog",
            None,
            Some(1),
            "server.sync_binlog: default → 1",
        ),
        (
            "server.sync_binlog",
            Some(1),
            None,
            "server.sync_binlog: 1 → default",
        ),
        (
            "server.sync_binlog",
            Some(0),
            Some(1),
            "server.sync_binlog: 0 → 1",
        ),
        ("backlog", None, Some(8), "backlog: default → 8"),
    ] {
        let c = compare(
            &[of(key, base, 1.0)],
            &[of(key, new, 0.4)],
            &Options::default(),
        );
        assert_eq!((c.rows.len(), c.not_compared.len()), (3, 0), "{words}");
        assert_eq!(
            c.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
            [words]
        );
        assert_eq!(
            (c.causes[0].cause.as_str(), c.causes[0].status),
            ("app.setting", Status::Confirmed),
            "{:#?}",
            c.causes
        );
    }
    // What is measured at is no setting.
    assert!(
        compare(
            &[of("members", None, 1.0)],
            &[of("members", Some(9), 1.0)],
            &Options::default()
        )
        .rows
        .is_empty()
    );
}

/// A record from before `synchronous` was a parameter lies in one row with a new one of the same setting, and is
/// another than of another.
#[test]
fn a_record_of_before_a_parameter_compares_with_one_that_has_it() {
    let of = |stated: Option<&str>, told: &str, factor: f64| {
        let mut run = queries("off", [900.0, 1800.0, 4000.0].map(|rate| rate * factor));
        for m in &mut run.measurements {
            m.params.0.remove("query_cache");
            m.params = m.params.clone().with("engine", "sqlite");
            m.params = stated.map_or(m.params.clone(), |stated| {
                m.params.clone().with("synchronous", stated)
            });
        }
        run.observations = vec![Observation {
            workload: "database".into(),
            params: run.measurements[0].params.clone(),
            observer: "client".into(),
            source: format!("the load generator; SQLite 3.50, synchronous={told}"),
            totals: std::collections::BTreeMap::new(),
            ..Observation::default()
        }];
        fingerpost_record::load::from_slice(&serde_json::to_vec(&run).unwrap(), "made up").unwrap()
    };
    for (old, new) in [("full", "full"), ("off", "off")] {
        let c = compare(
            &[of(None, old, 1.0)],
            &[of(Some(new), new, 1.0)],
            &Options::default(),
        );
        assert_eq!(
            (c.rows.len(), c.not_compared.len(), c.changes.len()),
            (3, 0, 0)
        );
        assert!(
            c.rows
                .iter()
                .all(|r| r.params.text("synchronous") == Some(new))
        );
    }
    let c = compare(
        &[of(None, "off", 2.0)],
        &[of(Some("full"), "full", 1.0)],
        &Options::default(),
    );
    assert_eq!(
        (
            c.rows.len(),
            c.changes.iter().map(|x| x.words()).collect::<Vec<_>>()
        ),
        (3, vec!["synchronous: off → full".to_owned()])
    );
}

/// `synchronous=off` and `full` were the same row, and nothing said that anything was changed.
#[test]
fn settings_and_versions_that_are_in_no_parameter_are_named() {
    let of = |server: &str, factor: f64| {
        let mut run = queries("off", [900.0 * factor, 1800.0 * factor, 4000.0 * factor]);
        run.observations = vec![Observation {
            workload: "database".into(),
            params: Params::new(),
            observer: "client".into(),
            source: format!("the load generator; {server}"),
            totals: std::collections::BTreeMap::new(),
            ..Observation::default()
        }];
        run
    };
    let cases = [
        (
            "SQLite 3.54.1, journal_mode=wal, synchronous=full",
            "SQLite 3.54.1, journal_mode=wal, synchronous=off",
            "app.setting",
            "synchronous: full → off",
        ),
        (
            "10.11.6-MariaDB, log_bin=off",
            "10.11.19-MariaDB, log_bin=off",
            "app.build",
            "version: 10.11.6-MariaDB → 10.11.19-MariaDB",
        ),
    ];
    for (base, new, cause, words) in cases {
        let c = compare(&[of(base, 1.0)], &[of(new, 2.0)], &Options::default());
        assert_eq!(
            c.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
            [words]
        );
        assert_eq!(
            (c.causes[0].cause.as_str(), c.causes[0].status),
            (cause, Status::Confirmed),
            "{:#?}",
            c.causes
        );
        assert!(c.headline.contains(words), "{}", c.headline);
        assert!(
            compare(&[of(base, 1.0)], &[of(base, 2.0)], &Options::default())
                .changes
                .is_empty()
        );
    }
}

/// Both were on record with a load from a client machine, and no sentence had them.
#[test]
fn the_machine_that_a_load_came_from_and_the_version_that_it_was_told_are_named() {
    use fingerpost_record::client::{CLIENT, WORKLOAD, source};
    let of = |account: &str, host: &str, factor: f64| {
        let params = Params::new().with("clients", 8).with("engine", "mariadb");
        let mut run = run(["load.throughput", "load.turns"]
            .map(|probe| row(probe, params.clone(), 1000.0 * factor))
            .to_vec());
        run.host.hostname = host.into();
        run.observations = vec![Observation {
            workload: WORKLOAD.into(),
            params,
            observer: CLIENT.into(),
            source: account.into(),
            totals: std::collections::BTreeMap::new(),
            ..Observation::default()
        }];
        run
    };
    let compared = |base: &Run, new: &Run| {
        compare(
            std::slice::from_ref(base),
            std::slice::from_ref(new),
            &Options::default(),
        )
    };
    let words = |c: &Comparison| c.changes.iter().map(|x| x.words()).collect::<Vec<_>>();
    let told =
        |machine: &str, version: &str| source(machine, &format!("{version}-MariaDB, log_bin=off"));
    // With the service's record the account says where the load came from; by itself the load's host does.
    let joined = |machine: &str, factor: f64| of(&told(machine, "10.11.6"), "db", factor);
    let alone = |host: &str, factor: f64| {
        of(
            "the load generator; 10.11.6-MariaDB, log_bin=off",
            host,
            factor,
        )
    };
    for (base, new) in [
        (joined("client-1", 1.0), joined("client-2", 0.5)),
        (alone("client-1", 1.0), alone("client-2", 0.5)),
    ] {
        let c = compared(&base, &new);
        assert_eq!(c.changes.len(), 1, "{:#?}", c.changes);
        assert!(
            words(&c)[0].starts_with("client machine: client-1")
                && words(&c)[0].contains("→ client-2"),
            "{:?}",
            words(&c)
        );
        assert!(
            c.headline.contains(&format!(", with {}", words(&c)[0])),
            "{}",
            c.headline
        );
        assert!(
            named(&c)
                .iter()
                .all(|f| f.cause != "app.setting" && f.cause != "app.build"),
            "{:#?}",
            c.causes
        );
        assert!(compared(&base, &base).changes.is_empty());
    }
    let c = compared(
        &joined("client-1", 1.0),
        &of(&told("client-2", "11.4.2"), "db", 0.5),
    );
    assert_eq!(
        words(&c),
        [
            "version: 10.11.6-MariaDB → 11.4.2-MariaDB",
            "client machine: client-1 → client-2"
        ]
    );
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("app.build", Status::Confirmed),
        "{:#?}",
        c.causes
    );
    assert!(
        words(&c).iter().all(|words| c.headline.contains(words)),
        "{}",
        c.headline
    );
    // Where nothing is slower, the sentence names them all the same.
    let c = compared(
        &joined("client-1", 1.0),
        &of(&told("client-2", "11.4.2"), "db", 1.0),
    );
    assert!(
        words(&c).len() == 2 && words(&c).iter().all(|words| c.headline.contains(words)),
        "{}",
        c.headline
    );
}

/// Words before a server's command, and a named directory's file system, were in no row: another server was the same
/// row.
#[test]
fn a_server_behind_other_words_and_data_on_another_file_system_are_other_rows() {
    let of = |stated: &[(&str, &str)], factor: f64| {
        let mut run = queries("off", [900.0, 1800.0, 4000.0].map(|rate| rate * factor));
        for m in &mut run.measurements {
            m.params = stated
                .iter()
                .fold(m.params.clone(), |params, (key, value)| {
                    params.with(key, *value)
                });
        }
        run
    };
    for (base, new, words) in [
        (
            &[][..],
            &[("server_prefix", "taskset -c 0")][..],
            "server_prefix: default → taskset -c 0",
        ),
        (
            &[("server_prefix", "nice -n 5")],
            &[("server_prefix", "strace -f")],
            "server_prefix: nice -n 5 → strace -f",
        ),
        (&[], &[("dir_fs", "tmpfs")], "dir_fs: default → tmpfs"),
        (
            &[("dir_fs", "ext4")],
            &[("dir_fs", "tmpfs")],
            "dir_fs: ext4 → tmpfs",
        ),
    ] {
        let c = compare(&[of(base, 1.0)], &[of(new, 0.4)], &Options::default());
        assert_eq!((c.rows.len(), c.not_compared.len()), (3, 0), "{words}");
        assert_eq!(
            c.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
            [words]
        );
        assert_eq!(
            (c.causes[0].cause.as_str(), c.causes[0].status),
            ("app.setting", Status::Confirmed),
            "{:#?}",
            c.causes
        );
        assert!(
            compare(&[of(new, 1.0)], &[of(new, 0.4)], &Options::default())
                .changes
                .is_empty()
        );
    }
}

/// A part by what all rows of the other side have is no change, and its rows state it: “api: none → vm_allocate” was
/// told.
#[test]
fn a_part_meets_a_side_that_has_one_value_everywhere() {
    for (base, new) in [
        ("zerofill-g4-1ghz", "zerofill-cube-450[api=vm_allocate]"),
        ("zerofill-cube-450[api=vm_allocate]", "zerofill-g4-1ghz"),
        (
            "zerofill-g4-1ghz[api=vm_allocate]",
            "zerofill-cube-450[api=vm_allocate]",
        ),
    ] {
        let c = between(base, new);
        assert!(
            c.changes.is_empty() && c.rows.len() == 4 && c.rows.iter().all(|r| r.note.is_none()),
            "{:?} {:?}",
            c.changes,
            c.rows
        );
    }
    let other = between("zerofill-g4-1ghz", "zerofill-cube-450[api=mmap]");
    assert_eq!(
        other.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
        ["api: vm_allocate → mmap"]
    );
    assert!(
        other.rows.len() == 4 && other.rows.iter().all(|r| r.note.is_none()),
        "{:?}",
        other.rows
    );
    // What is measured at is no change.
    let (five, ten) = (
        queries("off", [1.0, 2.0, 3.0]),
        queries("off", [1.0, 2.0, 3.0]),
    );
    let five = part(five, &Params::new().with("clients", 5)).unwrap();
    let of = |clients: i64| {
        let mut run = ten.clone();
        run.measurements
            .retain(|m| m.params.int("clients") == Some(1));
        run.measurements
            .iter_mut()
            .for_each(|m| m.params = m.params.clone().with("clients", clients));
        run
    };
    let rows = |clients: i64| {
        compare(
            std::slice::from_ref(&five),
            &[of(clients)],
            &Options::default(),
        )
        .rows
        .len()
    };
    assert_eq!((rows(5), rows(10)), (1, 0));
}

/// The Xeon has one figure with the cache on, of no number of clients, and the G5 seven with the cache off: “up to 11.8
/// times” was told of that.
#[test]
fn a_published_row_is_not_put_beside_others_by_two_guesses() {
    let c = between("xeon-3.6-linux", "g5-2.5-linux");
    assert!(
        c.changes.is_empty() && c.rows.iter().all(|r| r.probe != "database.throughput"),
        "{:?}",
        c.changes
    );
    assert_eq!(
        c.not_compared
            .iter()
            .filter(|r| r.probe == "database.throughput")
            .count(),
        8
    );
    // Asked for as two parts of one system they are compared, and one figure is no curve over clients.
    let c = between(
        "g5-2.7-darwin[query_cache=off]",
        "g5-2.7-darwin[query_cache=on]",
    );
    assert!(
        c.rows.len() == 7 && c.rows.iter().all(|r| r.note.is_some()) && c.curves.is_empty(),
        "{:?}",
        c.curves
    );
}

/// “No difference between … and …, with server: apache-1.3 → apache-2.0 was found, but none of the 1 rows …”.
#[test]
fn what_was_changed_stands_between_commas() {
    let c = between(
        "g5-2.7-darwin[server=apache-1.3]",
        "g5-2.7-darwin[server=apache-2.0]",
    );
    let told = ", with server: apache-1.3 → apache-2.0, was found, but its one row is not precise enough to call them \
        the same.";
    assert!(c.headline.ends_with(told), "{}", c.headline);
}

/// The network was ruled out “under database” of a comparison without a row of the database.
#[test]
fn what_was_watched_under_a_workload_clears_nothing_without_a_row_of_it() {
    let only = |name: &str| {
        let mut run = load(name);
        run.measurements
            .retain(|m| !m.probe.starts_with("database."));
        run
    };
    let c = compare(
        &[only("g5-2.5-linux")],
        &[only("g5-2.7-darwin")],
        &Options::default(),
    );
    assert!(
        c.causes
            .iter()
            .all(|f| f.cause != "network.shaping" && f.cause != "storage.durability"),
        "{:#?}",
        c.causes
    );
}
