//! What No More Apple Mysteries suspects below MySQL, what it expects of others, and what it advises.

use fingerpost_record::cause::id;
use fingerpost_record::{Metric, Observation, Outcome, Params, Process, Run, Status, Unit};
use fingerpost_report::evidence::{Whose, words};

use super::conclusion::{About, Conclusion, Here, mysteries};
use super::judged::Judged;
use super::primitives::SIGNALING;
use super::servers::{HEEL, MYSQL, SEARCH, SERVER};
use super::source::{at_clients, g5, ratio, row, total, value};
use super::{own, source};
use fingerpost_compare::ratio::Level;

const CACHED: About = mysteries(&["mysql-query-cache"]);
const TWO_SYSTEMS: &str = "it is about two systems on one machine";

const AFFECT: &str = "Does it affect you?";

/// A part of a time from which on it is said to matter.
const MATTERS: f64 = 0.05;
/// What the article's “substantial portion” is at the least.
const SUBSTANTIAL: f64 = 0.25;
/// The least CPU time of which a share is told: the kernel counts in ticks of a hundredth of a second, and one of them
/// is no share.
const ENOUGH_CPU_SECONDS: f64 = 0.2;
/// A mutex whose waiters are switched more often than this, for each time that it is taken, is not taken “without
/// excessive context switches”.
const FEW_SWITCHES: f64 = 0.1;

/// The suspicions, expectations and advice about servers.
pub static LIST: &[Conclusion] = &[
    MYSQL.at(SERVER).conclusion(
        "five_clients_and_ten",
        "With five clients the same hardware already serves several times more under Linux, and with ten the gap is \
         wider still.",
        || {
            let c = g5();
            let [five, ten] = [5, 10].map(|n| value(at_clients(&c, n)));
            Judged::by(five > 3.0 && ten > five, format!("{five:.1} times with five clients, {ten:.1} times with ten"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at(SERVER).conclusion(
        "settles_at_fifty",
        "After its collapse Mac OS X stays at about 50 queries a second, whatever the number of clients.",
        || {
            let settled: Vec<f64> = g5().curves[0].points.iter().filter(|p| p.0 >= 20).map(|p| p.2).collect();
            let figure = settled.iter().map(|v| format!("{v:.0}/s")).collect::<Vec<_>>().join(", ");
            Judged::by(
                settled.iter().all(|v| (v / 50.0 - 1.0).abs() < 0.1),
                format!("{figure} with 20, 35 and 50 clients"),
            )
        },
        Here::Never("it is a figure of that one system"),
    ),
    MYSQL.at(HEEL).conclusion(
        "two_clients_leave_room",
        "Under Linux two clients do not use both processors up: with more of them the throughput goes on growing.",
        || {
            let points = &g5().curves[0].points;
            Judged::by(
                points[2].1 > points[1].1,
                format!("{:.0}/s with two clients, {:.0}/s with five", points[1].1, points[2].1),
            )
        },
        Here::By(more_than_two, "database --set engine=mariadb --set storage=myisam"),
    ),
    MYSQL.at(HEEL).conclusion(
        "threads_add_overhead",
        "Each further client makes a query more expensive under Mac OS X, so threads, or what they share in the \
         kernel, cost something by themselves.",
        || {
            let c = g5();
            let evidence = c.causes.iter().find(|f| f.cause == id::KERNEL_SCALING && f.status == Status::Likely);
            let longer = evidence.and_then(|f| f.evidence.iter().find(|fact| fact.metric == Metric::LongerByClients));
            let figure = longer.map_or("kernel.scaling is not likely".into(), |fact| words(fact, Whose::default()));
            Judged::by(longer.is_some(), figure)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    mysteries(&["lmbench-syscall-signal", "mysql-scaling"]).at(SIGNALING).conclusion(
        "signals_add_to_it",
        "Slow signals likely have a part in what makes MySQL slow.",
        || Judged::not(&needed("signal.handle", "signals")),
        Here::Never(TWO_SYSTEMS),
    ),
    mysteries(&["lmbench-ipc", "mysql-scaling"]).at(SIGNALING).conclusion(
        "latency_may_matter",
        "The network's latency may have an influence on the database, though its bandwidth has none.",
        || Judged::not(&needed("ipc.tcp", "round trips over TCP")),
        Here::By(latency_here, "database ipc.tcp --set engine=mariadb --set storage=myisam --set clients=1"),
    ),
    mysteries(&["lmbench-ipc"]).at(SIGNALING).conclusion(
        "latency_predicts_lock_manager",
        "TCP's latency predicts how fast the lock manager of a distributed database is (a study that the article \
         cites).",
        || Judged::not("it is cited: the article has no figure of it"),
        Here::Never("no distributed database is measured here"),
    ),
    mysteries(&["lmbench-ipc"]).at(HEEL).conclusion(
        "connecting_shows_threads",
        "MySQL makes a thread for each connection, so slow connections may come from slow threads.",
        || Judged::not("the document has no row of threads"),
        Here::By(thread_beside_connection, "thread.create ipc.tcp_connect"),
    ),
    MYSQL.at(HEEL).conclusion(
        "mutexes_without_switches",
        "MySQL needs mutexes that are taken and released often without many context switches; otherwise more \
         processors make it slower (its manual).",
        || Judged::not("it is quoted from a manual: switches were not counted"),
        Here::By(switches_of_a_mutex, "sync.mutex_contended"),
    ),
    CACHED.at(SEARCH).conclusion(
        "client_machines_are_the_limit",
        "With the query cache a client machine gives no more than some 1000 queries a second whatever its processor, \
         so the clients are the limit.",
        || {
            let [each, machines] = ["per_client_machine.queries_s", "client_machines.most"]
                .map(|name| total("opteron-850-linux", &format!("query_cache.{name}")));
            let peak = source::cached("opteron-850-linux");
            let figure =
                format!("{peak:.0}/s from {machines:.0} machines is {:.0}/s of each, of {each:.0}/s", peak / machines);
            Judged::by(peak <= machines * each && peak > 0.8 * machines * each, figure)
        },
        Here::Never("the published load generator and its system are not here"),
    ),
    CACHED.at(SEARCH).conclusion(
        "cache_is_the_best_case",
        "The figures with the query cache are the best case: queries that are repeated less often get far fewer.",
        || Judged::not("the document has no figure with other queries"),
        Here::Never("the mix of queries here repeats one share of them"),
    ),
    MYSQL.at(AFFECT).conclusion(
        "linux_for_mysql",
        "Who runs MySQL on this hardware gets up to eight times more from it with Linux.",
        || {
            let c = g5();
            let most = [1, 2, 5, 10, 20, 35, 50].map(|n| value(at_clients(&c, n))).into_iter().fold(0.0, f64::max);
            Judged::by(most >= 8.0, format!("up to {most:.1} times"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    mysteries(&["mysql-scaling", "apache"]).at("The Usual Suspects").conclusion(
        "other_servers_too",
        "Other servers will be slow as well, for servers spend a substantial part of their time in the kernel and in \
         TCP.",
        || {
            let c = g5();
            let slower = c.rows.iter().filter(|r| r.probe == "web.throughput").map(|r| format!("{:.1}", value(r)));
            let slower = slower.collect::<Vec<_>>().join(" and ");
            let told = format!("Apache is {slower} times slower, for which its load generator may be the cause");
            Judged::not(&format!("it is called speculation; {told}"))
        },
        Here::By(in_the_kernel, "web"),
    ),
];

/// How many of an operation, which Mac OS X is slower at, one query would need for them to be what it takes longer with
/// 50 clients.
fn needed(probe: &str, words: &str) -> String {
    let c = g5();
    let single = row(&c, probe);
    let more = single.new.value - single.base.value;
    let last = at_clients(&c, 50);
    let longer = 1e9 / last.new.value - 1e9 / last.base.value;
    format!(
        "{words} were not counted; one is {:.1} times as expensive, {} more, and a query with 50 clients takes {} \
         longer: {:.0} of them would be that",
        ratio(&c, probe),
        Unit::Nanoseconds.format(more),
        Unit::Nanoseconds.format(longer),
        longer / more
    )
}

fn more_than_two(run: &Run) -> Option<Judged> {
    let clients = own::clients(run)?;
    let more = clients
        .scaling
        .rows
        .iter()
        .filter(|r| r.clients > 2)
        .max_by(|a, b| a.scaling.total_cmp(&b.scaling))?
        .clients;
    let (gain, [two, most]) = (
        clients.gain(2, more)?,
        [clients.share_of_one(2)?.1, clients.share_of_one(more)?.1],
    );
    let interval = own::from_to(&gain, |t| format!("{t:.2}"));
    let figure = format!(
        "two clients get {two} of one client's, {more} get {most}: {:.2} times{interval}",
        gain.value
    );
    Some(Judged::at_least(&gain, 1.0 + MATTERS, figure))
}

/// A round trip over TCP beside what one query takes with one client.
fn latency_here(run: &Run) -> Option<Judged> {
    let (none, clients) = (Params::new(), own::clients(run)?);
    let trip = own::best(run, "ipc.tcp", &none)?;
    // The time of a query in nanoseconds is a billion divided by their rate.
    let rate = clients.level(1)?;
    let query = Level {
        log: 1e9_f64.ln() - rate.log,
        ..rate
    };
    let share = own::times(query, own::level(run, trip)?);
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let figure = format!(
        "a round trip takes {}, a transaction of one client {}: {} %{}",
        Unit::Nanoseconds.format(trip.estimate?.value),
        Unit::Nanoseconds.format(query.log.exp()),
        percent(share.value),
        own::from_to(&share, percent)
    );
    Some(Judged::at_least(&share, MATTERS, figure))
}

fn thread_beside_connection(run: &Run) -> Option<Judged> {
    let (share, figure) = own::thread_beside(
        run,
        "ipc.tcp_connect",
        &Params::new(),
        "a connection over TCP",
    )?;
    Some(Judged::at_least(&share, MATTERS, figure))
}

fn switches_of_a_mutex(run: &Run) -> Option<Judged> {
    let found = run
        .measurements
        .iter()
        .filter(|m| m.probe == "sync.mutex_contended")
        .filter_map(|m| {
            let switches = |p: &Process| {
                Some(
                    p.counters.get("switches_voluntary")?
                        + p.counters.get("switches_involuntary")?,
                )
            };
            let each: Vec<f64> = m.processes.iter().filter_map(switches).collect();
            let switches = fingerpost_measure::estimate::across_processes(&each)?.value;
            Some((
                m.outcome == Outcome::Measured,
                m.params.int("threads")?,
                switches,
                m.estimate?.value,
            ))
        });
    // A row to be trusted comes before one that is not.
    let (_, threads, switches, ns) =
        found.max_by(|a, b| a.0.cmp(&b.0).then(a.2.total_cmp(&b.2)))?;
    let switched = if switches < 0.0005 {
        "fewer than 0.001".to_owned()
    } else {
        format!("{switches:.3}")
    };
    let figure = format!(
        "{switched} switches for each time that one of {threads} threads takes a mutex that all want, {} each",
        Unit::Nanoseconds.format(ns)
    );
    Some(Judged::by(switches < FEW_SWITCHES, figure))
}

/// The servers' own CPU time: how much of it is in the kernel.
fn in_the_kernel(run: &Run) -> Option<Judged> {
    let of = run
        .observations
        .iter()
        .filter(|o| ["web", "database"].contains(&o.workload.as_str()) && o.observer == "threads");
    let seconds = |o: &Observation| {
        Some((
            *o.totals.get("server.kernel.seconds")?,
            *o.totals.get("server.user.seconds")?,
        ))
    };
    let (kernel, user) = of
        .filter_map(seconds)
        .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let whole = kernel + user;
    let figure = format!(
        "of {whole:.2} s that the servers were on a CPU, {:.0} % was in the kernel",
        100.0 * kernel / whole
    );
    match whole {
        none if none <= 0.0 => None,
        little if little < ENOUGH_CPU_SECONDS => {
            Some(Judged::open(format!("{figure}: too little to tell")))
        }
        _ => Some(Judged::by(kernel >= SUBSTANTIAL * whole, figure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::Answer;
    use fingerpost_record::{Observation, fixture};

    /// A run whose web server was on a CPU for so long.
    fn with_times(kernel: f64, user: f64) -> Run {
        let totals = [
            ("server.kernel.seconds".to_owned(), kernel),
            ("server.user.seconds".to_owned(), user),
        ]
        .into();
        let threads = Observation {
            workload: "web".into(),
            observer: "threads".into(),
            totals,
            ..Observation::default()
        };
        Run {
            observations: vec![threads],
            ..fixture::run()
        }
    }

    #[test]
    fn a_tick_of_cpu_time_judges_no_share() {
        let answer =
            |kernel, user| in_the_kernel(&with_times(kernel, user)).map(|judged| judged.answer);
        assert_eq!(answer(0.0, 0.01), Some(Answer::NotResolved), "one tick");
        assert_eq!(answer(0.13, 0.08), Some(Answer::True));
        assert_eq!(answer(0.1, 0.9), Some(Answer::False));
        assert_eq!(answer(0.0, 0.0), None, "it was not on a CPU at all");
    }
}
