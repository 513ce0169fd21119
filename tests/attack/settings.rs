//! What a record or a sweep names, and a command would set: programs, files, code that is loaded, ports.

use std::path::PathBuf;

use fingerpost_record::{Better, Estimate, Params, Process, Run, Unit, fixture};

use crate::support::Home;

/// A run of this machine with one row of these parameters.
fn run(probe: &str, params: Params, value: f64) -> Run {
    let mut row = fixture::row(probe, params, Unit::Nanoseconds, Better::Lower);
    row.estimate = Some(Estimate {
        value,
        low: value * 0.99,
        high: value * 1.01,
        confidence: 0.95,
    });
    row.processes = (0..9)
        .map(|i| Process {
            value: Some(value * (1.0 + 0.001 * f64::from(i))),
            ..Process::default()
        })
        .collect();
    let mut run = Run {
        measurements: vec![row],
        ..fixture::run()
    };
    run.host.hostname = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .to_owned();
    run
}

/// What two records make `compare --settle` say of the change that is named, as JSON.
fn settled(home: &Home, base: &Run, new: &Run, what: &str) -> (String, Vec<u8>) {
    let file = |name: &str, run: &Run| home.write(name, serde_json::to_vec(run).unwrap());
    let (base, new) = (file("base.json", base), file("new.json", new));
    let words: [PathBuf; 9] = [
        "compare".into(),
        base,
        new,
        "--settle".into(),
        "--allow-system-changes".into(),
        "--budget".into(),
        "5".into(),
        "--format".into(),
        "json".into(),
    ];
    let said = home.says(&words);
    let told: serde_json::Value =
        serde_json::from_slice(&said.out).unwrap_or_else(|_| panic!("{what}: {}", said.err));
    let settled = told["settled"].as_array().cloned().unwrap_or_default();
    let of = settled
        .iter()
        .find(|one| one["what"] == what)
        .unwrap_or_else(|| panic!("{what} is not among {settled:?}"));
    assert_eq!(of["answer"], "not_done", "{what}: {of:#}");
    (of["reason"].to_string(), said.out)
}

#[test]
fn a_record_sets_nothing_that_is_not_on_the_list() {
    let home = Home::new();
    let pwned = home.path("PWNED");
    let trace = format!("-ftime-trace={}", pwned.display());
    let flops = || {
        Params::new()
            .with("compiler", "clang 14.0.6")
            .with("module", 1)
    };
    let database = |engine: &str| {
        Params::new()
            .with("engine", engine)
            .with("mix", "point")
            .with("clients", 1)
    };
    let touch = format!("touch {}", pwned.display());
    for (probe, params, key, base, new) in [
        ("cpu.flops", flops(), "cflags", "-O2", trace.as_str()),
        (
            "database.throughput",
            database("postgresql"),
            "server.ARCHIVE_COMMAND",
            "x",
            &touch,
        ),
        (
            "database.throughput",
            database("mariadb"),
            "server.loose_skip_networking",
            "1",
            "0",
        ),
        (
            "database.throughput",
            database("mariadb"),
            "server.loose_port",
            "1",
            "33060",
        ),
        (
            "database.throughput",
            database("mariadb"),
            "server.loose_bind_address",
            "::1",
            "0.0.0.0",
        ),
        (
            "syscall.poll",
            Params::new().with("fds", 3),
            "env.LD_PRELOAD",
            "a.so",
            "b.so",
        ),
        (
            "syscall.poll",
            Params::new().with("fds", 3),
            "env.GLIBC_TUNABLES",
            "a",
            "b",
        ),
        (
            "syscall.poll",
            Params::new().with("fds", 3),
            "dir",
            "a",
            "runs",
        ),
        (
            "database.throughput",
            database("sqlite"),
            "dir",
            "a",
            "runs",
        ),
    ] {
        let of = |value: &str, time: f64| run(probe, params.clone().with(key, value), time);
        let (reason, _) = settled(&home, &of(base, 100.0), &of(new, 300.0), key);
        assert!(
            reason.contains("a record may not choose") && reason.contains(key),
            "{key}: {reason}"
        );
        // It is on both sides, and something else was changed.
        let other = if probe == "cpu.flops" {
            "module"
        } else {
            "fds"
        };
        let (other, values) = match probe {
            "syscall.poll" | "cpu.flops" => (other, ["1", "2"]),
            _ => ("synchronous", ["off", "full"]),
        };
        let of = |value: &str, time: f64| {
            let params = params.clone().with(key, new).with(other, value);
            run(probe, params, time)
        };
        let file = |name: &str, run: &Run| home.write(name, serde_json::to_vec(run).unwrap());
        let (b, n) = (
            file("b.json", &of(values[0], 100.0)),
            file("n.json", &of(values[1], 300.0)),
        );
        home.says(&[
            "compare".as_ref(),
            b.as_os_str(),
            n.as_os_str(),
            "--settle".as_ref(),
            "--budget".as_ref(),
            "5".as_ref(),
            "--quiet".as_ref(),
        ])
        .lived();
        assert!(!pwned.exists(), "{key} wrote a file");
    }
}

#[test]
fn a_sweep_gives_no_options_but_those_that_measure() {
    let home = Home::new();
    for (words, named) in [
        (
            &["syscall.null", "--allow-system-changes"][..],
            "--allow-system-changes",
        ),
        (&["web", "--server-prefix=touch PWNED;"], "--server-prefix"),
        (&["syscall.null", "-o", "PWNED"], "--output"),
        (&["syscall.null", "--output=PWNED"], "--output"),
        (
            &["database", "--set", "server.ARCHIVE_COMMAND=touch PWNED"],
            "ARCHIVE_COMMAND",
        ),
        (&["fs.create", "--set", "dir=/etc"], "dir=/etc"),
        (
            &["launch", "--set=manifest=apps.toml"],
            "manifest=apps.toml",
        ),
    ] {
        let manifest = serde_json::json!({
            "schema": "fingerpost/sweep/1", "id": "20260101T000000Z-00000001", "started": "2026-01-01T00:00:00Z",
            "engine": "ssh", "nodes": "n[1-9]", "args": words,
        });
        std::fs::create_dir_all(home.path("sweep")).unwrap();
        home.write("sweep/manifest.json", manifest.to_string());
        for command in [
            &["fleet", "check", "--against", "sweep", "--name", "n1"][..],
            &[
                "fleet",
                "run",
                "--ssh",
                "--ssh-config",
                "/dev/null",
                "--resume",
                "sweep",
            ],
            &["fleet", "script", "slurm", "--again", "sweep"],
        ] {
            let said = home.says(command);
            assert!(
                said.refused().contains("a sweep may not choose") && said.err.contains(named),
                "{command:?} {words:?}: {}",
                said.err
            );
        }
        assert!(!home.path("PWNED").exists());
    }
}
