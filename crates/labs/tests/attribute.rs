//! Attribution of programs whose answer is known: each does one thing, and that must be what it is found to do.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fingerpost_diagnose::threads;
use fingerpost_labs::Sink;
use fingerpost_labs::attribute::{Attributed, Request, attribute};
use fingerpost_observe::Level;
use fingerpost_record::Readings;
use fingerpost_record::{Budget, Link, Measurement, Observation, Params, Paths, Status};
use fingerpost_sys::child::{die_with_parent, signal_group};
use fingerpost_workloads::{ClientReport, Step, Subjects, Workload, WorkloadError};

/// A sink that keeps what matters here.
#[derive(Default)]
struct Kept {
    observations: Vec<Observation>,
    budgets: Vec<Budget>,
    paths: Vec<Paths>,
}

impl Sink for Kept {
    fn measurement(&mut self, _: Measurement) {}
    fn observation(&mut self, o: Observation) {
        self.observations.push(o);
    }
    fn budget(&mut self, b: Budget) {
        self.budgets.push(b);
    }
    fn paths(&mut self, p: Paths) {
        self.paths.push(p);
    }
}

/// A script that runs in `threads` processes or threads, each doing transactions one after the other.
struct Script {
    source: &'static str,
    child: Option<Child>,
}

impl Workload for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn start(&mut self) -> Result<(), WorkloadError> {
        let mut command = Command::new("python3");
        command.args(["-c", self.source]);
        let child = die_with_parent(&mut command)
            .spawn()
            .map_err(|e| WorkloadError::Missing(format!("python3 is needed: {e}")))?;
        self.child = Some(child);
        Ok(())
    }

    fn steps(&self) -> Vec<Params> {
        vec![Params::new()]
    }

    fn subjects(&self) -> Subjects {
        Subjects {
            servers: self.child.iter().map(|c| c.id() as i32).collect(),
            clients: Vec::new(),
        }
    }

    fn step(&mut self, _: &Params, length: Duration) -> Result<Step, WorkloadError> {
        // The script works on its own; a transaction is a millisecond of it.
        std::thread::sleep(length);
        Ok(Step {
            transactions: length.as_millis() as u64,
            elapsed: length,
            client: ClientReport::default(),
            ..Step::default()
        })
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = signal_group(child.id() as i32, libc::SIGKILL);
            let _ = child.wait();
        }
    }
}

/// One script at a time that keeps a CPU busy: side by side they would mostly wait for each other's.
static ALONE: Mutex<()> = Mutex::new(());

/// Attributes a script at a level. `None`, with the reason printed, where python3 is missing and this is not CI.
fn attributed(source: &'static str, clients: f64, level: Level) -> Option<(Attributed, Kept)> {
    let sleeps = [SLEEPS, LOCKS].contains(&source);
    let _alone = (!sleeps).then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
    let mut script = Script {
        source,
        child: None,
    };
    if let Err(e) = script.start() {
        fingerpost_testing::skipped(e);
        return None;
    }
    wait_until_it_works(script.child.as_ref().unwrap().id());
    let params = Params::new();
    let request = Request {
        params: &params,
        length: Duration::from_millis(1500),
        clients,
        sweep: &[],
        query_cache: None,
        level,
        measured: None,
        latency: None,
        events: None,
    };
    let mut kept = Kept::default();
    let result = attribute(&mut script, &request, &mut kept);
    script.stop();
    Some((result.unwrap(), kept))
}

/// The script is at work when it has closed its standard input.
fn wait_until_it_works(pid: u32) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Path::new(&format!("/proc/{pid}/fd/0")).exists()
        || std::fs::symlink_metadata(format!("/proc/{pid}/fd/0")).is_ok()
    {
        assert!(
            Instant::now() < deadline,
            "the script never came to its work"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What a part of a budget of followed requests is among the threads' states, where requests were not followed.
const STATES: [(&str, &str); 7] = [
    ("server user code", "user code"),
    ("kernel", "kernel"),
    ("waiting for a CPU", "ready, waiting for a CPU"),
    ("waiting for a lock", "blocked: a lock or condition"),
    ("waiting for the disk", "blocked: the disk"),
    ("waiting for a peer", "blocked: a socket"),
    ("sleeping", "blocked: a timer"),
];

/// The share of a component in the budget, or of the state that stands for it in the threads' time.
fn share(a: &Attributed, component: &str) -> f64 {
    if !a.budget.parts.is_empty() {
        return a
            .budget
            .parts
            .iter()
            .filter(|p| p.component.name().starts_with(component))
            .map(|p| p.share)
            .sum();
    }
    let state = STATES
        .iter()
        .find(|s| s.0 == component)
        .unwrap_or_else(|| panic!("no state for {component}"))
        .1;
    threads(&Readings::of(&a.observations))
        .iter()
        .filter(|s| s.state == state)
        .map(|s| s.share)
        .sum()
}

fn holds_together(a: &Attributed, kept: &Kept, level: Level) {
    let sum: f64 = a.budget.parts.iter().map(|p| p.share).sum();
    assert!(
        (sum + a.budget.unexplained - 1.0).abs() < 1e-6,
        "the parts and the rest are the whole"
    );
    assert_eq!(kept.budgets, std::slice::from_ref(&a.budget));
    if level == Level::Sampling {
        assert!(
            a.budget.parts.is_empty() && a.budget.unexplained == 1.0,
            "samples follow no request: {:#?}",
            a.budget
        );
        assert!(
            a.findings.iter().all(|f| f.status != Status::Confirmed),
            "what was not followed convicts nobody: {:#?}",
            a.findings
        );
    }
    for name in [
        "cpu", "threads", "memory", "disk", "network", "pressure", "others", "limits", "step",
    ] {
        assert!(
            kept.observations
                .iter()
                .any(|o| o.observer == name && o.workload == "script"),
            "no observer “{name}”"
        );
    }
    assert!(
        kept.observations.iter().map(|o| o.self_cost).sum::<f64>() > 0.0,
        "observing is never free"
    );
}

const SLEEPS: &str = "
import os, time
os.close(0)
while True: time.sleep(0.003)
";
const BURNS: &str = "
import os
os.close(0)
while True: sum(range(1000))
";
/// So much at once that the disk's part is longer than a turn of the scheduler: after 4 KiB the disk was waited for
/// 0.1 ms at a time, and samples on a busy machine met none of it.
const SYNCS: &str = "
import os, tempfile
f = tempfile.TemporaryFile(dir=os.environ.get('CARGO_TARGET_TMPDIR', '.'), buffering=0)
page = b'x' * (8 << 20)
os.close(0)
while True:
    f.write(page); os.fsync(f.fileno()); f.seek(0)
";
const PING_PONG: &str = "
import os, socket
a, b = socket.socketpair()
if os.fork() == 0:
    while True: b.send(b.recv(1))
os.close(0)
while True:
    a.send(b'x'); a.recv(1)
";
/// Two processes hand one futex-backed semaphore to and fro: all that either does is wait for the other to release it.
const LOCKS: &str = "
import os, threading, time
lock = threading.Lock()
def work():
    while True:
        with lock: time.sleep(0.002)
for _ in range(4): threading.Thread(target=work, daemon=True).start()
os.close(0)
threading.Event().wait()
";

#[test]
fn a_program_that_sleeps_sleeps() {
    for level in [Level::Tracing, Level::Sampling] {
        let Some((a, kept)) = attributed(SLEEPS, 1.0, level) else {
            return;
        };
        holds_together(&a, &kept, level);
        assert!(share(&a, "sleeping") > 0.3, "{level:?}: {:#?}", a.budget);
        // Where the machine is busy, too little may be seen to clear anybody.
        let disk = a.findings.iter().find(|f| f.cause == "storage.latency");
        assert!(
            disk.is_none_or(|f| !f.status.accuses()),
            "{level:?}: {disk:#?} {:#?}",
            a.budget
        );
    }
}

#[test]
fn a_program_that_computes_is_on_the_cpu_or_waits_for_it() {
    for level in [Level::Tracing, Level::Sampling] {
        let Some((a, kept)) = attributed(BURNS, 1.0, level) else {
            return;
        };
        holds_together(&a, &kept, level);
        assert!(
            share(&a, "server user code") + share(&a, "waiting for a CPU") > 0.85,
            "{level:?}: {:#?}",
            a.budget
        );
    }
}

#[test]
fn a_program_that_syncs_waits_for_the_disk() {
    for level in [Level::Tracing, Level::Sampling] {
        let Some((a, kept)) = attributed(SYNCS, 1.0, level) else {
            return;
        };
        holds_together(&a, &kept, level);
        let storage = share(&a, "waiting for the disk")
            + if a.budget.parts.is_empty() {
                0.0
            } else {
                share(&a, "kernel: fsync")
            };
        // Of the time in which it did not wait for a CPU: on a busy machine it hardly gets to wait for anything else.
        let own = 1.0 - share(&a, "waiting for a CPU");
        let states = threads(&Readings::of(&a.observations));
        assert!(
            storage > 0.005 * own,
            "{level:?}: {:#?} {states:#?}",
            a.budget
        );
        let others = ["waiting for a lock", "waiting for a peer", "sleeping"].map(|c| share(&a, c));
        assert!(
            others.iter().all(|o| *o <= storage),
            "{level:?}: {:#?} {states:#?}",
            a.budget
        );
    }
}

#[test]
fn two_processes_on_a_socket_wait_for_each_other() {
    for level in [Level::Tracing, Level::Sampling] {
        let Some((a, kept)) = attributed(PING_PONG, 2.0, level) else {
            return;
        };
        holds_together(&a, &kept, level);
        if level == Level::Tracing && a.budget.parts.is_empty() {
            // The machine was too busy for one whole window of a program that makes millions of calls a second.
            eprintln!("not followed: {:?}", kept.paths);
            continue;
        }
        // Where the path was followed, the wait for the other process is what that one did.
        let beyond = |p: &Paths| -> f64 {
            p.leaves
                .iter()
                .filter(|l| l.has(Link::Peer))
                .map(|l| l.all.share)
                .sum()
        };
        let peer = kept
            .paths
            .first()
            .map_or_else(|| share(&a, "waiting for a peer"), beyond);
        let others =
            ["waiting for a lock", "waiting for the disk", "sleeping"].map(|c| share(&a, c));
        let states = threads(&Readings::of(&a.observations));
        // On a machine so busy that they hardly get a CPU, there is hardly a moment in which they wait for anything
        // else.
        let starved = share(&a, "waiting for a CPU") > 0.5;
        assert!(
            (peer > 0.05 || starved) && others.iter().all(|o| *o <= peer),
            "{level:?}: {:#?} {states:#?}",
            a.budget
        );
    }
}

#[test]
fn threads_that_share_a_lock_wait_for_it_and_the_lock_is_confirmed_where_they_were_followed() {
    for level in [Level::Tracing, Level::Sampling] {
        let Some((a, kept)) = attributed(LOCKS, 4.0, level) else {
            return;
        };
        holds_together(&a, &kept, level);
        assert!(
            share(&a, "waiting for a lock") > 0.3,
            "{level:?}: {:#?}",
            a.budget
        );
        // Threads that sleep neither convict nor clear a lock; only requests that were followed to its holder do.
        let lock = a
            .findings
            .iter()
            .find(|f| f.cause == "app.lock")
            .map(|f| f.status);
        assert_eq!(
            lock,
            Some(if a.budget.parts.is_empty() {
                Status::NotObserved
            } else {
                Status::Confirmed
            }),
            "{level:?}: {:#?}",
            a.findings
        );
        for cause in ["storage.latency", "network.shaping"] {
            let accused = a
                .findings
                .iter()
                .find(|f| f.cause == cause && f.status == Status::Confirmed);
            assert_eq!(accused, None);
        }
    }
}
