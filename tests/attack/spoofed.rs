//! What others call by the name of somebody else: units, containers, listeners, control groups, hosts, prepared files.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fingerpost_sys::child;

use crate::support::{Home, is_root, until};

/// The attacker.
const NOBODY: u32 = 65534;

/// A process that is shown by this name, and ends with the value.
struct Program(Child);

impl Program {
    /// Starts it; it holds `listener`.
    fn start(home: &Home, name: &str, user: u32, listener: Option<TcpListener>) -> Program {
        let program = home.path(name);
        if !program.exists() {
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        }
        let mut command = Command::new(program);
        command.arg("600").uid(user).gid(user).stderr(Stdio::null());
        if let Some(listener) = listener {
            command.stdin(OwnedFd::from(listener));
        }
        Program(child::die_with_parent(&mut command).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Control groups of this test's own, removed at the end with those above them that were made for them.
struct Groups {
    root: PathBuf,
    made: Vec<PathBuf>,
}

impl Groups {
    /// Where groups can be made; nothing where they cannot, which is a failure where everything has to be tested.
    fn new() -> Option<Groups> {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = fingerpost_sys::procfs::mounts::parse_mountinfo(&mountinfo);
        let root = mounts.into_iter().filter(|m| m.root == "/").find_map(|m| {
            let whole = m.kind == "cgroup2" || m.has_option("name=systemd");
            let tried = m
                .point
                .join(format!("fingerpost-test-{}", std::process::id()));
            (whole
                && fs::create_dir(&tried)
                    .and_then(|()| fs::remove_dir(&tried))
                    .is_ok())
            .then_some(m.point)
        });
        fingerpost_testing::can(root.is_some(), "a place to make control groups in");
        Some(Groups {
            root: root?,
            made: Vec::new(),
        })
    }

    /// Makes a group with its process; gives its path.
    fn with(&mut self, path: &str, process: &Program) -> String {
        let mut dir = self.root.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            dir.push(part);
            if fs::create_dir(&dir).is_ok() {
                self.made.push(dir.clone());
            }
        }
        fs::write(dir.join("cgroup.procs"), process.pid()).unwrap();
        path.to_owned()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in self.made.iter().rev() {
            // A process that was killed leaves its group a moment later.
            until("the group is empty", || {
                fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty())
            });
            let _ = fs::remove_dir(dir);
        }
    }
}

/// What the service is called by which a command explains it: the programs of its processes.
#[track_caller]
fn explained(home: &Home, words: &[&str]) -> (String, String) {
    let words = [
        &["explain"],
        words,
        &["--seconds", "0.3", "-o", "run.json", "--format", "json"],
    ];
    let said = home.says(&words.concat());
    assert_eq!(said.status, Some(0), "{}", said.err);
    let found: serde_json::Value = serde_json::from_slice(&said.out).unwrap();
    let _ = fs::remove_file(home.path("run.json"));
    let name = found["explanations"][0]["params"]["name"].as_str();
    (name.unwrap().to_owned(), said.err)
}

/// A name that no service of this machine has.
fn own(kind: &str) -> String {
    format!("fingerpost-{kind}-{}.service", std::process::id())
}

#[test]
fn a_unit_that_another_user_made_is_not_the_systems() {
    let Some(mut groups) = Some(()).filter(|()| is_root()).and_then(|()| Groups::new()) else {
        return;
    };
    let (home, unit) = (Home::new(), own("unit"));
    let impostor = Program::start(&home, "impostor", NOBODY, None);
    let user = format!("/user.slice/user-{NOBODY}.slice/user@{NOBODY}.service");
    let path = groups.with(&format!("{user}/system.slice/{unit}"), &impostor);
    // Alone it is not taken for the system's either, and its path names it.
    let said = home.says(&[
        "explain",
        "--unit",
        &unit,
        "--seconds",
        "0.3",
        "-o",
        "run.json",
    ]);
    let sentence = said.refused();
    assert!(
        sentence.contains(&path)
            && sentence.contains("--cgroup PATH")
            && sentence.contains(&format!("of user {NOBODY}")),
        "{sentence}"
    );
    let honest = Program::start(&home, "honest", 0, None);
    groups.with(&format!("/system.slice/{unit}"), &honest);
    let (name, notes) = explained(&home, &["--unit", &unit]);
    assert_eq!(name, "honest");
    assert!(
        notes.contains(&path) && notes.contains("not looked at"),
        "{notes}"
    );
    assert_eq!(explained(&home, &["--cgroup", &path]).0, "impostor");
    drop((honest, impostor));
}

#[test]
fn a_container_that_another_user_made_is_not_the_engines() {
    let Some(mut groups) = Some(()).filter(|()| is_root()).and_then(|()| Groups::new()) else {
        return;
    };
    let home = Home::new();
    let id = format!(
        "{:064x}",
        0xfeed_0000_0000_u64 + u64::from(std::process::id())
    );
    let id: String = id.chars().rev().collect();
    let (honest, impostor) = (
        Program::start(&home, "honest", 0, None),
        Program::start(&home, "impostor", NOBODY, None),
    );
    groups.with(&format!("/docker/{id}"), &honest);
    let user = format!("/user.slice/user-{NOBODY}.slice/user@{NOBODY}.service");
    // Of the same number, and of another that begins alike, so that the beginning would be of two.
    let path = groups.with(&format!("{user}/docker-{id}.scope"), &impostor);
    let second = Program::start(&home, "impostor", NOBODY, None);
    groups.with(
        &format!("{user}/docker-{}{}.scope", &id[..20], "f".repeat(44)),
        &second,
    );
    for wanted in [&id[..], &id[..12]] {
        let (name, notes) = explained(&home, &["--container", wanted]);
        assert_eq!(name, "honest");
        assert!(notes.contains(&path), "{notes}");
    }
    drop((honest, impostor, second));
}

#[test]
fn a_listener_of_another_user_is_not_the_service_of_that_port() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = ours.local_addr().unwrap().port();
    let theirs = TcpListener::bind(("127.0.0.2", port)).unwrap();
    let honest = Program::start(&home, "honest", 0, Some(ours));
    let impostor = Program::start(&home, "impostor", NOBODY, Some(theirs));
    let port = port.to_string();
    let said = home.says(&[
        "explain",
        "--port",
        &port,
        "--seconds",
        "0.3",
        "-o",
        "run.json",
    ]);
    let sentence = said.refused();
    for wanted in [&honest.pid(), &impostor.pid(), "several users", "--pid PID"] {
        assert!(sentence.contains(wanted), "{wanted}: {sentence}");
    }
    drop(impostor);
    assert_eq!(explained(&home, &["--port", &port]).0, "honest");
}

#[test]
fn a_directory_that_only_looks_like_a_control_group_is_none() {
    let home = Home::new();
    let victim = Program::start(&home, "victim", fingerpost_sys::system::uid(), None);
    // A relative path means what lies here, and here is where others can write.
    fs::create_dir_all(home.path("system.slice/db.service")).unwrap();
    home.write("system.slice/db.service/cgroup.procs", victim.pid() + "\n");
    let absolute = home.path("system.slice/db.service").display().to_string();
    for path in [&absolute[..], "system.slice/db.service", "//", "/."] {
        let said = home.says(&[
            "explain",
            "--cgroup",
            path,
            "--seconds",
            "0.3",
            "-o",
            "run.json",
        ]);
        assert!(
            said.refused().contains("control group"),
            "{path}: {}",
            said.err
        );
    }
    let pid = victim.pid();
    let service = Program::start(&home, "service", fingerpost_sys::system::uid(), None);
    let words = [
        "explain",
        "--pid",
        &service.pid(),
        "--experiment",
        "--hold",
        &absolute,
    ];
    let said = home.says(&[&words[..], &["--seconds", "0.3", "-o", "run.json"]].concat());
    assert!(
        said.refused()
            .contains("no process here is in that control group"),
        "{pid}"
    );
}

#[test]
fn control_characters_in_the_name_of_a_unit_reach_no_terminal() {
    let home = Home::new();
    for option in ["--unit", "--container", "--cgroup"] {
        let said = home.says(&[
            "explain",
            option,
            "/a\u{1b}]0;x\u{7}\u{202e}\nb",
            "-o",
            "run.json",
        ]);
        let sentence = said.refused().trim_end();
        assert_eq!(
            crate::mutate::misleading(sentence.as_bytes()),
            None,
            "{option}"
        );
    }
}

#[test]
fn files_of_others_do_not_make_a_directory_unwritable() {
    let (home, tmp) = (Home::new(), tempfile::tempdir().unwrap());
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    // The shell becomes the program, so that its number is known before.
    let script =
        ": > \"$TMPDIR/.fingerpost-doctor-$$\" && exec \"$0\" doctor --seconds 1 --format json";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(crate::support::binary())
        .env("TMPDIR", tmp.path())
        .env("FINGERPOST_HOME", home.path("home"))
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
    let places = said["places"].as_array().unwrap();
    assert!(
        places.iter().all(|place| place["refused"].is_null()),
        "{places:?}"
    );
    let left: Vec<_> = fs::read_dir(tmp.path())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    let of_doctor = |name: &std::ffi::OsString| name.to_string_lossy().contains("-doctor-");
    assert_eq!(
        left.iter().filter(|name| of_doctor(name)).count(),
        1,
        "{left:?}"
    );
}

/// Stand-ins for Slurm's programs: the first task of `srun` answers for the second's node, which does not answer.
const SLURM: [(&str, &str); 3] = [
    ("sinfo", "#!/bin/sh\nprintf 'n1 idle\\nn2 idle\\n'\n"),
    ("squeue", "#!/bin/sh\necho N/A\n"),
    (
        "srun",
        "#!/bin/sh\nlabel=\ncase \"$*\" in *--label*) label='0: ';; esac\n\
        for node in n2 n1; do \"$FINGERPOST\" fleet node --name $node -- syscall.null --budget 0.2; done |\n\
        while IFS= read -r line; do printf '%s%s\\n' \"$label\" \"$line\"; done\n",
    ),
];

#[test]
fn a_task_of_slurm_does_not_answer_for_another_node() {
    let home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    for (name, text) in SLURM {
        let program = home.write(&format!("bin/{name}"), text);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
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
        "0.2",
    ];
    let output = home
        .command(&words)
        .env("PATH", format!("{}:{path}", home.path("bin").display()))
        .env("FINGERPOST", crate::support::binary())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("1 measured, 1 failed"), "{err}");
    assert!(
        err.contains("n1 answered for n2, which is not believed"),
        "{err}"
    );
    assert!(exists(&home, "n1") && !exists(&home, "n2"), "{err}");
}

fn exists(home: &Home, node: &str) -> bool {
    Path::exists(&home.path(format!("s/hosts/{node}.json.gz")))
}
