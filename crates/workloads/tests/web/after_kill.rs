//! A conducting process that is killed leaves servers at most until the next start.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fingerpost_undo::scratch::{Scratch, sweep_in};
use fingerpost_workloads::Workload;
use fingerpost_workloads::web::{Web, missing};
use libtest_mimic::Trial;

use crate::support::{open_to_pass, settings, test};

/// The argument that makes this program a conducting process: it starts the workload named after it and holds it.
pub const HOLD: &str = "--hold";

pub fn tests() -> Vec<Trial> {
    ["embedded", "nginx", "apache"]
        .map(|server| {
            test(
                &format!("after kill -9 the next start ends {server} and removes its directory"),
                move || after_a_kill(server),
            )
        })
        .into()
}

/// The conducting process: `--hold SERVER ROOT`.
pub fn hold() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let mut scratch = Scratch::create_in(Path::new(&args[1])).unwrap();
    let mut web = Web::new(
        settings(&[("server", &args[0]), ("connections", "1")]),
        &mut scratch,
        &[],
        2,
    );
    web.start().unwrap();
    println!(
        "{} {}",
        web.subjects().servers[0],
        web.subjects().clients[0]
    );
    loop {
        std::thread::park();
    }
}

fn after_a_kill(server: &str) {
    if let Some(sentence) = missing(&settings(&[("server", server)])) {
        fingerpost_testing::skipped(sentence);
        return;
    }
    let base = tempfile::tempdir().unwrap();
    open_to_pass(base.path());
    let root = base.path().join("scratch");
    let mut holder = Command::new("/proc/self/exe")
        .arg(HOLD)
        .arg(server)
        .arg(&root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let groups: Vec<i32> = line
        .split_whitespace()
        .map(|w| w.parse().unwrap())
        .collect();
    assert_eq!(groups.len(), 2, "{line}");
    let ports = listening(&root);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let told = sweep_in(&root);
    assert!(
        told.iter()
            .any(|s| s.contains("removed the work directory")),
        "{told:?}"
    );
    let left: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .filter(|name| name != "control")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !members(&groups).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", members(&groups));
        std::thread::sleep(Duration::from_millis(10));
    }
    for port in ports {
        // A process whose main thread is gone keeps its sockets until its last thread is.
        while TcpStream::connect(("127.0.0.1", port)).is_ok() {
            assert!(Instant::now() < deadline, "port {port} still answers");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The ports in the configurations below a scratch root.
fn listening(root: &Path) -> Vec<u16> {
    let mut ports = Vec::new();
    for run in std::fs::read_dir(root).unwrap().flatten() {
        for name in ["nginx.conf", "apache.conf"] {
            let text = std::fs::read_to_string(run.path().join("web-server-0").join(name))
                .unwrap_or_default();
            ports.extend(text.split("127.0.0.1:").skip(1).filter_map(|rest| {
                rest.split(|c: char| !c.is_ascii_digit())
                    .next()?
                    .parse::<u16>()
                    .ok()
            }));
        }
    }
    ports
}

/// The processes, of any user, that belong to one of these groups and are not mere remains.
fn members(groups: &[i32]) -> Vec<i32> {
    let mut members = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some(stat) = fingerpost_sys::procfs::process::Stat::parse(&stat) else {
            continue;
        };
        if groups.contains(&stat.group) && stat.state != 'Z' {
            members.push(stat.pid);
        }
    }
    members
}
