use super::*;
use fingerpost_record::Outcome;
use fingerpost_workloads::{ClientReport, Doing, Reason, Stall};

fn step(rate: u64, p50: u64) -> Step {
    Step {
        transactions: rate,
        elapsed: Duration::from_secs(1),
        throughput: vec![rate as f64; 10],
        latencies: vec![(p50, rate - 1), (p50 * 10, 1)],
        client: ClientReport {
            cpu_seconds: 0.5,
            cpus: 2,
            generators: 1,
            ..ClientReport::default()
        },
        ..Step::default()
    }
}

fn row(rounds: Vec<Step>) -> Repetitions {
    let mut row = Repetitions::new(&LOADED, Params::new().with("connections", 10));
    row.steps = rounds;
    row
}

#[test]
fn a_profile_spends_about_its_budget() {
    let minute = Duration::from_secs(60);
    for (profile, budget, steps) in [
        (Profile::Quick, QUICK, 4),
        (Profile::Standard, minute, 4),
        (Profile::Standard, minute, 8),
    ] {
        let Rounds { extent, length, .. } = plan(profile, budget, steps, 1);
        let spent = (length + OVERHEAD) * (extent.most * steps) as u32 + OVERHEAD * steps as u32;
        assert!(
            spent <= budget && spent * 10 >= budget * 9,
            "{profile:?} {steps}: {spent:?}"
        );
    }
    assert_eq!(plan(Profile::Quick, Duration::ZERO, 4, 1).length, WINDOW.0);
    assert_eq!(
        plan(Profile::Thorough, Duration::from_secs(100_000), 1, 1).length,
        WINDOW.1
    );
}

#[test]
fn rounds_become_repetitions_of_one_row_each() {
    let rows = row(vec![step(1000, 100), step(1100, 110), step(1050, 105)]).rows();
    assert_eq!(
        rows.iter().map(|m| m.probe.as_str()).collect::<Vec<_>>(),
        ["web.throughput", "web.latency"]
    );
    assert!(
        rows.iter().all(|m| m.outcome == Outcome::Measured
            && m.reason.is_none()
            && m.processes.len() == 3)
    );
    assert_eq!(rows[0].estimate.unwrap().value, 1050.0);
    assert_eq!(rows[0].processes[0].samples.len(), 10);
    assert_eq!(rows[1].estimate.unwrap().value, 105.0);
    assert_eq!(rows[0].processes[0].counters["client_cpu_ns"], 500_000.0);
    assert_eq!(rows[1].processes[0].counters["max_ns"], 1000.0);
}

#[test]
fn an_open_loop_tells_its_latency_from_both_starts() {
    let mut open = step(1000, 100);
    open.intended = vec![(5000, 1000)];
    let rows = row(vec![open]).rows();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1].params.text("from"), Some("sent"));
    assert_eq!(rows[2].params.text("from"), Some("intended"));
    assert!(rows[2].estimate.unwrap().value > rows[1].estimate.unwrap().value);
}

#[test]
fn a_figure_with_a_doubt_is_untrusted_and_says_why() {
    let mut failing = step(1000, 100);
    failing
        .client
        .errors
        .insert("connection reset".to_owned(), 7);
    let told = row(vec![step(1000, 100), failing]).throughput();
    assert_eq!(told.outcome, Outcome::Untrusted);
    assert!(told.reason.unwrap().contains("7 × connection reset"));

    let mut wanting = step(1000, 100);
    wanting
        .client
        .errors
        .insert("no free local port".to_owned(), 7);
    wanting.client.saturated =
        Some("the load generator lacked something; source=spread avoids it".to_owned());
    assert!(
        row(vec![wanting])
            .throughput()
            .reason
            .unwrap()
            .contains("source=spread"),
        "what to do comes first"
    );

    let mut one = step(1000, 100);
    one.client.errors.insert("connection reset".to_owned(), 1);
    let counted = row(vec![one]);
    assert_eq!(counted.throughput().outcome, Outcome::Measured);
    assert_eq!(
        counted.observation("").totals["error.connection reset"],
        1.0,
        "it is counted"
    );

    let mut saturated = step(1000, 100);
    saturated.client.saturated = Some("the client was the limit".to_owned());
    assert_eq!(
        row(vec![saturated.clone(), step(1000, 100), step(1000, 100)])
            .throughput()
            .outcome,
        Outcome::Measured
    );
    assert_eq!(
        row(vec![saturated.clone(), saturated.clone(), step(1000, 100)])
            .throughput()
            .reason
            .unwrap(),
        "the client was the limit"
    );
    assert_eq!(
        row(vec![saturated, step(1000, 100)]).throughput().outcome,
        Outcome::Untrusted,
        "half of the rounds"
    );

    let stall = |why: Reason, length_s| {
        let mut step = step(1000, 100);
        step.client.stalls.push(Stall {
            at_s: 0.1,
            length_s,
            why,
        });
        row(vec![step]).throughput().reason
    };
    assert_eq!(
        stall(Reason::WaitedForCpu(300_000_000), 0.3).unwrap(),
        "the client stalled for 0.30 s of 1.0 s: the load generator itself waited 300 ms for a CPU"
    );
    assert_eq!(stall(Reason::WaitedForCpu(30_000_000), 0.03), None);
    assert_eq!(
        stall(
            Reason::Unanswered(
                Doing {
                    waiting: 10,
                    ..Doing::default()
                },
                0
            ),
            0.3
        ),
        None
    );

    let mut later = row(vec![step(1000, 100)]);
    later.failure = Some("nothing listens".to_owned());
    let why = Some("a later round failed: nothing listens".to_owned());
    assert!(
        later
            .rows()
            .iter()
            .all(|m| m.outcome == Outcome::Untrusted && m.reason == why && m.estimate.is_some())
    );
    assert_eq!(
        later.measured().unwrap().doubt,
        why,
        "who explains the step knows it too"
    );

    let mut failed = row(Vec::new());
    failed.failure = Some("nothing listens".to_owned());
    let told = failed.rows();
    assert!(told.iter().all(|m| m.outcome == Outcome::Failed
        && m.reason.as_deref() == Some("nothing listens")
        && m.estimate.is_none()));
}

#[test]
fn the_clients_account_is_kept_over_all_rounds() {
    let mut one = step(1000, 100);
    one.client.stalls.push(Stall {
        at_s: 0.25,
        length_s: 0.1,
        why: Reason::Unseen,
    });
    let row = row(vec![step(1000, 100), one]);
    assert_eq!(
        row.observation("nginx/1.22.1").source,
        "the load generator; nginx/1.22.1"
    );
    let seen = row.observation("");
    assert!(
        !seen.source.contains(';'),
        "nothing is said of a server that does not tell: {}",
        seen.source
    );
    assert_eq!(seen.totals["requests"], 2000.0);
    assert_eq!(seen.totals["cpu.seconds"], 1.0);
    assert_eq!(seen.series[0].points, [(1.25, 0.1)]);
}

#[test]
fn a_desktops_tasks_go_with_a_load_that_lasts() {
    let with = |pairs: &[(&str, &str)], profile| {
        let settings = pairs.iter().fold(Params::new(), |p, (key, value)| {
            p.with(key, fingerpost_record::Param::parse(value))
        });
        with_desktop(&settings, profile)
    };
    assert!(matches!(with(&[], Profile::Standard), Ok(true)));
    assert!(matches!(with(&[], Profile::Quick), Ok(false)));
    assert!(matches!(
        with(&[("desktop", "on")], Profile::Quick),
        Ok(true)
    ));
    assert!(matches!(
        with(&[("requests", "1000")], Profile::Standard),
        Ok(false)
    ));
    assert!(
        with(&[("requests", "1000"), ("desktop", "on")], Profile::Quick)
            .unwrap_err()
            .to_string()
            .contains("exclude each other")
    );
    assert!(
        with(&[("desktop", "perhaps")], Profile::Quick)
            .unwrap_err()
            .to_string()
            .contains("desktop=perhaps")
    );
}

#[test]
fn the_idle_servers_rows_do_not_name_a_load() {
    let settings = Settings::from_params(
        &Params::new()
            .with("keepalive", "both")
            .with("connections", "1,10")
            .with("rate", 100),
    )
    .unwrap();
    let loaded = &settings.steps()[0];
    let idle = loaded.without(BESIDE.of_load);
    assert_eq!(
        idle,
        Params::new().with("server", "embedded").with("size", 1024),
        "of {loaded}"
    );
}

/// Counts its starts; one of them cannot be.
struct Renewed {
    starts: u32,
    fail_at: u32,
}

impl Workload for Renewed {
    fn name(&self) -> &'static str {
        "web"
    }
    fn start(&mut self) -> Result<(), LabError> {
        Ok(())
    }
    fn renew(&mut self) -> Result<bool, LabError> {
        self.starts += 1;
        if self.starts == self.fail_at {
            Err(LabError::Failed("no port is free".into()))
        } else {
            Ok(true)
        }
    }
    fn steps(&self) -> Vec<Params> {
        [1, 10]
            .map(|n| Params::new().with("connections", n))
            .to_vec()
    }
    fn subjects(&self) -> fingerpost_workloads::Subjects {
        fingerpost_workloads::Subjects::default()
    }
    fn step(&mut self, _: &Params, _: Duration) -> Result<Step, LabError> {
        Ok(step(1000 * u64::from(self.starts), 100))
    }
    fn stop(&mut self) {}
}

fn starts_of_rounds(in_turns: bool, fail_at: u32) -> (Vec<Vec<u64>>, Vec<String>) {
    let mut web = Renewed { starts: 1, fail_at };
    let mut sink = crate::database::listener::Listener {
        patience: 100,
        in_turns,
        ..Default::default()
    };
    let rows = plan(Profile::Quick, QUICK, 2, 1)
        .run(&LOADED, &mut web, &mut sink)
        .unwrap();
    (
        rows.iter()
            .map(|row| row.steps.iter().map(|s| s.transactions / 1000).collect())
            .collect(),
        sink.warnings,
    )
}

#[test]
fn each_round_of_a_run_that_takes_turns_is_of_another_start_of_the_server() {
    assert_eq!(starts_of_rounds(true, 0).0, [[1, 2, 3, 4, 5, 6]; 2]);
    assert_eq!(starts_of_rounds(false, 0).0, [[1; 6]; 2]);
}

#[test]
fn a_server_that_does_not_start_again_leaves_the_rounds_before_it() {
    let (rounds, warnings) = starts_of_rounds(true, 3);
    assert_eq!(rounds, [[1, 2]; 2]);
    assert_eq!(
        warnings,
        [
            "the web server could not be started for round 3, and the rounds before it are all: no port is free"
        ]
    );
}
