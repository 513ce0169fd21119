//! Where memory runs out the kernel kills one process: a worker, which costs one row, and not the process that conducts
//! the run.

use std::process::{Command, Stdio};

use fingerpost_record::{Outcome, load};
use fingerpost_sys::sample;

use crate::support::{binary, until};

/// The worker whose command line has these words, below this process.
fn worker(parent: u32, words: &[&str]) -> Option<u32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .find_map(|entry| {
            let pid: u32 = entry.file_name().to_string_lossy().parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let line = String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).ok()?)
                .into_owned();
            let all: Vec<&str> = line.split('\0').collect();
            let is_child =
                stat.rsplit_once(')')?.1.split_whitespace().nth(1)? == parent.to_string();
            (is_child && words.iter().all(|word| all.contains(word))).then_some(pid)
        })
}

fn score(pid: u32) -> i32 {
    std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))
        .map_or(0, |text| text.trim().parse().unwrap())
}

/// Does to one worker of a run what the kernel does: it costs its row. One that was not seen as the kernel's choice, or
/// was done before it could be stopped, tells nothing.
fn killed(words: &[&str], store: &str) {
    assert!(
        (0..10).any(|_| is_hit(words, store)),
        "no worker {words:?} that is the kernel's choice could be stopped while it worked"
    );
}

/// Sends a signal to a process; false where it is gone.
fn signalled(pid: i32, signal: &str) -> bool {
    Command::new("kill")
        .args([signal, &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// Whether a worker was hit; if so, that it cost its row.
fn is_hit(words: &[&str], store: &str) -> bool {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("run.json");
    let mut command = Command::new(binary());
    command.args([
        "run",
        "site",
        "--set",
        "parts=rounds",
        "--set",
        "pages=300",
        "--set",
        "store=files-open,sqlite,lmdb",
        "--budget",
        "3",
        "-q",
        "-o",
    ]);
    let mut run = command
        .arg(&file)
        .env("FINGERPOST_HOME", home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut found = None;
    until(
        "the kernel's choice is a worker, or the run is over",
        || {
            found = worker(run.id(), words).filter(|pid| score(*pid) > score(run.id()));
            found.is_some() || run.try_wait().unwrap().is_some()
        },
    );
    // On a busy machine it may have come and gone between two looks.
    let Some(worker) = found.map(|pid| pid as i32) else {
        return false;
    };
    signalled(worker, "-STOP");
    let mut stopped = false;
    until("it stops or is gone", || {
        let state = sample::process(worker).map(|stat| stat.state);
        stopped = state == Some('T');
        stopped || matches!(state, None | Some('Z' | 'X'))
    });
    assert!(
        !stopped || signalled(worker, "-KILL"),
        "a stopped worker is there"
    );
    assert!(
        run.wait().unwrap().code().is_some(),
        "the run ended with its worker"
    );
    let kept = load::from_path(&file).unwrap();
    assert!(kept.complete);
    let row = |store: &str| {
        let mut rows = kept.measurements.iter().filter(|m| m.probe == "site.round");
        rows.find(|m| m.params.text("store") == Some(store))
            .unwrap()
    };
    assert_eq!(row("files-open").outcome, Outcome::Measured);
    // One that had given its answer before was not at work any more.
    let hit = stopped && row(store).outcome != Outcome::Measured;
    assert!(
        !hit || row(store).reason.as_ref().unwrap().contains("SIGKILL"),
        "{:?}",
        row(store)
    );
    hit
}

#[test]
fn a_killed_reader_costs_its_row() {
    killed(&["site-reader", "sqlite"], "sqlite");
}

#[test]
fn a_killed_import_costs_its_rows() {
    killed(&["site-import", "lmdb"], "lmdb");
}
