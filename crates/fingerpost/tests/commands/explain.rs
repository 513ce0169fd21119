//! `fingerpost explain`, end to end.

use std::process::{Command, Output};

use serde_json::Value;

fn explain(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fingerpost"))
        .arg("explain")
        .args(words)
        .output()
        .unwrap()
}

fn document(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("standard output is not one document: {e}; {error}"))
}

/// The share of a component in the budget, or, where nothing was followed, of a state in the threads' time.
fn share(explanation: &Value, component: &str, state: &str) -> f64 {
    let sum = |list: &Value, key: &str, name: &str| -> f64 {
        let all = list.as_array().into_iter().flatten();
        all.filter(|p| p[key].as_str().unwrap().starts_with(name))
            .map(|p| p["share"].as_f64().unwrap())
            .sum()
    };
    match explanation["threads"].as_array() {
        Some(_) => sum(&explanation["threads"], "state", state),
        None => sum(&explanation["budget"]["parts"], "component", component),
    }
}

#[test]
fn a_command_that_sleeps_is_explained_as_sleeping_in_both_ways() {
    for extra in [&["--sampling"][..], &[]] {
        let words = [extra, &["--format", "json", "--", "sleep", "0.7"]].concat();
        let found = document(&explain(&words));
        let e = &found["explanations"][0];
        assert!(share(e, "sleeping", "blocked: a timer") > 0.3, "{e:#}");
        let parts: f64 = e["budget"]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["share"].as_f64().unwrap())
            .sum();
        assert!((parts + e["budget"]["unexplained"].as_f64().unwrap() - 1.0).abs() < 1e-6);
        assert!(e["budget"]["seconds_per_transaction"].as_f64().unwrap() >= 0.7);
        let confirmed = e["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|f| f["status"] == "confirmed")
            .count();
        assert!(
            e.get("paths").is_some() || confirmed == 0,
            "what was not followed convicts nobody: {e:#}"
        );
    }
}

#[test]
fn without_a_subject_it_says_all_that_can_be_explained() {
    for words in [&[][..], &["--wide"], &["--"]] {
        let output = explain(words);
        let error = String::from_utf8_lossy(&output.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        for form in [
            "explain latest",
            "--pid",
            "--port",
            "--unit",
            "--cgroup",
            "--container",
            "explain -- COMMAND",
        ] {
            assert!(error.contains(form), "{words:?} without {form}: {error}");
        }
    }
}

#[test]
fn the_commands_own_output_does_not_get_into_the_document() {
    let output = explain(&[
        "--format",
        "json",
        "--",
        "sh",
        "-c",
        "echo hello from the command",
    ]);
    document(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("hello from the command"));
}

#[test]
fn the_cpu_time_of_children_that_came_and_went_is_counted() {
    let loops = "for i in 1 2 3 4 5 6 7 8; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; done";
    let found = document(&explain(&["--format", "json", "--", "sh", "-c", loops]));
    let e = &found["explanations"][0];
    let seen = share(e, "server user code", "user code")
        + share(e, "waiting for a CPU", "ready, waiting for a CPU")
        + share(e, "kernel", "kernel");
    assert!(seen > 0.6, "{e:#}");
}

#[test]
fn a_command_is_ended_when_its_time_is_up() {
    let found = document(&explain(&[
        "--seconds",
        "0.3",
        "--format",
        "json",
        "--",
        "sleep",
        "600",
    ]));
    let seconds = found["explanations"][0]["budget"]["seconds_per_transaction"]
        .as_f64()
        .unwrap();
    assert!((0.3..60.0).contains(&seconds), "{seconds}");
}

#[test]
fn the_picture_and_the_table_are_for_people() {
    let output = explain(&["--", "sleep", "0.7"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["time", "suspect", "verdict", "ruled out", "█"] {
        assert!(text.contains(word), "no “{word}” in {text}");
    }
    assert!(
        text.contains("followed"),
        "how much was followed is not in {text}"
    );
    assert!(
        !text.contains('\x1b'),
        "no colours where there is no terminal"
    );
    let markdown = explain(&["--format", "markdown", "--", "sleep", "0.1"]);
    assert!(
        String::from_utf8(markdown.stdout)
            .unwrap()
            .starts_with("## sleep 0.1")
    );
}

#[test]
fn mistakes_are_usage_errors_in_one_sentence() {
    for words in [
        &[][..],
        &["--", "/no/such/command"],
        &["--", "no-such-command-anywhere"],
        &["--seconds", "0", "--", "true"],
        &["/no/such/run.json"],
        &["latest", "--", "true"],
    ] {
        let output = explain(words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_command_that_fails_is_explained_all_the_same() {
    let output = explain(&["--format", "json", "--", "sh", "-c", "exit 3"]);
    document(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("its time is explained nevertheless"));
}

#[test]
fn a_run_is_explained_from_its_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    let mut run = serde_json::to_value(fingerpost_record::fixture::followed::slow_locks()).unwrap();
    // Of all requests, too, most of the time is with a lock.
    for leaf in run["paths"][0]["leaves"].as_array_mut().unwrap() {
        let locked = leaf["chain"] == serde_json::json!(["lock"]);
        leaf["all"] = serde_json::json!({
            "seconds": if locked { 9e-4 } else { 1e-6 }, "share": if locked { 0.75 } else { 0.01 },
            "low": if locked { 0.7 } else { 0.0 }, "high": if locked { 0.8 } else { 0.02 }
        });
    }
    std::fs::write(&path, run.to_string()).unwrap();
    let found = document(&explain(&["--format", "json", path.to_str().unwrap()]));
    let e = &found["explanations"][0];
    assert_eq!(
        (
            e["workload"].as_str(),
            e["findings"][0]["cause"].as_str(),
            e["findings"][0]["status"].as_str()
        ),
        (Some("database"), Some("app.lock"), Some("confirmed"))
    );
    assert!((share(e, "waiting for a lock", "") - 0.75).abs() < 1e-9);
    let longer = &e["slow"]["longer"][0];
    assert_eq!(
        longer["doing"]["component"].as_str(),
        Some("waiting for a lock"),
        "{longer}"
    );
    run["observations"] = serde_json::json!([]);
    run["paths"] = serde_json::json!([]);
    std::fs::write(&path, run.to_string()).unwrap();
    assert_eq!(explain(&[path.to_str().unwrap()]).status.code(), Some(2));
}

/// Busy loops that call themselves so: they end when this is dropped.
struct Loops(Vec<std::process::Child>);

impl Loops {
    fn named(name: &str) -> Loops {
        let script = format!(
            "import ctypes\nctypes.CDLL(None).prctl(15, {name:?}.encode())\nwhile True: pass"
        );
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        let loops = (0..2 * cpus)
            .map(|_| {
                Command::new("python3")
                    .args(["-c", &script])
                    .spawn()
                    .expect("python3 runs")
            })
            .collect();
        let loops = Loops(loops);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        for child in &loops.0 {
            let comm = format!("/proc/{}/comm", child.id());
            while std::fs::read_to_string(&comm).unwrap_or_default().trim() != name {
                assert!(
                    std::time::Instant::now() < deadline,
                    "no loop is called {name}"
                );
                std::thread::yield_now();
            }
        }
        loops
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What once stood in the same text as processes' names: a neighbour that chose one of these was ruled out.
#[test]
fn neighbours_are_accused_whatever_they_call_themselves() {
    for name in ["idle CPU", "the client"] {
        let loops = Loops::named(name);
        let work = "import time\nwhile time.process_time() < 0.6: pass";
        let found = document(&explain(&["--format", "json", "--", "python3", "-c", work]));
        drop(loops);
        let e = &found["explanations"][0];
        let Some(paths) = e.get("paths") else {
            return fingerpost_testing::skipped(format_args!("requests are followed here: {e:#}"));
        };
        let finding = |cause: &str| {
            let all = e["findings"].as_array().unwrap();
            all.iter().find(|f| f["cause"] == cause).cloned()
        };
        let contention = finding("cpu.contention").expect("contention was looked at");
        assert!(
            ["confirmed", "likely"].contains(&contention["status"].as_str().unwrap()),
            "beside loops that are called “{name}”: {contention:#}"
        );
        assert!(
            finding("client.saturated").is_none_or(|f| f["share"].as_f64().unwrap() == 0.0),
            "a command has no client: {e:#}"
        );
        assert!(
            paths["leaves"]
                .as_array()
                .unwrap()
                .iter()
                .any(|leaf| leaf["blocker"]["thread"]["comm"] == name),
            "{paths:#}"
        );
    }
}
