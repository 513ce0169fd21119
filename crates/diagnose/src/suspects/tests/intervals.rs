//! Intervals of shares and of counts: who is confirmed or ruled out is so with the whole of them.

use super::*;
use fingerpost_record::Component;

#[test]
fn a_verdict_needs_the_interval_and_enough_that_was_followed() {
    let sleeping = [(Layer::Application, "sleeping", "", &[][..], [500.0; 3])];
    let mut wide = followed(&sleeping);
    wide.leaves
        .iter_mut()
        .filter(|l| l.component().1 == Component::Sleeping)
        .for_each(|l| l.all.low = 0.05);
    assert_eq!(
        status(&judged(&step(), &[], Some(&wide)), "app.wait"),
        Status::Likely
    );
    let little = paths(&[&WORK[..], &sleeping[..]].concat(), 0.2);
    let found = judged(&step(), &[], Some(&little));
    assert!(
        found.iter().all(|f| f.status != Status::Confirmed),
        "{found:#?}"
    );
    assert!(says(&found, "app.wait", Metric::TooLittleFollowed));
}

#[test]
fn a_share_clears_with_its_whole_interval_and_what_was_not_seen_clears_nobody() {
    let mut wide = followed(&[(Layer::Application, "sleeping", "", &[], [10.0; 3])]);
    wide.leaves
        .iter_mut()
        .filter(|l| l.component().1 == Component::Sleeping)
        .for_each(|l| l.all.high = 0.3);
    assert_eq!(
        status(&judged(&step(), &[], Some(&wide)), "app.wait"),
        Status::NotObserved
    );
    let little = paths(&WORK, 0.3);
    assert_eq!(
        status(&judged(&step(), &[], Some(&little)), "app.lock"),
        Status::NotObserved
    );
}

/// The step with so many times fewer transactions, in so much less time, and its totals.
fn shorter(times: f64, with: &[(&str, f64)], paths: &Paths) -> Vec<Finding> {
    let step = StepFigures {
        transactions: (10_000.0 / times) as u64,
        elapsed_s: 10.0 / times,
        ..step()
    };
    let kept = [
        "machine.cpus",
        "server.cpus_allowed",
        "server.nice",
        "accept.backlog",
    ];
    let all: BTreeMap<&str, f64> = QUIET.iter().chain(with).copied().collect();
    let read: Vec<(&str, f64)> = all
        .into_iter()
        .map(|(name, n)| (name, if kept.contains(&name) { n } else { n / times }))
        .collect();
    judged(&step, &read, Some(paths))
}

#[test]
fn a_count_of_one_run_clears_with_its_whole_interval_alone() {
    use Status::{NotObserved, RuledOut};
    let way = followed(&[(
        Layer::Network,
        "on the way between server and client",
        "",
        &[],
        [400.0; 3],
    )]);
    let waits = followed(&[cpu("the server itself", &[], 300.0)]);
    let flushes = followed(&[disk("disk: in the device", "", 400.0)]);
    for (cause, with, paths) in [
        (
            "storage.durability",
            ("server.call.fsync.count", 12_000.0),
            &flushes,
        ),
        ("network.delay", ("tcp.delayed_acks", 2_000.0), &way),
        // 0.8 of 2 CPUs, less than what saturates them.
        ("cpu.saturated", ("server.user.seconds", 6.0), &waits),
    ] {
        let of = |times: f64| status(&shorter(times, &[with], paths), cause);
        assert_eq!(of(1.0), RuledOut, "{cause}: of 10,000 transactions");
        assert_eq!(of(1000.0), NotObserved, "{cause}: of ten");
    }
}

#[test]
fn what_a_cause_has_little_of_clears_it_whatever_was_counted() {
    let little = followed(&[(
        Layer::Network,
        "on the way between server and client",
        "",
        &[],
        [2.0; 3],
    )]);
    assert_eq!(
        status(
            &shorter(1000.0, &[("tcp.delayed_acks", 2_000.0)], &little),
            "network.delay"
        ),
        Status::RuledOut
    );
}

#[test]
fn much_work_within_the_interval_is_not_ruled_out_by_less_in_the_middle() {
    let mut paths = followed(&[(Layer::Application, "sleeping", "", &[], [500.0; 3])]);
    let of = |paths: &Paths| status(&judged(&step(), &[], Some(paths)), "app.work");
    assert_eq!(of(&paths), Status::RuledOut, "200 of 920 µs");
    paths
        .leaves
        .iter_mut()
        .filter(|l| l.component().1 == Component::UserCode)
        .for_each(|l| l.all.high = 0.4);
    assert_eq!(of(&paths), Status::NotObserved);
}

#[test]
fn few_periods_that_a_quota_cut_short_do_not_clear_it() {
    let waits = followed(&[cpu("idle CPU", &[], 300.0)]);
    let of = |periods: f64, cut: f64| {
        let read = [
            ("throttle.seconds", 0.001),
            ("throttle.periods", periods),
            ("throttle.throttled_periods", cut),
        ];
        status(&judged(&step(), &read, Some(&waits)), "cpu.quota")
    };
    let limit = crate::thresholds::PERIODS_CUT.value;
    assert_eq!(of(10_000.0, 10_000.0 * limit * 0.5), Status::RuledOut);
    assert_eq!(
        of(2.0 / limit, 1.0),
        Status::NotObserved,
        "one of so many may have been three"
    );
}
