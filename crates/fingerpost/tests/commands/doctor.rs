//! `fingerpost doctor`, end to end.

use std::process::{Command, Output};

fn doctor(args: &[&str], home: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fingerpost"));
    command
        .arg("doctor")
        .args(args)
        .env("FINGERPOST_HOME", home)
        .output()
        .expect("the binary starts")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("the output is text")
}

#[test]
fn the_table_begins_with_one_sentence_and_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let output = doctor(&["--seconds", "1"], home.path());
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for part in [
        "CPU ",
        "clock",
        "sleep",
        "others",
        "counters",
        "runs",
        "temporary files",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(part)),
            "no {part} in {text}"
        );
    }
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("This machine is "), "{first}");
    assert!(
        !text.contains('\u{1b}'),
        "no colours or cursor movement in a pipe"
    );
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn json_is_one_document_and_agrees_with_itself() {
    let home = tempfile::tempdir().unwrap();
    let output = doctor(&["--seconds", "1", "--format", "json"], home.path());
    assert!(output.status.success(), "{output:?}");
    let answer: serde_json::Value = serde_json::from_str(stdout(&output)).expect("one document");
    assert_eq!(answer["schema"], "fingerpost/doctor/1");
    let doubts = answer["doubts"].as_array().unwrap();
    assert!(
        doubts.iter().all(|d| ["what", "remedy"]
            .iter()
            .all(|key| !d[key].as_str().unwrap().is_empty())),
        "{doubts:?}"
    );
    let heaviest = ["unfit", "care"]
        .into_iter()
        .find(|severity| doubts.iter().any(|doubt| doubt["severity"] == *severity));
    assert_eq!(answer["verdict"], heaviest.unwrap_or("quiet"));
    let pieces: u64 = answer["canary"]["cpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cpu| cpu["pieces"].as_u64().unwrap())
        .sum();
    assert!(pieces > 0 && answer["canary"]["all"]["pieces"] == pieces);
    assert_eq!(
        answer["canary"]["cpus"].as_array().unwrap().len() as u64,
        answer["host"]["cpu"]["count"].as_u64().unwrap()
    );
    // A run's record reads the same description.
    let host: fingerpost_record::host::Host =
        serde_json::from_value(answer["host"].clone()).expect("a host");
    assert!(host.memory_bytes > 0);
    assert_eq!(host.counters, host.counters_refused.is_none());
}

#[test]
fn a_home_that_cannot_be_written_is_a_doubt_with_the_way_out() {
    let output = doctor(
        &["--seconds", "1", "--format", "json"],
        std::path::Path::new("/proc/nowhere"),
    );
    assert!(output.status.success(), "{output:?}");
    let answer: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    let doubts = answer["doubts"].as_array().unwrap();
    let home = doubts
        .iter()
        .find(|doubt| doubt["what"].as_str().unwrap().contains("for runs"));
    assert!(
        home.expect("a doubt about the home")["remedy"]
            .as_str()
            .unwrap()
            .contains("FINGERPOST_HOME")
    );
}

#[test]
fn seconds_must_make_sense() {
    let home = tempfile::tempdir().unwrap();
    for seconds in ["0", "-1", "x", "99999999999"] {
        let output = doctor(&["--seconds", seconds], home.path());
        assert_eq!(output.status.code(), Some(2), "{seconds}");
        assert!(stdout(&output).is_empty());
    }
}
