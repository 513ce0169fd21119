//! `fingerpost explain`, end to end.

use std::process::{Command, Output};

use serde_json::Value;

fn explain(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fingerpost")).arg("explain").args(words).output().unwrap()
}

fn document(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("standard output is not one document: {e}; {error}"))
}

fn share(explanation: &Value, component: &str) -> f64 {
    let parts = explanation["budget"]["parts"].as_array().unwrap();
    parts.iter().filter(|p| p["component"].as_str().unwrap().starts_with(component)).map(|p| p["share"].as_f64().unwrap()).sum()
}

#[test]
fn a_command_that_sleeps_is_explained_as_sleeping_in_both_ways() {
    for extra in [&["--sampling"][..], &[]] {
        let words = [extra, &["--format", "json", "--", "sleep", "0.7"]].concat();
        let found = document(&explain(&words));
        let e = &found["explanations"][0];
        assert!(share(e, "sleeping") > 0.3, "{e:#}");
        let parts: f64 = e["budget"]["parts"].as_array().unwrap().iter().map(|p| p["share"].as_f64().unwrap()).sum();
        assert!((parts + e["budget"]["unexplained"].as_f64().unwrap() - 1.0).abs() < 1e-6);
        assert!(e["budget"]["seconds_per_transaction"].as_f64().unwrap() >= 0.7);
        assert!(e["findings"].as_array().unwrap().len() >= 19, "everybody was looked at");
    }
}

#[test]
fn the_commands_own_output_does_not_get_into_the_document() {
    let output = explain(&["--format", "json", "--", "sh", "-c", "echo hello from the command"]);
    document(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("hello from the command"));
}

#[test]
fn the_cpu_time_of_children_that_came_and_went_is_counted() {
    let loops = "for i in 1 2 3 4 5 6 7 8; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; done";
    let found = document(&explain(&["--format", "json", "--", "sh", "-c", loops]));
    let e = &found["explanations"][0];
    assert!(share(e, "user code") + share(e, "waiting for a CPU") + share(e, "kernel") > 0.6, "{:#}", e["budget"]);
}

#[test]
fn a_command_is_ended_when_its_time_is_up() {
    let found = document(&explain(&["--seconds", "0.3", "--format", "json", "--", "sleep", "600"]));
    let seconds = found["explanations"][0]["budget"]["seconds_per_transaction"].as_f64().unwrap();
    assert!((0.3..60.0).contains(&seconds), "{seconds}");
}

#[test]
fn the_picture_and_the_table_are_for_people() {
    let output = explain(&["--", "sleep", "0.1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["where the time went", "suspect", "verdict", "cleared", "█"] {
        assert!(text.contains(word), "no “{word}” in {text}");
    }
    // Which of the two is the machine's to say: clocks that are read one after the other may overlap.
    assert!(text.contains("unexplained") || text.contains("counted twice"), "no rest in {text}");
    assert!(!text.contains('\x1b'), "no colours where there is no terminal");
    let markdown = explain(&["--format", "markdown", "--", "sleep", "0.1"]);
    assert!(String::from_utf8(markdown.stdout).unwrap().starts_with("## sleep 0.1"));
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
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_command_that_fails_is_explained_all_the_same() {
    let output = explain(&["--format", "json", "--", "sh", "-c", "exit 3"]);
    document(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("did not end well"));
}

#[test]
fn a_run_is_explained_from_its_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    let totals = serde_json::json!({
        "step.transactions": 1000, "step.elapsed.seconds": 10.0, "step.clients": 4,
        "server.threads": 4, "server.cpu.seconds": 8.0, "server.thread_user.seconds": 8.0, "server.blocked.lock.seconds": 30.0,
        "server.lock.woken_by_sibling": 5000, "server.call.futex.count": 9000, "machine.cpus": 2
    });
    let mut run = serde_json::to_value(fingerpost_record::Run {
        id: "made-up".into(),
        schema: fingerpost_record::SCHEMA.into(),
        ..Default::default()
    })
    .unwrap();
    run["observations"] = serde_json::json!([{ "workload": "database", "params": { "clients": 4 }, "observer": "step", "totals": totals, "self_cost": 0.1, "lost": 0 }]);
    std::fs::write(&path, run.to_string()).unwrap();
    let found = document(&explain(&["--format", "json", path.to_str().unwrap()]));
    let e = &found["explanations"][0];
    assert_eq!(
        (e["workload"].as_str(), e["findings"][0]["cause"].as_str(), e["findings"][0]["status"].as_str()),
        (Some("database"), Some("app.lock"), Some("guilty"))
    );
    assert!((share(e, "waiting for a lock") - 0.75).abs() < 1e-9);
    run["observations"] = serde_json::json!([]);
    std::fs::write(&path, run.to_string()).unwrap();
    assert_eq!(explain(&[path.to_str().unwrap()]).status.code(), Some(2));
}
