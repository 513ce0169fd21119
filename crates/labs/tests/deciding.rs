//! Experiments on a real process: what is changed is undone by the guardian, also when the conductor is killed in the
//! middle or stopped.
//!
//! This file is its own `main`: the guardian of a test is this binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fingerpost_diagnose::deciding::Offer;
use fingerpost_labs::deciding::levers::{Act, Lever, Pulled, Scope, levers};
use fingerpost_record::Change;
use fingerpost_sys::cgroup::{Controller, Group};
use fingerpost_sys::child::signal;
use fingerpost_sys::{affinity, sample, threads, trace};
use fingerpost_undo::guardian;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::Subjects;
use libtest_mimic::{Arguments, Failed, Trial};

/// The argument that makes this binary a conductor of one change.
const CONDUCTOR: &str = "__conductor";
/// How long is waited for a condition.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if let Some(code) = guardian::dispatch() {
        return code;
    }
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(CONDUCTOR) {
        let pid = args
            .next()
            .and_then(|pid| pid.parse().ok())
            .expect("the process to change");
        conduct(pid, &args.next().expect("what to change"));
    }
    let mut trials = Vec::new();
    for (ended, sent) in [("killed", libc::SIGKILL), ("stopped", libc::SIGSTOP)] {
        for (what, undone) in [
            ("hold", held as fn(i32) -> _),
            ("quota", quota_lifted),
            ("cpus", cpus_widened),
        ] {
            let name = format!("{ended}_in_the_middle_of_a_stretch_it_is_undone_{what}");
            trials.push(Trial::test(name, move || undone(sent)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The change of a process that is named so.
fn lever_of(pid: i32, what: &str) -> Lever {
    let change = match what {
        "hold" => {
            let acts = vec![
                Act::Threads(vec![pid], threads::To::Nice(19)),
                Act::Stop(vec![pid]),
            ];
            return Lever {
                offer: Offer {
                    change: Change::Hold,
                    what: "it held".into(),
                    hindrance: None,
                },
                acts,
            };
        }
        "quota" => Change::Quota,
        _ => Change::Cpus,
    };
    let scope = Scope {
        subjects: Subjects {
            servers: vec![pid],
            clients: Vec::new(),
        },
        ..Scope::default()
    };
    levers(&scope)
        .into_iter()
        .find(|l| l.offer.change == change)
        .expect("the change is offered")
}

/// Makes a change, says so, and never ends.
fn conduct(pid: i32, what: &str) -> ! {
    let mut scratch = Scratch::create_guarded().expect("a journal");
    let mut pulled = Pulled::default();
    pulled
        .pull(
            &lever_of(pid, what),
            &mut scratch,
            Duration::from_millis(300),
        )
        .expect("the change");
    println!("changed");
    loop {
        std::thread::park();
    }
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Root alone may make groups and lower nice values again; where everything has to be tested, these tests run as root.
fn is_root() -> bool {
    fingerpost_testing::can(fingerpost_testing::is_root(), "root")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failed> {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        if Instant::now() > deadline {
            return Err(format!("{what}: not within {DEADLINE:?}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Has a conductor make the change, sends it the signal, and waits until all is as it was.
fn is_undone(
    pid: i32,
    what: &str,
    sent: i32,
    mut as_before: impl FnMut() -> bool,
) -> Result<(), Failed> {
    if !as_before() {
        return Err("it is not as before to begin with".into());
    }
    let mut command = Command::new(std::env::current_exe()?);
    let mut conductor = Ends(
        command
            .args([CONDUCTOR, &pid.to_string(), what])
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut line = String::new();
    BufReader::new(conductor.0.stdout.take().ok_or("its output")?).read_line(&mut line)?;
    if line.trim() != "changed" {
        return Err("the change was not made".into());
    }
    signal(conductor.0.id() as i32, sent)?;
    until("it is undone", as_before)
}

fn held(sent: i32) -> Result<(), Failed> {
    let neighbour = Ends(Command::new("sleep").arg("600").spawn()?);
    let pid = neighbour.0.id() as i32;
    let now = || sample::stat(Path::new(&format!("/proc/{pid}"))).map(|s| (s.nice, s.state == 'T'));
    let before = now().ok_or("the neighbour lives")?;
    // Letting go on is everybody's.
    let root = is_root();
    is_undone(pid, "hold", sent, || {
        now().is_some_and(|(nice, held)| !held && (nice == before.0 || !root))
    })
}

/// A server in a group of its own with half a CPU.
fn quota_lifted(sent: i32) -> Result<(), Failed> {
    if !is_root() {
        return Ok(());
    }
    let server = Ends(Command::new("sleep").arg("600").spawn()?);
    let group = Group::create(
        &format!("fingerpost-test-{}-{sent}", std::process::id()),
        &[Controller::Cpu],
    )?;
    group.add_pid(server.0.id())?;
    group.set_cpu_quota(Some(0.5))?;
    let pid = server.0.id() as i32;
    let files: Vec<PathBuf> = lever_of(pid, "quota")
        .acts
        .into_iter()
        .filter_map(|act| match act {
            Act::Group(setting) => Some(setting.file),
            _ => None,
        })
        .collect();
    let now = || {
        files
            .iter()
            .map(std::fs::read_to_string)
            .collect::<Result<Vec<_>, _>>()
            .ok()
    };
    let before = now();
    let result = is_undone(pid, "quota", sent, || before.is_some() && now() == before);
    drop(server);
    until("the group is empty", || group.pids().is_empty())?;
    group.remove()?;
    result
}

/// A server that works, and may use one CPU of several.
fn cpus_widened(sent: i32) -> Result<(), Failed> {
    let online = trace::online_cpus()?;
    if online.len() < 2 {
        return Ok(());
    }
    let server = Ends(
        Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()?,
    );
    let pid = server.0.id() as i32;
    affinity::pin_task(pid, &online[..1])?;
    let dir = PathBuf::from(format!("/proc/{pid}"));
    until("it works", || {
        sample::stat(&dir).is_some_and(|s| s.user + s.system > 0)
    })?;
    let one = online[0].to_string();
    is_undone(pid, "cpus", sent, || {
        sample::status(&dir)
            .and_then(|s| s.cpus_allowed)
            .is_some_and(|cpus| cpus.trim() == one)
    })
}
