//! A run that is killed, or has nowhere to be kept.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Home, Said};
use fingerpost_record::load;

/// Long enough for a busy machine; a test that waits this long has failed.
const DEADLINE: Duration = Duration::from_secs(60);

fn only_run(home: &Home) -> Option<PathBuf> {
    let mut files = fs::read_dir(home.runs()).ok()?.flatten().map(|e| e.path());
    files.find(|p| p.extension().is_some_and(|e| e == "json"))
}

#[test]
fn a_killed_run_keeps_what_it_had() {
    let home = Home::with(&[]);
    let mut child =
        home.command(&["run", "syscall.*", "--budget", "600", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    loop {
        // Whenever the file is there it is whole, however often it is replaced meanwhile.
        if let Some(path) = only_run(&home)
            && load::from_path(&path).unwrap().measurements.iter().any(|m| m.estimate.is_some())
        {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "no measurement was written");
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        // The pause between two looks, not the wait: that ends with the condition or the deadline.
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let table = home.says(&["show", "latest"]).well();
    assert!(table.contains("partial") && table.contains("syscall."), "{table}");
    assert!(home.says(&["archive", "list"]).well().contains("partial"));
    assert_eq!(home.says(&["archive", "verify"]).well(), "1 of 1 runs are whole\n");
}

#[test]
fn a_run_that_cannot_be_kept_is_measured_and_printed_all_the_same() {
    let home = Home::with(&[]);
    let file = home.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let run = ["run", "clock.gettime", "--profile", "quick", "--budget", "1", "--format", "json"];
    let said = Said::of(&home.command(&run).env("FINGERPOST_HOME", &file).output().unwrap());
    assert_eq!(said.status, 3, "{}", said.err);
    assert_eq!(said.err.matches("cannot make the archive").count(), 1, "{}", said.err);
    let printed = load::from_slice(said.out.as_bytes(), "standard output").unwrap();
    assert!(printed.complete && printed.measurements[0].estimate.is_some());
}
