//! What experiments say where signs point elsewhere.

use fingerpost_record::{Answer, Change, Estimate, Experiment, Measure, Run, Status};

use super::runs::run;
use super::{accused, between, cpu, of};

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
    assert_eq!(accused(&c, Status::Guilty), ["cpu.priority"], "{:#?}", c.causes);
    assert!(of(&c, "cpu.contention").evidence.iter().any(|e| e.contains("on both sides")), "{:#?}", c.causes);
    let c = between(run(&[], &[("other.cpu.seconds", 0.1)]), new());
    assert_eq!(c.causes[0].cause, "cpu.contention", "the neighbours came, too: {:#?}", c.causes);
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
        effect: Some(Estimate { value, low, high, confidence: 0.95 }),
        answer: Answer::Faster,
        reason: None,
    }
}
