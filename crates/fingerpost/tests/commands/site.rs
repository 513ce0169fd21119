//! The object database and the site laboratory as a user meets them: commands, kills, a run.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STORES: [&str; 6] = [
    "lmdb",
    "lmdb-flat",
    "sqlite",
    "sqlite-flat",
    "redb",
    "redb-flat",
];

fn fingerpost() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fingerpost"))
}

fn site(args: &[&dyn AsRef<std::ffi::OsStr>]) -> std::process::Output {
    let mut command = fingerpost();
    command.arg("site");
    args.iter().for_each(|a| {
        command.arg(a);
    });
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn make_site(dir: &Path, pages: usize) {
    for i in 0..pages {
        let folder = dir.join(format!("section{}/part{}", i % 7, i % 3));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(format!("page{i}.html")),
            format!("page {i} ").repeat(i % 900 + 1),
        )
        .unwrap();
    }
}

fn same_tree(a: &Path, b: &Path) -> bool {
    Command::new("diff")
        .arg("-rq")
        .stdout(Stdio::null())
        .arg(a)
        .arg(b)
        .status()
        .unwrap()
        .success()
}

#[test]
fn a_site_goes_in_is_changed_and_comes_out() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    make_site(&dir, 50);
    for store in STORES {
        let (file, out) = (
            base.path().join(store),
            base.path().join(format!("{store}-out")),
        );
        let imported = site(&[&"import", &dir, &file, &"--store", &store]);
        assert!(
            imported.status.success() && text(&imported).contains("imported 50 cells"),
            "{}",
            text(&imported)
        );
        assert_eq!(
            site(&[&"import", &dir, &file]).status.code(),
            Some(2),
            "it exists"
        );
        assert_eq!(
            site(&[&"get", &file, &"section1/part1/page1.html"]).stdout,
            b"page 1 page 1 "
        );
        let listed = text(&site(&[&"ls", &file, &"section1"]));
        assert!(
            listed.contains("part0/") && listed.contains("table"),
            "{listed}"
        );
        for (path, word) in [
            ("none", "no cell"),
            ("../x", "cannot be a path"),
            ("section1", "no cell"),
        ] {
            let got = site(&[&"get", &file, &path]);
            assert!(
                got.status.code() == Some(2) && text(&got).contains(word),
                "{store} {path}: {}",
                text(&got)
            );
        }
        assert!(site(&[&"export", &file, &out]).status.success());
        assert!(same_tree(&dir, &out), "{store}");
        let content = base.path().join("content");
        fs::write(&content, "#!/bin/sh\n").unwrap();
        let stored = site(&[&"put", &file, &"new/table/run", &content]);
        assert!(
            text(&stored).contains("stored 10 bytes"),
            "{}",
            text(&stored)
        );
        assert!(text(&site(&[&"ls", &file, &"new/table"])).contains("script"));
        assert_eq!(
            site(&[&"put", &file, &"section1", &content]).status.code(),
            Some(2),
            "a table is no cell"
        );
        assert_eq!(
            site(&[&"export", &file, &out]).status.code(),
            Some(2),
            "not empty"
        );
    }
    assert_eq!(site(&[&"ls", &dir.join("section0")]).status.code(), Some(2));
}

/// kill -9 at a moment that differs from turn to turn. Everything that was said to be stored is there, and the file is
/// whole.
#[test]
fn what_was_said_to_be_stored_survives_kill_9() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    make_site(&dir, 20);
    for store in STORES {
        let file = base.path().join(store);
        assert!(
            site(&[&"import", &dir, &file, &"--store", &store])
                .status
                .success()
        );
        let mut acknowledged = Vec::new();
        for turn in 0..12u64 {
            let name = format!("new/page{turn}.txt");
            let mut child = fingerpost()
                .arg("site")
                .arg("put")
                .arg(&file)
                .arg(&name)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            // A killed reader of this pipe is one of the cases.
            let _ = input.write_all(format!("content {turn} ").repeat(3000).as_bytes());
            drop(input);
            // Some live to the end, others are killed on the way: the kill is the random moment, nothing is waited for.
            if turn % 4 != 3 {
                std::thread::sleep(Duration::from_micros(turn * turn * 150));
                child.kill().unwrap();
            }
            let mut said = String::new();
            child
                .stdout
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            child.wait().unwrap();
            if said.contains("stored") {
                acknowledged.push((turn, name));
            }
        }
        assert!(
            acknowledged.len() >= 3,
            "those that were not killed are stored"
        );
        // A writer comes first: redb has a writer put right what a killed one left.
        assert!(
            site(&[&"put", &file, &"last.txt", &"/dev/null"])
                .status
                .success(),
            "{store}"
        );
        for (turn, name) in acknowledged {
            assert_eq!(
                site(&[&"get", &file, &name]).stdout,
                format!("content {turn} ").repeat(3000).as_bytes(),
                "{store} {name}"
            );
        }
        let out = base.path().join(format!("{store}-out"));
        assert!(site(&[&"export", &file, &out]).status.success());
        assert!(
            (0..7).all(|i| same_tree(
                &dir.join(format!("section{i}")),
                &out.join(format!("section{i}"))
            )),
            "{store}: what was there before"
        );
    }
}

#[test]
fn a_killed_import_leaves_the_old_file_or_a_whole_new_one() {
    let base = tempfile::tempdir().unwrap();
    let (old, new) = (base.path().join("old"), base.path().join("new"));
    make_site(&old, 5);
    make_site(&new, 400);
    for store in ["lmdb", "sqlite", "redb"] {
        let file = base.path().join(store);
        assert!(
            site(&[&"import", &old, &file, &"--store", &store])
                .status
                .success()
        );
        let begun = Instant::now();
        assert!(
            site(&[
                &"import",
                &new,
                &base.path().join("other"),
                &"--store",
                &store,
                &"--replace"
            ])
            .status
            .success()
        );
        let whole = begun.elapsed();
        for turn in 1..8u32 {
            let mut child = fingerpost()
                .args(["site", "import", "--replace", "--store", store])
                .arg(&new)
                .arg(&file)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(whole * turn / 7);
            child.kill().unwrap();
            let replaced = child.wait().unwrap().success();
            let out = base.path().join(format!("{store}-{turn}"));
            assert!(
                site(&[&"export", &file, &out]).status.success(),
                "{store} {turn}"
            );
            let is_new = same_tree(&new, &out);
            assert!(
                is_new || (!replaced && same_tree(&old, &out)),
                "{store} {turn}"
            );
        }
        assert!(
            site(&[&"import", &old, &file, &"--store", &store, &"--replace"])
                .status
                .success()
        );
        let left: Vec<_> = fs::read_dir(base.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n.contains(".part"))
            .collect();
        assert!(
            left.is_empty(),
            "the next import clears away what killed ones left: {left:?}"
        );
    }
}

#[test]
fn a_site_is_served_on_loopback_until_the_person_ends_it() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    make_site(&dir, 10);
    fs::write(dir.join("index.html"), "<p>home").unwrap();
    let file = base.path().join("odb");
    assert!(site(&[&"import", &dir, &file]).status.success());
    for from in [&dir, &file] {
        let mut child = fingerpost()
            .args(["site", "serve", "--from"])
            .arg(from)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .split("http://")
            .nth(1)
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{line}");
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("<p>home"),
            "{answer}"
        );
        Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// As a defect in an answer would do it.
#[test]
fn a_directory_is_served_again_when_its_process_broke_off() {
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("index.html"), "<p>home").unwrap();
    let mut command = fingerpost();
    command.args(["site", "serve", "--from"]).arg(base.path());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .split("http://")
        .nth(1)
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let served = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("<p>home"),
            "{answer}"
        );
    };
    served();
    let id = child.id();
    let inner = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    Command::new("kill")
        .args(["-ABRT", inner.trim()])
        .status()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    line.clear();
    said.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "fingerpost: the site broke off, and is served again at the same address\n"
    );
    served();
    Command::new("kill")
        .args(["-TERM", &id.to_string()])
        .status()
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_run_has_a_row_for_every_contestant_and_the_sources_table() {
    let base = tempfile::tempdir().unwrap();
    let run = base.path().join("run.json");
    let output = fingerpost()
        .env("FINGERPOST_HOME", base.path())
        .args([
            "run",
            "site",
            "--profile",
            "quick",
            "--budget",
            "2",
            "--quiet",
            "--set",
            "pages=60",
            "--set",
            "parts=rounds,readers,served",
            "--set",
            "readers=1,2",
            "-o",
        ])
        .arg(&run)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let table = text(&output);
    for word in [
        "fs/odb",
        "Object db",
        "site.space",
        "site.import",
        "site.readers",
        "site.served",
        "files-open",
        "files-mmap",
        "lmdb-loaded",
        "redb-flat",
        "sqlite",
    ] {
        assert!(table.contains(word), "{word} is missing in {table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&run).unwrap()).unwrap();
    let rows = json["measurements"].as_array().unwrap();
    assert!(rows.iter().all(|r| r["outcome"] != "failed"), "{rows:?}");
    let rounds: Vec<_> = rows
        .iter()
        .filter(|r| r["probe"] == "site.round" && r["outcome"] != "skipped")
        .collect();
    assert!(
        rounds.len() >= 10
            && rounds
                .iter()
                .all(|r| r["processes"][0]["samples"].as_array().unwrap().len() == 22)
    );
    assert!(
        !table.contains("From the start"),
        "nothing was measured from the start: {table}"
    );
    let bad = fingerpost()
        .env("FINGERPOST_HOME", base.path())
        .args(["run", "site", "--set", "store=oracle"])
        .output()
        .unwrap();
    assert!(bad.status.code() != Some(0) && text(&bad).contains("oracle"));
}

/// A short run of rounds from the start: its standard output, what it said beside, and its rows.
fn warming(base: &Path, more: &[&str]) -> (String, Vec<serde_json::Value>) {
    let run = base.join("run.json");
    let set = [
        "--set",
        "state=warming",
        "--set",
        "pages=60",
        "--set",
        "parts=rounds",
        "--set",
        "store=files-open,lmdb-loaded,lmdb",
    ];
    let mut command = fingerpost();
    command
        .env("FINGERPOST_HOME", base)
        .env("TMPDIR", base)
        .args(["run", "site", "--profile", "quick", "--budget", "1"]);
    let output = command
        .args(set)
        .args(more)
        .arg("-o")
        .arg(&run)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&run).unwrap()).unwrap();
    let rows = json["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| r["probe"] == "site.round")
        .cloned()
        .collect();
    (text(&output), rows)
}

#[test]
fn rounds_from_the_start_are_told_one_by_one() {
    let base = tempfile::tempdir().unwrap();
    let (said, rows) = warming(base.path(), &["--set", "memory=none,4M"]);
    assert!(
        said.contains("From the start, as more is loaded") && said.contains("in the last of 11"),
        "{said}"
    );
    assert!(said.contains("the kernel's caches are warm"), "{said}");
    let (limited, free): (Vec<_>, Vec<_>) =
        rows.iter().partition(|r| !r["params"]["memory"].is_null());
    assert_eq!((limited.len(), free.len()), (3, 3));
    assert!(
        free.iter().all(|r| r["params"]["state"] == "warming"
            && r["processes"][0]["samples"].as_array().unwrap().len() == 11),
        "{free:?}"
    );
    // Without leave no memory is limited, and no figure says that it was.
    assert!(
        limited.iter().all(|r| r["outcome"] == "skipped"
            && r["reason"]
                .as_str()
                .unwrap()
                .contains("--allow-system-changes")),
        "{limited:?}"
    );
}

#[test]
fn memory_is_limited_while_a_site_loads() {
    // It drops caches.
    fingerpost_testing::require!(root);
    let base = tempfile::tempdir().unwrap();
    let (said, rows) = warming(
        base.path(),
        &["--set", "memory=8M", "--allow-system-changes"],
    );
    let measured =
        |r: &serde_json::Value| r["outcome"] == "measured" && r["params"]["memory"] == 8 << 20;
    let refused = |r: &serde_json::Value| {
        r["outcome"] == "skipped" && !r["reason"].as_str().unwrap_or_default().is_empty()
    };
    assert!(
        rows.len() == 3 && (rows.iter().all(measured) || rows.iter().all(refused)),
        "{said} {rows:?}"
    );
    if rows.iter().all(measured) {
        // Sixty pages are far less than that.
        assert!(
            said.contains("with memory=8M no reader reached the limit, which changed nothing"),
            "{said}"
        );
        let counter =
            |r: &serde_json::Value, name: &str| r["processes"][0]["counters"][name].as_f64();
        let counted = |r: &serde_json::Value| {
            counter(r, "memory_bytes").is_some_and(|b| b > 0.0 && b < f64::from(8 << 20))
        };
        assert!(
            rows.iter()
                .all(|r| counted(r) && counter(r, "memory_limit_met") == Some(0.0)),
            "{rows:?}"
        );
    }
    let group = "fingerpost-site-";
    let left = |dir: &str| {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .any(|e| e.file_name().to_string_lossy().starts_with(group))
    };
    assert!(
        !left("/sys/fs/cgroup") && !left("/sys/fs/cgroup/memory"),
        "no group is left"
    );
}
