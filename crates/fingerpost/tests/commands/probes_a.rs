//! Each of these probes, every row of it, through the binary: the answer is whole, its values are plausible, and
//! nothing stays behind.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fingerpost_measure::slice::Slice;
use fingerpost_probes::protocol::{Request, parse_answer};
use fingerpost_record::Params;

use crate::plausible::{SLICE_NS, is_within_bounds};

const FAMILIES: [&str; 6] = ["signal.", "process.", "thread.", "vm.", "fs.", "syscall."];

fn request(probe: &str, params: Params, dir: &Path) -> Request {
    let cpus = vec![fingerpost_sys::affinity::allowed_cpus().unwrap()[0]];
    Request {
        probe: probe.to_owned(),
        slice_ns: SLICE_NS,
        batch: 0,
        cpus,
        counters: false,
        dir: dir.to_owned(),
        params,
    }
}

/// Runs a probe in a process group of its own; gives its answer and the group.
fn run(request: &Request) -> (String, u32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fingerpost"));
    let child = command
        .args(request.to_args())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let group = child.id();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), group)
}

/// The processes of a group that still run.
fn members(group: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        (fields.get(2)? == &group.to_string().as_str()).then_some(stat.clone())
    });
    processes.collect()
}

fn nothing_left(group: u32) {
    // A child that the probe left is gone by now, or will never go: a minute is for a machine under load.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !members(group).is_empty() {
        assert!(
            Instant::now() < deadline,
            "left behind: {:?}",
            members(group)
        );
        std::thread::yield_now();
    }
}

#[test]
fn every_row_answers_with_plausible_values_and_leaves_nothing() {
    let mut seen = BTreeSet::new();
    for probe in fingerpost_probes::all().filter(|p| FAMILIES.iter().any(|f| p.name.starts_with(f)))
    {
        for params in (probe.variants)() {
            let dir = tempfile::tempdir().unwrap();
            let row = format!("{} {params}", probe.name);
            is_within_bounds(probe, &params, || {
                let (answer, group) = run(&request(probe.name, params.clone(), dir.path()));
                nothing_left(group);
                match parse_answer(&answer, probe.unit) {
                    Slice::Samples(samples) => {
                        assert!(samples.process.batch >= 1 && samples.resident > 0, "{row}");
                        Some(samples.process.samples)
                    }
                    // It takes a C library that is linked dynamically.
                    Slice::Skipped(reason) if probe.name == "process.exec_dynamic" => {
                        println!("{row} skipped: {reason}");
                        None
                    }
                    Slice::Skipped(reason) => {
                        fingerpost_testing::skipped(format_args!("{row}: {reason}"));
                        None
                    }
                    other => panic!("{row}: {other:?}"),
                }
            });
            seen.insert(probe.name);
        }
    }
    assert!(seen.len() >= 31, "only {} probes ran: {seen:?}", seen.len());
}

#[test]
fn a_failing_operation_is_a_failure_and_never_a_fast_one() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    for (probe, params) in [
        ("fs.create", Params::new().with("size", 0)),
        ("fs.rename", Params::new()),
        ("fs.fsync", Params::new().with("size", 4096)),
        ("syscall.open_close", Params::new()),
        ("vm.fault_file", Params::new().with("pages", 1)),
        ("process.exec", Params::new()),
    ] {
        let (answer, group) = run(&request(probe, params, &nowhere));
        assert!(
            matches!(
                parse_answer(&answer, fingerpost_record::Unit::Nanoseconds),
                Slice::Failed(_)
            ),
            "{probe}: {answer}"
        );
        assert!(
            answer.contains("nowhere") && answer.lines().count() == 1,
            "{probe}: {answer}"
        );
        nothing_left(group);
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    for (probe, params) in [
        ("syscall.select", Params::new()),
        ("syscall.poll", Params::new().with("fds", 0)),
        ("syscall.epoll", Params::new().with("fds", 100_000)),
        ("vm.mmap", Params::new().with("pages", -1)),
        ("vm.munmap", Params::new().with("pages", i64::MAX)),
        ("vm.fault_anon", Params::new().with("pages", "many")),
        ("fs.append", Params::new().with("size", 0)),
        ("fs.create", Params::new().with("size", i64::MAX)),
        ("process.fork", Params::new().with("resident", -1)),
    ] {
        let (answer, _) = run(&request(probe, params, dir.path()));
        assert!(answer.starts_with("fail parameter "), "{probe}: {answer}");
    }
}

/// What a row times must depend on its parameter in the direction that everyone knows; a factor of two leaves room for
/// any noise but that of a machine that is busy for long, whose best times come later.
#[test]
fn more_work_takes_longer() {
    let dir = tempfile::tempdir().unwrap();
    let best = |probe: &str, name: &str, value: i64| {
        let (answer, _) = run(&request(probe, Params::new().with(name, value), dir.path()));
        match parse_answer(&answer, fingerpost_record::Unit::Nanoseconds) {
            Slice::Samples(samples) => samples
                .process
                .samples
                .into_iter()
                .fold(f64::INFINITY, f64::min),
            other => panic!("{probe}: {other:?}"),
        }
    };
    for (probe, name, small, large) in [
        ("syscall.select", "fds", 10, 250),
        ("syscall.poll", "fds", 10, 250),
        ("process.fork", "resident", 0, 64 << 20),
        ("vm.munmap", "pages", 1, 256),
        ("vm.mprotect", "pages", 1, 256),
    ] {
        let (mut little, mut much) = (f64::INFINITY, f64::INFINITY);
        let mut holds = |_| {
            (little, much) = (
                little.min(best(probe, name, small)),
                much.min(best(probe, name, large)),
            );
            much > 2.0 * little
        };
        // Three of each at the least.
        let held = (0..3).map(&mut holds).last() == Some(true) || (0..60).any(&mut holds);
        assert!(
            held,
            "{probe}: {little} ns with {name}={small}, {much} ns with {name}={large}"
        );
    }
}
