//! The zero-fill calculator and laboratory, from the outside.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::common::Home;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn the_articles_four_timings_give_its_derived_fields() {
    let home = Home::with(&[]);
    let costs = json(
        &home
            .says(&[
                "zerofill",
                "--solve",
                "11.2,24.0,11.5,33.6",
                "--format",
                "json",
            ])
            .well(),
    );
    let expected = [
        ("page_extra", 0.3),
        ("allocation", 5.45),
        ("page_fault_extra", 12.8),
        ("object", 3.5),
        ("fault_and_zerofill", 9.3),
        ("deallocation", 7.35),
        ("zerofill", 6.1875),
    ];
    for (key, value) in expected {
        assert!(
            (costs[key].as_f64().unwrap() - value).abs() < 1e-9,
            "{key}: {costs}"
        );
    }
    let table = home
        .says(&["zerofill", "--solve", "11.2,24.0,11.5,33.6"])
        .well();
    assert!(
        table.find("given") < table.find("derived") && table.contains('█'),
        "{table}"
    );
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let home = Home::with(&[]);
    assert!(
        home.says(&["zerofill", "--solve", "5,4,6,9"])
            .refused()
            .contains("1p touch")
    );
    assert!(
        home.says(&["zerofill", "--solve", "1,2,NaN,4"])
            .refused()
            .contains("2p alloc")
    );
    assert!(
        home.says(&["zerofill", "--api", "nosuch"])
            .refused()
            .contains("nosuch")
    );
    let other = Home::with(&[fingerpost_record::fixture::run()]);
    let without = fingerpost_record::fixture::run()
        .measurements
        .iter()
        .all(|m| !m.probe.starts_with("zerofill."));
    assert!(
        !without
            || other
                .says(&["zerofill", "latest"])
                .refused()
                .contains("fingerpost run zerofill")
    );
}

#[test]
fn the_published_timings_are_analysed_like_a_run() {
    let home = Home::with(&[]);
    let found = json(
        &home
            .says(&["zerofill", "ref:zerofill-cube-450", "--format", "json"])
            .well(),
    );
    // Part IV, mmap: 9.7, 41.0, 11.1, 65.9 µs; the zero-filling by hand is 18.5625.
    assert!(
        (found["derived"]["zerofill"].as_f64().unwrap()
            / found["given"]["alloc_1"]["value"].as_f64().unwrap()
            - 18.5625 / 9.7)
            .abs()
            < 1e-6
    );
    assert!(found["fit"].is_null());
}

#[test]
fn a_run_is_measured_shown_analysed_and_reported() {
    let home = Home::with(&[]);
    let words = [
        "run",
        "zerofill.alloc",
        "zerofill.touch",
        "zerofill.phase",
        "--set",
        "api=mmap",
        "--set",
        "pages=1,2,4,16",
        "--profile",
        "quick",
        "--budget",
        "8",
        "--quiet",
    ];
    let said = home.says(&words);
    assert_eq!(said.status, 0, "{} {}", said.out, said.err);
    assert!(
        said.out.contains("Zero-filling, taken apart")
            && said.out.contains("Given: four timings of mmap"),
        "{}",
        said.out
    );
    let found = json(
        &home
            .says(&["zerofill", "latest", "--format", "json"])
            .well(),
    );
    for key in ["alloc_1", "touch_1", "alloc_2", "touch_2"] {
        assert!(
            found["given"][key]["value"].as_f64().unwrap() > 0.0,
            "{found}"
        );
    }
    assert!(
        found["fit"]["fault_page"]["value"].as_f64().unwrap() > 0.0,
        "{found}"
    );
    assert!(!found["guesses"].as_array().unwrap().is_empty());
    let csv = home.says(&["zerofill", "latest", "--format", "csv"]).well();
    assert!(
        csv.starts_with("field,pages,value,low,high\r\n")
            && csv.lines().all(|l| l.split(',').count() == 5),
        "{csv}"
    );
    let markdown = home
        .says(&["show", "latest", "--format", "markdown"])
        .well();
    for part in [
        "## Zero-filling, taken apart",
        "| 1p alloc + fault (1p touch) |",
        "= 2p alloc − 1p alloc",
        "## The article's guesses on this machine",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let csv = home.says(&["show", "latest", "--format", "csv"]).well();
    for part in [
        "zerofill.given",
        "zerofill.derived",
        "zerofill.fit",
        "zerofill.guess",
    ] {
        assert!(
            csv.lines()
                .any(|l| l.contains(part) && l.contains(",derived,")),
            "{part}: {csv}"
        );
    }
    home.says(&["report", "latest", "-o", "page.html"]).well();
    let page = std::fs::read_to_string(home.path().join("page.html")).unwrap();
    assert!(page.contains("id=\"zerofill-analysis\"") && page.contains("1p alloc + fault"));
}

#[test]
fn the_loop_goes_on_until_stopped_and_gives_what_it_has() {
    let home = Home::with(&[]);
    let mut child = home
        .command(&["zerofill", "--loop", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // A line per round, in a pipe: it ends only by itself if it is broken, and then this finds the end of the text
    // instead.
    let third = lines
        .by_ref()
        .map(|l| l.unwrap())
        .find(|l| l.starts_with("round 3:"))
        .expect("it ended before the third round");
    assert!(
        third.contains("2p touched") && third.contains('±'),
        "{third}"
    );
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    lines.for_each(drop);
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(json(&out)["derived"]["zerofill"].is_number(), "{out}");
}
