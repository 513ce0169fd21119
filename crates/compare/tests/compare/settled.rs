//! What a change was measured to make by itself, beside what passive signs say of the same difference.

use fingerpost_compare::changes::Change;
use fingerpost_compare::settle::Settled;
use fingerpost_compare::{Comparison, Options, Ratio, Row, Verdict, compare};
use fingerpost_record::fixture::followed;
use fingerpost_record::{Layer, Observation, Params, Relation, Run, Status};

/// A run of a server that says of itself how its query cache is.
fn with_cache(cache: &str, rows: &[followed::Row], readings: &[(&str, f64)]) -> Run {
    let mut run = crate::runs::run(rows, readings);
    run.observations.push(Observation {
        workload: "database".into(),
        params: Params::new(),
        observer: "client".into(),
        source: format!("the load generator; 10.11.6-MariaDB, query_cache={cache}"),
        totals: Default::default(),
        ..Observation::default()
    });
    run
}

const fn row<'a>(layer: Layer, component: &'a str, whom: &'a str, us: f64) -> followed::Row<'a> {
    (layer, component, whom, &[], [us; 3])
}

/// The pair: without the cache a query is more work; other processes wanted the CPUs while that was measured.
fn pair() -> Comparison {
    let slow = [
        row(Layer::Scheduler, "waiting for a CPU", "stress", 900.0),
        row(Layer::Application, "server user code", "", 600.0),
    ];
    let others = [("other.cpu.seconds", 7.0)];
    compare(
        &[with_cache("on", &[], &[])],
        &[with_cache("off", &slow, &others)],
        &Options::default(),
    )
}

/// The answer of pairs in which the change alone makes this part of the difference, by logarithms, as precisely as the
/// factor says.
fn alone(c: &Comparison, share: f64, factor: f64) -> Settled {
    let whole = &c.rows[0];
    let (log, error) = (whole.log().unwrap() * share, factor.ln() / 1.96);
    let verdict = match log {
        log if log.abs() < 0.03 => Verdict::Same,
        log if log - factor.ln() > 0.03 => Verdict::Slower,
        _ => Verdict::Unresolved,
    };
    let row = Row {
        ratio: Some(Ratio::from_log(log, error * error, 1e6)),
        verdict,
        ..whole.clone()
    };
    Settled::judged(&change(c), whole, &row, Vec::new())
}

fn change(c: &Comparison) -> Change {
    c.changes
        .iter()
        .find(|change| change.what == "query_cache")
        .expect("the servers told of it")
        .clone()
}

/// What the answer leaves for others: all but the low end of its interval.
fn left(c: &Comparison) -> f64 {
    1.0 - c.settled[0].ratio.unwrap().low.ln() / c.rows[0].log().unwrap()
}

fn accused(c: &Comparison) -> Vec<(&str, Status)> {
    c.causes
        .iter()
        .filter(|f| f.status.accuses())
        .map(|f| (f.cause.as_str(), f.status))
        .collect()
}

#[test]
fn what_the_experiment_gives_the_setting_comes_before_what_passive_signs_say() {
    let mut c = pair();
    assert_eq!(c.causes[0].cause, "cpu.contention", "{:#?}", c.causes);
    c.settle(vec![alone(&c, 0.89, 1.05)]);
    assert_eq!(
        accused(&c),
        [
            ("app.setting", Status::Confirmed),
            ("app.work", Status::Confirmed),
            ("cpu.contention", Status::Confirmed)
        ],
        "{:#?}",
        c.causes
    );
    let [setting, work, others] = &c.causes[..3] else {
        panic!("{:#?}", c.causes)
    };
    assert!(
        (setting.share - 0.89).abs() < 1e-9
            && setting.evidence[0].metric == fingerpost_record::Metric::ChangeAlone
            && setting.evidence[0]
                .value
                .is_some_and(|share| (share - 0.89).abs() < 1e-9),
        "{setting:?}"
    );
    let root = Some(Relation::FollowsFrom("app.setting".into()));
    assert_eq!(work.relation, root, "{work:?}");
    // Others may have all but the low end of the experiment's interval.
    let left = left(&c);
    assert!(
        left > 0.11 && (others.share - left).abs() < 1e-9,
        "{left} {others:?}"
    );
    assert!(
        others.evidence.iter().any(
            |fact| fact.metric == fingerpost_record::Metric::LeftByChanges
                && fact.value.is_some_and(|share| (share - left).abs() < 1e-9)
        ),
        "{others:?}"
    );
    assert!(
        c.headline
            .contains(": another setting (query_cache: on → off), 89 %"),
        "{}",
        c.headline
    );
    assert!(c.unexplained <= 0.11 + 1e-9);
}

#[test]
fn a_setting_that_makes_nothing_is_ruled_out_and_draws_nothing_after_it() {
    let mut c = pair();
    c.settle(vec![alone(&c, 0.0, 1.01)]);
    let setting = c.causes.iter().find(|f| f.cause == "app.setting").unwrap();
    assert_eq!(setting.status, Status::RuledOut, "{:#?}", c.causes);
    assert_eq!(
        accused(&c),
        [
            ("cpu.contention", Status::Confirmed),
            ("app.work", Status::Confirmed)
        ],
        "{:#?}",
        c.causes
    );
    assert!(
        c.causes
            .iter()
            .all(|f| f.relation != Some(Relation::FollowsFrom("app.setting".into()))),
        "{:#?}",
        c.causes
    );
    assert!(!c.headline.contains("another setting"), "{}", c.headline);
}

#[test]
fn a_setting_that_no_passive_sign_points_to_is_named_by_its_experiment() {
    let slow = [row(Layer::Scheduler, "waiting for a CPU", "stress", 900.0)];
    let mut c = compare(
        &[with_cache("on", &[], &[])],
        &[with_cache("off", &slow, &[("other.cpu.seconds", 7.0)])],
        &Options::default(),
    );
    assert_eq!(
        accused(&c),
        [("cpu.contention", Status::Confirmed)],
        "{:#?}",
        c.causes
    );
    c.settle(vec![alone(&c, 0.5, 1.05)]);
    assert_eq!(
        accused(&c),
        [
            ("app.setting", Status::Confirmed),
            ("cpu.contention", Status::Confirmed)
        ],
        "{:#?}",
        c.causes
    );
    assert!(
        (c.causes[1].share - left(&c)).abs() < 1e-9,
        "{:#?}",
        c.causes
    );
}

#[test]
fn a_wide_interval_leaves_others_all_but_its_low_end() {
    let mut c = pair();
    let before = c.causes[0].share;
    c.settle(vec![alone(&c, 0.98, 1.4)]);
    let left = left(&c);
    assert!(left > 0.2, "as wide as that: {left}");
    let others = c
        .causes
        .iter()
        .find(|f| f.cause == "cpu.contention")
        .unwrap();
    assert_eq!(c.causes[0].cause, "app.setting", "{:#?}", c.causes);
    assert!(
        others.status.accuses() && (others.share - left.min(before)).abs() < 1e-9,
        "{left} {before} {others:?}"
    );
}

#[test]
fn what_was_not_resolved_or_not_measured_moves_nobody() {
    let before = pair();
    let order = |c: &Comparison| {
        c.causes
            .iter()
            .map(|f| (f.cause.clone(), f.status))
            .collect::<Vec<_>>()
    };
    for answer in [
        alone(&before, 0.4, 4.0),
        Settled::not_done(&change(&before), None, "it was interrupted before".into()),
    ] {
        let mut c = before.clone();
        c.settle(vec![answer]);
        assert_eq!(
            (order(&c), &c.headline, c.unexplained),
            (order(&before), &before.headline, before.unexplained)
        );
    }
}
