//! Looks at running services that are hostile to who watches them (`looks/hostile.c`), by root. Each ends, takes no more
//! memory than is promised, reads nothing that it must not, and still names the functions of an honest service beside.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Home, Said, is_root};

/// A user that is not root, and no account's of this machine.
const SOMEBODY: u32 = 64_321;
/// The most memory that a look may take, in bytes. (An optimised build takes half of that for itself and what it
/// watches.)
const MOST: u64 = 256 << 20;
/// How long a hostile service lives at most, in seconds.
const LIFE: &str = "120";
/// A look of a second on a machine that is busy with other tests ends within so many: it did not end at all.
const LONG: Duration = Duration::from_secs(60);

/// The hostile services' program; nothing where there is no C compiler. With `CI` set there must be one.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/attack/looks/hostile.c");
        let program = dir.path().join("hostile");
        let done = Command::new("cc")
            .args(["-O1", "-fno-omit-frame-pointer", "-pthread", "-w", "-o"])
            .arg(&program)
            .arg(source)
            .status();
        let done = done.is_ok_and(|status| status.success());
        fingerpost_testing::can(done, "a C compiler");
        // Another user starts it, too.
        rustix::fs::chmod(dir.path(), rustix::fs::Mode::from_bits_retain(0o755)).unwrap();
        done.then_some((dir, program))
    });
    built.as_ref().map(|(_, program)| program.as_path())
}

/// A service of one kind, ended when it is dropped.
struct Service {
    child: Child,
    pid: i32,
    made: Vec<PathBuf>,
    _dir: tempfile::TempDir,
}

impl Service {
    fn start(kind: &[&str], user: Option<u32>) -> Option<Service> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(program()?);
        command.arg(kind[0]).arg(LIFE).args(&kind[1..]);
        command
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(user) = user {
            std::os::unix::fs::chown(dir.path(), Some(user), Some(user)).unwrap();
            command.uid(user).gid(user);
        }
        let mut child = command.spawn().unwrap();
        let mut made = Vec::new();
        let mut pid = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            match line.split_once(' ') {
                Some(("made", path)) => made.push(path.into()),
                Some(("ready", number)) => {
                    pid = number.parse().unwrap();
                    break;
                }
                _ => panic!("{kind:?}: {line}"),
            }
        }
        if pid == 0 {
            // What the kernel forbids here cannot be tried.
            let _ = child.wait();
            if kind[0] != "overlay" {
                fingerpost_testing::skipped(format_args!("{kind:?} is not allowed here"));
            }
            return None;
        }
        Some(Service {
            child,
            pid,
            made,
            _dir: dir,
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The whole group: it is its own leader.
        let group = self.child.id() as i32;
        let _ = fingerpost_sys::child::signal_group(group, libc::SIGKILL);
        let _ = self.child.wait();
        self.made
            .iter()
            .for_each(|path| drop(std::fs::remove_file(path)));
    }
}

/// A look of a second.
fn look(home: &Home, what: &[&str]) -> (Said, Duration, Option<Value>) {
    let words = [&["explain", "--seconds", "1", "-o", "look.json"], what].concat();
    let begun = Instant::now();
    let said = Said::of(&mut home.command(&words));
    let took = begun.elapsed();
    let record = std::fs::read(home.path("look.json")).ok();
    let record = record.map(|bytes| serde_json::from_slice(&bytes).unwrap());
    (said, took, record)
}

/// Names of all functions that a record has.
fn functions(record: &Value) -> Vec<String> {
    let path = &record["paths"][0];
    let graphs = path["graphs"].as_array().cloned().unwrap_or_default();
    let all = graphs.iter().map(|g| &g["stacks"]).chain([&path["stacks"]]);
    all.flat_map(|stacks| stacks["functions"].as_array().cloned().unwrap_or_default())
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

/// Looks at a hostile service of this kind together with an honest one: the look ends, in time and memory, its record
/// can be read again, and the honest one's functions are named with their callers. What it says, and the names.
fn beside_honest(kind: &[&str], user: Option<u32>) -> Option<(String, Vec<String>)> {
    if !is_root() {
        return None;
    }
    let home = Home::new();
    let hostile = Service::start(kind, user)?;
    let honest = Service::start(&["honest"], None)?;
    let pids = format!("{},{}", hostile.pid, honest.pid);
    let (said, took, record) = look(&home, &["--pid", &pids]);
    said.lived();
    assert!(took < LONG, "{kind:?}: {took:?}");
    assert!(
        said.usage.peak_bytes < MOST,
        "{kind:?}: {} MB",
        said.usage.peak_bytes >> 20
    );
    let names = functions(&record.expect("a record"));
    home.says(&["explain", "./look.json"]).lived();
    if names.is_empty() {
        // The kernel lets nobody sample here.
        fingerpost_testing::skipped(format_args!("{}", said.err));
        return None;
    }
    for name in ["honest_worker", "honest_caller", "main"] {
        assert!(
            names.iter().any(|n| n == name),
            "{kind:?}: no {name} in {names:?}; {}",
            said.err
        );
    }
    Some((said.err, names))
}

#[test]
fn an_expression_that_never_ends_costs_one_files_callers() {
    for kind in ["skip", "dup"] {
        beside_honest(&[kind], None);
    }
}

#[test]
fn expressions_that_lead_nowhere_are_left_out() {
    beside_honest(&["self"], None);
    beside_honest(&["elsewhere"], None);
}

#[test]
fn a_name_that_stands_for_a_very_long_one_is_cut() {
    let Some((_, names)) = beside_honest(&["bomb"], None) else {
        return;
    };
    assert!(names.iter().all(|name| name.len() < 2_500));
}

#[test]
fn files_with_tables_that_are_nearly_all_hole_take_no_memory() {
    beside_honest(&["sparse", "8"], None);
    beside_honest(&["sections", "4"], None);
}

#[test]
fn long_lists_of_functions_take_no_memory() {
    beside_honest(&["functions", "12", "24"], None);
}

#[test]
fn very_many_mappings_are_read_in_part() {
    beside_honest(&["mappings", "4", "60000"], None);
}

#[test]
fn a_file_system_that_does_not_answer_keeps_nobody_waiting() {
    for kind in ["fuse", "overlay"] {
        if let Some((said, _)) = beside_honest(&[kind], None) {
            assert!(
                said.contains("not on a file system of this machine"),
                "{said}"
            );
        }
    }
}

#[test]
fn somebody_elses_file_is_not_taken_for_a_list_of_functions() {
    if !is_root() {
        return;
    }
    // Root's own, which the user cannot read, and can mount in a name space of theirs.
    let dir = tempfile::tempdir().unwrap();
    rustix::fs::chmod(dir.path(), rustix::fs::Mode::from_bits_retain(0o755)).unwrap();
    let secret = dir.path().join("secret");
    let mut file = std::fs::File::create(&secret).unwrap();
    writeln!(file, "0 ffffffffffffffff ROOTS_SECRET").unwrap();
    rustix::fs::chmod(&secret, rustix::fs::Mode::from_bits_retain(0o600)).unwrap();
    let kind = ["bind", secret.to_str().unwrap()];
    for user in [None, Some(SOMEBODY)] {
        let Some((_, names)) = beside_honest(&kind, user) else {
            continue;
        };
        assert!(
            !names.iter().any(|name| name.contains("ROOTS_SECRET")),
            "{names:?}"
        );
    }
}

#[test]
fn who_listens_is_found_beside_very_many_descriptors() {
    if !is_root() {
        return;
    }
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let port = port.to_string();
    let Some(_service) = Service::start(&["descriptors", "60", &port], None) else {
        return;
    };
    let (said, took, record) = look(&Home::new(), &["--port", &port]);
    said.lived();
    assert!(took < LONG && record.is_some(), "{took:?} {}", said.err);
}

#[test]
fn what_a_hostile_service_calls_its_functions_is_cleaned() {
    let Some((_, names)) = beside_honest(&["memfd"], None) else {
        return;
    };
    let misleads = |name: &String| name.chars().any(fingerpost_record::text::misleads);
    assert!(!names.iter().any(misleads), "{names:?}");
}
