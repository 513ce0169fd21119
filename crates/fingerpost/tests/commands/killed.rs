//! A run that is killed, or has nowhere to be kept.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Home, Said, until};
use fingerpost_record::load;

fn only_run(home: &Home) -> Option<PathBuf> {
    let mut files = fs::read_dir(home.runs()).ok()?.flatten().map(|e| e.path());
    files.find(|p| p.extension().is_some_and(|e| e == "json"))
}

#[test]
fn a_killed_run_keeps_what_it_had() {
    let home = Home::with(&[]);
    let mut child = home
        .command(&["run", "syscall.*", "--budget", "600", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a measurement is written", || {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended by itself"
        );
        // Whenever the file is there it is whole, however often it is replaced meanwhile.
        only_run(&home).is_some_and(|path| {
            load::from_path(&path)
                .unwrap()
                .measurements
                .iter()
                .any(|m| m.estimate.is_some())
        })
    });
    child.kill().unwrap();
    child.wait().unwrap();

    let table = home.says(&["show", "latest"]).well();
    assert!(
        table.contains("partial") && table.contains("syscall."),
        "{table}"
    );
    assert!(home.says(&["archive", "list"]).well().contains("partial"));
    assert_eq!(
        home.says(&["archive", "verify"]).well(),
        "1 of 1 runs are whole\n"
    );
}

#[test]
fn a_run_that_cannot_be_kept_is_measured_and_printed() {
    let home = Home::with(&[]);
    let file = home.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let run = [
        "run",
        "clock.gettime",
        "--profile",
        "quick",
        "--budget",
        "1",
        "--format",
        "json",
    ];
    let said = Said::of(
        &home
            .command(&run)
            .env("FINGERPOST_HOME", &file)
            .output()
            .unwrap(),
    );
    assert_eq!(said.status, 3, "{}", said.err);
    assert_eq!(
        said.err.matches("cannot make the archive").count(),
        1,
        "{}",
        said.err
    );
    let printed = load::from_slice(said.out.as_bytes(), "standard output").unwrap();
    assert!(printed.complete && printed.measurements[0].estimate.is_some());
}

/// Processes, of any user, that were started below this directory and are not mere remains.
fn started_below(dir: &std::path::Path) -> Vec<String> {
    let mark = format!("FINGERPOST_SCRATCH={}", dir.display());
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|e| {
        let environment = fs::read(e.path().join("environ")).unwrap_or_default();
        environment
            .split(|b| *b == 0)
            .any(|word| word.starts_with(mark.as_bytes()))
    });
    processes
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_killed_run_of_servers_is_cleaned_up_without_a_start() {
    let home = Home::with(&[]);
    let tmp = home.path().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let start = |words: &[&str]| {
        let mut command = home.command(words);
        command
            .env("TMPDIR", &tmp)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut servers = 0;
    for kill in 0..3 {
        let mut child = start(&[
            "run",
            "database",
            "web",
            "--profile",
            "quick",
            "--budget",
            "6",
            "--set",
            "clients=1,2",
        ])
        .spawn()
        .unwrap();
        let began = Instant::now();
        // The last one is killed when a server or load generator runs for certain, the others at random moments.
        let moment = Duration::from_millis(chance.u64(..3000));
        until("the moment to kill comes", || {
            if kill == 2 {
                !started_below(&tmp).is_empty()
            } else {
                began.elapsed() >= moment
            }
        });
        servers += started_below(&tmp).len();
        child.kill().unwrap();
        child.wait().unwrap();
        let left = || {
            (
                started_below(&tmp),
                fs::read_dir(&tmp)
                    .unwrap()
                    .flatten()
                    .map(|e| e.path())
                    .collect::<Vec<_>>(),
            )
        };
        until(
            &format!("nothing is left after kill {kill} of {:?}", left()),
            || left() == Default::default(),
        );
    }
    assert!(servers > 0);
}
