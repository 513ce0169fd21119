//! The web laboratory: one file, asked for over ever more connections.
//!
//! Steps (numbers of connections, with and without keep-alive) run in random order in rounds, so that drift of the host
//! hits all of them alike. A round of a step is one repetition: its throughput is one value of `web.throughput`, its
//! median latency one of `web.latency`. A run has one start of its server: with a start each round, rounds of nginx
//! vary more, and runs no less (`bench/RESULTS.md`). Where two runs take turns, each round is of another start, so that
//! what a start makes of a server is not taken for a difference of the sides.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use fingerpost_measure::course::{Extent, Interleaved, Order};
use fingerpost_measure::estimate;
use fingerpost_record::descriptor::{HostDependence, table};
use fingerpost_record::unstated::DESCRIBED;
use fingerpost_record::{Better, Measurement, Observation, Outcome, Params, Percentiles, Process, Profile};
use fingerpost_workloads::desktop::Desktop;
use fingerpost_workloads::histogram::Histogram;
use fingerpost_workloads::web::settings::Settings;
use fingerpost_workloads::web::{self, WARM_UP, Web};
use fingerpost_workloads::{Step, Workload, quantile};

use crate::desktop::{self, Beside};
use crate::explained::{self, Course, Measured, explain};
use crate::lab::{by_profile, not_started_again, wanted};
use crate::rows::{Definition, errors};
use crate::sink::in_turn;
use crate::{Context, Lab, LabError, Setting, Sink, deciding, stalls};

pub(crate) const THROUGHPUT: Definition = Definition {
    table: &table::WEB,
    depends_on_host: Some(HostDependence::Server),
    probe: "web.throughput",
    ..Definition::RATE
};
pub(crate) const LATENCY: Definition = Definition {
    table: &table::WEB,
    depends_on_host: Some(HostDependence::Server),
    probe: "web.latency",
    ..Definition::LATENCY
};
/// This program, which has the desktop's tasks in a process of their own.
const OURSELVES: &str = "/proc/self/exe";
/// A desktop's tasks beside the web server.
static BESIDE: Beside = Beside {
    lab: "web",
    rows: Definition { table: &table::WEB, probe: "web.desktop", ..Definition::LATENCY },
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
/// Stalls of the client's own making that add up to more than this share of a round spoil it; more than half of the
/// rounds make a figure untrusted.
const OWN_STALLS: f64 = 0.05;

/// Rounds, and the length of a window, for a time and a number of steps.
fn plan(profile: Profile, budget: Duration, steps: usize) -> (u32, Duration) {
    let rounds = by_profile(profile, [6, 9, 15]);
    let windows = rounds * steps.max(1) as u32;
    let overhead = OVERHEAD * (windows + steps as u32);
    (rounds, (budget.saturating_sub(overhead) / windows).clamp(WINDOW.0, WINDOW.1))
}

/// One step with what its rounds gave.
struct Row {
    params: Params,
    rounds: Vec<Step>,
    failure: Option<String>,
}

impl Row {
    /// Why the figure should not be relied on.
    fn doubt(&self) -> Option<String> {
        // One round of several in which something else took the client's CPU does not spoil a median.
        let saturated: Vec<&String> = self.rounds.iter().filter_map(|s| s.client.saturated.as_ref()).collect();
        if saturated.len() * 2 > self.rounds.len() {
            return saturated.first().map(|s| (*s).clone());
        }
        let errors = errors(&self.rounds);
        if !errors.is_empty() {
            let requests: u64 = self.rounds.iter().map(|s| s.transactions).sum();
            let kinds = errors.iter().map(|(kind, n)| format!("{kind} {n} times")).collect::<Vec<_>>().join(", ");
            return Some(format!("not every one of {requests} requests was answered as it should be: {kinds}"));
        }
        let stalled: Vec<String> = self.rounds.iter().filter_map(own_stalls).collect();
        if stalled.len() * 2 > self.rounds.len() { stalled.into_iter().next() } else { None }
    }

    /// The row of the throughput.
    fn throughput(&self) -> Measurement {
        let processes = self.rounds.iter().map(|step| {
            let value = step.transactions as f64 / step.elapsed.as_secs_f64();
            // A step of a few requests may be over before one stretch is.
            let samples = if step.throughput.is_empty() { vec![value] } else { step.throughput.clone() };
            let batch = step.transactions / step.throughput.len().max(1) as u64;
            Process { value: Some(value), samples, batch, counters: counters(step), ..Process::default() }
        });
        let processes: Vec<Process> = processes.collect();
        let samples: Vec<f64> = processes.iter().flat_map(|p| p.samples.iter().copied()).collect();
        let percentiles = estimate::percentiles(&samples, Better::Higher);
        self.measurement(&THROUGHPUT, self.params.clone(), processes, percentiles)
    }

    /// The row of the latency, told from the sending or from the intended start.
    fn latency(&self, params: Params, of: fn(&Step) -> &[(u64, u64)]) -> Measurement {
        let mut all = Histogram::default();
        self.rounds.iter().for_each(|step| all.add_counted(of(step)));
        let processes = self.rounds.iter().map(|step| {
            let value = quantile(of(step), 0.5).map(|ns| ns as f64);
            let mut counters = counters(step);
            for (name, q) in [
                ("p50_ns", 0.5),
                ("p75_ns", 0.75),
                ("p90_ns", 0.9),
                ("p99_ns", 0.99),
                ("p999_ns", 0.999),
                ("max_ns", 1.0),
            ] {
                counters.extend(quantile(of(step), q).map(|ns| (name.to_owned(), ns as f64)));
            }
            Process {
                value,
                samples: value.into_iter().collect(),
                batch: step.transactions,
                counters,
                ..Process::default()
            }
        });
        let processes = processes.collect();
        let at = |q| all.quantile(q).map(|ns| ns as f64);
        let percentiles = at(0.5).zip(at(0.9)).zip(at(0.99)).map(|((p50, p90), p99)| Percentiles { p50, p90, p99 });
        self.measurement(&LATENCY, params, processes, percentiles)
    }

    fn measurement(
        &self,
        of: &Definition,
        params: Params,
        processes: Vec<Process>,
        percentiles: Option<Percentiles>,
    ) -> Measurement {
        let values: Vec<f64> = processes.iter().filter_map(|p| p.value).collect();
        let estimate = estimate::across_processes(&values);
        let (outcome, reason) = match (estimate.is_some(), &self.failure, self.doubt()) {
            (false, failure, _) => {
                (Outcome::Failed, Some(failure.clone().unwrap_or_else(|| "no request was answered".to_owned())))
            }
            (true, _, Some(doubt)) => (Outcome::Untrusted, Some(doubt)),
            (true, Some(failure), None) => (Outcome::Untrusted, Some(format!("a later round failed: {failure}"))),
            (true, None, None) => (Outcome::Measured, None),
        };
        Measurement { reason, estimate, percentiles, processes, ..of.without_figure(params, outcome, String::new()) }
    }

    /// Every row of this step: in an open loop the latency is there twice.
    fn measurements(&self) -> Vec<Measurement> {
        let mut rows = vec![self.throughput()];
        if self.rounds.iter().any(|s| !s.intended.is_empty()) {
            rows.push(self.latency(self.params.clone().with("from", "sent"), |s| &s.latencies));
            rows.push(self.latency(self.params.clone().with("from", "intended"), |s| &s.intended));
        } else {
            rows.push(self.latency(self.params.clone(), |s| &s.latencies));
        }
        rows
    }

    /// All rounds together, for explaining; nothing when there was none. In an open loop the transactions under way are
    /// their rate times their mean time (Little's law).
    fn measured(&self, open: bool) -> Option<Measured> {
        let seconds: f64 = self.rounds.iter().map(|s| s.elapsed.as_secs_f64()).sum();
        let spent: f64 =
            self.rounds.iter().flat_map(|s| &s.latencies).map(|&(ns, n)| ns as f64 * n as f64 * 1e-9).sum();
        let transactions = self.rounds.iter().map(|s| s.transactions).sum();
        let connections = self.params.int("connections")? as f64;
        let under_way = if open { (spent / seconds).min(connections) } else { connections };
        (seconds > 0.0).then(|| Measured {
            params: self.params.clone(),
            transactions,
            seconds,
            under_way,
            doubt: self.doubt(),
        })
    }

    /// What the client saw of itself; `server` is what that called itself.
    fn observation(&self, server: &str) -> Observation {
        let clients = || self.rounds.iter().map(|s| &s.client);
        let elapsed: f64 = self.rounds.iter().map(|s| s.elapsed.as_secs_f64()).sum();
        let cpu: f64 = clients().map(|c| c.cpu_seconds).sum();
        let stalls: Vec<_> = clients().flat_map(|c| &c.stalls).collect();
        let mut totals = BTreeMap::from([
            ("cpu.seconds".to_owned(), cpu),
            ("wall.seconds".to_owned(), elapsed),
            ("requests".to_owned(), self.rounds.iter().map(|s| s.transactions).sum::<u64>() as f64),
            ("generators".to_owned(), clients().map(|c| c.generators).max().unwrap_or(0) as f64),
            ("stalls".to_owned(), stalls.len() as f64),
            ("stall.seconds".to_owned(), stalls.iter().map(|s| s.length_s).sum()),
            ("time_wait.sockets".to_owned(), clients().map(|c| c.time_wait).max().unwrap_or(0) as f64),
            ("listen.overflows".to_owned(), clients().map(|c| c.listen_overflows).sum::<u64>() as f64),
        ]);
        totals.extend(errors(&self.rounds).into_iter().map(|(kind, n)| (format!("error.{kind}"), n as f64)));
        Observation {
            workload: "web".to_owned(),
            params: self.params.clone(),
            observer: "client".to_owned(),
            source: if server.is_empty() {
                "the load generator’s own account".to_owned()
            } else {
                format!("{DESCRIBED}{server}")
            },
            series: stalls::series(&self.rounds),
            totals,
            ..Observation::default()
        }
    }
}

/// Why a round's figure is the client's own, where the client itself stalled for more than a small share of it.
fn own_stalls(round: &Step) -> Option<String> {
    let elapsed = round.elapsed.as_secs_f64();
    let own = round.client.stalls.iter().filter(|s| s.why.is_generators_own());
    let (length, why) = own.fold((0.0, None), |(sum, why), s| (sum + s.length_s, why.or(Some(&s.why))));
    why.filter(|_| length > elapsed * OWN_STALLS)
        .map(|why| format!("the client stalled for {length:.2} s of {elapsed:.1} s: {why}"))
}

/// The client's account of one round, for the record.
fn counters(step: &Step) -> BTreeMap<String, f64> {
    let requests = step.transactions.max(1) as f64;
    BTreeMap::from([
        ("client_cpu_ns".to_owned(), step.client.cpu_seconds * 1e9 / requests),
        ("client_generators".to_owned(), step.client.generators as f64),
        ("client_stalls".to_owned(), step.client.stalls.len() as f64),
    ])
}

/// Connections that were turned away come again after one, three, seven seconds: that is in the latency, and should be
/// known.
fn told_overflows(rows: &[Row]) -> Option<String> {
    let of = |row: &Row| row.rounds.iter().map(|s| s.client.listen_overflows).sum::<u64>();
    let worst = rows.iter().max_by_key(|row| of(row)).filter(|row| of(row) > 0)?;
    let all: u64 = rows.iter().map(of).sum();
    Some(format!(
        "web: a full accept queue of this host turned {all} connections away, most of them with {}; the kernel tries \
         each again after 1 s or more; a longer queue (--set backlog=) or keepalive=on avoids it",
        worst.params
    ))
}

/// All rounds of all steps.
fn course(web: &mut dyn Workload, context: &mut Conduct) -> Vec<Row> {
    let mut rows: Vec<Row> =
        web.steps().into_iter().map(|params| Row { params, rounds: Vec::new(), failure: None }).collect();
    let (rounds, window) = plan(context.profile, context.budget, rows.len());
    let window = if context.requests { REQUESTS_LIMIT } else { window };
    // Another round only when it fits; a number of requests takes as long as it takes.
    let extent = Extent { least: 1, most: rounds as usize, budget: context.budget.mul_f64(1.1) };
    let mut course = Interleaved::new(rows.len(), Order::seeded(context.seed), extent);
    let began = Instant::now();
    let spent = |sink: &dyn Sink| began.elapsed().saturating_sub(sink.waited());
    while let Some(turn) = course.next_within(spent(context.sink), context.sink.interrupted()) {
        if turn.first
            && turn.round > 0
            && context.sink.takes_turns()
            && let Err(error) = web.renew()
        {
            context.sink.warn(&not_started_again("web server", turn.round + 1, &error));
            break;
        }
        let row = &mut rows[turn.step];
        context.sink.progress(&format!("web {}", row.params), 0.7 * turn.done / f64::from(rounds));
        match in_turn(context.sink, |_| web.step(&row.params, window)) {
            Ok(step) => row.rounds.push(step),
            // A step may fail once because the machine was busy; one that only fails is given up with the second time,
            // for every attempt takes seconds.
            Err(e) => {
                if row.failure.replace(e.to_string()).is_some() && row.rounds.is_empty() {
                    course.leave_out(turn.step);
                }
            }
        }
        row.measurements().into_iter().for_each(|m| context.sink.measurement(m));
    }
    rows
}

/// What the course needs of the context, while the workload has the scratch directory.
struct Conduct<'a> {
    profile: Profile,
    budget: Duration,
    seed: u64,
    requests: bool,
    sink: &'a mut dyn Sink,
}

/// Whether a desktop's tasks are measured as well. A load of a number of requests ends when it ends, and so not with
/// them.
fn with_desktop(settings: &Params, profile: Profile) -> Result<bool, LabError> {
    let (given, requests) = (settings.get("desktop").is_some(), settings.get("requests").is_some());
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
    let (open, requests) = (settings.rate.is_some(), settings.requests.is_some());
    let tables = settings.keep_alive.len();
    let steps = settings.connections.len() * tables;
    let enough = if context.profile == Profile::Quick { context.budget.min(QUICK) } else { context.budget };
    let stretch = desktop::length(enough);
    let enough = if beside { enough.saturating_sub(BESIDE.cost(stretch)) } else { enough };
    // Before the workload, which has the scratch directory to itself from then on.
    let mut desktop = if beside { Some(Desktop::start(Path::new(OURSELVES), context.scratch)?) } else { None };
    let length = explained::pass(context.profile, enough, tables);
    let mut conduct = Conduct {
        profile: context.profile,
        budget: enough.saturating_sub(explained::reserve(length, tables, steps)),
        seed: context.seed,
        requests,
        sink: &mut *context.sink,
    };
    let mut web = Web::new(settings, context.scratch, context.server_prefix, context.cpus.len());
    let result = web.start().and_then(|()| {
        let rows = course(&mut web, &mut conduct);
        let accounts = rows.iter().filter(|row| !row.rounds.is_empty()).map(|row| row.observation(web.described()));
        accounts.for_each(|account| conduct.sink.observation(account));
        let stalls = stalls::told("web", rows.iter().map(|row| (&row.params, &row.rounds[..])));
        stalls.iter().chain(&told_overflows(&rows)).for_each(|sentence| conduct.sink.warn(sentence));
        let measured: Vec<Measured> = rows.iter().filter_map(|row| row.measured(open)).collect();
        let length = if requests { REQUESTS_LIMIT } else { length };
        // A number of requests takes as long as it takes: there is no time for stretches.
        let experiments = if requests { 0 } else { deciding::most(conduct.profile) };
        let course = Course { by: "connections", query_cache: None, length, experiments, beyond_ours };
        in_turn(conduct.sink, |sink| {
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

fn missing(settings: &Params) -> Option<String> {
    // Settings that cannot be are told when the lab is run, as a usage error.
    web::missing(&Settings::from_params(settings).ok()?)
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
        (&THROUGHPUT, "answers that all connections together receive completely in a second"),
        (&LATENCY, "from the sending of a request, or from when it was due, to the last byte of its answer"),
        (&BESIDE.rows, desktop::MEANING),
    ],
    settings: &[
        Setting::new("server", "embedded", "embedded, nginx or apache, started privately")
            .one_of(&["embedded", "nginx", "apache"]),
        Setting::new("mpm", "event", "Apache's way to work on connections: prefork, worker or event")
            .one_of(&["prefork", "worker", "event"]),
        Setting::new("url", "none", "http://127.0.0.1… of a server of your own; no other host can be loaded"),
        Setting::new("connections", "1,10,100,1000", "connections at a time, 1 to 1000, several with commas between"),
        Setting::new("keepalive", "on", "on, off (a connection per request) or both").one_of(&["on", "off", "both"]),
        Setting::new("size", "1K", "bytes of the file that is asked for"),
        Setting::new("rate", "none", "requests a second of an open loop; latency is told from the intended start too"),
        Setting::new("requests", "none", "answers after which a step ends, as ab's -n"),
        Setting::new(
            "workers",
            "half of the CPUs",
            "worker processes of a private server; of Apache, requests at a time",
        ),
        Setting::new("backend", "none", "embedded: nginx is a proxy before the embedded server, which has the file")
            .one_of(&["none", "embedded"]),
        Setting::new("backlog", "1024", "length of a private server's accept queue"),
        Setting::new(
            "source",
            "one",
            "spread: connect from 127.0.0.1 to 127.0.0.100, which have local ports of their own",
        )
        .one_of(&["one", "spread"]),
        desktop::SETTING,
    ],
    missing,
    check,
    takes_turns: true,
    takes: |_| None,
    run,
};

#[cfg(test)]
mod tests;
