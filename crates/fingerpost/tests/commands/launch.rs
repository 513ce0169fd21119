//! The launch laboratory from the command line.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Home, Said, until};
use fingerpost_record::{Outcome, Run};

const TWO: &str = r#"
[[app]]
name = "ends"
command = ["true"]
ready = "exit"

[[app]]
name = "stays"
command = ["sh", "-c", "sleep 600 & echo ready; wait"]
ready = { line = "^ready$" }
"#;

/// A home with a manifest, whose runs keep their private directories in it.
fn home(manifest: &str) -> Home {
    let home = Home::with(&[]);
    std::fs::write(home.path().join("apps.toml"), manifest).unwrap();
    std::fs::create_dir(home.path().join("tmp")).unwrap();
    home
}

fn command(home: &Home, words: &[&str]) -> Command {
    let mut all = vec![
        "run",
        "launch",
        "--quiet",
        "--profile",
        "quick",
        "--format",
        "json",
        "--set",
        "manifest=apps.toml",
    ];
    all.extend(words);
    let mut command = home.command(&all);
    command.env("TMPDIR", home.path().join("tmp"));
    command
}

fn run(home: &Home, words: &[&str]) -> Run {
    let output = command(home, words).output().unwrap();
    let run = serde_json::from_slice(&output.stdout);
    run.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Processes that carry the mark of a run of this home.
fn left_running(home: &Home) -> Vec<String> {
    let mark = format!("FINGERPOST_SCRATCH={}", home.path().display());
    let carries = |dir: &Path| {
        std::fs::read(dir.join("environ"))
            .is_ok_and(|env| String::from_utf8_lossy(&env).contains(&mark))
    };
    let entries = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|e| e.path());
    entries
        .filter(|dir| carries(dir))
        .map(|dir| dir.display().to_string())
        .collect()
}

/// Whether the test may change the system. With CI=true it must be able to.
fn may_change_the_system() -> bool {
    let can = fingerpost_testing::is_root() && Path::new("/dev/loop-control").exists();
    fingerpost_testing::can(can, "root and loop devices: it switches swap")
}

#[test]
fn without_leave_launch_times_are_measured_and_nothing_else() {
    let home = home(TWO);
    let run = run(
        &home,
        &[
            "--set",
            "placements=none,file",
            "--set",
            "rounds=3",
            "--set",
            "pressure=0.3",
        ],
    );
    let measured: Vec<_> = run
        .measurements
        .iter()
        .filter(|m| m.outcome == Outcome::Measured)
        .collect();
    assert_eq!(measured.len(), 3, "{:?}", run.measurements);
    assert!(
        measured
            .iter()
            .all(|m| m.params.text("placement") == Some("none") && m.process_values().len() == 3)
    );
    // What was asked for and not done is not stated.
    let stated = |m: &fingerpost_record::Measurement| {
        m.params
            .without(&["app", "placement", "manifest"])
            .to_string()
    };
    assert!(
        run.measurements
            .iter()
            .all(|m| stated(m) == "pressure=none state=warm"),
        "{:?}",
        run.measurements
    );
    let of_manifest = |m: &fingerpost_record::Measurement| {
        m.params
            .text("manifest")
            .is_some_and(|called| called.starts_with("apps."))
    };
    assert!(
        run.measurements.iter().all(of_manifest),
        "{:?}",
        run.measurements
    );
    let skipped = run
        .measurements
        .iter()
        .find(|m| m.params.text("placement") == Some("file"))
        .unwrap();
    assert_eq!(skipped.outcome, Outcome::Skipped);
    assert!(
        skipped
            .reason
            .as_ref()
            .unwrap()
            .contains("--allow-system-changes")
    );
    assert_eq!(
        run.observations
            .iter()
            .filter(|o| o.observer == "paging")
            .count(),
        1
    );
    assert_eq!(left_running(&home), Vec::<String>::new());
    // Other tests have areas of their own on meanwhile.
    assert!(
        !std::fs::read_to_string("/proc/swaps")
            .unwrap()
            .contains(&*home.path().to_string_lossy())
    );
}

#[test]
fn after_a_boot_one_sequence_is_recorded() {
    let home = home(TWO);
    let run = run(&home, &["--set", "state=after-boot"]);
    let (pageins, times): (Vec<_>, Vec<_>) = run
        .measurements
        .iter()
        .partition(|m| m.probe == "launch.pageins");
    assert!(
        times
            .iter()
            .all(|m| m.outcome == Outcome::Measured && m.process_values().len() == 1)
    );
    assert!(
        run.measurements
            .iter()
            .all(|m| m.params.text("state") == Some("after-boot"))
    );
    // The placement is where the machine's swap was found, the same in every row.
    let placement =
        |m: &fingerpost_record::Measurement| m.params.text("placement").map(str::to_owned);
    assert!(placement(pageins[0]).is_some_and(|p| p != "none"));
    assert!(times.iter().all(|m| placement(m) == placement(pageins[0])));
    assert_eq!(pageins.len(), 1);
    let counted = vmstat("pgmajfault");
    assert!(
        pageins[0].process_values()[0] <= counted && pageins[0].process_values()[0] > 0.0,
        "{:?} of {counted}",
        pageins[0]
    );
    let up: f64 = std::fs::read_to_string("/proc/uptime")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        pageins[0].outcome == Outcome::Measured || up > 1800.0,
        "{:?}",
        pageins[0]
    );
}

#[test]
fn page_ins_after_days_are_read_without_launching_anything() {
    let home = home(TWO);
    let run = run(&home, &["--set", "state=uptime"]);
    assert_eq!(run.measurements.len(), 1, "{:?}", run.measurements);
    assert_eq!(
        (
            run.measurements[0].probe.as_str(),
            run.measurements[0].outcome
        ),
        ("launch.pageins", Outcome::Measured)
    );
    assert!(run.measurements[0].params.int("days").is_some());
    assert_eq!(
        run.observations[0].totals["major_faults"],
        run.measurements[0].process_values()[0]
    );
}

#[test]
fn a_watch_reads_the_page_ins_for_so_long_and_keeps_them() {
    let home = Home::with(&[]);
    let run: Run = serde_json::from_str(
        &home
            .says(&[
                "run", "launch", "--watch", "2s", "--quiet", "--format", "json",
            ])
            .well(),
    )
    .unwrap();
    assert!(
        run.measurements
            .iter()
            .all(|m| m.probe == "launch.pageins" && m.outcome == Outcome::Measured),
        "{:?}",
        run.measurements
    );
    assert!(
        run.measurements
            .iter()
            .all(|m| m.params.int("days").is_some() && m.params.text("state") == Some("uptime"))
    );
    let course = run
        .observations
        .iter()
        .find(|o| o.observer == "since-boot-course")
        .unwrap();
    let points = &course.series[0].points;
    assert!(
        !points.is_empty()
            && points
                .windows(2)
                .all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1),
        "{points:?}"
    );
    assert!(
        home.says(&["run", "syscall.null", "--watch", "2s"])
            .refused()
            .contains("run launch --watch")
    );
    // What is said to come is what was asked for, not the profile's budget.
    let said = home.says(&["run", "launch", "--watch", "1s"]);
    assert!(
        said.err.contains("running launch, about 1 s"),
        "{}",
        said.err
    );
    assert!(
        home.says(&["run", "launch", "--watch", "soon"])
            .refused()
            .contains("4d")
    );
}

#[test]
fn another_placement_is_settled_with_the_manifest_that_is_named() {
    if !may_change_the_system() {
        return;
    }
    let home = home(TWO);
    let dir = home.path().join("swap");
    std::fs::create_dir(&dir).unwrap();
    for kind in ["file", "loop"] {
        // Where a swap lies is no record's to choose: of a path settling says how to measure it.
        let placements = format!("placements={kind}");
        let file = format!("{kind}.json");
        let words = [
            "--allow-system-changes",
            "--set",
            &placements,
            "--set",
            "swap_size=64M",
            "--set",
            "state=warm",
            "-o",
            &file,
        ];
        assert!(
            command(&home, &words).output().unwrap().status.success(),
            "{kind}"
        );
    }
    let words = "compare file.json loop.json --settle --allow-system-changes --budget 5 --set manifest=apps.toml --set \
        swap_size=64M \
                 --set state=warm --quiet --format json";
    let mut settling = home.command(&words.split_whitespace().collect::<Vec<_>>());
    let said = Said::of(
        &settling
            .env("TMPDIR", home.path().join("tmp"))
            .output()
            .unwrap(),
    )
    .well();
    let read = |file: &str| -> Run {
        serde_json::from_slice(&std::fs::read(home.path().join(file)).unwrap()).unwrap()
    };
    for m in ["file.json", "loop.json"]
        .iter()
        .flat_map(|file| read(file).measurements)
    {
        let stated = ["state", "swap_size", "pressure"].map(|key| {
            m.params
                .get(key)
                .map(ToString::to_string)
                .unwrap_or_default()
        });
        assert_eq!(stated, ["warm", "67108864", "0.6"], "{:?}", m.params);
        assert!(
            m.params
                .text("pressure_by")
                .is_some_and(|by| by == "limit" || by == "reserve"),
            "{:?}",
            m.params
        );
    }
    let settled = &serde_json::from_str::<serde_json::Value>(&said).unwrap()["settled"][0];
    assert_eq!(settled["what"], "placement", "{settled:#}");
    assert!(
        settled["answer"] != "not_done" && settled["runs"].as_array().unwrap().len() == 2,
        "{settled:#}"
    );
    assert_eq!(left_behind(&home, &dir), Vec::<String>::new());
}

/// How soon what the applications map is touched: their processes are this program's children, and theirs.
#[test]
fn what_applications_map_is_told() {
    // For some time, so that windows are open meanwhile: each of its children maps what a dynamic program does.
    let maps =
        "i=0; while [ $i -lt 60 ]; do sleep 0.01; i=$((i + 1)); done; echo ready; read -r line";
    let home = home(&format!(
        "[[app]]\nname = \"maps\"\ncommand = [\"sh\", \"-c\", '{maps}']\nready = {{ line = \"^ready$\" }}\n"
    ));
    let run = run(&home, &["--set", "rounds=2"]);
    let Some(mappings) = run.observations.iter().find(|o| o.observer == "mappings") else {
        return fingerpost_testing::skipped("the kernel's events may not be taken here");
    };
    assert!(
        mappings.totals["mappings.anonymous"] > 0.0,
        "{:?}",
        mappings.totals
    );
}

fn vmstat(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        .unwrap()
}

#[test]
fn an_application_missing_or_never_ready_has_a_row_for_it() {
    let more = "[[app]]\nname = \"gone\"\ncommand = [\"no-such-program\"]\nready = \"exit\"\n\
                [[app]]\nname = \"silent\"\ncommand = [\"sleep\", \"600\"]\nready = { line = \"x\" }\ntimeout = 1\n";
    let home = home(&format!("{TWO}{more}"));
    let run = run(&home, &["--set", "rounds=2"]);
    let row = |app: &str| {
        run.measurements
            .iter()
            .find(|m| m.params.text("app") == Some(app))
            .unwrap()
    };
    assert_eq!(
        (row("gone").outcome, row("ends").outcome),
        (Outcome::Skipped, Outcome::Measured)
    );
    assert_eq!(row("silent").outcome, Outcome::Failed);
    assert!(
        row("silent")
            .reason
            .as_ref()
            .unwrap()
            .contains("not ready within 1 s")
    );
    assert_eq!(left_running(&home), Vec::<String>::new());
}

#[test]
fn what_cannot_be_set_is_refused_in_a_sentence() {
    let home = home(TWO);
    for (setting, word) in [
        ("placements=moon", "moon"),
        ("placements=dual:/a+/b", "striped"),
        ("pressure=much", "much"),
        ("state=cold", "root"),
    ] {
        let sentence = Said::of(&command(&home, &["--set", setting]).output().unwrap()).refused();
        assert!(sentence.contains(word), "{sentence}");
    }
    std::fs::write(home.path().join("apps.toml"), "[[app]]\nname = 3\n").unwrap();
    assert!(
        Said::of(&command(&home, &[]).output().unwrap())
            .refused()
            .contains("apps.toml")
    );
}

#[test]
fn the_sources_figures_are_shown_with_their_answer() {
    let text = Home::with(&[]).says(&["show", "ref:launch-10.0.4"]).well();
    assert!(
        text.contains(
            "A dedicated swap place helps here: under dual the 10 applications take 44.2 s"
        ),
        "{text}"
    );
}

#[test]
fn every_placement_is_switched_on_and_off_again() {
    if !may_change_the_system() {
        return;
    }
    let home = home(TWO);
    let dir = home.path().join("swap");
    std::fs::create_dir(&dir).unwrap();
    let place = |kind: &str| format!("{kind}:{}", dir.display());
    let list = format!("placements={},{}", place("file"), place("loop"));
    let run = run(
        &home,
        &[
            "--allow-system-changes",
            "--set",
            &list,
            "--set",
            "rounds=2",
            "--set",
            "swap_size=64M",
            "--set",
            "state=warm",
        ],
    );
    for kind in ["file", "loop"] {
        let rows: Vec<_> = run
            .measurements
            .iter()
            .filter(|m| m.params.text("placement") == Some(&place(kind)))
            .collect();
        assert!(
            rows.len() == 3 && rows.iter().all(|m| m.outcome == Outcome::Measured),
            "{rows:?}"
        );
    }
    let paging = || run.observations.iter().filter(|o| o.observer == "paging");
    assert!(paging().count() > 0);
    for observation in paging() {
        assert_eq!(observation.totals["swap_areas.bytes"], f64::from(64 << 20));
    }
    assert_eq!(left_behind(&home, &dir), Vec::<String>::new());
}

/// A run that waits with everything switched on: its second application is never ready. Gives the run and the directory
/// of its swap.
fn waiting() -> (Home, Child, PathBuf) {
    let home = home(&TWO.replace("echo ready", "echo waiting"));
    let dir = home.path().join("swap");
    std::fs::create_dir(&dir).unwrap();
    let list = format!("placements=loop:{}", dir.display());
    let words = [
        "--allow-system-changes",
        "--set",
        &list,
        "--set",
        "pressure=none",
        "--set",
        "swap_size=64M",
        "--set",
        "state=warm",
    ];
    let mut child = command(&home, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the run waits with its swap area on", || {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run never came to wait"
        );
        !left_running(&home).is_empty()
            && left_behind(&home, &dir)
                .iter()
                .any(|l| l.contains("swap area"))
    });
    (home, child, dir)
}

#[test]
fn what_a_killed_run_left_is_restored_without_another_start() {
    if !may_change_the_system() {
        return;
    }
    let (home, mut child, dir) = waiting();
    child.kill().unwrap();
    child.wait().unwrap();
    until("the machine is as before", || {
        left_behind(&home, &dir).is_empty()
    });
}

#[test]
fn the_doctor_restores_a_run_killed_with_its_guardian() {
    if !may_change_the_system() {
        return;
    }
    let (home, mut child, dir) = waiting();
    let guardian = guardian_of(child.id());
    let killed = Command::new("kill")
        .args(["-9", &guardian.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    child.kill().unwrap();
    child.wait().unwrap();
    let doctor = home
        .command(&["doctor", "--seconds", "1"])
        .env("TMPDIR", home.path().join("tmp"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&[doctor.stdout, doctor.stderr].concat()).into_owned();
    assert!(told.contains("switched off the swap area"), "{told}");
    assert_eq!(left_behind(&home, &dir), Vec::<String>::new(), "{told}");
}

/// The guardian that a process started.
fn guardian_of(parent: u32) -> u32 {
    let field = |pid: u32, name: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|rest| rest.trim_start_matches(':').trim().to_owned())
    };
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let mut guardians = pids.filter(|pid| {
        field(*pid, "PPid") == Some(parent.to_string())
            && field(*pid, "Name").as_deref() == Some("fp-guardian")
    });
    guardians.next().expect("the run has a guardian")
}

/// Processes, files, loop devices, swap areas and private directories of this home's runs.
fn left_behind(home: &Home, dir: &Path) -> Vec<String> {
    let mut left = left_running(home);
    let files = |dir: &Path| {
        std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path().display().to_string())
            .collect::<Vec<_>>()
    };
    left.extend(files(dir));
    left.extend(files(&home.path().join("tmp")));
    for device in files(Path::new("/sys/block")) {
        let backing =
            std::fs::read_to_string(format!("{device}/loop/backing_file")).unwrap_or_default();
        if backing.starts_with(&*dir.to_string_lossy()) {
            let name = device.replace("/sys/block", "/dev");
            if std::fs::read_to_string("/proc/swaps")
                .unwrap()
                .contains(&name)
            {
                left.push(format!("swap area {name}"));
            }
            left.push(device);
        }
    }
    left
}

#[test]
fn a_window_is_seen() {
    fingerpost_testing::require!("Xvfb", "xterm");
    let (mut server, display) = x_server();
    let home = home(&format!(
        "[[app]]\nname = \"xterm\"\ncommand = [\"xterm\"]\nready = \"window\"\nenv = {{ DISPLAY = \":{display}\" }}\n"
    ));
    let run = run(&home, &["--set", "rounds=2"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(
        run.measurements
            .iter()
            .all(|m| m.outcome == Outcome::Measured),
        "{:?}",
        run.measurements
    );
}

/// A display of our own; it tells its number when it is ready.
fn x_server() -> (Child, u32) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = Command::new("Xvfb");
    command
        .args([
            "-displayfd",
            "1",
            "-screen",
            "0",
            "640x480x24",
            "-nolisten",
            "tcp",
        ])
        .stdout(writer)
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    drop(command);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    (child, line.trim().parse().expect("the display's number"))
}
