//! The same records give the same verdicts: cause, status and share of every recorded trial, both ways round, of each of
//! its sides alone, and of the made-up records that tests share, beside what they were (`verdicts.txt`).
//!
//! A change that is meant writes them anew (`UPDATE_VERDICTS=1`), and its commit says what differs and why.

use std::fmt::Write;
use std::path::Path;

use fingerpost_compare::{Options, compare};
use fingerpost_diagnose::{StepFigures, explain};
use fingerpost_record::{
    Budget, Finding, Measurement, Observation, Paths, Readings, Run, SCHEMA, fixture,
};
use serde::Deserialize;

#[derive(Clone, Deserialize)]
struct Side {
    throughput: Measurement,
    observations: Vec<Observation>,
    budget: Budget,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Recorded {
    base: Side,
    new: Side,
}

impl Side {
    fn into_run(self) -> Run {
        Run {
            schema: SCHEMA.into(),
            measurements: vec![self.throughput],
            observations: self.observations,
            budgets: vec![self.budget],
            findings: self.findings,
            complete: true,
            ..Run::default()
        }
    }
}

fn tell(into: &mut String, what: &str, findings: &[Finding]) {
    writeln!(into, "{what}").unwrap();
    for f in findings {
        let Finding {
            cause,
            status,
            share,
            ..
        } = f;
        let step = f
            .step
            .as_ref()
            .map_or(String::new(), |step| format!(" {step}"));
        writeln!(into, "  {cause} {} {share:.6}{step}", status.as_str()).unwrap();
    }
}

/// What two sides come to, and each alone by the same observations.
fn tell_both(into: &mut String, name: &str, base: &Run, new: &Run) {
    let of = |a: &Run, b: &Run| {
        let options = Options::default();
        let found = compare(std::slice::from_ref(a), std::slice::from_ref(b), &options);
        (found.causes, found.unexplained)
    };
    for (way, (a, b)) in [("there", (base, new)), ("back", (new, base))] {
        let (causes, unexplained) = of(a, b);
        tell(into, &format!("{name} {way}"), &causes);
        writeln!(into, "  unexplained {unexplained:.6}").unwrap();
    }
}

fn tell_alone(into: &mut String, name: &str, run: &Run) {
    for budget in &run.budgets {
        let of_step = |o: &&Observation| o.workload == budget.workload && o.params == budget.params;
        let totals = Readings::of(run.observations.iter().filter(of_step));
        let paths = run
            .paths
            .iter()
            .find(|p: &&Paths| p.workload == budget.workload && p.params == budget.params);
        let Some(figures) = StepFigures::from_totals(&totals) else {
            continue;
        };
        let (_, found) = explain(&figures, &totals, paths);
        tell(into, &format!("{name} {}", budget.params), &found);
        let again: Vec<_> = run.experiments.to_vec();
        tell(
            into,
            &format!("{name} {} with experiments", budget.params),
            &fingerpost_diagnose::deciding::verdict(&found, &again),
        );
    }
}

#[test]
fn the_same_records_give_the_same_verdicts() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut said = String::new();
    let mut files: Vec<_> = std::fs::read_dir(here.join("recorded"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let recorded: Recorded =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let [base, new] = [recorded.base, recorded.new].map(Side::into_run);
        tell_both(&mut said, &name, &base, &new);
        tell_alone(&mut said, &format!("{name} base alone"), &base);
        tell_alone(&mut said, &format!("{name} new alone"), &new);
    }
    let made_up = [
        ("run", fixture::run()),
        ("later_run", fixture::later_run()),
        ("with_everything", fixture::with_everything()),
        ("healthy", fixture::loaded::healthy()),
        ("collapsed", fixture::loaded::collapsed()),
        ("followed healthy", fixture::followed::healthy()),
        ("slow_locks", fixture::followed::slow_locks()),
    ];
    for (i, (name, base)) in made_up.iter().enumerate() {
        tell_alone(&mut said, &format!("fixture {name}"), base);
        for (other, new) in &made_up[i + 1..] {
            tell_both(&mut said, &format!("fixture {name} {other}"), base, new);
        }
    }
    let known = here.join("verdicts.txt");
    if std::env::var_os("UPDATE_VERDICTS").is_some() {
        std::fs::write(&known, &said).unwrap();
    }
    let before = std::fs::read_to_string(&known).unwrap();
    let differs: Vec<_> = before
        .lines()
        .zip(said.lines())
        .filter(|(was, is)| was != is)
        .take(20)
        .collect();
    assert!(
        differs.is_empty() && before.lines().count() == said.lines().count(),
        "{differs:#?}"
    );
}
