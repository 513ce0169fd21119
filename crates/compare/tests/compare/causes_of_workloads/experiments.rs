//! What experiments say where signs point elsewhere.

use fingerpost_record::{Answer, Blocker, Change, Estimate, Experiment, Measure, Run, Status};

use super::{accused, between, cpu, of};
use crate::runs::run;

#[test]
fn a_setting_that_lets_the_neighbours_of_both_sides_go_first_comes_before_them() {
    let beside = ("other.cpu.seconds", 12.0);
    let tried = |mut run: Run| {
        run.experiments = vec![
            experiment(Change::Hold, &["cpu.contention"], [2.0, 1.9, 2.1]),
            experiment(Change::Priority, &["cpu.priority"], [1.8, 1.7, 1.9]),
            experiment(Change::Weight, &["cpu.priority"], [1.5, 1.0, 2.0]),
        ];
        run
    };
    let new = || tried(run(&[cpu("stress")], &[beside, ("server.nice", 15.0)]));
    let c = between(run(&[], &[beside]), new());
    assert_eq!(
        accused(&c, Status::Confirmed),
        ["cpu.priority"],
        "{:#?}",
        c.causes
    );
    assert!(
        of(&c, "cpu.contention")
            .evidence
            .iter()
            .any(|e| e.metric == fingerpost_record::Metric::OthersOnBothSides),
        "{:#?}",
        c.causes
    );
    let c = between(run(&[], &[("other.cpu.seconds", 0.1)]), new());
    assert_eq!(
        c.causes[0].cause, "cpu.contention",
        "the neighbours came, too: {:#?}",
        c.causes
    );
}

#[test]
fn a_suspect_whose_part_may_be_nothing_has_what_a_change_took_away_of_it() {
    let others = [("other.cpu.seconds", 12.0), ("other.cpu.hog.seconds", 11.5)];
    let with = |sure: bool, effect: [f64; 3], answer: Answer| {
        let mut new = run(&[cpu("stress")], &others);
        for leaf in new.paths[0]
            .leaves
            .iter_mut()
            .filter(|leaf| !sure && leaf.blocker == Some(Blocker::thread("stress")))
        {
            (leaf.all.low, leaf.all.high) = (0.0, 2.0);
        }
        new.experiments = vec![Experiment {
            answer,
            ..experiment(Change::Weight, &["cpu.contention"], effect)
        }];
        let c = between(run(&[], &[]), new);
        let f = of(&c, "cpu.contention");
        (
            f.status,
            f.evidence
                .iter()
                .any(|e| e.metric == fingerpost_record::Metric::LeftOfUnsure),
        )
    };
    let (nothing, same) = ([1.01, 1.0, 1.04], Answer::Same);
    assert_eq!(with(false, nothing, same), (Status::NotObserved, true));
    assert_eq!(
        with(false, [1.01, 0.9, 1.1], Answer::Unresolved),
        (Status::Likely, false),
        "an experiment that tells nothing"
    );
    assert_eq!(
        with(true, nothing, same),
        (Status::Confirmed, false),
        "its part is sure: a weight need not take all of it away"
    );
}

fn experiment(change: Change, tests: &[&str], [value, low, high]: [f64; 3]) -> Experiment {
    let of = run(&[], &[]);
    Experiment {
        workload: of.observations[0].workload.clone(),
        params: of.observations[0].params.clone(),
        change,
        what: "it changed".into(),
        tests: tests.iter().map(|t| (*t).to_owned()).collect(),
        by: Measure::Rate,
        pairs: Vec::new(),
        effect: Some(Estimate {
            value,
            low,
            high,
            confidence: 0.95,
        }),
        answer: Answer::Faster,
        reason: None,
    }
}
