//! The server that stamps its own stages, under load; the program itself is the server, the peer and the load
//! generator.

use std::process::ExitCode;
use std::time::Duration;

use fingerpost_workloads::rehearsal::truth::log::{Served, Stage};
use fingerpost_workloads::rehearsal::truth::{Kind, Mix, Order, Shape};
use fingerpost_workloads::rehearsal::{Recipe, Rehearsal};
use fingerpost_workloads::{Drained, Step, Workload, workers};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    if let Some(status) = workers::dispatch() {
        return status;
    }
    let mut arguments = Arguments::from_args();
    // Each test loads the machine; several at a time would only stall one another.
    arguments.test_threads = Some(1);
    let trials = vec![
        Trial::test(
            "a_request_is_what_its_stages_are_with_a_thread_per_connection",
            || whole(Shape::Threads),
        ),
        Trial::test(
            "a_request_is_what_its_stages_are_with_a_loop_and_a_pool",
            || whole(Shape::Pool),
        ),
        Trial::test("each_kind_does_what_it_says", each_kind),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn load(mix: Mix, clients: usize) -> Result<(Step, Drained, Vec<Served>), Failed> {
    let dir = tempfile::tempdir()?;
    let mut rehearsal = Rehearsal::new(
        Recipe {
            mix: Some(mix),
            clients,
            ..Recipe::default()
        },
        dir.path(),
    );
    rehearsal.start()?;
    let stamps = rehearsal.stamps().ok_or("no stamps")?;
    rehearsal.truth()?;
    stamps.set(true);
    let step = rehearsal.step(&rehearsal.steps()[0], Duration::from_millis(400))?;
    stamps.set(false);
    let served = rehearsal.truth()?;
    rehearsal.stop();
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
    Ok((step, stamps.drain(), served))
}

/// Every request that the client stamped is in the log, and the log's stages fill it.
fn whole(shape: Shape) -> Result<(), Failed> {
    let orders = [(Kind::Work, 300), (Kind::Timer, 500), (Kind::Calls, 200)]
        .map(|(kind, micros)| Order { kind, micros })
        .to_vec();
    let (step, drained, served) = load(
        Mix {
            seed: 5,
            shape,
            orders,
            most: 3,
            slow: None,
        },
        2,
    )?;
    assert!(step.transactions > 0 && drained.lost == 0);
    assert!(drained.stamps.len() as u64 >= step.transactions);
    for stamp in &drained.stamps {
        // The server may be preempted between its answer and the reading of its clock, so that its last stage counts.
        let within = |s: &Served| {
            s.received >= stamp.start && s.stages.last().is_some_and(|last| last.end <= stamp.end)
        };
        assert!(served.iter().any(within), "a request is not in the log");
    }
    for request in &served {
        assert!((1..=3).contains(&request.stages.len()));
        assert!(
            request
                .stages
                .windows(2)
                .all(|pair| pair[0].end <= pair[1].start)
        );
        let (first, last) = (request.stages[0], request.stages[request.stages.len() - 1]);
        assert!(request.received <= first.start && last.end <= request.answered);
        assert!(request.stages.iter().all(|s| s.tid == request.tid));
    }
    Ok(())
}

/// CPU time as a share of the stages of a kind, which are at least as long as ordered.
fn each_kind() -> Result<(), Failed> {
    for kind in Kind::ALL {
        let order = Order { kind, micros: 2000 };
        let (_, _, served) = load(
            Mix {
                seed: 1,
                shape: Shape::Threads,
                orders: vec![order],
                most: 1,
                slow: None,
            },
            1,
        )?;
        let stages: Vec<&Stage> = served.iter().flat_map(|s| &s.stages).collect();
        assert!(
            !stages.is_empty() && stages.iter().all(|s| s.kind == kind),
            "{kind:?}"
        );
        // Where the cold file is on a file system in memory, it is never cold.
        let long = |s: &&&Stage| s.end - s.start >= 1_000_000;
        assert!(
            kind == Kind::Memory || stages.iter().filter(long).count() == stages.len(),
            "{kind:?}: {stages:?}"
        );
        let sum = |of: fn(&Stage) -> u64| stages.iter().map(|s| of(s)).sum::<u64>() as f64;
        let cpu = sum(|s| s.cpu) / sum(|s| s.end - s.start);
        eprintln!(
            "{kind:?}: {} stages, {:.0} us, {:.1} % CPU",
            stages.len(),
            sum(|s| s.end - s.start) / 1e3 / stages.len() as f64,
            cpu * 100.0
        );
        match kind {
            Kind::Timer | Kind::PeerSleeps => assert!(cpu < 0.5, "{kind:?}: {cpu}"),
            // A neighbour on the CPU may take most of it, but nothing else does.
            Kind::Work | Kind::Calls | Kind::LockWorks => assert!(cpu > 0.2, "{kind:?}: {cpu}"),
            _ => {}
        }
        let own = served
            .iter()
            .all(|r| r.stages.iter().all(|s| s.tid == r.tid));
        assert_eq!(
            own,
            !matches!(kind, Kind::LockWorks | Kind::LockSyncs | Kind::LockStarves),
            "{kind:?}"
        );
    }
    Ok(())
}
