//! `run` as a user runs it.

use std::io::Read;
use std::process::Stdio;

use crate::common::{Home, Said, until};
use fingerpost_record::descriptor::{Descriptor, HostDependence, table};
use fingerpost_record::{Outcome, Run, load};
use rustix::process::{Pid, Signal, kill_process};

fn parse(said: &Said) -> Run {
    load::from_slice(said.out.as_bytes(), "standard output").unwrap()
}

#[test]
fn a_named_family_is_measured_printed_and_kept() {
    let home = Home::with(&[]);
    let said = home.says(&[
        "run",
        "syscall.null",
        "clock",
        "--budget",
        "2",
        "--seed",
        "7",
        "--format",
        "json",
    ]);
    assert_eq!(said.status, 0, "{}", said.err);
    let run = parse(&said);
    assert_eq!(
        (run.seed, run.complete, run.measurements.len()),
        (7, true, 3)
    );
    for row in &run.measurements {
        // On a busy machine a row may be untrusted; it has its figure all the same.
        assert!(
            row.estimate.is_some() && row.percentiles.is_some(),
            "{:?} {:?}",
            row.outcome,
            row.reason
        );
        assert!(
            row.processes
                .iter()
                .all(|p| p.value.is_some() && p.batch > 0)
        );
        let probe = fingerpost_probes::find(&row.probe).unwrap();
        assert_eq!(
            row.descriptor,
            Some(probe.descriptor(&row.params)),
            "{}",
            row.probe
        );
    }
    let null = run
        .measurements
        .iter()
        .find(|row| row.probe == "syscall.null")
        .and_then(|row| row.descriptor.as_ref())
        .unwrap();
    assert_eq!(
        (&*null.table.title, null.entries, null.lmbench.as_deref()),
        ("System calls", Some(1.0), Some("null call"))
    );
    assert!(run.instrument.clock_ns > 0.0 && run.instrument.resolution_ns > 0.0);
    assert!(!run.host.kernel.is_empty() && run.host.memory_bytes > 0);
    assert!(
        said.err.contains("measuring 3 rows") && said.err.contains(&run.id),
        "{}",
        said.err
    );
    // What was kept is what was printed.
    assert_eq!(
        load::from_path(&home.runs().join(format!("{}.json", run.id))).unwrap(),
        run
    );
}

#[test]
fn a_probe_process_is_small_when_its_loop_starts() {
    let home = Home::with(&[]);
    let run = parse(&home.says(&[
        "run",
        "clock.loop",
        "--budget",
        "1",
        "--format",
        "json",
        "-q",
    ]));
    let resident = run.instrument.probe_resident_bytes;
    assert!(resident > 0);
    // The unoptimised binary that tests are built with is several times the size of the one that is shipped.
    assert!(resident < 8 << 20, "{resident} bytes");
}

#[test]
fn with_one_cpu_what_needs_two_is_skipped_with_the_reason() {
    let home = Home::with(&[]);
    let run = parse(&home.says(&[
        "run",
        "ipc.pipe",
        "parallel.vm",
        "--cpu",
        "0",
        "--budget",
        "2",
        "--format",
        "json",
        "-q",
    ]));
    for row in &run.measurements {
        assert!(row.descriptor.is_some());
        let two = row.params.text("placement") != Some("same");
        assert_eq!(
            (row.outcome == Outcome::Skipped, row.estimate.is_some()),
            (two, !two),
            "{} {}",
            row.probe,
            row.params
        );
        assert_eq!(
            two,
            row.reason
                .as_ref()
                .is_some_and(|r| r.contains("needs 2 CPUs"))
        );
    }
    assert!(run.measurements.iter().any(|row| row.estimate.is_some()));
}

#[test]
fn a_setting_of_several_values_makes_several_rows() {
    let home = Home::with(&[]);
    let run = parse(&home.says(&[
        "run",
        "syscall.poll",
        "--set",
        "fds=5,50",
        "--budget",
        "1",
        "--format",
        "json",
        "-q",
    ]));
    let fds: Vec<_> = run
        .measurements
        .iter()
        .filter_map(|row| row.params.int("fds"))
        .collect();
    assert_eq!(
        (fds.len(), fds.contains(&5), fds.contains(&50)),
        (2, true, true)
    );
}

#[test]
fn an_interrupted_run_keeps_what_it_had_and_says_so() {
    let home = Home::with(&[]);
    let mut child = home
        .command(&[
            "run", "syscall", "clock", "--budget", "600", "--format", "json", "-q",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let measured = || {
        let file = std::fs::read_dir(home.runs())
            .ok()?
            .flatten()
            .map(|e| e.path())
            .find(|p| p.extension().is_some_and(|e| e == "json"))?;
        load::from_path(&file)
            .ok()?
            .measurements
            .iter()
            .any(|m| m.estimate.is_some())
            .then_some(())
    };
    until("a measurement is written", || measured().is_some());
    // Two at once, as from `timeout`, which signals the command and then its group: they are one. Two kinds, as two of
    // one kind may merge.
    for signal in [Signal::TERM, Signal::INT] {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let run = load::from_slice(out.as_bytes(), "standard output").unwrap();
    assert!(!run.complete && run.measurements.iter().any(|m| m.estimate.is_some()));
    assert!(err.contains("interrupted"), "{err}");
}

#[test]
fn wrong_words_get_one_sentence_and_status_two() {
    let home = Home::with(&[]);
    for (words, wanted) in [
        (vec!["run", "syscal.null"], "fingerpost list"),
        (vec!["run", "syscall.null", "--set", "fds"], "KEY=VALUE"),
        (
            vec!["run", "syscall.null", "--set", "fds=3"],
            "has a setting",
        ),
        (
            vec!["run", "syscall.null", "--cpu", "9999"],
            "may not use CPU 9999",
        ),
        (vec!["run", "syscall.null", "--cpu", "x"], "list of CPUs"),
        (vec!["run", "syscall.null", "--budget", "-1"], "budget"),
        (
            vec!["run", "syscall.stat", "--set", "dir=/nonexistent"],
            "/nonexistent",
        ),
    ] {
        let said = home.says(&words);
        assert!(said.err.contains(wanted), "{words:?}: {}", said.err);
        said.refused();
    }
}

#[test]
fn files_go_to_the_named_directory_and_leave_nothing_there() {
    let home = Home::with(&[]);
    let dir = home.path().join("disk");
    std::fs::create_dir(&dir).unwrap();
    let setting = format!("dir={}", dir.display());
    let run = parse(&home.says(&[
        "run",
        "fs.create",
        "--set",
        &setting,
        "--budget",
        "1",
        "--format",
        "json",
        "-q",
    ]));
    assert!(
        run.host.filesystem.path.starts_with(dir.to_str().unwrap()),
        "{:?}",
        run.host.filesystem
    );
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

/// A server behind other words, and data on another disk, are other rows; whose directory it is is nobody's business.
#[test]
fn rows_of_a_server_state_its_prefix_and_file_system() {
    let home = Home::with(&[]);
    let dir = home.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    let setting = format!("dir={}", dir.display());
    let words = [
        "run",
        "database",
        "--set",
        "clients=1",
        "--profile",
        "quick",
        "--budget",
        "1",
        "--format",
        "json",
        "-q",
    ];
    let stated = |more: &[&str]| {
        // As it was written: what reads a record adds to older ones what their command tells.
        let run: Run = serde_json::from_str(&home.says(&[&words[..], more].concat()).out).unwrap();
        assert!(
            run.measurements
                .iter()
                .any(|m| m.probe == "database.throughput" && m.estimate.is_some()),
            "{:?}",
            run.measurements
        );
        let of_a_server = Some(Descriptor {
            depends_on_host: Some(HostDependence::Server),
            ..Descriptor::of(&table::DATABASE)
        });
        assert!(
            run.measurements.iter().all(|m| m.descriptor == of_a_server),
            "{:?}",
            run.measurements
        );
        assert!(
            !run.measurements
                .iter()
                .any(|m| m.params.to_string().contains(home.path().to_str().unwrap())),
            "no path is stated"
        );
        let keys = |m: &fingerpost_record::Measurement| {
            m.params
                .only(|key, _| ["server_prefix", "dir_fs"].contains(&key))
                .to_string()
        };
        let mut all: Vec<String> = run.measurements.iter().map(keys).collect();
        all.dedup();
        (all, run.host.filesystem.kind)
    };
    let (all, kind) = stated(&["--server-prefix", "nice -n 5", "--set", &setting]);
    assert_eq!(all, [format!("dir_fs={kind} server_prefix=nice -n 5")]);
    assert_eq!(stated(&[]).0, [""]);
}

#[test]
fn list_tells_what_every_probe_times() {
    let home = Home::with(&[]);
    let all = home.says(&["list"]).well();
    assert!(
        ["syscall.null", "process.fork", "parallel.vm", "memory.copy"]
            .iter()
            .all(|name| all.contains(name)),
        "{all}"
    );
    assert!(
        home.says(&["list", "syscall.null"])
            .well()
            .contains("getppid")
    );
    let json: serde_json::Value =
        serde_json::from_str(&home.says(&["list", "--format", "json"]).well()).unwrap();
    assert!(
        json.as_array()
            .unwrap()
            .iter()
            .all(|entry| entry["name"].is_string() && entry["kind"].is_string())
    );
    let family = home.says(&["list", "sync"]).well();
    assert!(
        family.contains("sync.mutex")
            && family.contains("sync.condvar")
            && !family.contains("syscall.null"),
        "{family}"
    );
    home.says(&["list", "nothing.*"]).refused();
}

#[test]
fn list_tells_of_published_figures_that_no_probe_measures() {
    let home = Home::with(&[]);
    let text = home.says(&["list", "lmbench.null_io"]).well();
    assert!(
        text.contains("null I/O") && text.contains("the mean of syscall.read and syscall.write"),
        "{text}"
    );
    assert!(
        text.contains("neither of the two alone is equal to it") && !text.contains("unit"),
        "{text}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&home.says(&["list", "lmbench", "--format", "json"]).well()).unwrap();
    let of = |name: &str| {
        json.as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["name"] == name)
            .unwrap()["mean_of"]
            .clone()
    };
    assert_eq!(
        (of("lmbench.null_io"), of("lmbench.select_files").is_null()),
        (serde_json::json!(["syscall.read", "syscall.write"]), true)
    );
    assert!(
        !home.says(&["list"]).well().contains("lmbench.null_io"),
        "nothing here measures it"
    );
    let refused = home.says(&["run", "lmbench.null_io"]).refused();
    assert!(
        refused.contains("it is the mean of syscall.read and syscall.write"),
        "{refused}"
    );
    assert!(
        home.completes(&["list", "lmb"])
            .contains(&"lmbench.null_io".to_owned())
    );
}

/// A program on `PATH` with this name and script.
fn put(dir: &std::path::Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = dir.join(format!("fingerpost-probe-{name}"));
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_probe_of_others_is_listed_and_run_by_its_name() {
    let home = Home::with(&[]);
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let answer = "batch 10\\ns 10 500 0\\ns 10 520 0\\ns 10 510 0\\nend\\n";
    put(
        &bin,
        "my.op",
        &format!("[ \"$1 $2\" = \"__probe my.op\" ] || exit 9\nsleep 0.01\nprintf '{answer}'"),
    );
    put(&bin, "endless", "yes 's 1 1 0'");
    put(&bin, "many", "yes 's 1 1 0' | head -n 100000; echo end");
    put(
        &bin,
        "rude",
        "printf 'fail \\033[31m'; yes no | head -c 1000000 | tr -d '\\n'",
    );
    put(&bin, "syscall.null", "echo 's 1 1 0'; echo end");
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(bin).chain(std::env::split_paths(&inherited));
    let path = std::env::join_paths(dirs).unwrap();
    let says = |words: &[&str]| Said::of(&home.command(words).env("PATH", &path).output().unwrap());

    let list = says(&["list"]).out;
    assert!(
        list.contains("my.op") && list.contains("a probe of others"),
        "{list}"
    );
    let ours = list
        .lines()
        .filter(|line| line.trim_start().starts_with("syscall.null "));
    assert_eq!(ours.count(), 1, "{list}");
    let run = |name: &str| {
        let file = home.path().join("of_others.json");
        let said = says(&[
            "run",
            name,
            "--budget",
            "1",
            "--quiet",
            "-o",
            file.to_str().unwrap(),
        ]);
        let run = load::from_path(&file).unwrap_or_else(|e| panic!("{e}: {}", said.err));
        run.measurements.into_iter().next().expect("one row")
    };
    let row = run("my.op");
    assert_eq!(
        (row.probe.as_str(), row.outcome),
        ("my.op", Outcome::Measured)
    );
    let figure = row.estimate.expect("a figure").value;
    assert!((50.0..=52.0).contains(&figure), "{figure}");
    for hostile in ["endless", "many", "rude"] {
        let row = run(hostile);
        assert!(row.outcome != Outcome::Measured, "{hostile}: {row:?}");
        let reason = row.reason.expect("it says why");
        assert!(
            reason.len() < 2000 && !reason.contains('\u{1b}'),
            "{hostile}: {reason}"
        );
    }
    // Nothing runs by itself, and what is not there is unknown.
    assert!(says(&["run", "no.such"]).refused().contains("no.such"));
}
