//! Settings of a launch, and where its swap is.

use fingerpost_compare::{Options, compare};
use fingerpost_record::{Better, Layer, Param, Params, Run, Status, Unit};

use super::{between, row, run};

fn launched(placement: &str, swap: &str, seconds: f64) -> Run {
    let params = |app: &str| {
        Params::new()
            .with("app", app)
            .with("placement", placement)
            .with("state", "after-boot")
    };
    let mut run = run(["a", "b", "c"]
        .map(|app| row("launch.time", params(app), seconds * 1e9))
        .to_vec());
    run.measurements
        .iter_mut()
        .for_each(|m| (m.unit, m.better) = (Unit::Nanoseconds, Better::Lower));
    run.host.swap = vec![fingerpost_record::host::Swap {
        path: swap.into(),
        kind: "partition".into(),
        bytes: 1 << 30,
        used_bytes: 0,
        priority: -2,
    }];
    run
}

/// Applications that were launched with these settings.
fn launched_with(stated: &[(&str, Param)], seconds: f64) -> Run {
    let mut run = launched("file", "/swapfile", seconds);
    for m in &mut run.measurements {
        m.params = stated
            .iter()
            .fold(m.params.without(&["state"]), |params, (key, value)| {
                params.with(key, value.clone())
            });
    }
    run
}

/// Half of the memory, warm caches, other areas: all of it was one row.
#[test]
fn launches_with_other_settings_are_other_rows_and_the_setting_is_named() {
    let word = |key: &'static str, value: &str| (key, Param::from(value));
    let cold = || {
        vec![
            word("state", "cold"),
            word("pressure", "0.6"),
            word("pressure_by", "limit"),
        ]
    };
    let with = |key: &'static str, value: &str| {
        let mut all = cold();
        all.retain(|(known, _)| *known != key);
        all.push((key, Param::parse(value)));
        all
    };
    for (key, value, words) in [
        ("state", "warm", "state: cold → warm"),
        ("pressure", "0.3", "pressure: 0.6 → 0.3"),
        ("pressure", "1", "pressure: 0.6 → 1"),
        ("pressure_by", "reserve", "pressure_by: limit → reserve"),
        ("swap_size", "512M", "swap_size: default → 512M"),
        ("throttle", "1M", "throttle: default → 1M"),
        ("existing_swap", "off", "existing_swap: default → off"),
    ] {
        let c = compare(
            &[launched_with(&cold(), 4.0)],
            &[launched_with(&with(key, value), 9.0)],
            &Options::default(),
        );
        assert_eq!(
            (c.rows.len(), c.not_compared.len()),
            (3, 0),
            "{words}: {:?}",
            c.not_compared
        );
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
    let c = compare(
        &[launched_with(&cold(), 4.0)],
        &[launched_with(&cold(), 9.0)],
        &Options::default(),
    );
    assert_eq!(
        (c.rows.len(), c.changes.len()),
        (3, 0),
        "the same settings are the same rows"
    );
}

/// A record of before is compared with one of today, and nobody says that it had the defaults.
#[test]
fn what_an_older_record_of_launches_does_not_state_is_not_known() {
    let today = |seconds: f64, more: &[(&str, Param)]| {
        let stated = [
            ("state", Param::from("cold")),
            ("pressure", Param::from("0.6")),
            ("pressure_by", Param::from("limit")),
        ];
        launched_with(&[&stated[..], more].concat(), seconds)
    };
    let older = || launched_with(&[], 4.0);
    for (base, new) in [
        (older(), today(9.0, &[])),
        (today(9.0, &[]), older()),
        (older(), today(9.0, &[("swap_size", Param::Int(64 << 20))])),
    ] {
        let c = compare(&[base], &[new], &Options::default());
        assert_eq!(
            (c.rows.len(), c.not_compared.len(), c.changes.len()),
            (3, 0, 0),
            "{:?} {:?}",
            c.not_compared,
            c.changes
        );
        let note = c.rows[0].note.as_deref().unwrap();
        assert!(
            note.starts_with(
                "the older record does not state its pressure and pressure_by and state"
            ),
            "{note}"
        );
    }
    let c = compare(&[older()], &[older()], &Options::default());
    assert_eq!((c.rows.len(), c.rows[0].note.as_deref()), (3, None));
    // Swap in another place is seen all the same.
    let mut elsewhere = today(2.0, &[]);
    elsewhere
        .measurements
        .iter_mut()
        .for_each(|m| m.params = m.params.clone().with("placement", "dual"));
    let c = compare(&[older()], &[elsewhere], &Options::default());
    assert_eq!(
        c.changes.iter().map(|x| x.words()).collect::<Vec<_>>(),
        ["placement: file → dual"]
    );
    assert_eq!(
        (c.rows.len(), c.not_compared.len()),
        (3, 0),
        "{:?}",
        c.not_compared
    );
}

/// Sequences after a boot, swap in two places: “no cause that is known here explains it”.
#[test]
fn swap_in_another_place_is_the_cause_where_nothing_else_differs() {
    let c = compare(
        &[launched("file", "/swapfile", 4.0)],
        &[launched("dual", "/dev/sdb1", 2.0)],
        &Options::default(),
    );
    let first = &c.causes[0];
    assert_eq!(
        (first.cause.as_str(), first.layer, first.status),
        ("memory.swap_place", Layer::Memory, Status::Confirmed),
        "{:#?}",
        c.causes
    );
    assert!(
        first.share > 0.95
            && c.headline
                .contains("another placement of swap (placement: file → dual)"),
        "{}",
        c.headline
    );
    let mut other = launched("dual", "/dev/sdb1", 2.0);
    other.host.kernel = "another".into();
    let c = compare(
        &[launched("file", "/swapfile", 4.0)],
        &[other],
        &Options::default(),
    );
    assert_eq!(
        (c.causes[0].status, c.causes[0].share),
        (Status::Likely, 0.0),
        "{:#?}",
        c.causes
    );
    assert!(
        c.causes[0]
            .evidence
            .iter()
            .any(|e| e.metric == fingerpost_record::Metric::MachinesDifferToo && e.undecided),
        "{:#?}",
        c.causes
    );
    let c = between(
        "launch-10.1[placement=default]",
        "launch-10.1[placement=dual]",
    );
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("memory.swap_place", Status::Confirmed),
        "{:#?}",
        c.causes
    );
}

/// “Another placement of swap, 100 %” it was, where the applications are faster under another version of the system,
/// without the second drive.
#[test]
fn a_placement_and_a_system_are_not_taken_apart() {
    let c = between(
        "launch-10.0.4[placement=dual]",
        "launch-10.1[placement=default]",
    );
    let first = &c.causes[0];
    assert_eq!(
        (first.cause.as_str(), first.status, first.share),
        ("memory.swap_place", Status::Likely, 0.0),
        "{:#?}",
        c.causes
    );
    assert!(
        first
            .evidence
            .iter()
            .any(|e| e.metric == fingerpost_record::Metric::MachinesDifferToo
                && e.name.as_deref() == Some("systems")),
        "{first:#?}"
    );
    assert!(
        c.headline
            .ends_with("; how much of the difference that makes is not known."),
        "{}",
        c.headline
    );
}
