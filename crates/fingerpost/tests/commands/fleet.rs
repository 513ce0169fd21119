//! `fingerpost fleet` as a user runs it: records gathered, hosts by ssh, nodes of Slurm. The daemons are this test's
//! own, with private configurations, directories and keys, and are ended by their ids.

mod daemons;
mod programs;
mod records;
mod slurm;

use std::process::Stdio;

use crate::common::{Home, until};
use daemons::Sshd;
use programs::{KUBECTL, path_with};
use records::{keep, made};

/// What a command says as JSON.
fn json(home: &Home, words: &[&str]) -> serde_json::Value {
    let said = home.says(&[words, &["--format", "json"]].concat());
    serde_json::from_str(&said.out)
        .unwrap_or_else(|e| panic!("{words:?}: {e}: {}{}", said.out, said.err))
}

#[test]
fn gathered_records_show_the_slow_host_and_every_bad_file() {
    let home = Home::with(&[]);
    let dir = home.path().join("came");
    std::fs::create_dir(&dir).unwrap();
    for n in 0..12 {
        let slow = |probe: &str| {
            if n == 5 && probe.starts_with("memory") {
                1.3
            } else {
                1.0
            }
        };
        keep(&dir, &format!("n{n}"), &made(n, slow));
    }
    std::fs::write(
        dir.join("half.json"),
        &serde_json::to_vec(&made(90, |_| 1.0)).unwrap()[..900],
    )
    .unwrap();
    std::fs::write(
        dir.join("lost.out"),
        "srun: error\nFINGERPOST lost 0 H4sIAAAA\n",
    )
    .unwrap();
    std::fs::write(
        dir.join("said.out"),
        "FINGERPOST said failed no space left\n",
    )
    .unwrap();
    std::fs::write(
        dir.join("mute.out"),
        "ssh: connect to host mute port 22: Connection timed out\n\n",
    )
    .unwrap();
    let gathered = home.says(&["fleet", "gather", "came", "-o", "sweep"]);
    assert_eq!(gathered.status, 3, "{}", gathered.err);
    assert!(
        gathered.err.contains("12 records gathered, 4 without one"),
        "{}",
        gathered.err
    );
    assert!(
        gathered.err.contains("fingerpost fleet show sweep"),
        "{}",
        gathered.err
    );
    let shown = home.says(&["fleet", "show", "sweep"]);
    assert_eq!(shown.status, 0, "{}", shown.err);
    for wanted in [
        "12 hosts measured",
        "n5  suspected",
        "layer memory",
        "half  without a record",
        "ends within a record",
        "no space left",
        "its output holds no record, and ends with “ssh: connect to host mute port 22: Connection timed out”",
        "`fingerpost fleet run --resume sweep` with --slurm, --ssh or --kubernetes measures the hosts without a \
         record, and the suspects again",
    ] {
        assert!(shown.out.contains(wanted), "{wanted}: {}", shown.out);
    }
    let json = json(&home, &["fleet", "show", "sweep"]);
    let of = |standing: &str| {
        json["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|h| h["standing"] == standing)
            .count()
    };
    assert_eq!(
        (of("ok"), of("suspected"), of("failed"), of("slow")),
        (11, 1, 4, 0),
        "{json}"
    );
    let one = home.says(&["fleet", "show", "sweep", "n5"]);
    assert!(
        one.out.contains("memory.read") && one.out.contains("% slower than its peers"),
        "{}",
        one.out
    );
    assert_eq!(
        home.says(&["fleet", "drain", "sweep"]).out,
        "",
        "a suspect is not drained"
    );
    assert_eq!(
        home.says(&["fleet", "gather", "came", "-o", "sweep"])
            .status,
        2,
        "what is there is not written over"
    );
    assert!(
        home.says(&["fleet", "show", "came"])
            .refused()
            .contains("`fleet gather` make one")
    );
    assert!(
        home.says(&["fleet", "show", "swepe"])
            .refused()
            .contains("did you mean “sweep”?")
    );
}

/// The sweeps `before` and `after` a roll-out to half of 24 hosts.
fn roll_out(home: &Home) {
    for (sweep, after) in [("before", false), ("after", true)] {
        let dir = home.path().join(format!("came-{sweep}"));
        std::fs::create_dir(&dir).unwrap();
        for n in 0..24 {
            // All are 5 % slower afterwards; the first twelve got a kernel whose memory is 20 % slower.
            let got = after && n < 12;
            let memory = |probe: &str| {
                if got && probe.starts_with("memory") {
                    1.2
                } else {
                    1.0
                }
            };
            let factor = |probe: &str| if after { 1.05 } else { 1.0 } * memory(probe);
            let mut run = made(n + if after { 100 } else { 0 }, factor);
            if got {
                run.host.kernel = "new".into();
            }
            keep(&dir, &format!("n{n}"), &run);
        }
        assert_eq!(
            home.says(&["fleet", "gather", &format!("came-{sweep}"), "-o", sweep])
                .status,
            0
        );
    }
}

#[test]
fn a_roll_out_is_told_from_what_hit_all_and_a_check_is_a_line() {
    let home = Home::with(&[]);
    roll_out(&home);
    let said = home.says(&["fleet", "compare", "before", "after"]);
    assert!(
        said.out.contains("12 hosts got it, 12 hosts did not")
            && said.out.contains("memory.read size=1: "),
        "{}{}",
        said.out,
        said.err
    );
    assert!(
        !said.out.contains("cpu."),
        "what hit everybody comes off: {}",
        said.out
    );
    let compared = json(&home, &["fleet", "compare", "before", "after"]);
    assert_eq!(
        (&compared["treated"], &compared["controls"]),
        (&12.into(), &12.into()),
        "{compared}"
    );
    let memory = compared["changed"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["what"] == "memory.read size=1")
        .expect("the row that changed");
    assert!(
        (1.1..1.3).contains(&memory["ratio"].as_f64().unwrap()),
        "{memory}"
    );
    let same = home.says(&[
        "fleet",
        "compare",
        "before",
        "before",
        "--treated",
        "n[0-11]",
    ]);
    assert!(same.out.starts_with("0 of "), "{}", same.out);
    let history = home
        .says(&["fleet", "history", "n3", "after", "before"])
        .well();
    assert_eq!(
        history
            .lines()
            .filter(|line| line.contains("among its peers"))
            .count(),
        2,
        "{history}"
    );
    let days = json(&home, &["fleet", "history", "n3", "after", "before"]);
    let days: Vec<(&serde_json::Value, &serde_json::Value)> = days
        .as_array()
        .unwrap()
        .iter()
        .map(|day| (&day["sweep"], &day["host"]["standing"]))
        .collect();
    assert_eq!(days.len(), 2);
    assert!(
        days.iter().all(|(_, standing)| **standing == "ok") && days[0].0 != days[1].0,
        "{days:?}"
    );
    let mistyped = home.says(&["fleet", "history", "n3x", "before", "--format", "json"]);
    assert!(
        mistyped.status == 2
            && mistyped.out.is_empty()
            && mistyped.err.contains("did you mean “n3”?"),
        "{}",
        mistyped.err
    );
    let checked = json(
        &home,
        &[
            "fleet",
            "check",
            "--against",
            "before",
            "--name",
            "n3",
            "--recorded",
        ],
    );
    assert!(
        checked["node"] == "n3"
            && checked["standing"] == "ok"
            && checked["rows"] == 21
            && checked["peers"] == 23,
        "{checked}"
    );
    let ok = home.says(&[
        "fleet",
        "check",
        "--against",
        "before",
        "--name",
        "n3",
        "--recorded",
    ]);
    assert_eq!(
        (ok.status, ok.out.as_str()),
        (0, "ok n3: 21 rows beside 23 peers\n"),
        "{}",
        ok.err
    );
    // A run of this host beside made-up peers: nobody of its kind.
    let words = [
        "fleet",
        "check",
        "--against",
        "before",
        "--name",
        "n3",
        "--",
        "syscall.null",
        "--budget",
        "1",
    ];
    let unknown = home.says(&words);
    assert!(
        unknown.status == 3 && unknown.out.starts_with("unknown n3: 0 rows beside 0 peers"),
        "{}{}",
        unknown.out,
        unknown.err
    );
    let csv = home.says(&["fleet", "export", "before", "--csv"]).well();
    assert_eq!(csv.lines().count(), 1 + 24 * 21);
    assert!(
        csv.split_inclusive('\n').all(|line| line.ends_with("\r\n")),
        "DuckDB refuses lines that end in two ways"
    );
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(
        columns.iter().all(|n| *n == 13),
        "{}",
        csv.lines().nth(1).unwrap()
    );
}

#[test]
fn a_script_is_one_that_a_shell_takes() {
    let home = Home::with(&[]);
    let said = home.says(&[
        "fleet",
        "script",
        "slurm",
        "-w",
        "n[1-3]",
        "--partition",
        "a b",
        "--",
        "--set",
        "dir=/tmp/it's",
    ]);
    assert_eq!(said.status, 0, "{}", said.err);
    std::fs::write(home.path().join("script"), &said.out).unwrap();
    let checked = std::process::Command::new("sh")
        .arg("-n")
        .arg(home.path().join("script"))
        .output()
        .unwrap();
    assert!(
        checked.status.success() && said.out.contains("#SBATCH --nodelist=n[1-3]"),
        "{}",
        said.out
    );
    let wrong = home.says(&["fleet", "script", "slurm", "-w", "n[3-1]"]);
    assert!(
        wrong.status == 2 && wrong.err.contains("3-1"),
        "{}",
        wrong.err
    );
}

#[test]
fn words_that_no_node_could_run_are_refused_before_any_is_asked() {
    let home = Home::with(&[]);
    std::fs::create_dir(home.path().join("came")).unwrap();
    keep(&home.path().join("came"), "n1", &made(1, |_| 1.0));
    let begins: [&[&str]; 3] = [
        &["run", "--ssh", "-w", "n1", "-o", "s"],
        &["script", "slurm", "-w", "n1"],
        &["gather", "came", "-o", "s"],
    ];
    for begin in begins {
        for (words, meant) in [
            (&["--profil", "quick"][..], "'--profile'"),
            (&["syscall.nul"], "“syscall.null”"),
            (&["syscall.select", "--set", "fdz=1"], "“fds”"),
        ] {
            let said = home.says(&[&["fleet"], begin, &["--"], words].concat());
            assert!(
                said.status == 2 && said.err.contains(meant) && said.out.is_empty(),
                "{}{}",
                said.out,
                said.err
            );
            assert!(!home.path().join("s").exists());
        }
    }
}

#[test]
fn a_sweep_that_could_not_begin_is_not_in_the_next_ones_way() {
    let home = Home::with(&[]);
    // No such engine here: the directory of programs is empty.
    let run = |engine: &str| {
        let words = [
            "fleet", "run", engine, "--image", "a/b:1", "-w", "n[1-3]", "-o", "s",
        ];
        home.command(&words)
            .env("PATH", home.path().join("nowhere"))
            .output()
            .unwrap()
    };
    for engine in ["--slurm", "--kubernetes"] {
        let said = run(engine);
        assert!(
            !said.status.success() && !home.path().join("s").exists(),
            "{engine}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
    }
    std::fs::create_dir(home.path().join("s")).unwrap();
    let said = home
        .says(&["fleet", "run", "--ssh", "-w", "n1", "-o", "s"])
        .refused();
    assert!(
        said.contains("s is there already") && said.contains("--resume s"),
        "{said}"
    );
}

/// The words that measure hosts by ssh into the sweep `s`.
fn by_ssh<'a>(config: &'a str, hosts: &'a str, budget: &'a str) -> [&'a str; 13] {
    [
        "fleet",
        "run",
        "--ssh",
        "--ssh-config",
        config,
        "-w",
        hosts,
        "-o",
        "s",
        "--",
        "syscall.null",
        "--budget",
        budget,
    ]
}

#[test]
fn hosts_are_measured_by_ssh_and_an_unreachable_one_is_a_row() {
    let home = Home::with(&[]);
    let Some(sshd) = Sshd::start(home.path()) else {
        return;
    };
    sshd.config(&["h1", "h2", "h3"], &["h4"]);
    let config = sshd.config_path();
    let words = by_ssh(config.to_str().unwrap(), "h[1-4]", "1");
    let said = home.says(&words);
    assert_eq!(said.status, 3, "{}{}", said.out, said.err);
    assert!(
        said.err.contains("3 measured, 1 failed") && said.out.contains("h4  without a record"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(
        said.out.contains("efused"),
        "the reason is ssh's own: {}",
        said.out
    );
    assert_eq!(
        std::fs::read_dir(sshd.remote_tmp()).unwrap().count(),
        0,
        "nothing stays on the hosts"
    );
    sshd.config(&["h1", "h2", "h3", "h4"], &[]);
    let resumed = home.says(&[
        "fleet",
        "run",
        "--ssh",
        "--ssh-config",
        config.to_str().unwrap(),
        "--resume",
        "s",
    ]);
    assert_eq!(resumed.status, 0, "{}{}", resumed.out, resumed.err);
    assert!(
        resumed.err.contains("1 measured, 0 failed"),
        "only what was left: {}",
        resumed.err
    );
}

#[test]
fn an_interrupted_sweep_by_ssh_leaves_nothing_on_the_hosts() {
    let home = Home::with(&[]);
    let Some(sshd) = Sshd::start(home.path()) else {
        return;
    };
    sshd.config(&["h1", "h2"], &[]);
    let config = sshd.config_path();
    let words = by_ssh(config.to_str().unwrap(), "h[1-2]", "900");
    let mut running = home
        .command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = || {
        std::fs::read_dir(sshd.remote_tmp())
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("fingerpost-"))
            .count()
    };
    // A directory for the program and one for the run, on both hosts.
    until("both hosts measure", || started() >= 4);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&running),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(3));
    until("the hosts are left as they were", || started() == 0);
    let shown = home.says(&["fleet", "show", "s"]);
    assert!(
        shown.out.contains("2 not measured yet: h[1-2]"),
        "{}",
        shown.out
    );
}

/// Twelve hosts, of which n5 is slow in memory, the first time and the second.
fn with_a_slow_host(home: &Home) {
    for (dir, nodes, turn) in [
        ("came", (0..12).collect::<Vec<u64>>(), 0),
        ("again", vec![1, 2, 3, 5, 8], 100),
    ] {
        let dir = home.path().join(dir);
        std::fs::create_dir(&dir).unwrap();
        for n in nodes {
            let slow = |probe: &str| {
                if n == 5 && probe.starts_with("memory") {
                    1.3
                } else {
                    1.0
                }
            };
            keep(&dir, &format!("n{n}"), &made(n + turn, slow));
        }
    }
    assert_eq!(home.says(&["fleet", "gather", "came", "-o", "s"]).status, 0);
}

#[test]
fn a_suspect_that_is_slow_again_is_slow_and_is_drained() {
    let home = Home::with(&[]);
    with_a_slow_host(&home);
    let script = home
        .says(&["fleet", "script", "slurm", "--again", "s"])
        .well();
    let list = script
        .lines()
        .find(|line| line.contains("--nodelist="))
        .unwrap()
        .to_owned();
    let nodes = fingerpost_fleet::nodes::parse(list.split_once("--nodelist=").unwrap().1).unwrap();
    assert!(
        nodes.contains(&"n5".to_owned()) && script.contains("#SBATCH --nodes=5"),
        "the suspect beside four controls: {script}"
    );
    assert_eq!(
        home.says(&["fleet", "gather", "again", "--again", "s"])
            .status,
        0
    );
    let shown = home.says(&["fleet", "show", "s"]).well();
    assert!(
        shown.contains("1 slow: n5") && shown.contains("measured again"),
        "{shown}"
    );
    let drained = home.says(&["fleet", "drain", "s"]).well();
    assert!(
        drained.starts_with("scontrol update NodeName=n5 State=DRAIN Reason='fingerpost: ")
            && drained.lines().count() == 1,
        "{drained}"
    );
    // An index that is lost or damaged costs time and nothing else.
    for damage in [None, Some(&b"nonsense"[..])] {
        let index = home.path().join("s/index");
        match damage {
            None => std::fs::remove_file(&index).unwrap(),
            Some(bytes) => std::fs::write(&index, bytes).unwrap(),
        }
        assert_eq!(home.says(&["fleet", "show", "s"]).well(), shown);
        assert!(
            std::fs::metadata(&index).unwrap().len() > 100,
            "it is made again"
        );
    }
}

#[test]
fn a_sweep_is_a_report_and_a_parquet_file() {
    let home = Home::with(&[]);
    with_a_slow_host(&home);
    let said = home
        .says(&["fleet", "show", "s", "-o", "report.html"])
        .well();
    assert!(said.contains("is in report.html"), "{said}");
    let page = std::fs::read_to_string(home.path().join("report.html")).unwrap();
    for wanted in [
        "n5",
        "data:image/png;base64,iVBOR",
        "memory latency and bandwidth",
        "12 hosts by 21 rows; hosts that stand out: n5",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("<script"));
    let output = home
        .command(&["fleet", "export", "s", "--parquet"])
        .output()
        .unwrap();
    if cfg!(feature = "parquet") {
        assert!(
            output.status.success()
                && output.stdout.starts_with(b"PAR1")
                && output.stdout.ends_with(b"PAR1")
        );
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains("--csv"),
            "{said}"
        );
    }
}

#[test]
fn nodes_of_kubernetes_are_measured_by_a_job_that_is_removed() {
    let home = Home::with(&[]);
    let (path, bin) = (
        path_with(&home, &[("kubectl", KUBECTL)]),
        home.path().join("bin"),
    );
    let words = [
        "fleet",
        "run",
        "--kubernetes",
        "--image",
        "registry.example/fingerpost:1",
        "-w",
        "k[1-4]",
        "-o",
        "s",
        "--",
        "syscall.null",
    ];
    let mut command = home.command(&words);
    let output = command
        .env("PATH", path)
        .env("FINGERPOST", env!("CARGO_BIN_EXE_fingerpost"))
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    assert!(
        out.contains("1 host measured; 3 without a record: k[2-4]"),
        "{out}{err}"
    );
    for wanted in [
        "its last words: panic: no space",
        "Kubernetes says that it is not ready",
        "Kubernetes does not know it",
    ] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    let job = std::fs::read_to_string(bin.join("job.json")).unwrap();
    assert!(
        job.contains("podAntiAffinity") && job.contains(r#""k2""#) && !job.contains(r#""k3""#),
        "{job}"
    );
    let said = std::fs::read_to_string(bin.join("said")).unwrap();
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("delete job fingerpost-") && said.matches("create").count() == 1,
        "{said}"
    );
    let without = home.says(&["fleet", "run", "--kubernetes", "-w", "k1", "-o", "t"]);
    assert!(
        without.status == 2 && without.err.contains("--image") && !home.path().join("t").exists(),
        "{}",
        without.err
    );
    let script = home
        .says(&[
            "fleet",
            "script",
            "kubernetes",
            "--image",
            "x",
            "-w",
            "k[1-2]",
            "--",
            "--profile",
            "screen",
        ])
        .well();
    assert!(
        script.starts_with("{\n  \"apiVersion\": \"batch/v1\",\n") && script.contains("\"k2\""),
        "{script}"
    );
}

/// What the page answers at a path below its secret address.
fn page(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let (host, base) = address
        .trim()
        .trim_start_matches("http://")
        .split_once('/')
        .unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
        base.trim_end_matches('/')
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_sweep_is_on_the_page_with_its_hosts() {
    use std::io::BufRead as _;
    let home = Home::with(&[]);
    with_a_slow_host(&home);
    let mut server = home
        .command(&["serve", "--port", "0", "--sweep", "s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    std::io::BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let list = page(&address, "/sweeps");
    assert!(
        list.starts_with("HTTP/1.1 200") && list.contains("/sweep/0\""),
        "{list}"
    );
    let one = page(&address, "/sweep/0");
    for wanted in [
        "suspected",
        "data:image/png;base64,",
        "/sweep/0/host/n5\"",
        "hosts that stand out: n5",
    ] {
        assert!(one.contains(wanted), "{wanted}: {one}");
    }
    // Names of probes may be broken over lines after their dots.
    assert!(
        page(&address, "/sweep/0/host/n5")
            .replace("<wbr>", "")
            .contains("memory.read")
    );
    assert!(page(&address, "/sweep/0/report").contains("attachment; filename="));
    for none in [
        "/sweep/1",
        "/sweep/x",
        "/sweep/0/host/n99",
        "/sweep/0/host/..%2f..%2fmanifest",
    ] {
        assert!(!page(&address, none).starts_with("HTTP/1.1 200"), "{none}");
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert!(server.wait().unwrap().success());
}
