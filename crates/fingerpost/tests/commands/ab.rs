//! `fingerpost ab`, end to end.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::Home;
use fingerpost_record::{Run, load};

fn kept(home: &Home) -> Vec<Run> {
    let mut files: Vec<_> = std::fs::read_dir(home.runs())
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .collect();
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
    assert_eq!(
        (row["probe"].as_str(), row["verdict"].as_str()),
        (Some("syscall.poll"), Some("slower")),
        "{comparison:#}"
    );
    let runs = kept(&home);
    let [a, b] = runs.as_slice() else {
        panic!("two runs are kept, not {}", runs.len())
    };
    assert_eq!(a.id[..a.id.len() - 1], b.id[..b.id.len() - 1]);
    assert_eq!(
        (
            a.measurements[0].params.int("fds"),
            b.measurements[0].params.int("fds")
        ),
        (Some(50), Some(200))
    );
    assert_eq!(
        a.measurements[0].processes.len(),
        b.measurements[0].processes.len()
    );
    // The same comparison can be made again from the files.
    let again = home
        .says(&[
            "compare",
            &format!("{}[fds=50]", a.id),
            &format!("{}[fds=200]", b.id),
            "--paired",
            "--format",
            "json",
        ])
        .well();
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["rows"][0]["ratio"], row["ratio"]);
}

#[test]
fn a_change_is_measured_by_itself_and_said_to_decide() {
    let home = Home::with(&[]);
    home.says(&[
        "ab",
        "syscall.poll",
        "--a",
        "fds=50",
        "--b",
        "fds=200",
        "--budget",
        "3",
        "--quiet",
    ])
    .well();
    let [a, b] = kept(&home).try_into().unwrap();
    let sides = [format!("{}[fds=50]", a.id), format!("{}[fds=200]", b.id)];
    let said = home
        .says(&[
            "compare", &sides[0], &sides[1], "--settle", "--budget", "5", "--quiet", "--format",
            "json",
        ])
        .well();
    let comparison: serde_json::Value = serde_json::from_str(&said).unwrap();
    let settled = &comparison["settled"][0];
    assert_eq!(
        (settled["what"].as_str(), settled["answer"].as_str()),
        (Some("fds"), Some("decides")),
        "{settled:#}"
    );
    assert_eq!(
        (settled["base"].as_str(), settled["new"].as_str()),
        (Some("50"), Some("200"))
    );
    assert!(
        settled["ratio"]["low"].as_f64().unwrap() > 1.5,
        "{settled:#}"
    );
    let setting = comparison["causes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["cause"] == "app.setting")
        .unwrap();
    assert_eq!(setting["status"], "confirmed", "{setting:#}");
    assert!(
        setting["evidence"][0]["metric"] == "change_alone"
            && setting["evidence"][0]["from"] == "50"
            && setting["evidence"][0]["to"] == "200",
        "{setting:#}"
    );
    // What was measured is kept, and can be compared again.
    let ids: Vec<&str> = settled["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|id| id.as_str())
        .collect();
    assert_eq!(
        kept(&home)
            .iter()
            .filter(|run| ids.contains(&run.id.as_str()))
            .count(),
        2
    );
    assert!(
        home.says(&["compare", &sides[0], &sides[0], "--settle"])
            .refused()
            .contains("nothing that --settle could set differs")
    );
    let said = home
        .says(&["compare", "ref:g5-2.5-linux", &sides[0], "--settle"])
        .refused();
    assert!(said.contains("published or imported"), "{said}");
}

#[test]
fn huge_pages_can_be_taken_from_one_side_alone() {
    let home = Home::with(&[]);
    let setting = || std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
    let before = setting();
    home.says(&[
        "ab",
        "syscall.null",
        "--b",
        "thp=never",
        "--budget",
        "2",
        "--quiet",
    ])
    .well();
    assert_eq!(setting(), before);
    assert_eq!(kept(&home)[1].host.thp.as_deref(), Some("never"));
}

/// A server that hangs up on everybody is called a few times, and not in all turns that the time has room for.
#[test]
fn a_server_that_gives_no_figure_is_told_after_a_few_turns() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = |name: &str| format!("url=mysql://root@{}/{name}", listener.local_addr().unwrap());
    let (a, b) = (url("x"), url("y"));
    let calls = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let listens = scope.spawn(|| {
            listener
                .incoming()
                .flatten()
                .take_while(|_| calls.fetch_add(1, Ordering::SeqCst) < 200)
                .count()
        });
        let home = Home::with(&[]);
        let said = home.says(&["ab", "database", "--a", &a, "--b", &b]);
        let called = calls.swap(200, Ordering::SeqCst);
        std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listens.join().unwrap();
        assert!(
            said.err
                .contains("there is nothing to compare: the database “"),
            "{}",
            said.err
        );
        assert_eq!((said.status, kept(&home).len()), (3, 0));
        assert!((6..40).contains(&called), "{called} calls");
    });
}

/// The other is not measured any longer then, for which there would be five minutes.
#[test]
fn a_side_that_gives_no_figure_is_named() {
    let home = Home::with(&[]);
    // Nobody listens there.
    let url = "url=mysql://root@127.0.0.1:1/x";
    let said = home.says(&[
        "ab",
        "database",
        "--a",
        "synchronous=off",
        "--b",
        url,
        "--budget",
        "600",
        "--quiet",
    ]);
    let begins =
        format!("fingerpost: there is nothing to compare: side B ({url}) gives no figure; ");
    let says = "see that `fingerpost run database` gives one with these settings, then compare again: the database “x”";
    assert!(
        said.err.starts_with(&begins) && said.err.contains(says),
        "{}",
        said.err
    );
    assert_eq!(
        (said.status, kept(&home).len(), said.out.as_str()),
        (3, 0, "")
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let home = Home::with(&[]);
    for (words, hint) in [
        (&["ab", "syscall.null", "--a", "fdz=3"][..], "fdz"),
        (
            &["ab", "syscall.null", "--a", "preload=/proc/self/exe"],
            "statically",
        ),
        (
            &["ab", "syscall.null", "--a", "env.A=1", "--b", "env.A=1"],
            "the same",
        ),
        (&["ab", "syscal", "--a", "env.A=1"], "fingerpost list"),
        (
            &["ab", "syscall.null", "--a", "env.A=1", "--budget", "-1"],
            "budget",
        ),
    ] {
        let said = home.says(words).refused();
        assert!(said.contains(hint), "{words:?}: {said}");
    }
}
