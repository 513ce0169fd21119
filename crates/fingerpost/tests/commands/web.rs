//! The web lab from the command line.

use crate::common::Home;
use serde_json::Value;

/// Runs the lab and reads the one JSON document on standard output.
fn web(settings: &[&str]) -> Value {
    let home = Home::with(&[]);
    let mut words = vec![
        "run",
        "web",
        "--profile",
        "quick",
        "--budget",
        "4",
        "--quiet",
        "--format",
        "json",
    ];
    settings.iter().for_each(|s| words.extend(["--set", s]));
    let said = home.says(&words);
    assert_eq!(said.status, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

fn rows<'a>(run: &'a Value, probe: &str) -> Vec<&'a Value> {
    run["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["probe"] == probe)
        .collect()
}

#[test]
fn the_default_server_has_a_row_for_each_connection_count() {
    let run = web(&["connections=1,10"]);
    for probe in ["web.throughput", "web.latency"] {
        let rows = rows(&run, probe);
        assert_eq!(rows.len(), 2, "{probe}");
        for row in rows {
            // A busy machine may make a figure untrusted, never absent.
            assert!(
                ["measured", "untrusted"].contains(&row["outcome"].as_str().unwrap()),
                "{row}"
            );
            assert!(row["estimate"]["value"].as_f64().unwrap() > 0.0);
            assert_eq!(row["params"]["server"], "embedded");
            assert!(!row["processes"].as_array().unwrap().is_empty());
        }
    }
    let seen = run["observations"].as_array().unwrap();
    assert!(seen.iter().any(|o| o["workload"] == "web"
        && o["observer"] == "client"
        && o["totals"]["cpu.seconds"].as_f64() > Some(0.0)));
}

#[test]
fn an_open_loop_prints_its_latency_from_both_starts() {
    let run = web(&["connections=10", "rate=200"]);
    assert!(
        rows(&run, "web.desktop").is_empty(),
        "a quick run has no time for a desktop's tasks, unless they are asked for"
    );
    let from: Vec<&str> = rows(&run, "web.latency")
        .iter()
        .map(|r| r["params"]["from"].as_str().unwrap())
        .collect();
    assert_eq!(from, ["sent", "intended"]);
}

#[test]
fn a_desktops_tasks_have_rows_beside_idle_and_loaded_servers() {
    let run = web(&["connections=1,10", "desktop=on"]);
    let rows = rows(&run, "web.desktop");
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert!(row["estimate"]["value"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["processes"].as_array().unwrap().len(), 3, "{row}");
        let loaded = row["params"]["load"] == "most";
        assert_eq!(
            row["params"]["connections"].as_i64(),
            loaded.then_some(10),
            "{row}"
        );
    }
}

#[test]
fn what_cannot_be_loaded_is_a_usage_error_in_one_sentence() {
    let home = Home::with(&[]);
    for (setting, word) in [
        ("url=http://192.0.2.1/", "only on addresses of this host"),
        ("server=iis", "embedded, nginx or apache"),
        ("connections=0", "connections=0"),
        ("desktop=perhaps", "it is on or off"),
    ] {
        let said = home.says(&["run", "web", "--quiet", "--set", setting]);
        assert_eq!(said.status, 2, "{setting}: {}{}", said.out, said.err);
        assert!(
            said.err.contains(word) && said.err.trim().lines().count() == 1,
            "{}",
            said.err
        );
    }
}
