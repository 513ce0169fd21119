//! Nodes of Slurm, of a private one: measured by jobs and by a batch script, taken away meanwhile, and drained.

use std::process::Stdio;

use super::daemons::SlurmCluster;
use super::programs::{TAKES, path_with};
use super::with_a_slow_host;
use crate::common::{Home, until};

#[test]
fn nodes_of_slurm_are_measured_and_a_node_that_is_down_is_a_row() {
    let home = Home::with(&[]);
    let Some(mut slurm) = SlurmCluster::start(home.path(), 8) else {
        return;
    };
    let run = |words: &[&str]| {
        let mut command = home.command(words);
        let output = command.env("SLURM_CONF", slurm.conf()).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, _, err) = run(&[
        "fleet",
        "run",
        "--slurm",
        "-w",
        "n[1-3]",
        "-o",
        "all",
        "--",
        "syscall.null",
        "--budget",
        "1",
    ]);
    assert!(
        status == Some(0) && err.contains("3 measured, 0 failed"),
        "{err}"
    );
    slurm.stop_node(8);
    until("Slurm calls n8 down", || slurm.state(8).starts_with("down"));
    let words = [
        "fleet",
        "run",
        "--slurm",
        "--scavenge",
        "--at-once",
        "1",
        "-w",
        "n[7-9]",
        "-o",
        "some",
        "--",
        "syscall.null",
        "--budget",
        "1",
    ];
    let mut command = home.command(&words);
    let output = command.env("SLURM_CONF", slurm.conf()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("Slurm says that it is down") && said.contains("Slurm does not know it"),
        "{said}"
    );
    assert!(said.contains("1 host measured"), "{said}");
}

/// What binds a line of `srun` to its node: tasks are numbered as the list says, not as Slurm's own table does.
#[test]
fn labels_of_slurm_count_the_nodes_in_the_order_of_the_list() {
    let home = Home::with(&[]);
    let Some(slurm) = SlurmCluster::start(home.path(), 3) else {
        return;
    };
    let words = [
        "--nodelist=n3,n[1-2]",
        "--nodes=3",
        "--ntasks-per-node=1",
        "--exclusive",
    ];
    let output = std::process::Command::new("srun")
        .args(words)
        .args([
            "--distribution=arbitrary",
            "--label",
            "printenv",
            "SLURMD_NODENAME",
        ])
        .env("SLURM_CONF", slurm.conf())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(lines, ["0: n3", "1: n1", "2: n2"], "{err}");
}

#[test]
fn an_interrupted_sweep_of_slurm_cancels_its_own_job_only() {
    let home = Home::with(&[]);
    let Some(slurm) = SlurmCluster::start(home.path(), 3) else {
        return;
    };
    let other = slurm.submit(3);
    let words = [
        "fleet",
        "run",
        "--slurm",
        "-w",
        "n[1-2]",
        "-o",
        "s",
        "--",
        "syscall.null",
        "--budget",
        "900",
    ];
    let mut command = home.command(&words);
    let mut running = command
        .env("SLURM_CONF", slurm.conf())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("both jobs run", || slurm.running_jobs().len() == 2);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&running),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(3));
    until("its own job has ended", || {
        slurm.running_jobs() == [other.clone()]
    });
}

#[test]
fn a_node_taken_for_an_urgent_job_is_measured_afterwards() {
    let home = Home::with(&[]);
    let Some(slurm) = SlurmCluster::start(home.path(), 2) else {
        return;
    };
    let words = [
        "fleet",
        "run",
        "--slurm",
        "--scavenge",
        "--partition",
        "all",
        "-w",
        "n1",
        "-o",
        "s",
        "--",
        "syscall.null",
        "--budget",
        "8",
    ];
    let mut command = home.command(&words);
    let running = command
        .env("SLURM_CONF", slurm.conf())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the sweep's job runs", || slurm.running_jobs().len() == 1);
    let swept = slurm.running_jobs();
    let urgent = slurm.submit_urgent(1, 2);
    until("the urgent job has the node", || {
        slurm.running_jobs() == [urgent.clone()]
    });
    assert_ne!(swept, [urgent]);
    let output = running.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(0) && err.contains("1 measured, 0 failed"),
        "{err}"
    );
}

#[test]
fn a_node_whose_job_ended_without_a_word_is_measured_later() {
    let home = Home::with(&[]);
    let path = path_with(&home, &TAKES);
    let mut command = home.command(&[
        "fleet",
        "run",
        "--slurm",
        "-w",
        "n1",
        "-o",
        "s",
        "--",
        "syscall.null",
        "--budget",
        "1",
    ]);
    let output = command
        .env("PATH", path)
        .env("FINGERPOST", env!("CARGO_BIN_EXE_fingerpost"))
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        home.path().join("bin/taken").exists()
            && output.status.success()
            && err.contains("1 measured, 0 failed"),
        "{err}"
    );
}

#[test]
fn a_program_that_no_path_shares_comes_by_srun_and_is_removed() {
    let home = Home::with(&[]);
    let Some(slurm) = SlurmCluster::start(home.path(), 1) else {
        return;
    };
    let copies = home.path().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let words = [
        "fleet",
        "run",
        "--slurm",
        "--bcast",
        copies.to_str().unwrap(),
        "-w",
        "n1",
        "-o",
        "s",
        "--",
        "syscall.null",
        "--budget",
        "1",
    ];
    let output = home
        .command(&words)
        .env("SLURM_CONF", slurm.conf())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(0) && err.contains("1 measured, 0 failed"),
        "{err}"
    );
    assert_eq!(
        std::fs::read_dir(&copies).unwrap().count(),
        0,
        "the copy is removed"
    );
}

#[test]
fn slow_nodes_are_drained_by_scontrol() {
    let home = Home::with(&[]);
    let Some(slurm) = SlurmCluster::start(home.path(), 8) else {
        return;
    };
    with_a_slow_host(&home);
    assert_eq!(
        home.says(&["fleet", "gather", "again", "--again", "s"])
            .status,
        0
    );
    let output = home
        .command(&["fleet", "drain", "s", "--apply"])
        .env("SLURM_CONF", slurm.conf())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    until("Slurm calls n5 drained", || {
        slurm.state(5).starts_with("drain")
    });
    assert!(
        slurm.reason(5).starts_with("fingerpost: ") && slurm.state(4) == "idle",
        "{}",
        slurm.reason(5)
    );
}

#[test]
fn a_requeued_batch_script_goes_on_with_the_missing_nodes() {
    let home = Home::with(&[]);
    let Some(slurm) = SlurmCluster::start(home.path(), 3) else {
        return;
    };
    let dir = home.path().join("batch");
    std::fs::create_dir(&dir).unwrap();
    // A start takes as long as this says then: the one that is broken off has no record yet, however slow the machine
    // is.
    let budget = |seconds: &str| std::fs::write(dir.join("budget"), seconds).unwrap();
    let submit = |nodes: &str| {
        let words = [
            "fleet",
            "script",
            "slurm",
            "-w",
            nodes,
            "--timeout",
            "60",
            "--",
            "syscall.*",
            "--budget",
            "7",
        ];
        let script = home.says(&words).well();
        let task = script
            .trim_end()
            .strip_suffix("--budget 7")
            .expect("it ends with the task's words");
        std::fs::write(
            dir.join("script"),
            format!("{task}--budget \"$(cat budget)\"\n"),
        )
        .unwrap();
        slurm.submit_script(&dir, "script")
    };
    let record = |node: &str| dir.join(format!("{node}.json.gz"));
    budget("1");
    submit("n1");
    until("the first node has its record", || {
        record("n1").exists() && slurm.running_jobs().is_empty()
    });
    let first = std::fs::read(record("n1")).unwrap();
    // Another job in the same directory measures the node that is left, and loses it to an urgent one meanwhile.
    budget("45");
    let job = submit("n[1-2]");
    until("its tasks run", || {
        slurm.steps().iter().any(|step| *step == format!("{job}.0"))
    });
    let urgent = slurm.submit_urgent(2, 1);
    until("the urgent job has the node", || {
        slurm.running_jobs().contains(&urgent)
    });
    assert!(!record("n2").exists(), "it was taken away before its end");
    until("the job is in the queue again", || {
        slurm.job_state(&job) == "PENDING"
    });
    until("the urgent job has ended", || {
        slurm.running_jobs().is_empty()
    });
    budget("1");
    // Slurm keeps a requeued job back for two minutes.
    slurm.start_now(&job);
    until("the second node has its record", || {
        record("n2").exists() && slurm.job_state(&job).is_empty()
    });
    assert!(slurm.requeued(&job), "it was the same job, twice");
    assert!(
        std::fs::read(record("n1")).unwrap() == first,
        "what was measured is not measured again"
    );
    let said = home.says(&[
        "fleet",
        "gather",
        "batch",
        "-w",
        "n3",
        "-o",
        "s",
        "--",
        "syscall.null",
        "--budget",
        "1",
    ]);
    assert!(
        said.status == 3 && said.err.contains("2 records gathered, 1 without one"),
        "{}",
        said.err
    );
    let shown = home.says(&["fleet", "show", "s"]);
    assert!(
        shown.out.contains("2 hosts measured") && shown.out.contains("1 not measured yet: n3"),
        "{}",
        shown.out
    );
    let mut resume = home.command(&["fleet", "run", "--slurm", "--resume", "s"]);
    let resumed = resume.env("SLURM_CONF", slurm.conf()).output().unwrap();
    let err = String::from_utf8_lossy(&resumed.stderr);
    assert!(
        resumed.status.success() && err.contains("1 measured, 0 failed"),
        "{err}"
    );
}
