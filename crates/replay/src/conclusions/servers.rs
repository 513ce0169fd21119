//! MySQL and Apache in No More Apple Mysteries.

use fingerpost_record::cause::id;
use fingerpost_record::text::counted;
use fingerpost_record::{Budget, Estimate, Measurement, Observation, Params, Run, Status};

use super::conclusion::{About, Conclusion, Here, mysteries};
use super::judged::{Answer, Judged};
use super::source::{at_clients, between, g5, ratio, row, said, status, total, value};
use super::{own, source};
use fingerpost_compare::operating_system;
use fingerpost_compare::verdict::Verdict;

pub(super) const MYSQL: About = mysteries(&["mysql-scaling"]);
const APACHE: About = mysteries(&["apache"]);
const DATABASE: &str = "database --set engine=mariadb --set storage=myisam";
const TWO_SYSTEMS: &str = "it is about two systems on one machine; compare a run of each";
const NO_FIGURE: &str = "the document gives no figure for it";

pub(super) const SERVER: &str = "The Xserve Server Platform";
pub(super) const SEARCH: &str = "Bottleneck Search";
pub(super) const HEEL: &str = "Mac OS X Achilles Heel";
const AFTER: &str = "The Aftermath of the First Article";

/// The conclusions about servers.
pub static LIST: &[Conclusion] = &[
    mysteries(&["mysql-scaling", "apache", "lmbench-process", "lmbench-syscall-signal", "lmbench-ipc"])
        .at(SERVER)
        .conclusion(
            "os_not_cpu",
            "The same hardware serves far more under Linux: the operating system holds MySQL back, not the processor.",
            os_not_cpu,
            Here::Never(TWO_SYSTEMS),
        ),
    MYSQL.at(SERVER).conclusion(
        "mysql_collapses",
        "With more than two clients the throughput falls far below that of one client (Mac OS X) and stays there.",
        || {
            let c = g5();
            let curve = &c.curves[0];
            let Some(from) = curve.new_collapses_from else { return Judged::by(false, "it does not collapse".into()) };
            Judged::by(from == 5, format!("collapses from {from} clients on, to {:.0}/s", curve.points[6].2))
        },
        Here::By(collapses, DATABASE),
    ),
    MYSQL.at(HEEL).conclusion(
        "linux_does_not_collapse",
        "Under Linux more clients do little harm: the peak is reached and then left only slowly, and 50 clients still \
         get four fifths more than one.",
        || {
            let curve = &g5().curves[0];
            let gain = curve.points[6].1 / curve.points[0].1;
            let figure = format!("50 clients get {:.0} % of one client's", gain * 100.0);
            Judged::by(curve.base_collapses_from.is_none() && gain > FOUR_FIFTHS_MORE, figure)
        },
        Here::By(holds_its_peak, DATABASE),
    ),
    MYSQL.at(HEEL).conclusion(
        "second_client_helps",
        "A second client raises the throughput, because the second processor joins in; Mac OS X gains about as much by \
         it as Linux.",
        || {
            let curve = &g5().curves[0];
            let [linux, mac] = [curve.points[1].1 / curve.points[0].1, curve.points[1].2 / curve.points[0].2];
            Judged::by(
                mac > 1.3 && mac / linux > 0.9,
                format!("{:.0} % against {:.0} % of one client's", mac * 100.0, linux * 100.0),
            )
        },
        Here::By(second_client, DATABASE),
    ),
    MYSQL.at(HEEL).conclusion(
        "mediocre_with_few",
        "With one or two clients Mac OS X is behind, but not badly.",
        || {
            let c = g5();
            let few = [1, 2].map(|n| at_clients(&c, n));
            let holds = few.iter().all(|r| r.verdict == Verdict::Slower && value(r) < 1.3);
            Judged::by(holds, format!("{:.2} and {:.2} times slower than Linux", value(few[0]), value(few[1])))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at(HEEL).conclusion(
        "five_clients_sixty_percent",
        "Five clients together get only about 60 % of what one gets (Mac OS X).",
        || share_of_one(2, 0.60),
        Here::Never("it is a figure of that one system"),
    ),
    MYSQL.at(HEEL).conclusion(
        "fifty_clients_a_quarter",
        "Fifty clients get about a quarter of what one gets (Mac OS X).",
        || share_of_one(6, 0.25),
        Here::Never("it is a figure of that one system"),
    ),
    MYSQL.at("Low level benchmarking on Mac OS X and Linux").conclusion(
        "five_to_eight_times",
        "From five clients on MySQL is five to eight times slower under Mac OS X than under Linux on the same \
         hardware.",
        || {
            let c = g5();
            let ratios = [5, 10, 20, 35, 50].map(|n| value(at_clients(&c, n)));
            let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / 5.0).exp();
            let [least, most] =
                [ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max)];
            let figure = format!("{least:.1} to {most:.1} times by the number of clients, {mean:.1} in the middle");
            Judged::by((5.0..8.0).contains(&mean), figure)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at("Introduction").conclusion(
        "opteron_far_ahead",
        "The Opteron under Linux serves many times more than the G5 under Mac OS X, up to ten times in the first \
         article.",
        || {
            let c = between("opteron-850-linux", "g5-2.7-darwin");
            let most = [5, 10, 20, 35, 50].map(|n| value(at_clients(&c, n))).into_iter().fold(0.0, f64::max);
            Judged::by(most >= 10.0, format!("up to {most:.1} times in this article's table"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at(HEEL).conclusion(
        "g5_slower_than_opteron",
        "Under Linux the G5 is somewhat slower than the Opteron at this work of integers, and peaks with fewer \
         clients.",
        || {
            let c = between("opteron-850-linux", "g5-2.5-linux");
            let peak = |of: fn(&(i64, f64, f64)) -> f64| {
                c.curves[0].points.iter().max_by(|a, b| of(a).total_cmp(&of(b))).copied()
            };
            let (Some(opteron), Some(g5)) = (peak(|p| p.1), peak(|p| p.2)) else { return Judged::not(NO_FIGURE) };
            let figure = format!("{:.0}/s at {} clients against {:.0}/s at {}", g5.2, g5.0, opteron.1, opteron.0);
            Judged::by(g5.2 < opteron.1 && g5.0 < opteron.0, figure)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at(SERVER).conclusion(
        "cpu_busy_under_mysql",
        "Under MySQL the processors were nearly used up, unlike under Apache.",
        || cleared(id::CLIENT_SATURATED),
        Here::By(busy_here, DATABASE),
    ),
    MYSQL.at(SEARCH).conclusion(
        "network_not_the_limit",
        "The network is no limit: even the fastest system's peak is a small part of the link.",
        || {
            let [peak, link] = ["net.out.peak.mbit_s", "net.link.mbit_s"].map(|n| total("opteron-850-linux", n));
            let found =
                said(&g5(), id::NETWORK_SHAPING).map(|(status, why)| (status, format!("{why}; the peak is {peak:.0}")));
            Judged::by_cause(found, |status, _| status == Status::RuledOut && peak < 0.5 * link)
        },
        Here::Never("client and server are on one machine here"),
    ),
    MYSQL.at(SEARCH).conclusion(
        "flushing_not_the_cause",
        "Flushing files more thoroughly does not explain it: hardly anything is written while the queries run, and \
         MyISAM makes no transactions.",
        || cleared(id::STORAGE_DURABILITY),
        Here::By(writing_here, DATABASE),
    ),
    MYSQL.at(AFTER).conclusion(
        "settings_not_the_cause",
        "Settings of MySQL are not the cause: the one that differs out of the box (skip-locking) gives a few per cent.",
        || {
            let [low, high] =
                ["low", "high"].map(|end| total("g5-2.7-darwin", &format!("skip_locking.gain.{end}.percent")));
            let most = value(at_clients(&g5(), 50));
            Judged::by(
                high < 5.0,
                format!("skip-locking gives {low:.0} to {high:.0} %, and Linux is up to {most:.1} times faster"),
            )
        },
        Here::By(locking_here, "database --set engine=mariadb --set storage=myisam --set server.external_locking=1"),
    ),
    // Here it is what the cache gains, which takes the figures without it as well.
    mysteries(&["mysql-query-cache", "mysql-scaling"]).at(SEARCH).conclusion(
        "query_cache_widens_the_gap",
        "With answers from the query cache the Linux machines serve several times more, limited by the clients, and \
         Mac OS X does not keep up.",
        query_cache,
        Here::By(
            query_cache_here,
            "database --set engine=mariadb --set storage=myisam --set query_cache=on, and again with query_cache=off",
        ),
    ),
    mysteries(&["mysql-scaling", "lmbench-ipc"]).at("The Usual Suspects").conclusion(
        "threads_or_locks_suspected",
        "What remains suspected is below the program: latency of TCP, the implementation of threads, and the kernel's \
         coarse locks.",
        || {
            let c = g5();
            let found = [status(&c, id::NETWORK_STACK), status(&c, id::KERNEL_SCALING)];
            let figure = "network.stack is confirmed by its own rows, kernel.scaling likely: no row proves it".to_owned();
            Judged::by(found == [Some(Status::Confirmed), Some(Status::Likely)], figure)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at("Does it affect you?").conclusion(
        "import_slower",
        "Importing a dump takes up to eight times longer under Mac OS X, which points at its file system.",
        || {
            let most = total("g5-2.7-darwin", "import.times_longer.most");
            Judged::not(&format!("the text gives one figure, up to {most:.0} times, and no table"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at("Does it affect you?").conclusion(
        "innodb_alike",
        "With InnoDB and transactions the behaviour is the same.",
        || Judged::not(NO_FIGURE),
        Here::Never(TWO_SYSTEMS),
    ),
    MYSQL.at(SERVER).conclusion(
        "like_a_xeon",
        "Under Linux the G5 serves MySQL about as well as a Xeon of 3 GHz would.",
        || Judged::not("the table has no Xeon; the comparison is with the first article"),
        Here::Never(TWO_SYSTEMS),
    ),
    APACHE.at(SERVER).conclusion(
        "apache_far_behind",
        "Apache under Mac OS X answers far fewer requests than under Linux on the same hardware.",
        || {
            let c = g5();
            let rows: Vec<_> = c.rows.iter().filter(|r| r.probe == "web.throughput").collect();
            let figure = rows.iter().map(|r| format!("{:.1}", value(r))).collect::<Vec<_>>().join(" and ");
            Judged::by(
                rows.len() == 2 && rows.iter().all(|r| r.verdict == Verdict::Slower),
                format!("{figure} times slower"),
            )
        },
        Here::By(
            |run| {
                let published =
                    Params::new().with("server", "apache-2.0").with("keepalive", "off").with("connections", 100);
                let mac = source::load("g5-2.7-darwin");
                let theirs = own::best_level(&mac, "web.throughput", &published)?;
                let row = own::best(run, "web.throughput", &published)?;
                let times = own::times(theirs, own::level(run, row)?);
                let interval = own::from_to(&times, |t| format!("{t:.1}"));
                let figure = format!(
                    "{:.0}/s here, 266/s there, 2165/s on the G5 under Linux: {:.1} times Mac OS X's{interval}",
                    row.estimate?.value, times.value
                );
                Some(Judged::at_least(&times, 2.0, figure))
            },
            "web --set connections=100 --set keepalive=off",
        ),
    ),
    APACHE.at(SERVER).conclusion(
        "apache_two_little_on_mac",
        "Version 2.0 of Apache is hardly faster than 1.3 under Mac OS X.",
        || {
            let gain = 1.0 / versions("g5-2.7-darwin");
            Judged::by((1.0..1.1).contains(&gain), format!("{gain:.2} times as fast"))
        },
        Here::Never("it is about two versions of Apache"),
    ),
    APACHE.at(SERVER).conclusion(
        "apache_two_threefold_on_linux",
        "Version 2.0 is about three times as fast as 1.3 under Linux, on the G5 and on the Xeon.",
        || {
            let [g5, xeon] = ["g5-2.5-linux", "xeon-3.6-linux"].map(|system| 1.0 / versions(system));
            Judged::by(
                [g5, xeon].iter().all(|gain| (2.5..3.5).contains(gain)),
                format!("{g5:.2} and {xeon:.2} times as fast"),
            )
        },
        Here::Never("it is about two versions of Apache"),
    ),
    APACHE.at(SERVER).conclusion(
        "apache_other_cause",
        "The processors were not busy under Apache, so its trouble is another one than MySQL's; the vendor blames the \
         load generator, which stalls.",
        || Judged::not(NO_FIGURE),
        Here::By(stalls, "web"),
    ),
    APACHE.at(SERVER).conclusion(
        "stalls_with_many_connections_only",
        "The load generator for Apache stalls under Mac OS X only with many requests, not with up to ten thousand.",
        || Judged::not(NO_FIGURE),
        Here::Never("it is about one program on one system"),
    ),
    MYSQL.at(AFTER).conclusion(
        "sluggish_desktop",
        "The desktop answers less promptly than a fast PC's.",
        || Judged::not("it is an impression: nothing was measured"),
        Here::Never(
            "it is about two systems; `run database` and `run web` record how promptly this one answers beside its \
             loaded server",
        ),
    ),
];

fn os_not_cpu() -> Judged {
    let c = g5();
    let first = c.causes.first().map_or("none", |f| f.cause.as_str());
    let cpu = said(&c, id::CPU_SPEED).map(|(status, why)| {
        (
            status,
            format!("first cause {first}, cpu.speed {}: {why}", status.as_str()),
        )
    });
    Judged::by_cause(cpu, |status, _| {
        status == Status::RuledOut && operating_system(&c)
    })
}

/// Whether the two systems on the G5, compared, clear a cause.
fn cleared(cause: &str) -> Judged {
    Judged::by_cause(said(&g5(), cause), |status, _| status == Status::RuledOut)
}

/// The share of one client's throughput at a point of Mac OS X's curve, within a twentieth of what was said.
fn share_of_one(point: usize, said: f64) -> Judged {
    let curve = &g5().curves[0];
    let share = curve.points[point].2 / curve.points[0].2;
    Judged::by(
        (share - said).abs() < 0.05 * said,
        format!(
            "{:.1} % with {} clients",
            share * 100.0,
            curve.points[point].0
        ),
    )
}

/// How many times slower version 2.0 is than 1.3 on a system.
fn versions(system: &str) -> f64 {
    ratio(
        &between(
            &format!("{system}[server=apache-1.3]"),
            &format!("{system}[server=apache-2.0]"),
        ),
        "web.throughput",
    )
}

/// What an observer saw of the database step with the most clients that was watched.
fn watched<'a>(run: &'a Run, observer: &str) -> Option<&'a Observation> {
    let of = run
        .observations
        .iter()
        .filter(|o| o.workload == "database" && o.observer == observer);
    of.max_by_key(|o| o.params.int("clients"))
}

/// The share of all CPUs that the article calls nearly used up at the least: 165 of 200 %.
const NEARLY_USED_UP: f64 = 1.65 / 2.0;

fn busy_here(run: &Run) -> Option<Judged> {
    let cpu = watched(run, "cpu")?;
    let total = |name: &str| cpu.totals.get(name).copied();
    let (cpus, elapsed) = (
        total("cpu.count")?,
        total("elapsed.seconds").filter(|s| *s > 0.0)?,
    );
    // Seconds and ticks are not read at one moment: what seems more than all CPUs is all of them.
    let used = ((total("cpu.user.seconds")? + total("cpu.system.seconds")?) / elapsed).min(cpus);
    let figure = format!(
        "{used:.2} of {cpus:.0} CPUs were busy with the most clients, the load generator's own time among it"
    );
    Some(Judged::by(used >= NEARLY_USED_UP * cpus, figure))
}

/// A disk that is busy for less than this share of the time holds nothing back.
const DISK_IDLE: f64 = 0.05;

fn writing_here(run: &Run) -> Option<Judged> {
    let (disk, cpu) = (watched(run, "disk")?, watched(run, "cpu")?);
    let elapsed = cpu
        .totals
        .get("elapsed.seconds")
        .copied()
        .filter(|s| *s > 0.0)?;
    let total = |name: &str| disk.totals.get(name).copied();
    let (written, busy) = (
        total("disk.write.bytes")? / elapsed,
        total("disk.busy.seconds")? / elapsed,
    );
    let figure = format!(
        "{:.0} kB/s were written, and the disk was busy for {:.1} % of the time",
        written / 1e3,
        busy * 100.0
    );
    Some(Judged::by(busy < DISK_IDLE, figure))
}

/// Far below what one client gets: less than this share of it.
const FAR_BELOW: f64 = 0.9;

/// Whether from some number of clients on, beyond two, all together get less than one of them would.
fn collapses(run: &Run) -> Option<Judged> {
    let (gain, figure) = most_clients(&own::clients(run)?)?;
    Some(Judged::below(&gain, FAR_BELOW, figure))
}

/// What the most clients get, of more than two, as times what one gets, in words.
fn most_clients(of: &own::Clients) -> Option<(Estimate, String)> {
    let last = of.scaling.rows.last().filter(|row| row.clients > 2)?;
    let (gain, share) = of.share_of_one(last.clients)?;
    Some((
        gain,
        format!(
            "{} clients get {share} of one client's: it {}",
            last.clients,
            of.scaling.sentence("client")
        ),
    ))
}

/// What the most clients get at the least where more of them do little harm, in times what one gets: “80 % more”.
const FOUR_FIFTHS_MORE: f64 = 1.8;

fn holds_its_peak(run: &Run) -> Option<Judged> {
    let clients = own::clients(run)?;
    let (gain, figure) = most_clients(&clients)?;
    let enough = Judged::at_least(&gain, FOUR_FIFTHS_MORE, figure);
    Some(match (enough.answer, clients.collapses()) {
        // What collapses does not hold its peak, whatever is left of it.
        (_, Some(true)) => Judged {
            answer: Answer::False,
            ..enough
        },
        (Answer::True, None) => Judged::open(enough.figure),
        _ => enough,
    })
}

/// What a second client must add at the least to be said to help.
const HELPS: f64 = 1.1;

fn second_client(run: &Run) -> Option<Judged> {
    let (gain, share) = own::clients(run)?.share_of_one(2)?;
    Some(Judged::at_least(
        &gain,
        HELPS,
        format!("two clients get {share} of one client's"),
    ))
}

/// What files' locks take here where MariaDB is told to take them (`external_locking`, which is off by default: that is
/// skip-locking), by the requests that were followed.
fn locking_here(run: &Run) -> Option<Judged> {
    let on = |params: &Params| {
        let [number, word] = [
            params.int("server.external_locking") == Some(1),
            params.text("server.external_locking") == Some("ON"),
        ];
        number || word
    };
    let locks = |b: &Budget| {
        b.parts
            .iter()
            .find(|part| part.component.call() == Some("fcntl"))
            .map(|part| part.share)
    };
    let shares: Vec<f64> = run
        .budgets
        .iter()
        .filter(|b| on(&b.params))
        .filter_map(locks)
        .collect();
    let (least, most) = (
        shares.iter().copied().reduce(f64::min)?,
        shares.iter().copied().reduce(f64::max)?,
    );
    let [least_told, most_told] = [least, most].map(|share| format!("{:.1}", share * 100.0));
    let told = if least_told == most_told {
        most_told
    } else {
        format!("{least_told} to {most_told}")
    };
    let figure = format!("with external_locking on, files' locks (fcntl) take {told} % of a query");
    Some(Judged::by(most < A_FEW, figure))
}

/// What still is a few per cent.
const A_FEW: f64 = 0.05;

/// Stalls that take less than this share of the time hold no throughput back that anybody would notice; the web
/// laboratory uses the same.
const STALLED: f64 = 0.05;

/// Whether the load generator stalled here for long.
fn stalls(run: &Run) -> Option<Judged> {
    let web: Vec<_> = run
        .observations
        .iter()
        .filter(|o| o.workload == "web" && o.totals.contains_key("stall.seconds"))
        .collect();
    let sum = |name: &str| {
        web.iter()
            .filter_map(|o| o.totals.get(name))
            .fold(0.0, |sum, v| sum + v)
    };
    let (stalls, seconds, wall) = (sum("stalls"), sum("stall.seconds"), sum("wall.seconds"));
    let figure = format!(
        "{} of the client, {seconds:.2} s of {wall:.1} s",
        counted(stalls as u64, "stall")
    );
    (wall > 0.0).then(|| Judged::by(seconds > STALLED * wall, figure))
}

fn query_cache() -> Judged {
    let c = between(
        "opteron-850-linux[query_cache=on]",
        "g5-2.7-darwin[query_cache=on]",
    );
    let slower = row(&c, own::THROUGHPUT).verdict == Verdict::Slower;
    let client = total(
        "opteron-850-linux",
        "query_cache.per_client_machine.queries_s",
    );
    let figure = format!(
        "about {:.0}/s against a peak of {:.0}/s, {:.1} times; a client machine gave at most {client:.0}/s, and up to \
         {:.0} % came from the cache",
        source::cached("g5-2.7-darwin"),
        source::cached("opteron-850-linux"),
        ratio(&c, own::THROUGHPUT),
        total("g5-2.7-darwin", "query_cache.hits.most.percent")
    );
    Judged::by(slower && ratio(&c, own::THROUGHPUT) > 5.0, figure)
}

/// What the cache gains here: the best throughput with it against the best without. What the published machines served
/// says nothing of the cache of today's.
fn query_cache_here(run: &Run) -> Option<Judged> {
    let of = |state: &'static str| {
        run.measurements.iter().filter(move |m| {
            m.probe == own::THROUGHPUT && m.params.text("query_cache") == Some(state)
        })
    };
    // The same server without its cache: one with another setting besides would answer another question.
    let rest = |row: &Measurement| row.params.without(&["query_cache", "clients"]);
    let highest = |a: &&Measurement, b: &&Measurement| rate(a).total_cmp(&rate(b));
    let with = of("on")
        .filter(|m| m.estimate.is_some() && of("off").any(|off| rest(off) == rest(m)))
        .max_by(highest)?;
    let without = of("off")
        .filter(|m| m.estimate.is_some() && rest(m) == rest(with))
        .max_by(highest)?;
    let (on, cached, off, plain) = (
        rate(with),
        own::level(run, with)?,
        rate(without),
        own::level(run, without)?,
    );
    let times = own::times(plain, cached);
    let interval = own::from_to(&times, |t| format!("{t:.1}"));
    let figure = format!(
        "{on:.0}/s with the cache, {off:.0}/s without: {:.1} times{interval}",
        times.value
    );
    Some(Judged::at_least(&times, SEVERAL, figure))
}

/// A row's figure; nothing is less than any.
fn rate(row: &Measurement) -> f64 {
    row.estimate.map_or(f64::NEG_INFINITY, |e| e.value)
}

/// What “several times” is at the least.
const SEVERAL: f64 = 2.0;

#[cfg(test)]
mod tests;
