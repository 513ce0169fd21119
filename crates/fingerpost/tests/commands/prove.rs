//! `fingerpost prove`, end to end: plants that no noise can hide, and what must hold whatever the verdict.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Home, Said, until};
use serde_json::Value;

/// A proof with a temporary directory of its own, so that what it leaves can be seen.
fn prove(home: &Home, words: &[&str]) -> Said {
    let all = [&["prove", "--quiet", "--format", "json"], words].concat();
    Said::of(
        &home
            .command(&all)
            .env("TMPDIR", home.path())
            .output()
            .unwrap(),
    )
}

fn document(said: &Said) -> Value {
    assert!(
        [0, 1].contains(&said.status),
        "status {}: {}{}",
        said.status,
        said.out,
        said.err
    );
    serde_json::from_str(&said.out).unwrap()
}

/// Work directories that are left below the home.
fn left(home: &Home) -> Vec<PathBuf> {
    let dirs = std::fs::read_dir(home.path())
        .unwrap()
        .flatten()
        .map(|e| e.path());
    dirs.filter(|p| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("fingerpost-"))
    })
    .collect()
}

#[test]
fn plants_that_no_noise_can_hide_are_named() {
    let home = Home::with(&[]);
    // Delayed acknowledgements make a transaction a thousand times longer: no busy machine does that.
    let proof = document(&prove(
        &home,
        &["network.delay", "--seconds", "8", "--keep"],
    ));
    let row = &proof["plants"][0];
    assert_eq!(
        (row["result"].as_str(), row["accused"][0]["cause"].as_str()),
        (Some("right"), Some("network.delay")),
        "{row:#}"
    );
    assert_eq!(row["accused"][0]["layer"], "network");
    assert_eq!(
        (&proof["named_first"], &proof["false_accusations"]),
        (&serde_json::json!([1, 1]), &serde_json::json!([0, 0]))
    );
    assert_eq!(left(&home), Vec::<PathBuf>::new());
    assert_eq!(
        std::fs::read_dir(home.runs()).unwrap().count(),
        2,
        "both sides are kept"
    );
}

#[test]
fn a_control_group_and_a_network_of_our_own_are_gone_afterwards() {
    fingerpost_testing::require!(root);
    let home = Home::with(&[]);
    let proof = document(&prove(
        &home,
        &["cpu.quota", "network.shaping", "--seconds", "2"],
    ));
    let rows = proof["plants"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let skipped = row["result"] == "skipped";
        assert!(
            !skipped || row["reason"].as_str().is_some_and(|r| !r.is_empty()),
            "{row:#}"
        );
        assert!(skipped || row["slower"].as_f64().is_some(), "{row:#}");
    }
    assert_eq!(left(&home), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_proof_leaves_nothing_without_another_start() {
    let home = Home::with(&[]);
    let words = ["prove", "app.lock", "--seconds", "30", "--quiet"];
    let mut child = home
        .command(&words)
        .env("TMPDIR", home.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the rehearsal begins", || children(child.id()).len() >= 2);
    let workers = children(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    until("no worker outlives the proof", || {
        !workers.iter().any(|pid| alive(*pid))
    });
    until("its guardian has removed its directory", || {
        left(&home).is_empty()
    });
}

fn children(pid: u32) -> Vec<u32> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect()
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
fn what_cannot_be_planted_is_refused_with_what_can() {
    let home = Home::with(&[]);
    let said = home.says(&["prove", "host.steal"]).refused();
    assert!(
        said.contains("host.steal") && said.contains("fingerpost prove --help"),
        "{said}"
    );
    assert!(
        home.says(&["prove", "app.lock", "--seconds", "0"])
            .refused()
            .contains("seconds")
    );
    let help = Command::new(env!("CARGO_BIN_EXE_fingerpost"))
        .args(["prove", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8_lossy(&help.stdout);
    assert!(
        !help.contains("in-own-network")
            && help.contains("cpu.quota")
            && help.contains("app.lock/row"),
        "{help}"
    );
}

/// What must hold whatever the verdicts: the trials are there, counted, recorded, and judged alike again without a
/// load.
#[test]
fn servers_are_proved_recorded_and_judged_again() {
    if !fingerpost_testing::can(fingerpost_testing::is_root(), "root") {
        let home = Home::with(&[]);
        assert!(
            home.says(&["prove", "--servers"])
                .refused()
                .contains("takes root")
        );
        return;
    }
    let home = Home::with(&[]);
    let file = home.path().join("trials.jsonl");
    let file = file.to_str().unwrap();
    // SQLite needs nothing that may not be installed.
    let words = [
        "--servers",
        "--only",
        "sqlite",
        "--only",
        "control/n*",
        "--trials",
        "2",
        "--record",
        file,
    ];
    let live = document(&prove(&home, &words));
    let trials = live["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(
            (
                trial["engine"].as_str(),
                trial["planted"][0]["cause"].as_str()
            ),
            (Some("sqlite"), Some("")),
            "{trial:#}"
        );
        assert!(
            trial["effect"]["value"].as_f64().is_some_and(|v| v > 0.0),
            "{trial:#}"
        );
    }
    assert_eq!(
        (
            &live["score"]["false_accusations"]["all"],
            &live["score"]["first"]["all"]
        ),
        (&2.into(), &0.into())
    );
    let again = document(&prove(&home, &["--servers", "--replay", file]));
    let verdicts = |proof: &Value| -> Vec<Value> {
        let rows = proof["trials"].as_array().unwrap().iter();
        rows.map(|t| {
            serde_json::json!([
                t["planted"],
                t["result"],
                t["headline"],
                t["accused"].as_array().map(Vec::len)
            ])
        })
        .collect()
    };
    assert_eq!(verdicts(&again), verdicts(&live));
    assert_eq!(again["score"], live["score"]);
    assert_eq!(left(&home), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_proved_on_servers_is_refused_with_what_can() {
    let home = Home::with(&[]);
    let said = home
        .says(&["prove", "--servers", "--only", "oracle"])
        .refused();
    assert!(
        said.contains("oracle")
            && said.contains("mariadb")
            && said.contains("fingerpost prove --help"),
        "{said}"
    );
    assert!(
        home.says(&["prove", "--servers", "--trials", "0"])
            .refused()
            .contains("--trials 0")
    );
    let said = home.says(&["prove", "--apart"]);
    assert!(
        said.status == 2 && said.err.contains("--servers"),
        "{}",
        said.err
    );
    let said = home
        .says(&["prove", "--servers", "--replay", "/nonexistent"])
        .refused();
    assert!(
        said.contains("/nonexistent") && said.lines().count() == 1,
        "{said}"
    );
}
