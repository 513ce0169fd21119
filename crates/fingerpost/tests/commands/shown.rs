//! What README.md, docs/tour.md and the moving pictures show is what the program prints: of runs that were recorded
//! once (`tests/shown`) they are made anew by `bench/shown`, and compared. What bench/RESULTS.md shows is what
//! benchmarks wrote.

use std::path::Path;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_fingerpost");

/// Why the pictures cannot be made here; in CI that is a failure.
fn missing(programs: &[&str]) -> Option<String> {
    let there = |name: &&&str| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|said| said.status.success())
    };
    let lacking: Vec<&&str> = programs.iter().filter(|name| !there(name)).collect();
    let sentence = (!lacking.is_empty()).then(|| format!("not installed: {lacking:?}"));
    assert!(
        sentence.is_none() || std::env::var("CI").as_deref() != Ok("true"),
        "{sentence:?}"
    );
    sentence
}

/// Has a script of `bench/` check something, in the repository's directory; its status says whether it is so.
fn check(programs: &[&str], script: &str, words: &[&str]) {
    if let Some(why) = missing(programs) {
        eprintln!("skipped: {why}");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(root.join("bench").join(script))
        .args(words);
    let said = command
        .env_remove("NO_COLOR")
        .env_remove("BENCH_JSON")
        .current_dir(root)
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    assert!(said.status.success(), "{text}");
}

#[test]
fn the_blocks_and_the_film_show_what_the_program_prints_of_the_recorded_runs() {
    check(&["python3"], "shown", &["check", "--binary", BINARY]);
}

#[test]
fn the_tour_shows_what_the_pages_say_of_the_recorded_runs() {
    check(
        &["python3", "chromium", "chromedriver"],
        "shown",
        &["check", "--page", "--binary", BINARY],
    );
}

#[test]
fn what_benchmarks_share_has_the_answers_that_are_known() {
    check(&["python3"], "lib.py", &[]);
}

#[test]
fn the_tables_of_results_are_those_of_the_documents_that_benchmarks_wrote() {
    check(&["python3"], "results", &["table", "--check"]);
}
