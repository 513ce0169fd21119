//! Holds the names that verdicts ask for against the names that observers write: a rule that asks for what nobody
//! writes is silent for ever, and so is a test that makes such a reading up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fingerpost_diagnose::StepFigures;
use fingerpost_diagnose::cause::Need;
use fingerpost_diagnose::causes;
use fingerpost_sys::cgroup::Hierarchies;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::subjects::Subjects;
use fingerpost_sys::taskstats::Delays;

use crate::calls::{Role, Wait};
use crate::clients::ClientGroups;
use crate::follow::event::{Event, What};
use crate::machine::{self, Reading};
use crate::mappings::Mappings;
use crate::population::Population;
use crate::queues::Queues;
use crate::series;
use crate::session;
use crate::summary::{self, Seen};
use crate::tracer::{CallTime, Traced};
use crate::tracing;

/// A machine that has everything that observers read: version 2 of the control groups with all limits, a disk,
/// interfaces.
fn whole_machine(at: &Path, scale: u64) -> Reading {
    let write = |name: &str, text: &str| {
        let path = at.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let n = |times: u64| (times * scale).to_string();
    write(
        "proc/stat",
        &format!(
            "cpu  {0} 0 {0} {0} {0} {0} {0} {0} 0 0\ncpu0 {0} 0 {0} {0} {0} {0} {0} {0} 0 0\nctxt {0}\nprocesses {0}\n",
            n(9)
        ),
    );
    fs::create_dir_all(at.join("sys/block/sda")).unwrap();
    write(
        "proc/diskstats",
        &format!(
            "8 0 sda {0} 0 {0} {0} {0} 0 {0} {0} 0 {0} {0} 0 0 0 0 {0} {0}\n",
            n(9)
        ),
    );
    write(
        "proc/net/dev",
        &format!(
            "a\nb\n  lo: {0} 1 0 {0} 0 0 0 0 {0} 1 0 {0} 0 0 0 0\n",
            n(9)
        ),
    );
    let counters = |names: &[(&str, &str)], group: &str| {
        let of_group: Vec<&str> = names
            .iter()
            .filter_map(|(key, _)| key.strip_prefix(group)?.strip_prefix('.'))
            .collect();
        format!(
            "{group}: {}\n{group}: {}\n",
            of_group.join(" "),
            of_group.iter().map(|_| n(1)).collect::<Vec<_>>().join(" ")
        )
    };
    write("proc/net/netstat", &counters(machine::PROTOCOLS, "TcpExt"));
    write("proc/net/snmp", &counters(machine::PROTOCOLS, "Tcp"));
    write(
        "proc/vmstat",
        &machine::MEMORY
            .iter()
            .map(|(key, _)| format!("{key} {}\n", n(1)))
            .collect::<String>(),
    );
    for what in ["cpu", "memory", "io"] {
        let line =
            |kind: &str| format!("{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", n(1));
        write(
            &format!("proc/pressure/{what}"),
            &(line("some") + &line("full")),
        );
    }
    write(
        "proc/self/mountinfo",
        "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
    );
    write("cg/cgroup.controllers", "cpuset cpu io memory pids\n");
    write("proc/7/cgroup", "0::/s\n");
    let group = [
        (
            "cpu.stat",
            format!(
                "nr_periods {0}\nnr_throttled {0}\nthrottled_usec {0}\n",
                n(1)
            ),
        ),
        ("cpu.max", "50000 100000\n".to_owned()),
        ("cpu.weight", "50\n".to_owned()),
        ("cpuset.cpus.effective", "0\n".to_owned()),
        ("memory.max", "1048576\n".to_owned()),
        ("memory.current", "4096\n".to_owned()),
        ("memory.failcnt", "1\n".to_owned()),
        ("io.max", "8:0 rbps=1\n".to_owned()),
    ];
    group
        .iter()
        .for_each(|(name, text)| write(&format!("cg/s/{name}"), text));
    write(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    );
    write("sys/devices/system/cpu/online", "0-1\n");
    for (pid, name) in [(1, "NAME"), (7, "server")] {
        write(
            &format!("proc/{pid}/stat"),
            &format!(
                "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 5 0 0 {}",
                n(9),
                "0 ".repeat(28)
            ),
        );
        write(
            &format!("proc/{pid}/io"),
            &format!("read_bytes: {}\nwrite_bytes: 0\n", n(9)),
        );
    }
    let paths = Paths::under(at);
    Reading::take(&paths, &machine::groups_of(&paths, Some(7)))
}

/// The names that observers write of a server, a background thread's side and a client that met everything. `NAME`
/// stands for any.
fn written() -> BTreeSet<String> {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (whole_machine(dir.path(), 1), whole_machine(dir.path(), 2));
    let paths = Paths::under(dir.path());
    let mut network = after.network_since(&before);
    series::add_rates(&mut network, &[], 1.0);
    let mut all = vec![
        after.cpu_since(&before),
        after.disk_since(&before),
        network,
        after.memory_since(&before),
        after.pressure_since(&before),
        ClientGroups::begin(&paths, Some(7), &Hierarchies::default())
            .unwrap()
            .since(),
        after.others_since(&before, &BTreeSet::from([7]), |_| None),
        machine::limits(&paths, &machine::groups_of(&paths, Some(7))),
        session::shaped(Ok(1)),
        session::of_windows([1.0; 3], 1.0),
        tracing::told(
            &Ok(fingerpost_sys::tracefs::SwitchedOn::default()),
            &Ok(0),
            &Ok(0),
        )
        .1,
        touched_mapping().totals(|_| true),
        session::sockets_observation(Ok((
            Queues {
                rtt_count: 1,
                ..Queues::default()
            },
            0.0,
        )))
        .totals,
    ];
    let figures = StepFigures {
        query_cache: Some(true),
        measured: Some((1, 1.0)),
        sweep: vec![(1.0, 1.0)],
        ..StepFigures::default()
    };
    all.push(figures.to_totals());
    all.push(BTreeMap::from([(
        fingerpost_diagnose::PROGRAMS.into(),
        1.0,
    )]));
    // The threads' totals have the same names whoever the threads are: here those of this test.
    let subjects = Subjects {
        servers: vec![std::os::unix::process::parent_id() as i32],
        clients: vec![],
    };
    let population = Population::find(&subjects);
    let traced = Traced {
        calls: [(libc::SYS_fsync, CallTime::default())].into(),
        ..Traced::default()
    };
    let seen = Seen::Traced([(i32::MAX, (1, Role::Server, traced))].into(), 1.0, 0.0);
    let (threads, syscalls) = summary::totals(&population, &seen, 1.0);
    all.extend([threads, syscalls, summary::task_settings(&population)]);
    let mut names: BTreeSet<String> = all
        .into_iter()
        .flat_map(|totals| totals.into_keys())
        .collect();
    names.extend(
        Delays::default()
            .since(&Delays::default())
            .map(|(name, _)| format!("server.delay.{name}.seconds")),
    );
    // Sides and calls differ by nothing but the name.
    let generic = |name: &String| match name.strip_prefix("server.") {
        Some(rest) => vec![
            format!("server.{rest}"),
            format!("background.{rest}"),
            format!("client.{rest}"),
        ],
        None => vec![name.clone()],
    };
    names
        .iter()
        .flat_map(generic)
        .map(|name| name.replace(".call.fsync.", ".call.NAME."))
        .collect()
}

/// One page that was mapped, and touched at once.
fn touched_mapping() -> Mappings {
    let (call, page) = (libc::SYS_mmap as i32, 0x10_0000);
    let args = [3 << 32 | libc::MAP_ANONYMOUS as u64, 4096];
    let what = [
        What::Enter { call, args },
        What::Exit { call, result: page },
        What::Fault {
            address: page as u64,
        },
    ];
    let of = |(time, what)| Event {
        time: time as u64,
        cpu: 0,
        interrupt: false,
        pid: 7,
        tid: 7,
        what,
    };
    let events: Vec<Event> = what.into_iter().enumerate().map(of).collect();
    let mut mappings = Mappings::default();
    mappings.window(1000, &events);
    mappings
}

/// What published systems' authors watched: names of figures that no observer of ours writes.
fn published() -> BTreeSet<String> {
    let runs = fingerpost_compare::references::names()
        .into_iter()
        .filter_map(|name| fingerpost_compare::references::load(&name));
    runs.flat_map(|run| run.observations)
        .flat_map(|o| o.totals.into_keys())
        .collect()
}

/// Source files below a directory of this workspace.
fn sources(of: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of);
    if root.is_file() {
        return vec![root];
    }
    let (mut found, mut todo) = (Vec::new(), vec![root]);
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => todo.push(path),
                false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
                false => {}
            }
        }
    }
    found
}

/// The strings of a source file, comments left out.
fn strings(text: &str) -> Vec<String> {
    let code: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    code.join("\n")
        .replace("\\\"", "")
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// A string that is the name of a total, with `*` for what is put into it; nothing where it is none.
fn as_name(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._{}".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '{');
    if !begins || !text.contains('.') || !text.chars().all(plain) || text.ends_with(".rs") {
        return None;
    }
    let mut name = String::new();
    for (i, part) in text.split('{').enumerate() {
        match part.split_once('}') {
            Some((_, rest)) if i > 0 => name += &format!("*{rest}"),
            _ => name += part,
        }
    }
    // A beginning stands for all that begin so.
    Some(if name.ends_with('.') {
        name + "*"
    } else {
        name
    })
}

/// Whether a name fits a pattern in which `*` stands for anything, and `NAME` of the name, too.
fn fits(pattern: &str, name: &str) -> bool {
    let pattern_parts: Vec<&str> = pattern.split('*').collect();
    let one = |name: &str| {
        let (Some(first), Some(last)) = (pattern_parts.first(), pattern_parts.last()) else {
            return false;
        };
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        if pattern_parts.len() == 1 {
            return rest.is_empty();
        }
        for part in &pattern_parts[1..pattern_parts.len() - 1] {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    };
    if one(name) {
        return true;
    }
    // `other.cpu.stress.seconds` is `other.cpu.NAME.seconds` of some process.
    let Some((before, after)) = name.split_once("NAME") else {
        return false;
    };
    pattern.len() > before.len() + after.len()
        && pattern.starts_with(before)
        && pattern.ends_with(after)
}

/// Beginnings of the names of probes, whose rows verdicts look at as well.
const PROBES: [&str; 13] = [
    "fs.",
    "syscall.",
    "vm.",
    "thread.",
    "process.",
    "signal.",
    "ipc.",
    "database.",
    "web.",
    "cpu.int",
    "lmbench.",
    "clock.",
    "bandwidth.",
];

fn asked(of: &[&str]) -> BTreeSet<(String, String)> {
    let files = of.iter().flat_map(|dir| sources(dir));
    let cause = |name: &str| causes::cause(name).is_some() || name.ends_with(".unknown");
    let probe = |name: &str| PROBES.iter().any(|p| name.starts_with(p));
    files
        .flat_map(|path| {
            let at = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let names: Vec<String> = strings(&fs::read_to_string(&path).unwrap())
                .iter()
                .filter_map(|text| as_name(text))
                .collect();
            names.into_iter().map(move |name| (name, at.clone()))
        })
        .filter(|(name, _)| !cause(name) && !probe(name))
        .collect()
}

#[test]
fn every_total_that_a_verdict_asks_for_has_an_observer() {
    let (written, published) = (written(), published());
    let known = |name: &str| written.iter().chain(&published).any(|w| fits(name, w));
    assert!(
        known("server.call.fsync.count")
            && known("cpu.*.seconds")
            && known("other.cpu.*")
            && !known("server.tlb_misses")
    );
    let mut asked = asked(&[
        "diagnose/src",
        "compare/tests/compare/runs",
        "compare/tests/compare/causes_of_workloads",
    ]);
    // What verdicts ask for by a constant.
    let constants = fingerpost_record::reading::name::ALL.iter();
    asked.extend(constants.map(|name| (name.as_str().to_owned(), "name.rs".to_owned())));
    assert!(
        asked.iter().any(|(name, _)| name == "throttle.seconds") && asked.len() > 80,
        "{asked:#?}"
    );
    // What a client's machine told is its load generator's account, and held against what that writes where it is
    // written.
    let of_observers = |at: &str| at != "client.rs";
    let nobody: Vec<_> = asked
        .iter()
        .filter(|(name, at)| of_observers(at) && !known(name))
        .collect();
    assert!(nobody.is_empty(), "nobody writes {nobody:#?}");
}

#[test]
fn every_reading_that_a_cause_needs_is_written_by_an_observer() {
    let written = written();
    let needs = causes::all().flat_map(|c| c.needs.iter().map(move |need| (c.name, need)));
    for (cause, need) in needs {
        if let Need::Reading(name) = need {
            assert!(
                written.iter().any(|w| fits(name.as_str(), w)),
                "{cause} needs {name}, which nobody writes"
            );
        }
    }
}

#[test]
fn what_observers_write_is_documented() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/observers.md"))
            .unwrap();
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let waits: Vec<&str> = Wait::ALL.iter().map(|wait| wait.1).collect();
    let told = |name: &str| {
        text.contains(name)
            || text.contains(&format!(".{}", last(name)))
            || waits.iter().any(|w| name.contains(w))
    };
    let missing: Vec<String> = written()
        .into_iter()
        .filter(|name| !name.starts_with("step.sweep.") && !told(name))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/observers.md does not tell of {missing:?}"
    );
}
