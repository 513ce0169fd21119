//! No name that somebody else chose decides anything: threads, processes, groups and addresses may be called what they
//! like.

use std::collections::BTreeMap;

use fingerpost_diagnose::slow::slow_ones;
use fingerpost_diagnose::{Facts, StepFigures, budget, suspects};
use fingerpost_record::fixture::followed::{self, Row};
use fingerpost_record::{Blocker, Layer, Paths, Readings, Status, Task};

/// Names that meant something to a version before, and such as would break a text that is taken apart again.
const CHOSEN: [&str; 22] = [
    "",
    "idle CPU",
    "the client",
    "the server itself",
    "server",
    "client",
    "idle",
    "not followed",
    "kernel: futex",
    "waiting for a CPU",
    "server user code",
    "lock",
    "peer",
    "queue → lock",
    "db {clients: 4}: ",
    "it follows from cpu.quota (quota), which comes first",
    "confirmed",
    "cpu.contention",
    "\u{1b}[2J\u{202e}",
    "\", \"whom\": \"idle CPU",
    "a.seconds",
    "%s%n",
];

/// What waits for others on a CPU, in a queue, at a device, in a lock.
const WAITS: [Row<'static>; 6] = [
    (
        Layer::Application,
        "server user code",
        "",
        &[],
        [900.0, 880.0, 1000.0],
    ),
    (
        Layer::Scheduler,
        "waiting for a CPU",
        "one",
        &[],
        [700.0, 650.0, 1900.0],
    ),
    (
        Layer::Scheduler,
        "waiting for a CPU",
        "two",
        &["queue", "lock"],
        [300.0, 250.0, 900.0],
    ),
    (
        Layer::Storage,
        "disk: in the queue",
        "three",
        &["disk"],
        [250.0, 200.0, 800.0],
    ),
    (
        Layer::Storage,
        "disk: in the device",
        "four",
        &["disk"],
        [260.0, 200.0, 800.0],
    ),
    (
        Layer::Network,
        "waiting for a peer",
        "five",
        &["peer"],
        [400.0, 380.0, 500.0],
    ),
];

fn readings() -> Readings {
    let totals = [
        ("other.cpu.seconds", 14.0),
        ("machine.idle.seconds", 0.1),
        ("server.nice", 0.0),
        ("throttle.seconds", 0.0),
        ("server.cpus_allowed", 2.0),
    ];
    let totals: BTreeMap<String, f64> = totals
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    Readings::by("all", "made up", totals)
}

/// What is decided about some requests.
#[derive(Debug, PartialEq)]
struct Decided {
    /// Every cause with its status and its share.
    causes: Vec<(String, Status, f64)>,
    /// The parts of the budget.
    parts: Vec<(String, f64)>,
    /// Of the difference between the slowest and the others, each part's share.
    slow: Vec<f64>,
}

fn decided(paths: &Paths) -> Decided {
    let step = StepFigures {
        transactions: 10_000,
        elapsed_s: 10.0,
        clients: 4.0,
        client_cpus: 2,
        ..StepFigures::default()
    };
    let found = suspects(&Facts::of(&step, &readings(), Some(paths)));
    let parts = budget(&step, Some(paths)).parts;
    let slow = slow_ones(paths).expect("requests were followed").parts;
    Decided {
        causes: found
            .into_iter()
            .map(|f| (f.cause, f.status, f.share))
            .collect(),
        parts: parts
            .into_iter()
            .map(|p| (p.component.name().into_owned(), p.share))
            .collect(),
        slow: slow.into_iter().map(|p| p.of_difference).collect(),
    }
}

/// A name of the list, or one of random characters.
fn name(random: &mut fastrand::Rng) -> String {
    if random.bool() {
        return CHOSEN[random.usize(..CHOSEN.len())].to_owned();
    }
    (0..random.usize(..16)).map(|_| random.char(..)).collect()
}

#[test]
fn no_name_of_a_thread_or_group_changes_a_verdict() {
    let mut random = fastrand::Rng::with_seed(54);
    let paths = followed::paths(&WAITS, 0.01);
    let expected = decided(&paths);
    assert!(
        expected.causes.iter().any(|f| f.1.accuses()),
        "somebody is accused: {expected:#?}"
    );
    for _ in 0..10_000 {
        let mut renamed = paths.clone();
        // Whoever was told apart by a name still is: two of one name would be one, and rightly so.
        for (number, leaf) in renamed.leaves.iter_mut().enumerate() {
            if let Some(Blocker::Thread(task)) = &mut leaf.blocker {
                *task = Task {
                    comm: name(&mut random),
                    pid: Some(number as i32),
                    group: random.bool().then(|| name(&mut random)),
                    program: random.bool().then(|| name(&mut random)),
                };
            }
        }
        let found = decided(&renamed);
        assert_eq!(found, expected, "{:#?}", renamed.leaves);
    }
}

#[test]
fn a_record_keeps_a_name_as_a_name() {
    for comm in CHOSEN {
        let mut paths = followed::paths(&WAITS, 0.01);
        for leaf in &mut paths.leaves {
            if leaf.blocker.is_some() {
                leaf.blocker = Some(Blocker::thread(comm));
            }
        }
        let text = serde_json::to_string(&paths).unwrap();
        let read: Paths = serde_json::from_str(&text).unwrap();
        assert_eq!(read, paths, "{comm}");
    }
}
