//! What README.md, docs/tour.md and the moving pictures show is what the program prints: of runs that were recorded
//! once (`tests/shown`) they are made anew by `bench/shown`, and compared. What bench/RESULTS.md shows is what
//! benchmarks wrote.

use std::path::Path;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_fingerpost");

/// Has a script of `bench/` check something, in the repository's directory; its status says whether it is so.
fn check(programs: &[&str], script: &str, words: &[&str]) {
    let here = |name: &&str| fingerpost_testing::can(fingerpost_testing::is_installed(name), name);
    if !programs.iter().all(here) {
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
fn blocks_and_film_show_what_the_program_prints() {
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
fn the_tables_of_results_are_those_of_the_benchmarks_files() {
    check(&["python3"], "results", &["table", "--check"]);
}

/// A probe that does less than it says, or more, is off by far more than a busy machine makes it.
#[test]
fn probes_take_about_as_long_as_loops_in_c() {
    let words = ["--binary", BINARY, "--rounds", "5", "--slice-ms", "10"];
    let all = [&words[..], &["--within", "3"]].concat();
    check(&["python3", "cc", "make"], "accuracy/run", &all);
}
