//! The flops and memory laboratories through the binary.

mod common;

use std::fs;

use common::{Home, Said};
use fingerpost_record::{Measurement, Outcome, Run};

fn run(home: &Home, words: &[&str]) -> (Said, Run) {
    let file = home.path().join("run.json");
    let file = file.to_str().unwrap();
    let said = home.says(&[&["run", "--quiet", "-o", file], words].concat());
    let run =
        serde_json::from_slice(&fs::read(file).unwrap_or_else(|e| panic!("{e}: {}", said.err)))
            .unwrap();
    (said, run)
}

fn of<'a>(run: &'a Run, probe: &str) -> Vec<&'a Measurement> {
    run.measurements
        .iter()
        .filter(|row| row.probe == probe)
        .collect()
}

#[test]
fn flops_has_a_row_per_module_and_compiler_and_the_limits() {
    let home = Home::with(&[]);
    let (said, run) = run(&home, &["flops", "--budget", "3"]);
    let rows = of(&run, "cpu.flops");
    let built_in = rows
        .iter()
        .filter(|row| row.params.text("compiler") == Some("built-in"))
        .count();
    assert_eq!(built_in, 8, "{}", said.err);
    assert!(
        rows.iter().all(|row| row.unit.as_str() == "flop/s" && row.estimate.is_some_and(|e| e.value > 0.0)),
        "{}",
        said.out
    );
    if fingerpost_testing::can(fingerpost_testing::is_installed("cc"), "cc") {
        let compiled: Vec<_> = rows
            .iter()
            .filter(|row| row.params.text("compiler") != Some("built-in"))
            .collect();
        assert!(
            !compiled.is_empty() && compiled.len().is_multiple_of(8),
            "{}",
            compiled.len()
        );
        assert!(compiled.iter().all(|row| {
            row.params
                .text("cflags")
                .is_some_and(|flags| flags.starts_with("-O2"))
        }));
    }
    assert_eq!(
        (of(&run, "cpu.peak").len(), of(&run, "cpu.frequency").len()),
        (6, 2)
    );
    for text in ["FADD", "average", "Peak scalar add", "GHz"] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
}

/// Flags that make a difference are found to make it; a record that names a program of its own as the compiler does not
/// get it run.
#[test]
fn flags_are_settled_and_a_records_own_compiler_is_not_run() {
    fingerpost_testing::require!("cc");
    let home = Home::with(&[]);
    let one = |flags: &str| {
        let file = format!("with{flags}.json");
        let flags = format!("cflags={flags}");
        home.says(&[
            "run",
            "cpu.flops",
            "--quiet",
            "--budget",
            "1",
            "--set",
            "module=4",
            "--set",
            "cc=cc",
            "--set",
            &flags,
            "-o",
            &file,
        ])
        .well();
        file
    };
    let settled = |base: &str, new: &str| -> serde_json::Value {
        let words = [
            "compare", base, new, "--settle", "--budget", "5", "--quiet", "--format", "json",
        ];
        serde_json::from_str::<serde_json::Value>(&home.says(&words).well()).unwrap()["settled"]
            .clone()
    };
    let (slow, fast) = (one("-O0"), one("-O2"));
    let of = settled(&slow, &fast);
    assert_eq!(
        (of[0]["what"].as_str(), of[0]["answer"].as_str()),
        (Some("cflags"), Some("decides")),
        "{of:#}"
    );

    let trace = home.path().join("it-ran");
    let program = home.path().join("compiler");
    fs::write(
        &program,
        format!("#!/bin/sh\ntouch {}\nexec cc \"$@\"\n", trace.display()),
    )
    .unwrap();
    assert!(
        std::process::Command::new("chmod")
            .arg("755")
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let mut run: Run = serde_json::from_slice(&fs::read(home.path().join(slow)).unwrap()).unwrap();
    for row in run
        .measurements
        .iter_mut()
        .filter(|row| row.params.text("compiler") != Some("built-in"))
    {
        row.params = row
            .params
            .clone()
            .with("compiler", program.to_str().unwrap());
    }
    fs::write(
        home.path().join("hostile.json"),
        serde_json::to_string(&run).unwrap(),
    )
    .unwrap();
    let of = settled("hostile.json", &fast);
    assert!(
        of.as_array()
            .unwrap()
            .iter()
            .all(|one| one["answer"] == "not_done"),
        "{of:#}"
    );
    assert!(
        of[0]["reason"]
            .as_str()
            .unwrap()
            .contains("a record may not choose cc="),
        "{of:#}"
    );
    assert!(!trace.exists(), "the program that the record names was run");
}

#[test]
fn a_named_compiler_that_fails_is_a_row_with_its_first_error() {
    fingerpost_testing::require!("cc");
    let home = Home::with(&[]);
    let words = [
        "cpu.flops",
        "--budget",
        "1",
        "--set",
        "module=2",
        "--set",
        "cc=cc,/nowhere/cc",
        "--set",
        "cflags=-O1 -fno-such-flag",
    ];
    let (said, run) = run(&home, &words);
    assert_eq!(said.status, 3);
    let failed: Vec<_> = run
        .measurements
        .iter()
        .filter(|row| row.outcome == Outcome::Failed)
        .collect();
    assert_eq!(failed.len(), 2, "{}", said.out);
    let reasons: Vec<&str> = failed
        .iter()
        .filter_map(|row| row.reason.as_deref())
        .collect();
    assert!(
        reasons[0].contains("fno-such-flag") && !reasons[0].contains('/'),
        "{reasons:?}"
    );
    assert!(
        reasons[1].contains("cannot start the compiler /nowhere/cc"),
        "{reasons:?}"
    );
    assert!(
        of(&run, "cpu.flops")
            .iter()
            .any(|row| row.params.text("compiler") == Some("built-in") && row.estimate.is_some())
    );
}

#[test]
fn flags_of_the_user_make_rows_of_their_own() {
    fingerpost_testing::require!("cc");
    let home = Home::with(&[]);
    let (said, run) = run(
        &home,
        &[
            "cpu.flops",
            "--budget",
            "1",
            "--set",
            "module=1,7",
            "--set",
            "cc=cc",
            "--set",
            "cflags=-O0 -Wl,-O1",
        ],
    );
    let rows: Vec<_> = of(&run, "cpu.flops")
        .into_iter()
        .filter(|row| row.params.get("cflags").is_some())
        .collect();
    assert_eq!(rows.len(), 2, "{} {}", said.out, said.err);
    assert!(
        rows.iter()
            .all(|row| row.params.text("cflags") == Some("-O0 -Wl,-O1") && row.estimate.is_some())
    );
}

#[test]
fn memory_measures_latency_and_bandwidth_as_a_staircase() {
    let home = Home::with(&[]);
    // How many rows a time is enough for is the machine's matter, and that of what else it does; no row fails in any.
    let fails = |row: &&Measurement| {
        let reason = row.reason.as_deref().unwrap_or_default();
        row.outcome == Outcome::Failed && !reason.contains("before the run ended")
    };
    let mut within = ["3", "6", "12", "48"].into_iter().map(|budget| {
        let (said, run) = self::run(&home, &["memory", "--profile", "quick", "--budget", budget]);
        let failed = of(&run, "memory.latency").into_iter().find(fails);
        assert!(failed.is_none(), "{failed:?}");
        (said, run)
    });
    let (said, run) = within
        .find(|(_, run)| of(run, "memory.latency").len() > 40)
        .expect("rows for the staircase");
    let latencies = of(&run, "memory.latency");
    let measured: Vec<_> = latencies.iter().filter_map(|row| row.estimate).collect();
    assert!(!measured.is_empty() && measured.iter().all(|e| e.value > 0.0));
    assert!(
        run.measurements
            .iter()
            .any(|row| row.params.get("threads").is_some())
    );
    assert!(said.out.contains("Memory hierarchy"), "{}", said.out);
    let page = home.path().join("report.html");
    home.says(&[
        "report",
        home.path().join("run.json").to_str().unwrap(),
        "-o",
        page.to_str().unwrap(),
    ]);
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("id=\"memory-hierarchy\"")
    );
}

#[test]
fn a_range_beyond_the_machine_is_skipped_and_a_bad_stride_said() {
    let home = Home::with(&[]);
    let (_, run) = run(
        &home,
        &[
            "memory.latency",
            "--budget",
            "1",
            "--set",
            "size=4096G",
            "--set",
            "stride=64",
        ],
    );
    assert!(
        of(&run, "memory.latency")
            .iter()
            .all(|row| row.outcome == Outcome::Skipped
                && row.reason.as_ref().unwrap().contains("memory"))
    );
    let (said, run) = self::run(
        &home,
        &[
            "memory.latency",
            "--budget",
            "1",
            "--set",
            "size=64K",
            "--set",
            "stride=12",
        ],
    );
    assert_eq!(said.status, 3);
    assert!(
        of(&run, "memory.latency")[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("strides of 12")
    );
}
