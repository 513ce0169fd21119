//! The web laboratory: one file, asked for over ever more connections.
//!
//! Steps (numbers of connections, with and without keep-alive) run in random order in rounds, so that drift of the host
//! hits all of them alike. A round of a step is one repetition: its throughput is one value of `web.throughput`, its
//! median latency one of `web.latency`. A run has one start of its server: with a start each round, rounds of nginx
//! vary more, and runs no less (`bench/RESULTS.md`). Where two runs take turns, each round is of another start, so that
//! what a start makes of a server is not taken for a difference of the sides.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fingerpost_measure::course::Extent;
use fingerpost_record::descriptor::{HostDependence, table};
use fingerpost_record::{Better, Params, Profile, Unit};
use fingerpost_report::lab::ServerWords;
use fingerpost_report::scaling;
use fingerpost_workloads::desktop::Desktop;
use fingerpost_workloads::web::settings::Settings;
use fingerpost_workloads::web::{self, WARM_UP, Web};
use fingerpost_workloads::{Step, Workload};

use crate::desktop::{self, Beside};
use crate::explained::{self, Course, explain};
use crate::lab::{by_profile, wanted};
use crate::loaded::{self, Loaded, Repetitions, Rounds};
use crate::rows::Definition;
use crate::sink::in_turn;
use crate::{Context, Lab, LabError, Setting, Sink, deciding};

pub(crate) const THROUGHPUT: Definition = Definition {
    table: &table::WEB,
    depends_on_host: Some(HostDependence::Server),
    probe: "web.throughput",
    ..Definition::RATE
};
pub(crate) const LATENCY: Definition = Definition {
    probe: "web.latency",
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    ..THROUGHPUT
};
/// This program, which has the desktop's tasks in a process of their own.
const OURSELVES: &str = "/proc/self/exe";
/// A desktop's tasks beside the web server.
static BESIDE: Beside = Beside {
    lab: "web",
    rows: Definition {
        table: &table::WEB,
        probe: "web.desktop",
        ..Definition::LATENCY
    },
    by: "connections",
    of_load: &["connections", "keepalive", "rate"],
    warm_up: |_| WARM_UP,
};
/// What a step needs besides its window: connecting, warming up, waiting for the last answers; in the first round a
/// trial more.
const OVERHEAD: Duration = Duration::from_millis(240);
/// Windows are not shorter than this, whatever the budget, nor longer than this.
const WINDOW: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(10));
/// The most that the quick profile spends.
const QUICK: Duration = Duration::from_secs(18);
/// How long a step with a number of requests may take.
const REQUESTS_LIMIT: Duration = Duration::from_secs(120);
/// Stalls of the client's own making that add up to more than this share of a round spoil it.
const OWN_STALLS: f64 = 0.05;

/// The most rounds, and the length of a window, for a time and a number of steps.
fn plan(profile: Profile, budget: Duration, steps: usize, seed: u64) -> Rounds {
    let rounds = by_profile(profile, [6, 9, 15]);
    let windows = rounds * steps.max(1) as u32;
    let overhead = OVERHEAD * (windows + steps as u32);
    let length = (budget.saturating_sub(overhead) / windows).clamp(WINDOW.0, WINDOW.1);
    Rounds {
        extent: Extent {
            least: 1,
            most: rounds as usize,
            budget: budget.mul_f64(1.1),
        },
        seed,
        length,
    }
}

/// Starts the server anew where the run takes turns with another one.
fn renew(web: &mut dyn Workload, sink: &dyn Sink) -> Result<(), LabError> {
    if sink.takes_turns() {
        web.renew().map(drop)
    } else {
        Ok(())
    }
}

/// What the lab has of its steps.
static LOADED: Loaded = Loaded {
    name: "web",
    throughput: &THROUGHPUT,
    latency: &LATENCY,
    by: "connections",
    counters,
    quantiles: &[
        ("p50_ns", 0.5),
        ("p75_ns", 0.75),
        ("p90_ns", 0.9),
        ("p99_ns", 0.99),
        ("p999_ns", 0.999),
        ("max_ns", 1.0),
    ],
    own: own_stalls,
    totals,
    errors: "error",
    server: "web server",
    renew,
    first_failure_ends: false,
};

/// What the client saw of itself in all rounds.
fn totals(rounds: &[Step]) -> Vec<(&'static str, f64)> {
    let clients = || rounds.iter().map(|s| &s.client);
    let stalls: Vec<_> = clients().flat_map(|c| &c.stalls).collect();
    vec![
        ("cpu.seconds", clients().map(|c| c.cpu_seconds).sum()),
        (
            "wall.seconds",
            rounds.iter().map(|s| s.elapsed.as_secs_f64()).sum(),
        ),
        (
            "requests",
            rounds.iter().map(|s| s.transactions).sum::<u64>() as f64,
        ),
        (
            "generators",
            clients().map(|c| c.generators).max().unwrap_or(0) as f64,
        ),
        ("stalls", stalls.len() as f64),
        ("stall.seconds", stalls.iter().map(|s| s.length_s).sum()),
        (
            "time_wait.sockets",
            clients().map(|c| c.time_wait).max().unwrap_or(0) as f64,
        ),
        (
            "listen.overflows",
            clients().map(|c| c.listen_overflows).sum::<u64>() as f64,
        ),
    ]
}

/// Why a round's figure is the client's own, where the client itself stalled for more than a small share of it.
fn own_stalls(round: &Step) -> Option<String> {
    let elapsed = round.elapsed.as_secs_f64();
    let own = round
        .client
        .stalls
        .iter()
        .filter(|s| s.why.is_generators_own());
    let (length, why) = own.fold((0.0, None), |(sum, why), s| {
        (sum + s.length_s, why.or(Some(&s.why)))
    });
    why.filter(|_| length > elapsed * OWN_STALLS)
        .map(|why| format!("the client stalled for {length:.2} s of {elapsed:.1} s: {why}"))
}

/// The client's account of one round, for the record.
fn counters(step: &Step) -> BTreeMap<String, f64> {
    let requests = step.transactions.max(1) as f64;
    BTreeMap::from([
        (
            "client_cpu_ns".to_owned(),
            step.client.cpu_seconds * 1e9 / requests,
        ),
        (
            "client_generators".to_owned(),
            step.client.generators as f64,
        ),
        ("client_stalls".to_owned(), step.client.stalls.len() as f64),
    ])
}

/// Connections that were turned away come again after one, three, seven seconds: that is in the latency, and should be
/// known.
fn told_overflows(rows: &[Repetitions]) -> Option<String> {
    let of = |row: &Repetitions| {
        row.steps
            .iter()
            .map(|s| s.client.listen_overflows)
            .sum::<u64>()
    };
    let worst = rows
        .iter()
        .max_by_key(|row| of(row))
        .filter(|row| of(row) > 0)?;
    let all: u64 = rows.iter().map(of).sum();
    Some(format!(
        "web: a full accept queue of this host turned {all} connections away, most of them with {}; the kernel tries \
         each again after 1 s or more; a longer queue (--set backlog=) or keepalive=on avoids it",
        worst.params
    ))
}

/// Whether a desktop's tasks are measured as well. A load of a number of requests ends when it ends, and so not with
/// them.
fn with_desktop(settings: &Params, profile: Profile) -> Result<bool, LabError> {
    let (given, requests) = (
        settings.get("desktop").is_some(),
        settings.get("requests").is_some(),
    );
    match wanted(settings, "desktop", profile)? {
        true if given && requests => Err(LabError::Setting(
            "desktop=on and requests exclude each other: the tasks need a load that lasts for a time".to_owned(),
        )),
        wanted => Ok(wanted && !requests),
    }
}

fn run(context: &mut Context) -> Result<(), LabError> {
    let settings = Settings::from_params(context.settings)?;
    let beyond_ours = context.allow_system_changes;
    let beside = with_desktop(context.settings, context.profile)?;
    let requests = settings.requests.is_some();
    let tables = settings.keep_alive.len();
    let steps = settings.connections.len() * tables;
    let enough = if context.profile == Profile::Quick {
        context.budget.min(QUICK)
    } else {
        context.budget
    };
    let stretch = desktop::length(enough);
    let enough = if beside {
        enough.saturating_sub(BESIDE.cost(stretch))
    } else {
        enough
    };
    // Before the workload, which has the scratch directory to itself from then on.
    let mut desktop = if beside {
        Some(Desktop::start(Path::new(OURSELVES), context.scratch)?)
    } else {
        None
    };
    let length = explained::pass(context.profile, enough, tables);
    let left = enough.saturating_sub(explained::reserve(length, tables, steps));
    let mut rounds = plan(context.profile, left, steps, context.seed);
    if requests {
        // A number of requests takes as long as it takes.
        rounds.length = REQUESTS_LIMIT;
    }
    let (profile, sink) = (context.profile, &mut *context.sink);
    let mut web = Web::new(
        settings,
        context.scratch,
        context.server_prefix,
        context.cpus.len(),
    );
    let result = web.start().and_then(|()| {
        let rows = rounds.run(&LOADED, &mut web, sink)?;
        let measured = loaded::tell(&rows, web.described(), sink);
        told_overflows(&rows)
            .iter()
            .for_each(|sentence| sink.warn(sentence));
        let length = if requests { REQUESTS_LIMIT } else { length };
        // There is no time for stretches in a number of requests.
        let experiments = if requests { 0 } else { deciding::most(profile) };
        let course = Course {
            by: "connections",
            query_cache: None,
            length,
            experiments,
            beyond_ours,
        };
        in_turn(sink, |sink| {
            explain(&mut web, &measured, &course, sink)?;
            if let Some(desktop) = &mut desktop {
                BESIDE.measure(desktop, &mut web, stretch, sink);
            }
            Ok(())
        })
    });
    web.stop();
    drop(web);
    let stopped = desktop.map_or(Ok(()), |desktop| desktop.stop(context.scratch));
    stopped.unwrap_or_else(|sentence| context.sink.warn(&sentence));
    result
}

/// Whether the settings can be.
fn check(settings: &Params, profile: Profile) -> Result<(), LabError> {
    with_desktop(settings, profile)?;
    Settings::from_params(settings).map(drop)
}

/// The web laboratory.
pub static LAB: Lab = Lab {
    name: "web",
    summary: "requests a second and latency of a static web server over 1 to 1000 connections",
    rows: &[
        (
            &THROUGHPUT,
            "answers that all connections together receive completely in a second",
        ),
        (
            &LATENCY,
            "from the sending of a request, or from when it was due, to the last byte of its answer",
        ),
        (&BESIDE.rows, desktop::MEANING),
    ],
    settings: &[
        Setting::new(
            "server",
            "embedded",
            "embedded, nginx or apache, started privately",
        )
        .one_of(&["embedded", "nginx", "apache"]),
        Setting::new(
            "mpm",
            "event",
            "Apache's way to work on connections: prefork, worker or event",
        )
        .one_of(&["prefork", "worker", "event"]),
        Setting::new(
            "url",
            "none",
            "http://127.0.0.1… of a server of your own; no other host can be loaded",
        ),
        Setting::new(
            "connections",
            "1,10,100,1000",
            "connections at a time, 1 to 1000, several with commas between",
        )
        .list(1, 1000),
        Setting::new(
            "keepalive",
            "on",
            "on, off (a connection per request) or both",
        )
        .one_of(&["on", "off", "both"]),
        Setting::new("size", "1K", "bytes of the file that is asked for").whole(0, 1 << 30),
        Setting::new(
            "rate",
            "none",
            "requests a second of an open loop; latency is told from the intended start too",
        )
        .real(0.1, 1e7),
        Setting::new(
            "requests",
            "none",
            "answers after which a step ends, as ab's -n",
        )
        .whole(1, 1_000_000_000),
        Setting::new(
            "workers",
            "half of the CPUs",
            "worker processes of a private server; of Apache, requests at a time",
        )
        .whole(1, 4096),
        Setting::new(
            "backend",
            "none",
            "embedded: nginx is a proxy before the embedded server, which has the file",
        )
        .one_of(&["none", "embedded"]),
        Setting::new(
            "backlog",
            "1024",
            "length of a private server's accept queue",
        )
        .whole(1, 65_535),
        Setting::new(
            "source",
            "one",
            "spread: connect from 127.0.0.1 to 127.0.0.100, which have local ports of their own",
        )
        .one_of(&["one", "spread"]),
        desktop::SETTING,
    ],
    // Settings that cannot be are told when the lab is run, as a usage error.
    missing: |settings| web::missing(&Settings::from_params(settings).ok()?),
    check,
    takes_turns: true,
    takes: |_| None,
    server: Some(ServerWords {
        called: "web server",
        curves: "Web server: scaling with connections",
        counted: "requests a second",
    }),
    analyses: &[&scaling::ANALYSIS, &desktop::shown::ANALYSIS],
    run,
};

#[cfg(test)]
mod tests;
