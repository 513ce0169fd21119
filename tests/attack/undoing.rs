//! Undoing beside another user who does not want it: an environment without an end, a service that forks twice, marks
//! that are copied. `attacker.py` is that user, also for `bench/kill`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use fingerpost_sys::{child, sample};

use crate::support::{Home, Said, binary, is_root, until};

/// The attacker.
const NOBODY: u32 = 65534;
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// What a guardian, and `doctor`, may have resident beside the attacker. They have 20 MiB.
const MOST_BYTES: u64 = 200 << 20;

/// A process of another user that attacks until it is dropped.
struct Attacker {
    process: Child,
    /// What it said behind “ready”.
    said: String,
}

impl Attacker {
    /// Nothing where there is no second user, or no Python that it may run.
    fn start(words: &[&str]) -> Option<Attacker> {
        let python = "/usr/bin/python3";
        if !is_root() || !fs::exists(python).unwrap() {
            fingerpost_testing::skipped(format_args!("needs root and {python}"));
            return None;
        }
        let mut process = Command::new(python)
            .args(["-c", include_str!("attacker.py")])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said = line.strip_prefix("ready").expect("it began").trim();
        Some(Attacker {
            process,
            said: said.to_owned(),
        })
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn huge_pages() -> Option<String> {
    let text = fs::read_to_string(HUGE_PAGES).ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// A run that switches huge pages, at a moment when they are switched; with its guardian.
fn run_that_changes(home: &Home) -> (Child, i32) {
    let was = huge_pages();
    let other = |of: &str| if of == "always" { "madvise" } else { "always" };
    let wanted = format!("thp={}", other(was.as_deref().unwrap_or_default()));
    let words = [
        "ab",
        "fs.create",
        "--a",
        &wanted,
        "--b",
        "thp=never",
        "--allow-system-changes",
    ];
    // Who reads all of an endless environment ends early by this, and takes no memory that others need.
    let limited = "ulimit -v 4000000; exec \"$0\" \"$@\"";
    let mut run = Command::new("sh")
        .args(["-c", limited])
        .arg(binary())
        .args(words)
        .args(["--budget", "300", "--quiet"])
        .env("FINGERPOST_HOME", home.path(""))
        .env("TMPDIR", home.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("huge pages are switched", || {
        assert!(run.try_wait().unwrap().is_none(), "the run ended");
        huge_pages() != was
    });
    let pid = run.id() as i32;
    let mut guardian = None;
    until("its guardian has a name", || {
        guardian = sample::numbers("/proc".as_ref()).into_iter().find(|at| {
            sample::process(*at).is_some_and(|s| s.parent == pid && s.name == "fp-guardian")
        });
        guardian.is_some()
    });
    (run, guardian.unwrap())
}

/// The most that a process had resident until it ended.
fn peak_until_its_end(pid: i32) -> u64 {
    let mut peak = 0;
    until("the guardian has ended", || {
        let resident = sample::status(format!("/proc/{pid}").as_ref()).and_then(|s| s.resident);
        peak = peak.max(resident.unwrap_or(0));
        sample::process(pid).is_none_or(|s| matches!(s.state, 'Z' | 'X'))
    });
    peak
}

#[test]
fn an_environment_without_an_end_does_not_stop_the_undoing() {
    let Some(_attacker) = Attacker::start(&["environment"]) else {
        return;
    };
    let Some(was) = huge_pages() else {
        return eprintln!("skipped: no huge pages here");
    };
    let home = Home::new();
    let (mut run, guardian) = run_that_changes(&home);
    run.kill().unwrap();
    run.wait().unwrap();
    let peak = peak_until_its_end(guardian);
    assert_eq!(huge_pages().as_ref(), Some(&was));
    assert!(peak < MOST_BYTES, "the guardian had {} MiB", peak >> 20);

    // Without a guardian the next start undoes it.
    let (mut run, guardian) = run_that_changes(&home);
    child::signal(guardian, libc::SIGKILL).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    assert_ne!(huge_pages().as_ref(), Some(&was));
    let mut doctor = Command::new("sh");
    doctor
        .args(["-c", "ulimit -v 4000000; exec \"$0\" doctor --seconds 1"])
        .arg(binary())
        .env("FINGERPOST_HOME", home.path(""))
        .env("TMPDIR", home.path(""));
    let said = Said::of(&mut doctor);
    assert_eq!(huge_pages().as_ref(), Some(&was), "{}", said.err);
    let peak = said.usage.peak_bytes;
    assert!(peak < MOST_BYTES, "doctor had {} MiB", peak >> 20);
}

#[test]
fn nobody_keeps_the_nice_value_of_an_experiment() {
    let Some(attacker) = Attacker::start(&["twice"]) else {
        return;
    };
    let started = |least: i32| {
        let all = sample::numbers("/proc".as_ref()).into_iter();
        let of = |pid| Some((pid, sample::process(pid)?));
        // By its words: a name is everybody's.
        let ours = |pid: i32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|w| w == b"sleep\x0020.531\0")
        };
        all.filter_map(of)
            .filter(|(pid, s)| s.nice < least && s.name == "sleep" && ours(*pid))
            .map(|(pid, s)| (pid, s.nice))
            .collect::<Vec<_>>()
    };
    let own = sample::process(attacker.said.parse().unwrap())
        .unwrap()
        .nice;
    let home = Home::new();
    let words = [
        "explain",
        "--pid",
        &attacker.said,
        "--experiment",
        "--seconds",
        "2",
    ];
    let mut explain = home.command(&words);
    let mut run = explain
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut some = 0;
    until("the experiments are over", || {
        some = some.max(started(own).len());
        run.try_wait().unwrap().is_some()
    });
    assert!(
        some > 0,
        "it was experimented, and the service forked meanwhile"
    );
    assert_eq!(started(own), []);
    let limits = fs::read_to_string(format!("/proc/{}/limits", attacker.said)).unwrap();
    let locks = limits
        .lines()
        .find(|line| line.starts_with("Max file locks"));
    assert!(
        locks.unwrap().contains("unlimited            unlimited"),
        "{locks:?}"
    );
}
