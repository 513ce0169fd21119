//! The article's database test: a site's database under 1 to 50 clients, its throughput, its latency, and how it
//! scales.
//!
//! Each number of clients is a step. A round is every step once, in random order, so that drift and noise hit all of
//! them alike; the rounds of a step are its repetitions. Each round is of another start of the server and of the load
//! generators: two starts of the same MariaDB differ by some 5 % in all their steps (`bench/RESULTS.md`), of which
//! rounds of one start would tell nothing.

mod import;
#[cfg(test)]
pub(crate) mod listener;
pub(crate) mod rows;

use std::time::{Duration, Instant};

use fingerpost_measure::course::Extent;
use fingerpost_record::descriptor::table;
use fingerpost_record::{Params, Profile};
use fingerpost_report::lab::ServerWords;
use fingerpost_report::scaling;
use fingerpost_workloads::Workload;
use fingerpost_workloads::database::options::Options;
use fingerpost_workloads::database::{self, Database, warm_up};
use fingerpost_workloads::desktop::Desktop;

use fingerpost_workloads::database::options::Engine;

use crate::desktop::{self, Beside};
use crate::explained::{self, Course, explain};
use crate::lab::{by_profile, file_system, wanted};
use crate::loaded::{self, Loaded, Rounds};
use crate::rows::Definition;
use crate::sink::in_turn;
use crate::{Context, Lab, LabError, Setting, Sink, deciding};

/// What a step costs besides its load: connecting, preparing statements, handing over the result.
const STEP_OVERHEAD: Duration = Duration::from_millis(40);
/// A step is at least this long, however little time there is: two stretches of throughput.
const SHORTEST_STEP: Duration = Duration::from_millis(200);

/// Rounds that there are at least, whatever the time: an interval needs them.
const LEAST_ROUNDS: usize = 3;
/// How finely a step's length is fitted into the time.
const MORE: Duration = Duration::from_millis(5);

/// The share of a lab's time that importing may take, beyond the imports that a figure needs.
const IMPORT_SHARE: f64 = 0.08;

/// What the lab has of its steps.
pub(crate) static LOADED: Loaded = Loaded {
    name: "database",
    throughput: &rows::OF_THROUGHPUT,
    latency: &rows::OF_LATENCY,
    by: "clients",
    counters: rows::counters,
    quantiles: &[("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)],
    own: |_| None,
    totals: rows::totals,
    errors: "errors",
    server: "database",
    renew,
    first_failure_ends: true,
};

/// A desktop's tasks beside the database.
static BESIDE: Beside = Beside {
    lab: "database",
    rows: Definition {
        table: &table::DATABASE,
        probe: "database.desktop",
        ..Definition::LATENCY
    },
    by: "clients",
    of_load: import::OF_USERS,
    warm_up,
};

/// How the time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    rounds: usize,
    length: Duration,
}

impl Plan {
    /// Rounds by the profile: rather many short steps than few long ones, as what drifts hits each round alike. Each
    /// step is as long as the time that is left allows, and where there are too many steps, rounds are fewer.
    fn new(profile: Profile, left: Duration, steps: usize, renewal: Duration) -> Plan {
        let shortest = (SHORTEST_STEP + warm_up(SHORTEST_STEP) + STEP_OVERHEAD)
            * steps.max(1) as u32
            + renewal;
        let rounds = by_profile(profile, [7, 11, 15])
            .min((left.as_nanos() / shortest.as_nanos()) as usize)
            .max(LEAST_ROUNDS);
        let each = (left.saturating_sub(renewal * rounds as u32) / (rounds * steps.max(1)) as u32)
            .saturating_sub(STEP_OVERHEAD);
        // The warm-up is a share of the step within limits, so the length is the largest that fits together with its
        // own warm-up.
        let mut length = each.saturating_sub(warm_up(each));
        while length + MORE + warm_up(length + MORE) <= each {
            length += MORE;
        }
        Plan {
            rounds,
            length: length.max(SHORTEST_STEP),
        }
    }
}

/// How much time the lab takes of what it may take.
fn allowance(profile: Profile, budget: Duration) -> Duration {
    budget.min(Duration::from_secs(by_profile(profile, [31, 90, 400])))
}

fn run(ctx: &mut Context) -> Result<(), LabError> {
    let began = Instant::now();
    let mut options = Options::from_settings(ctx.settings, ctx.seed)?;
    // Redis has no dump to import.
    let imports = wanted(ctx.settings, "import", ctx.profile)? && options.engine.name() != "redis";
    let beside = wanted(ctx.settings, "desktop", ctx.profile)?;
    options.server_prefix = ctx.server_prefix.to_vec();
    options.dir_fs = options.dir.as_deref().map(file_system);
    ctx.sink.progress(
        &format!("starting {} and loading its data", options.engine.name()),
        0.0,
    );
    let query_cache = match options.engine {
        Engine::MariaDb { query_cache, .. } => Some(query_cache),
        _ => None,
    };
    // Before the workload, which has the scratch directory to itself from then on.
    let mut desktop = if beside {
        Some(Desktop::start(&options.program, ctx.scratch)?)
    } else {
        None
    };
    let mut workload = Database::new(options, ctx.scratch);
    let result = workload.start().and_then(|()| {
        let steps = workload.steps();
        let left = allowance(ctx.profile, ctx.budget).saturating_sub(began.elapsed());
        let importing = if imports {
            left.mul_f64(IMPORT_SHARE)
        } else {
            Duration::ZERO
        };
        let length = desktop::length(left);
        let beside = if desktop.is_some() {
            BESIDE.cost(length)
        } else {
            Duration::ZERO
        };
        let left = left.saturating_sub(importing + beside);
        let course = Course {
            by: "clients",
            query_cache,
            length: explained::pass(ctx.profile, left, 1),
            experiments: deciding::most(ctx.profile),
            beyond_ours: ctx.allow_system_changes,
        };
        // Before the first round as well: it costs what is planned with, and a server that has just filled its tables
        // is no other start.
        let renewal = Instant::now();
        renew(&mut workload, ctx.sink)?;
        let renewal = renewal.elapsed();
        let left = left.saturating_sub(explained::reserve(course.length, 1, steps.len()));
        let plan = Plan::new(ctx.profile, left, steps.len(), renewal);
        let rounds = Rounds {
            extent: Extent::rounds(plan.rounds),
            seed: ctx.seed,
            length: plan.length,
        };
        let all = rounds.run(&LOADED, &mut workload, ctx.sink)?;
        let measured = loaded::tell(&all, workload.described(), ctx.sink);
        in_turn(ctx.sink, |sink| {
            explain(&mut workload, &measured, &course, sink)?;
            if let Some(desktop) = &mut desktop {
                BESIDE.measure(desktop, &mut workload, length, sink);
            }
            // Last, because a server goes on writing what it was given after it has said that it is done.
            if let (true, Some(step)) = (imports, steps.first()) {
                import::repeat(&import::params(step), importing, sink, &mut || {
                    workload.import()
                });
            }
            Ok(())
        })
    });
    workload.stop();
    workload
        .take_warnings()
        .iter()
        .for_each(|sentence| ctx.sink.warn(sentence));
    drop(workload);
    let stopped = desktop.map_or(Ok(()), |desktop| desktop.stop(ctx.scratch));
    stopped.unwrap_or_else(|sentence| ctx.sink.warn(&sentence));
    result
}

/// Starts the server anew, and has the most clients on it for a moment: what it keeps in memory is read again.
fn renew(workload: &mut dyn Workload, _: &dyn Sink) -> Result<(), LabError> {
    let renewed = workload.renew()?;
    let most = workload
        .steps()
        .into_iter()
        .filter(|_| renewed)
        .max_by_key(|step| step.int("clients"));
    most.map_or(Ok(()), |step| workload.step(&step, SHORTEST_STEP).map(drop))
}

/// Whether the settings can be.
fn check(settings: &Params, profile: Profile) -> Result<(), LabError> {
    ["import", "desktop"]
        .iter()
        .try_for_each(|key| wanted(settings, key, profile).map(drop))?;
    Options::from_settings(settings, 0).map(drop)
}

/// The lab.
pub static LAB: Lab = Lab {
    name: "database",
    summary: "a site's database under 1 to 50 clients: throughput, latency, scaling (SQLite, MariaDB, PostgreSQL)",
    rows: &[
        (
            &rows::OF_THROUGHPUT,
            "queries or transactions that all clients together finish in a second, in a closed loop",
        ),
        (&rows::OF_LATENCY, "from the sending of a query or transaction to the last byte of its answer"),
        (&import::OF_IMPORT, "loading a dump of the data through a client, statement by statement"),
        (&BESIDE.rows, desktop::MEANING),
    ],
    settings: &[
        Setting::new("engine", "sqlite", "sqlite (nothing to install), mariadb or postgresql").one_of(&[
            "sqlite",
            "mariadb",
            "postgresql",
        ]),
        Setting::new(
            "mix",
            "read",
            "read (select, range, order, group, join), write (transactions with commit) or point",
        )
        .one_of(&["read", "write", "point"]),
        Setting::new("clients", "1,2,5,10,20,35,50", "clients at the same time, one step each").list(1, 1000),
        Setting::new("scale", "1", "size of the data set; 1 is 36,000 rows, some 15 MB").whole(1, 200),
        Setting::new("storage", "innodb", "MariaDB's storage engine: innodb, myisam or aria")
            .one_of(&["innodb", "myisam", "aria"]),
        Setting::new("query_cache", "off", "MariaDB's query cache: on or off").one_of(&["off", "on"]),
        Setting::new("synchronous", "full", "how SQLite waits for the disk: full, normal or off")
            .one_of(&["full", "normal", "off"]),
        Setting::new("server.", "the server's own", "any variable of a private server, as server.NAME=VALUE"),
        Setting::new("import", "on; off with --profile quick", "on: a dump of the data is imported, too, and timed")
            .one_of(&["on", "off"]),
        desktop::SETTING,
        Setting::new("dir", "the scratch directory", "where the data goes: a directory on the disk to be measured")
            .path(),
        Setting::new(
            "url",
            "none",
            "a server of your own, mysql://USER@HOST:PORT/NAME, postgres://… or redis://…; NAME is made and dropped",
        ),
        Setting::new(
            "password_file",
            "MYSQL_PWD, PGPASSWORD or REDISCLI_AUTH, else ~/.my.cnf or ~/.pgpass",
            "a file whose first line is the password for url; a password within the url is seen by all who list \
             processes",
        )
        .path(),
    ],
    // Settings that cannot be are an error of their own when the lab runs.
    missing: |settings| database::missing(&Options::from_settings(settings, 0).ok()?),
    check,
    takes_turns: true,
    takes: |_| None,
    server: Some(ServerWords {
        called: "database",
        curves: "Database: scaling with clients",
        counted: "queries or transactions a second",
    }),
    analyses: &[&scaling::ANALYSIS, &desktop::shown::ANALYSIS],
    run,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::listener::Listener;
    use crate::loaded::Repetitions;
    use fingerpost_record::{Measurement, Outcome};
    use fingerpost_workloads::{Step, Subjects, WorkloadError};

    /// Twice the clients, twice the throughput; the n-th step fails.
    struct Mock {
        order: Vec<i64>,
        fail: Option<usize>,
    }

    impl Workload for Mock {
        fn name(&self) -> &'static str {
            "database"
        }
        fn start(&mut self) -> Result<(), WorkloadError> {
            Ok(())
        }
        fn steps(&self) -> Vec<Params> {
            [1, 2, 4].map(|n| Params::new().with("clients", n)).to_vec()
        }
        fn subjects(&self) -> Subjects {
            Subjects::default()
        }
        fn step(&mut self, params: &Params, length: Duration) -> Result<Step, WorkloadError> {
            let clients = params.int("clients").unwrap();
            self.order.push(clients);
            if self.fail == Some(self.order.len()) {
                return Err(WorkloadError::Failed("the server fell over".into()));
            }
            let transactions = 100 * clients as u64;
            let rate = transactions as f64 / length.as_secs_f64();
            Ok(Step {
                transactions,
                elapsed: length,
                throughput: vec![rate; 3],
                latencies: vec![(1000, transactions)],
                ..Step::default()
            })
        }
        fn stop(&mut self) {}
    }

    fn course(
        fail: Option<usize>,
        patience: usize,
    ) -> (Result<Vec<Repetitions>, LabError>, Mock, Listener) {
        let mut workload = Mock {
            order: Vec::new(),
            fail,
        };
        let mut sink = Listener {
            patience,
            ..Listener::default()
        };
        let rounds = Rounds {
            extent: Extent::rounds(4),
            seed: 1,
            length: Duration::from_secs(1),
        };
        let result = rounds.run(&LOADED, &mut workload, &mut sink);
        (result, workload, sink)
    }

    #[test]
    fn every_step_is_done_once_a_round_in_an_order_that_changes() {
        let (result, workload, sink) = course(None, 100);
        let all = result.unwrap();
        let rounds: Vec<Vec<i64>> = workload.order.chunks(3).map(<[i64]>::to_vec).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 2, 4]);
        }
        assert!(rounds.iter().any(|round| *round != rounds[0]));
        assert_eq!(sink.rows.len(), 6);
        let four = sink
            .rows
            .iter()
            .find(|r| r.probe == "database.throughput" && r.params.int("clients") == Some(4))
            .unwrap();
        assert_eq!(
            (
                four.processes.len(),
                four.estimate.unwrap().value,
                four.outcome
            ),
            (4, 400.0, Outcome::Measured)
        );
        let measured: Vec<_> = all.iter().filter_map(Repetitions::measured).collect();
        assert_eq!(
            measured
                .iter()
                .map(|m| (m.transactions, m.seconds, m.under_way))
                .collect::<Vec<_>>(),
            [(400, 4.0, 1.0), (800, 4.0, 2.0), (1600, 4.0, 4.0)]
        );
    }

    #[test]
    fn a_failure_is_told_and_the_rest_is_done() {
        let (result, workload, sink) = course(Some(5), 100);
        result.unwrap();
        assert_eq!(workload.order.len(), 12);
        assert!(sink.warnings[0].contains("fell over"));
        let untrusted: Vec<&Measurement> = sink
            .rows
            .iter()
            .filter(|r| r.outcome == Outcome::Untrusted)
            .collect();
        assert_eq!(untrusted.len(), 2, "throughput and latency of one step");
        for row in untrusted {
            assert_eq!(
                row.reason.as_deref(),
                Some("a later round failed: the server fell over")
            );
            assert_eq!(
                row.processes.len(),
                3,
                "three good repetitions are enough for a figure"
            );
        }
        assert!(sink.rows.iter().all(|r| r.estimate.is_some()));
        assert!(matches!(
            course(Some(1), 100).0,
            Err(WorkloadError::Failed(_))
        ));
    }

    #[test]
    fn an_interrupt_keeps_what_there_is() {
        let (result, workload, sink) = course(None, 2);
        result.unwrap();
        assert_eq!((workload.order.len(), sink.rows.len()), (2, 4));
    }

    #[test]
    fn the_quick_profile_fits_into_its_time() {
        for steps in [1, 7, 20] {
            for seconds in [18, 60] {
                let left = Duration::from_secs(seconds);
                let plan = Plan::new(Profile::Quick, left, steps, Duration::ZERO);
                let cost = (plan.length + warm_up(plan.length) + STEP_OVERHEAD)
                    * (plan.rounds * steps) as u32;
                let least = (SHORTEST_STEP + warm_up(SHORTEST_STEP) + STEP_OVERHEAD)
                    * (LEAST_ROUNDS * steps) as u32;
                assert!((LEAST_ROUNDS..=7).contains(&plan.rounds), "{plan:?}");
                assert!(
                    cost <= left.max(least),
                    "{steps} steps in {seconds} s: {plan:?} takes {cost:?}"
                );
                assert!(
                    cost >= left * 9 / 10,
                    "{steps} steps in {seconds} s: {plan:?} leaves time over: {cost:?}"
                );
            }
        }
        assert_eq!(
            Plan::new(Profile::Quick, Duration::ZERO, 7, Duration::from_secs(1)).length,
            SHORTEST_STEP
        );
    }
}
