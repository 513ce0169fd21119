//! The sentence that a person reads first: nobody who adds up its shares comes to more than there is.

use crate::runs::run;
use fingerpost_compare::{Comparison, Options, compare, references};
use fingerpost_diagnose::causes::words;
use fingerpost_record::{Finding, Layer, Outcome, Profile, Relation, Run, Status};

/// A network that is shaped, for all but a little of the difference.
fn shaped() -> Comparison {
    let way = (
        Layer::Network,
        "on the way between server and client",
        "",
        &[][..],
        [1400.0; 3],
    );
    compare(
        &[run(&[], &[])],
        &[run(&[way], &[("net.drops", 50.0)])],
        &Options::default(),
    )
}

/// The same with another suspect, and the sentence made again.
fn beside(mut c: Comparison, cause: &str, share: f64, root: Option<&str>) -> Comparison {
    c.causes.insert(
        1,
        Finding {
            cause: cause.into(),
            layer: Layer::Cpu,
            status: Status::Likely,
            share,
            evidence: Vec::new(),
            step: None,
            relation: root.map(|root| Relation::FollowsFrom(root.to_owned())),
        },
    );
    c.settle(Vec::new());
    c
}

#[test]
fn causes_of_the_same_part_are_said_to_overlap() {
    let c = shaped();
    let share = c.causes[0].share;
    assert!(
        share > 0.7 && c.causes[0].cause == "network.shaping",
        "{:#?}",
        c.causes
    );
    assert!(!c.headline.contains("overlap"), "{}", c.headline);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let two = beside(c.clone(), "cpu.speed", share, None);
    let told = format!(
        ": {}, {}; probably {}, {}; the shares overlap: together the causes explain {}.",
        words("network.shaping"),
        percent(share),
        words("cpu.speed"),
        percent(share),
        percent(1.0 - c.unexplained)
    );
    assert!(two.headline.ends_with(&told), "{told} in {}", two.headline);
    let apart = beside(c.clone(), "cpu.speed", 1.0 - c.unexplained - share, None);
    assert!(
        !apart.headline.contains("overlap"),
        "what is left is nobody else's: {}",
        apart.headline
    );
}

#[test]
fn a_consequence_is_told_with_its_cause() {
    let c = shaped();
    let share = c.causes[0].share;
    let root = Some("network.shaping");
    let c = beside(c, "app.wait", share, root);
    let told = format!(
        ", {:.0} %, and as its consequence probably {} ({:.0} %).",
        share * 100.0,
        words("app.wait"),
        share * 100.0
    );
    assert!(c.headline.ends_with(&told), "{told} in {}", c.headline);
    let c = beside(c, "app.lock", share / 2.0, root);
    assert!(
        c.headline.contains(", and as its consequences probably")
            && !c.headline.contains("overlap"),
        "{}",
        c.headline
    );
}

#[test]
fn a_share_that_is_not_known_is_not_called_unexplained() {
    let load = |name| references::load(name).unwrap();
    let c = compare(
        &[load("launch-10.0.4")],
        &[load("launch-10.1")],
        &Options::default(),
    );
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].share, c.unexplained),
        ("memory.paging", 0.0, 1.0)
    );
    assert!(
        c.headline.ends_with(
            "probably paging on launch-10.0.4; how much of the difference that makes is not known."
        ),
        "{}",
        c.headline
    );
}

/// Page-ins that were read too late after the boot: the row is there, and nothing may be said of it.
#[test]
fn a_row_that_is_untrusted_is_not_called_too_imprecise() {
    let of = |probes: &[&str], outcome: Outcome| -> Run {
        let mut run = references::load("launch-10.1").unwrap();
        run.measurements.retain(|m| {
            probes.contains(&m.probe.as_str()) && m.params.text("state") != Some("uptime")
        });
        run.measurements
            .iter_mut()
            .filter(|m| m.probe == "launch.pageins")
            .for_each(|m| m.outcome = outcome);
        run
    };
    let headline = |probes: &[&str], outcome: Outcome| {
        compare(
            &[of(probes, Outcome::Measured)],
            &[of(probes, outcome)],
            &Options::default(),
        )
        .headline
    };
    let one = headline(&["launch.pageins"], Outcome::Untrusted);
    assert!(
        one.ends_with(
            "was found, but its one row cannot be relied on: a side's figure is untrusted."
        ),
        "{one}"
    );
    assert!(!headline(&["launch.pageins"], Outcome::Measured).contains("untrusted"));
    let among = headline(&["launch.pageins", "launch.time"], Outcome::Untrusted);
    assert!(
        among.contains("untrusted") && !among.contains("its one row"),
        "{among}"
    );
}

/// Two settings of one host have its name on both sides: "collapses on vm" would not say which of them does.
#[test]
fn the_side_that_collapses_is_named_where_both_have_one_name() {
    let of = |system: &str, hostname: &str| -> Run {
        let mut run = references::load(system).unwrap();
        // Not the published system any more, but a run of a host that is called so.
        (run.id, run.profile) = (
            format!("20260101T000000Z-{:08x}", system.len()),
            Profile::Standard,
        );
        run.host.hostname = hostname.into();
        run
    };
    let headline = |base: Run, new: Run| compare(&[base], &[new], &Options::default()).headline;
    let (falls, stays) = ("g5-2.7-darwin", "g5-2.5-linux");
    let told = headline(of(stays, "vm"), of(falls, "vm"));
    assert!(
        told.contains("database.throughput collapses on the new side from 5 clients on"),
        "{told}"
    );
    let told = headline(of(falls, "vm"), of(stays, "vm"));
    assert!(
        told.contains("database.throughput collapses on the base side from 5 clients on"),
        "{told}"
    );
    let told = headline(of(stays, "old"), of(falls, "young"));
    assert!(
        told.contains("database.throughput collapses on young from 5 clients on"),
        "{told}"
    );
}
