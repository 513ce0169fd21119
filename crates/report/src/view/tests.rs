use fingerpost_compare::Options;
use fingerpost_record::{Descriptor, Estimate, Table, fixture};

use super::*;

#[test]
fn every_measurement_is_in_one_group_in_a_fixed_order() {
    let run = fixture::run();
    let view = View::of(&run, &[]);
    assert_eq!(
        view.groups.iter().map(|g| g.rows.len()).sum::<usize>(),
        run.measurements.len()
    );
    let titles: Vec<&str> = view.groups.iter().map(|g| &*g.table.title).collect();
    assert_eq!(
        titles[..3],
        ["Processor & clock", "System calls", "Signals"]
    );
    assert_eq!(*titles.last().unwrap(), "CPU arithmetic");

    let mut shuffled = run.clone();
    shuffled.measurements.reverse();
    let names = |v: &View| {
        v.groups
            .iter()
            .flat_map(|g| &g.rows)
            .map(Row::name)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&View::of(&shuffled, &[]))[..10],
        names(&view)[..10],
        "the order measured does not matter to known probes"
    );
    let selects: Vec<String> = names(&view)
        .into_iter()
        .filter(|n| n.contains("select"))
        .collect();
    assert_eq!(selects, ["syscall.select fds=10", "syscall.select fds=100"]);
}

/// What a record states of its rows is taken as what is known by name of rows that state nothing.
#[test]
fn a_run_that_states_its_descriptors_looks_as_one_of_before() {
    let before = fixture::with_everything();
    let mut stated = before.clone();
    stated
        .measurements
        .iter_mut()
        .for_each(|m| m.descriptor = Some(m.descriptor().into_owned()));
    let shown = |run: &Run, format: &str| {
        let mut text = Vec::new();
        crate::format::write_run(
            &mut text,
            run,
            &[],
            format.parse().unwrap(),
            &crate::Style::default(),
        )
        .unwrap();
        text
    };
    for format in ["table", "csv", "markdown"] {
        assert!(shown(&stated, format) == shown(&before, format), "{format}");
    }
    assert!(crate::html::report(&stated, &[], None) == crate::html::report(&before, &[], None));
    let compared = |run: &Run| {
        let mut new = run.clone();
        let slower = |e: &mut Estimate| {
            *e = Estimate {
                value: e.value * 1.2,
                low: e.low * 1.2,
                high: e.high * 1.2,
                ..*e
            }
        };
        new.measurements
            .iter_mut()
            .filter_map(|m| m.estimate.as_mut())
            .for_each(slower);
        serde_json::to_string(&fingerpost_compare::compare(
            std::slice::from_ref(run),
            &[new],
            &Options::default(),
        ))
        .unwrap()
    };
    assert_eq!(compared(&stated), compared(&before));
}

#[test]
fn rows_of_a_table_that_nobody_knows_stand_under_its_own_title_behind_the_others() {
    let mut run = fixture::run();
    let queues = Descriptor {
        place: Some(1),
        ..Descriptor::of(&Table::new("queues", "Message\u{1b}[31m queues"))
    };
    run.measurements[0].descriptor = Some(queues.clone());
    run.measurements[1].descriptor = Some(Descriptor {
        place: Some(0),
        ..queues
    });
    let view = View::of(&run, &[]);
    let last = view.groups.last().unwrap();
    assert_eq!(&*last.table.title, "Message\u{fffd}[31m queues");
    assert_eq!(
        [&last.rows[0].probe, &last.rows[1].probe],
        [&run.measurements[1].probe, &run.measurements[0].probe]
    );
}

#[test]
fn skipped_rows_of_one_reason_are_told_together() {
    let view = View::of(&fixture::run(), &[]);
    let parallel = view
        .groups
        .iter()
        .find(|g| g.table.key == "parallel")
        .unwrap();
    assert_eq!(parallel.shown().count(), 0);
    let skipped = parallel.skipped();
    assert_eq!(skipped.len(), 1);
    assert_eq!(
        skipped[0].names,
        ["parallel.fs", "parallel.net", "parallel.vm"]
    );
    // The failed variant of ipc.tcp is no skipped one, and is shown.
    let latencies = view
        .groups
        .iter()
        .find(|g| g.table.key == "latencies")
        .unwrap();
    assert!(latencies.skipped().is_empty());
    assert_eq!(
        latencies
            .shown()
            .filter(|r| r.outcome == Outcome::Failed)
            .count(),
        1
    );
}

#[test]
fn the_command_repeats_the_run_with_its_seed() {
    let mut run = fixture::run();
    assert_eq!(
        View::of(&run, &[]).command.unwrap(),
        "fingerpost run --profile quick --seed 42"
    );
    run.command = [
        "/usr/bin/fingerpost",
        "run",
        "syscall.*",
        "--seed",
        "7",
        "it's",
    ]
    .map(String::from)
    .to_vec();
    assert_eq!(
        View::of(&run, &[]).command.unwrap(),
        r"fingerpost run 'syscall.*' --seed 7 'it'\''s'"
    );
    run.command.clear();
    assert_eq!(
        View::of(&run, &[]).command.unwrap(),
        "fingerpost run --profile quick --seed 42"
    );
}

#[test]
fn a_partial_run_is_a_doubt() {
    let mut run = fixture::run();
    run.complete = false;
    let view = View::of(&run, &[]);
    assert!(view.doubts[0].contains("partial"));
    assert!(view.headline.iter().any(|f| f.text.contains("partial")));
}

#[test]
fn durations_are_said_as_a_person_says_them() {
    assert_eq!(duration(58.25), "58.2 s");
    assert_eq!(duration(754.9), "12 min 34 s");
}

#[test]
fn what_the_host_does_not_tell_is_left_out() {
    let mut run = fixture::run();
    run.host = Host::default();
    let view = View::of(&run, &[]);
    assert!(
        view.headline
            .iter()
            .all(|f| !matches!(f.name, "Host" | "Kernel" | "Processor" | "Memory")),
        "{:?}",
        view.headline
    );
}

#[test]
fn an_imported_run_was_published_and_not_measured_here() {
    let mut run = fixture::run();
    run.profile = Profile::Imported;
    run.complete = false;
    run.source = Some("an article".into());
    let view = View::of(&run, &[]);
    let names: Vec<&str> = view.headline.iter().map(|f| f.name).collect();
    assert!(names.ends_with(&["Published", "Source"]), "{names:?}");
    assert!(view.doubts.iter().all(|d| !d.contains("partial")));
    assert_eq!(view.command, None);
}
