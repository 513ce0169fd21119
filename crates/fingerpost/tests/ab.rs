//! `fingerpost ab`, end to end.

mod common;

use common::Home;
use fingerpost_record::{Run, load};

fn kept(home: &Home) -> Vec<Run> {
    let mut files: Vec<_> = std::fs::read_dir(home.runs()).unwrap().flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    files.sort();
    files.iter().map(|f| load::from_path(f).unwrap()).collect()
}

#[test]
fn a_threefold_cost_is_seen_and_both_sides_are_kept_as_pairs() {
    let home = Home::with(&[]);
    let said = home.says(&[
        "ab",
        "syscall.poll",
        "--a",
        "fds=50",
        "--b",
        "fds=200",
        "--budget",
        "3",
        "--seed",
        "1",
        "--quiet",
        "--format",
        "json",
    ]);
    let comparison: serde_json::Value = serde_json::from_str(&said.well()).unwrap();
    let row = &comparison["rows"][0];
    assert_eq!((row["probe"].as_str(), row["verdict"].as_str()), (Some("syscall.poll"), Some("slower")), "{comparison:#}");
    let runs = kept(&home);
    let [a, b] = runs.as_slice() else { panic!("two runs are kept, not {}", runs.len()) };
    assert_eq!(a.id[..a.id.len() - 1], b.id[..b.id.len() - 1]);
    assert_eq!((a.measurements[0].params.int("fds"), b.measurements[0].params.int("fds")), (Some(50), Some(200)));
    assert_eq!(a.measurements[0].processes.len(), b.measurements[0].processes.len());
    // The same comparison can be made again from the files.
    let again = home.says(&["compare", &format!("{}[fds=50]", a.id), &format!("{}[fds=200]", b.id), "--paired", "--format", "json"]).well();
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["rows"][0]["ratio"], row["ratio"]);
}

#[test]
fn huge_pages_can_be_taken_from_one_side_without_changing_the_system() {
    let home = Home::with(&[]);
    let setting = || std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
    let before = setting();
    home.says(&["ab", "syscall.null", "--b", "thp=never", "--budget", "2", "--quiet"]).well();
    assert_eq!(setting(), before);
    assert_eq!(kept(&home)[1].host.thp.as_deref(), Some("never"));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let home = Home::with(&[]);
    for (words, hint) in [
        (&["ab", "syscall.null", "--a", "fdz=3"][..], "fdz"),
        (&["ab", "syscall.null", "--a", "preload=/proc/self/exe"], "statically"),
        (&["ab", "syscall.null", "--a", "env.A=1", "--b", "env.A=1"], "alike"),
        (&["ab", "syscal", "--a", "env.A=1"], "fingerpost list"),
        (&["ab", "syscall.null", "--a", "env.A=1", "--budget", "-1"], "budget"),
    ] {
        let said = home.says(words).refused();
        assert!(said.contains(hint), "{words:?}: {said}");
    }
}
