//! Every row of the probes of switches, IPC, bandwidth, locks, parallel work, memory and CPU, run through the binary;
//! and what happens when a partner or the probe itself is killed.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{DEADLINE, until};
use crate::plausible::{SLICE_NS, is_within_bounds};
use fingerpost_measure::Slice;
use fingerpost_probes::Probe;
use fingerpost_probes::protocol::{Request, parse_answer};
use fingerpost_record::Params;

const FAMILIES: [&str; 7] = [
    "switch.",
    "ipc.",
    "bandwidth.",
    "sync.",
    "parallel.",
    "memory.",
    "cpu.",
];

/// So many operations to a batch that the first one only ends by being killed. (A long slice would not do: a probe ends
/// with its thousandth batch.)
const ENDLESS: u64 = u64::MAX;

fn request(probe: &Probe, params: Params, slice_ns: u64, dir: &Path) -> Request {
    let mut cpus = fingerpost_sys::affinity::allowed_cpus().unwrap();
    cpus.truncate(2);
    Request {
        probe: probe.name.to_owned(),
        slice_ns,
        batch: 0,
        cpus,
        counters: false,
        dir: dir.to_owned(),
        params,
    }
}

/// Starts a probe in a process group of its own, so that whatever it leaves behind can be told from others.
fn start(request: &Request) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fingerpost"));
    command
        .args(request.to_args())
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn wait(child: Child) -> Output {
    let (group, began) = (child.id(), Instant::now());
    let waiter = std::thread::spawn(move || child.wait_with_output().unwrap());
    while !waiter.is_finished() {
        if began.elapsed() > DEADLINE {
            kill(&format!("-{group}"));
            panic!("the probe did not end within {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    waiter.join().unwrap()
}

/// `kill -9` of a process, or of a group when the number is negative.
fn kill(pid: &str) {
    Command::new("kill")
        .args(["-9", "--", pid])
        .status()
        .unwrap();
}

/// Process id and parent of the processes of a group, with the zombies whose parent is among them: what init has not
/// collected yet is dead.
fn group_members(group: u32) -> Vec<(u32, u32)> {
    let mut members: Vec<(u32, u32, bool)> = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|n| n.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // Behind the name in brackets: state, parent, group.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .collect();
        if fields.get(2).and_then(|g| g.parse().ok()) == Some(group) {
            members.push((pid, fields[1].parse().unwrap(), fields[0] == "Z"));
        }
    }
    let pids: Vec<u32> = members.iter().map(|(pid, ..)| *pid).collect();
    members
        .into_iter()
        .filter(|(_, parent, zombie)| !zombie || pids.contains(parent))
        .map(|(pid, parent, _)| (pid, parent))
        .collect()
}

#[test]
fn every_row_answers_whole_and_plausibly_and_leaves_no_process() {
    let mut rows = 0;
    let two = fingerpost_sys::affinity::allowed_cpus().unwrap().len() >= 2;
    for probe in fingerpost_probes::all().filter(|p| FAMILIES.iter().any(|f| p.name.starts_with(f)))
    {
        for params in (probe.variants)() {
            let dir = tempfile::tempdir().unwrap();
            let row = format!("{} {params}", probe.name);
            is_within_bounds(probe, &params, || {
                let child = start(&request(probe, params.clone(), SLICE_NS, dir.path()));
                let group = child.id();
                let output = wait(child);
                until(&format!("{row}: an empty process group"), || {
                    group_members(group).is_empty()
                });
                match parse_answer(&String::from_utf8(output.stdout).unwrap(), probe.unit) {
                    Slice::Samples(samples) => {
                        assert!(
                            samples.process.counters.values().all(|v| *v >= 0.0),
                            "{row}: {:?}",
                            samples.process.counters
                        );
                        Some(samples.process.samples)
                    }
                    Slice::Skipped(reason) if !two && reason.contains("two CPUs") => None,
                    other => panic!(
                        "{row}: {other:?} {}",
                        String::from_utf8_lossy(&output.stderr)
                    ),
                }
            });
            rows += 1;
        }
    }
    assert!(rows >= 50, "only {rows} rows");
}

#[test]
fn a_parameter_that_makes_no_sense_is_a_failure_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        (
            "switch.ring",
            Params::new()
                .with("tasks", 1000)
                .with("footprint", 0)
                .with("placement", "same"),
        ),
        (
            "switch.ring",
            Params::new()
                .with("tasks", 1)
                .with("footprint", 0)
                .with("placement", "same"),
        ),
        ("ipc.pipe", Params::new().with("placement", "elsewhere")),
        ("memory.read", Params::new().with("size", 1 << 40)),
        ("bandwidth.file_reread", Params::new().with("size", 0)),
        ("sync.rwlock", Params::new()),
    ];
    for (name, params) in cases {
        let probe = fingerpost_probes::find(name).unwrap();
        let output = wait(start(&request(
            probe,
            params.clone(),
            1_000_000,
            dir.path(),
        )));
        match parse_answer(&String::from_utf8(output.stdout).unwrap(), probe.unit) {
            Slice::Failed(sentence) => assert!(sentence.len() > 20, "{name}: {sentence}"),
            other => panic!("{name} {params}: {other:?}"),
        }
    }
}

/// Starts a row whose way of waiting notices nothing by itself when the other side is gone, with a batch that does not
/// end; gives the process, once it has a partner, and the partner.
fn start_deaf(name: &str, params: Params, dir: &Path) -> (Child, u32) {
    let probe = fingerpost_probes::find(name).unwrap();
    let mut child = start(&Request {
        batch: ENDLESS,
        ..request(probe, params, 1_000_000, dir)
    });
    let group = child.id();
    let mut partner = None;
    until("a partner process", || {
        assert_eq!(child.try_wait().unwrap(), None, "{name} ended by itself");
        partner = group_members(group)
            .into_iter()
            .find(|(_, parent)| *parent == group);
        partner.is_some()
    });
    (child, partner.unwrap().0)
}

fn deaf_rows() -> [(&'static str, Params); 4] {
    let same = || Params::new().with("placement", "same");
    [
        ("ipc.futex", same()),
        ("ipc.eventfd", same()),
        ("ipc.udp", same()),
        ("switch.ring", same().with("tasks", 8).with("footprint", 0)),
    ]
}

#[test]
fn a_partner_that_is_killed_is_a_failure_and_not_a_hang() {
    for (name, params) in deaf_rows() {
        let dir = tempfile::tempdir().unwrap();
        let (child, partner) = start_deaf(name, params, dir.path());
        let group = child.id();
        kill(&partner.to_string());
        let output = wait(child);
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "fail the partner process was killed by signal 9\n",
            "{name}"
        );
        until("an empty process group", || group_members(group).is_empty());
    }
}

#[test]
fn partners_die_with_a_probe_that_is_killed() {
    for (name, params) in deaf_rows() {
        let dir = tempfile::tempdir().unwrap();
        let (child, _) = start_deaf(name, params, dir.path());
        let group = child.id();
        kill(&group.to_string());
        wait(child);
        until("an empty process group", || group_members(group).is_empty());
    }
}
