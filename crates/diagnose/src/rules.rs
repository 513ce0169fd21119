//! The suspects, one rule per cause: what accuses it, what tells it from its neighbours, and what clears it.
//!
//! Where requests were followed, their leaves decide: the share is what requests spent where the cause acts, and a
//! verdict needs its interval. Counters tell causes apart that act in one place. Where requests could not be followed,
//! counters that point to a cause make it likely, and nothing makes it confirmed.

use fingerpost_record::cause::thresholds::{
    CPUS_FULL, CPUS_IDLE, LITTLE_OF_CPUS, MOST_OF_WAITING, MUCH_OF_CPUS, MUCH_WORK,
};
use fingerpost_record::paths::Share;
use fingerpost_record::text::counted;
use fingerpost_record::{Status, unit::significant};

use super::counts;
use super::facts::{Facts, sum};
use super::judging::*;
use super::places::{Place, add};
use super::rules_io as io;

/// How one cause of the registry is judged by one side: its name there, and what judges it; nothing where the facts do
/// not tell.
pub(super) type Rule = (&'static str, fn(&Facts) -> Option<Verdict>);

/// Ready to run, whoever had the CPU.
const CPU: [Place; 5] = [
    Place::CpuOther,
    Place::CpuServer,
    Place::CpuClient,
    Place::CpuIdle,
    Place::CpuUnknown,
];

fn throttled(f: &Facts) -> bool {
    f.known("throttle.seconds").is_some_and(|s| s > 0.0)
        && f.throttled_periods
            .is_none_or(|share| share >= limit("cpu.quota"))
}

/// Where nobody read the throttled time, nothing tells the cause from a quota.
fn beside_a_quota(f: &Facts, verdict: Option<Verdict>) -> Option<Verdict> {
    let why = "throttle.seconds is not known: a quota that stops the server would fit as well";
    without(f.known("throttle.seconds").is_none(), why, verdict)
}

/// A thread that a quota stopped is ready to run, whoever has the CPU meanwhile; what a named process had is that
/// process's.
fn quota(f: &Facts) -> Option<Verdict> {
    let quota = f.known("cgroup.cpu_quota.cpus");
    let limit = quota.map_or("no quota is set".to_owned(), |q| {
        format!("a quota of {} CPUs is set", significant(q))
    });
    if !throttled(f) {
        let stopped = f.known("throttle.seconds")?;
        let verdict = ruled_out(vec![format!(
            "{limit}, and it stopped the server for {} s",
            significant(stopped)
        )]);
        // So many periods were cut short of so many.
        let cut = f.known("throttle.throttled_periods");
        let most = cut
            .zip(f.throttled_periods)
            .filter(|(cut, share)| *cut > 0.0 && *share > 0.0);
        let most = most
            .map(|(cut, share)| counts::interval(cut)[1] * share / cut)
            .filter(|_| stopped > 0.0);
        let doubt = most.and_then(|most| {
            reaches(
                "the share of periods that it cut short",
                most,
                self::limit("cpu.quota"),
            )
        });
        return doubted(f, f.share(&CPU), doubt, verdict);
    }
    let cut = f.throttled_periods.map_or(String::new(), |share| {
        format!("cut {} of its periods short and ", percent(share))
    });
    let levels = |above: f64| {
        if above > 1.0 {
            format!("{above} levels")
        } else {
            "one level".to_owned()
        }
    };
    let whose = f
        .known("throttle.levels_above")
        .filter(|above| *above > 0.0);
    let whose = whose.map_or(String::new(), |above| {
        format!(
            ", by the quota of a control group {} above the server's own",
            levels(above)
        )
    });
    let stopped = significant(f.known("throttle.seconds").unwrap_or(0.0));
    let mut evidence = vec![format!(
        "{limit}; it {cut}stopped CPUs for {stopped} s{whose}"
    )];
    evidence.extend(part(f, &CPU, "waiting for a CPU"));
    let verdict = judged(f, share_of(f, "cpu.quota"), true, true, evidence.clone())?;
    // On a busy machine others have the CPUs while the quota stops the server: their part of the waiting is not proof,
    // and does not clear it.
    let all = f
        .share(&CPU)
        .filter(|all| verdict.status != Status::Confirmed && all.share >= LIKELY);
    let Some(all) = all else { return Some(verdict) };
    // While it stood still all of its requests waited: that much of their waiting is the quota's.
    if let Some(stopped) =
        stood_still(f).filter(|stopped| *stopped >= MOST_OF_WAITING.value * all.share)
    {
        let part = (stopped / all.share).min(1.0);
        let share = Share {
            seconds: all.seconds * part,
            share: all.share * part,
            low: all.low * part,
            ..all
        };
        evidence.push(format!(
            "the server stood still for {} of the time, whoever ran then",
            percent(stopped)
        ));
        return judged(f, Some(share), true, true, evidence);
    }
    if verdict.status != Status::RuledOut {
        return Some(verdict);
    }
    let why = "others had the CPUs while it stopped the server; how much of that waiting was the quota's shows without it";
    at_most_likely(judged(f, Some(all), true, true, evidence), why)
}

/// The share of the time for which the server stood still because of a quota. The kernel adds up the stops of all CPUs:
/// of as many as the server uses while nothing stops it, which are those that it used and those that were stopped, and
/// one at least.
fn stood_still(f: &Facts) -> Option<f64> {
    let (stops, used) = (f.a_second("throttle.seconds")?, f.server_cpus?);
    Some(stops / (stops + used).max(1.0))
}

fn affinity(f: &Facts) -> Option<Verdict> {
    let (may, all) = (f.known("server.cpus_allowed")?, f.cpus?);
    let allowed = format!("the server may use {may} of {all} CPUs");
    if may >= all {
        return ruled_out(vec![allowed]);
    }
    let mut evidence = vec![allowed];
    evidence.extend(part(
        f,
        &[Place::CpuIdle],
        "waiting for a CPU while one idled",
    ));
    let full = f
        .server_cpus
        .is_some_and(|used| used > CPUS_FULL.value * may);
    let share = share_of(f, "cpu.affinity");
    let verdict = judged(
        f,
        share,
        !throttled(f),
        full && f.idle.is_some_and(|idle| idle > CPUS_IDLE.value),
        evidence,
    );
    beside_a_quota(f, told_of("cpu.quota", throttled(f), share, verdict))
}

fn lowered(f: &Facts) -> bool {
    f.known("server.nice").is_some_and(|nice| nice > 0.0)
        || f.weight.is_some_and(|w| w < limit("cpu.priority"))
}

/// What speaks for other processes on the CPUs, whether by contention or by priority.
fn others(f: &Facts) -> (Option<Share>, bool, Vec<String>) {
    let mut evidence: Vec<String> = part(
        f,
        &[Place::CpuOther],
        "waiting for a CPU that another process had",
    )
    .into_iter()
    .collect();
    evidence.extend(told(f.place(Place::CpuOther)));
    let most = || mostly(f, "other.cpu.", ".seconds");
    evidence.extend(
        f.other_cpus
            .map(|n| format!("other processes used {} CPUs{}", significant(n), most())),
    );
    let much = f
        .other_cpus
        .zip(f.cpus)
        .is_some_and(|(used, all)| used > MUCH_OF_CPUS.value * all);
    (
        f.share(&[Place::CpuOther]),
        much && f.idle.is_some_and(|idle| idle < CPUS_IDLE.value) && !throttled(f),
        evidence,
    )
}

fn contention(f: &Facts) -> Option<Verdict> {
    let (share, points, evidence) = others(f);
    if share.is_none() && f.other_cpus.is_none() {
        return None;
    }
    let verdict = match judged(
        f,
        share,
        !lowered(f),
        points && !lowered(f),
        evidence.clone(),
    ) {
        None if f
            .other_cpus
            .is_some_and(|n| f.busy_cpus(n)[1] < LITTLE_OF_CPUS.value) =>
        {
            ruled_out(evidence)
        }
        verdict if throttled(f) => at_most_likely(
            verdict,
            "a quota stopped the server meanwhile: other processes that ran then took nothing from it",
        ),
        verdict => verdict,
    };
    let unranked = f.known("server.nice").is_none() && f.weight.is_none();
    let no_rank = "neither server.nice nor cgroup.cpu_weight is known: a lower priority of the server would fit as well";
    let verdict = without(
        unranked,
        no_rank,
        told_of("cpu.priority", lowered(f), share, verdict),
    );
    beside_a_quota(f, verdict)
}

fn priority(f: &Facts) -> Option<Verdict> {
    let nice = f.known("server.nice");
    if nice.is_none() && f.weight.is_none() {
        return None;
    }
    let nice = nice.map(|n| format!("the server's nice value is {n}"));
    let weight = f
        .weight
        .map(|w| format!("its CPU weight {} of the usual", percent(w)));
    let rank = [nice, weight]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ");
    if !lowered(f) {
        return ruled_out(vec![rank]);
    }
    let (share, points, mut evidence) = others(f);
    evidence.insert(0, rank);
    judged(f, share, true, points, evidence)
}

/// More runnable threads than CPUs: a fact about the load, not yet a fault. CPUs that the server leaves idle are not
/// saturated, however its threads happen to wait for one another's.
fn saturated(f: &Facts) -> Option<Verdict> {
    let may = f.known("server.cpus_allowed").or(f.cpus)?;
    let (share, used) = (share_of(f, "cpu.saturated")?, f.server_cpus?);
    let mut evidence = vec![format!(
        "waiting for a CPU that the server itself had is {} of a request",
        interval(share)
    )];
    evidence.push(format!(
        "the server used {} of {may} CPUs",
        significant(used)
    ));
    evidence.extend(
        f.idle
            .map(|idle| format!("{} of all CPU time was idle", percent(idle))),
    );
    let enough = limit("cpu.saturated") * may;
    if used < enough {
        let doubt = reaches(
            "the number of CPUs that the server used",
            f.busy_cpus(used)[1],
            enough,
        );
        return doubted(f, Some(share), doubt, ruled_out(evidence));
    }
    let verdict = at_most_likely(
        judged(f, Some(share), !throttled(f), false, evidence),
        "the load asks for more CPUs than there are; whether its work is more than it should be shows in a comparison \
         of two runs",
    );
    beside_a_quota(f, told_of("cpu.quota", throttled(f), Some(share), verdict))
}

fn filtered(f: &Facts) -> bool {
    f.seccomp_filters.is_some_and(|n| n > 0.0)
}

/// What of the server's own code is seccomp filters' work: they run before a call's entry is traced.
fn entering(f: &Facts) -> Option<(Share, String)> {
    let (entering, user) = (
        f.entering.filter(|_| filtered(f))?,
        f.share(&[Place::User])?,
    );
    let (part, micros) = (entering.part(user), |s: f64| {
        format!("{} µs", significant(s * 1e6))
    });
    let each = entering
        .per_call()
        .map_or(String::new(), |s| format!(", {} a call", micros(s)));
    let text = format!(
        "of {} that the trace sees outside of calls, ticks count {} as the kernel's{each}: seccomp filters run before \
         a call's entry is traced",
        micros(entering.traced_user),
        micros(entering.outside())
    );
    (part.share > 0.0).then_some((part, text))
}

fn work(f: &Facts) -> Option<Verdict> {
    let traced = f.share(&[Place::User])?;
    let filters = entering(f);
    let share = filters
        .as_ref()
        .map_or(traced, |(part, _)| less(traced, *part));
    let mut evidence = vec![format!(
        "the server's own code is {} of a request",
        interval(share)
    )];
    evidence.extend(filters.map(|(_, text)| text));
    evidence.extend(
        f.server_cpus
            .zip(f.cpus)
            .map(|(used, all)| format!("the server used {} of {all} CPUs", significant(used))),
    );
    // Work is what a server is for: only a comparison can tell whether it is too much.
    at_most_likely(
        doubted(
            f,
            Some(share),
            may_be_much(f, share),
            judged(
                f,
                Some(share),
                share.share >= MUCH_WORK.value,
                false,
                evidence,
            ),
        ),
        "whether that is more than it should be shows in a comparison of two runs",
    )
}

/// What is left of a share without a part of it.
fn less(of: Share, part: Share) -> Share {
    let (low, high) = ((of.low - part.high).max(0.0), (of.high - part.low).max(0.0));
    Share {
        seconds: of.seconds - part.seconds,
        share: of.share - part.share,
        low,
        high,
    }
}

/// Without a count of the calls nothing tells a slow call from many.
fn system_calls(f: &Facts) -> Option<Verdict> {
    let (mut share, calls) = (share_of(f, "syscall.entry")?, f.calls?);
    let filters = entering(f);
    filters.iter().for_each(|(part, _)| add(&mut share, part));
    let mut evidence = vec![format!("the kernel is {} of a request", interval(share))];
    evidence.extend(filters.map(|(_, text)| text));
    evidence.push(format!(
        "{} system calls per transaction",
        significant(calls)
    ));
    evidence.extend(
        f.seccomp_filters
            .map(|n| format!("{n} seccomp filters on the server")),
    );
    let proof = filtered(f) || share.share >= MUCH_WORK.value;
    at_most_likely(
        doubted(
            f,
            Some(share),
            may_be_much(f, share),
            judged(f, Some(share), proof, false, evidence),
        ),
        "whether a call takes longer than it should shows in a comparison of two runs",
    )
}

/// Somebody who traces or audits the server, or all of the machine: each of its calls, switches or functions then does
/// work for them.
fn trace(f: &Facts) -> Option<Verdict> {
    let events = f.known("tracing.events").zip(f.known("tracing.tracers"));
    let watched = [
        (
            f.known("server.traced"),
            "of the server's processes are being traced (ptrace)",
        ),
        (f.known("audit.rules"), "audit rules are loaded"),
        (events.map(|on| on.0), "trace events are switched on"),
        (events.map(|on| on.1), "tracers are switched on"),
        (
            f.known("tracing.programs"),
            "programs in the kernel trace for others",
        ),
    ];
    let on = watched.iter().any(|(n, _)| n.is_some_and(|n| n > 0.0));
    // Where some of it could not be seen, nothing clears it.
    if !on && watched.iter().any(|(n, _)| n.is_none()) {
        return None;
    }
    let mut evidence: Vec<String> = watched
        .iter()
        .filter_map(|(n, words)| Some(format!("{} {words}", (*n)?)))
        .collect();
    if !on {
        return ruled_out(evidence);
    }
    evidence.extend(part(
        f,
        &[Place::Kernel, Place::Making],
        "the kernel, where that work is done,",
    ));
    at_most_likely(
        judged(f, share_of(f, "kernel.trace"), true, true, evidence),
        "how much of the kernel's time it costs shows in a comparison with a run without it",
    )
}

fn mitigation(f: &Facts) -> Option<Verdict> {
    let mitigated = [
        "server.store_bypass.mitigated",
        "server.indirect_branch.mitigated",
    ]
    .map(|name| f.known(name));
    if sum(mitigated)? <= 0.0 {
        return ruled_out(vec![
            "no optional speculation mitigation is on for the server's tasks".into(),
        ]);
    }
    let code = [Place::User, Place::Kernel, Place::Making];
    let mut evidence =
        vec!["an optional speculation mitigation is on for the server's tasks".to_owned()];
    evidence.extend(part(f, &code, "code, which it slows,"));
    let mut v = judged(f, share_of(f, "cpu.mitigation"), true, true, evidence)?;
    if v.status == Status::Confirmed {
        v.status = Status::Likely;
    }
    // How much of the code's time it costs is not known.
    v.share = 0.0;
    Some(v)
}

fn creation(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, "process.creation")?;
    let mut evidence = vec![format!(
        "making processes and threads is {} of a request",
        interval(share)
    )];
    // Calls are counted in windows and scaled up; the kernel counts all that the whole machine made.
    let made = sum(["clone", "clone3", "fork", "vfork"]
        .map(|call| f.known(&format!("server.call.{call}.count"))));
    let made = made
        .map(|n| f.known("machine.forks").map_or(n, |all| n.min(all)))
        .and_then(|n| f.per_transaction(n));
    evidence.extend(made.map(|n| {
        format!(
            "{} processes or threads made per transaction",
            significant(n)
        )
    }));
    judged(f, Some(share), true, false, evidence)
}

fn lock(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, "app.lock")?;
    let mut evidence = vec![format!(
        "waiting for a lock whose holder works or sleeps is {} of a request",
        interval(share)
    )];
    evidence.extend(told(f.place(Place::Lock)));
    if let Some(s) = f.scaling {
        let (clients, best, kept) = (
            counted(s.best_clients as u64, "client"),
            significant(s.best),
            percent(s.kept),
        );
        let most = s.most_clients;
        evidence.push(format!(
            "throughput is best with {clients} ({best}/s); with {most} it is {kept} of that"
        ));
    }
    judged(f, Some(share), true, false, evidence)
}

fn query_cache(f: &Facts) -> Option<Verdict> {
    if !f.query_cache? {
        return ruled_out(vec!["the query cache is off".into()]);
    }
    let share = share_of(f, "app.query_cache")?;
    let waited = format!("waiting for a lock is {} of a request", interval(share));
    let figures = format!("the query cache is on: one lock that every query passes; {waited}");
    at_most_likely(
        judged(f, Some(share), true, false, vec![figures]),
        "run it with the query cache off: if the lock goes, it was the cache's",
    )
}

fn wait(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, "app.wait")?;
    let mut evidence = vec![format!(
        "sleeping until a time that the server set itself is {} of a request",
        interval(share)
    )];
    evidence.extend(told(f.place(Place::Sleeping)));
    judged(f, Some(share), true, false, evidence)
}

fn client(f: &Facts) -> Option<Verdict> {
    let mut evidence: Vec<String> = f.client_saturated.iter().cloned().collect();
    evidence.extend(part(
        f,
        &[Place::Client, Place::CpuClient],
        "the client, and waiting for a CPU that it had,",
    ));
    evidence.extend(
        f.client_busy
            .map(|busy| format!("the client used {} of its CPUs", percent(busy))),
    );
    evidence.extend(
        (f.client_errors > 0.0).then(|| format!("{} errors in the client", f.client_errors)),
    );
    let share = share_of(f, "client.saturated");
    if evidence.is_empty()
        || share.is_none()
            && f.client_saturated.is_none()
            && f.client_busy
                .is_none_or(|busy| busy <= limit("client.saturated"))
    {
        return None;
    }
    // A client that says that it was the limit is, even where its own part of a request is small.
    let told = f.client_saturated.is_some();
    let busy = f
        .client_busy
        .is_some_and(|busy| busy > limit("client.saturated"))
        && share.is_some_and(|s| s.share > MUCH_WORK.value);
    let least = |s: Share| {
        if told {
            Share {
                share: s.share.max(LIKELY),
                ..s
            }
        } else {
            s
        }
    };
    let takes_cpus = f
        .share(&[Place::CpuClient])
        .is_some_and(|s| s.share >= LIKELY);
    let verdict = judged(
        f,
        share.map(least),
        told || busy || takes_cpus,
        true,
        evidence,
    );
    let doubt = match f.client_busy {
        // CPUs that it used of those that it could: without their number, as if it were one.
        Some(busy) => reaches(
            "the share of its CPUs that it used",
            f.busy_cpus(busy)[1],
            limit("client.saturated"),
        ),
        None => Some("how much of its CPUs it used is not known".to_owned()),
    };
    let between = doubt
        .filter(|_| share.is_some_and(|s| s.high > MUCH_WORK.value))
        .or_else(|| {
            let high = f.share(&[Place::CpuClient]).map_or(0.0, |s| s.high);
            (high >= CONFIRMED).then(|| {
                format!(
                    "waiting for a CPU that it had may be {} of a request",
                    percent(high)
                )
            })
        });
    let verdict = doubted(f, share, between, verdict);
    if told || busy {
        return verdict;
    }
    at_most_likely(
        verdict,
        "the client shares the server's CPUs; it did not find itself to be the limit",
    )
}

fn steal(f: &Facts) -> Option<Verdict> {
    let (stolen, ticks) = (f.steal?, f.cpu_ticks?);
    // What was taken is counted in ticks. It comes in bursts, so that the interval is no wider than it ought to be.
    let [low, high] = counts::interval(stolen * ticks).map(|n| (n / ticks).min(1.0));
    let share = Share {
        seconds: 0.0,
        share: stolen,
        low,
        high,
    };
    let evidence = vec![format!(
        "the hypervisor took {} of all CPU time",
        percent(stolen)
    )];
    match judged(
        f,
        f.followed.is_some().then_some(share),
        true,
        stolen >= LIKELY,
        evidence.clone(),
    ) {
        None => doubted(
            f,
            None,
            reaches("what it took", share.high, CONFIRMED),
            ruled_out(evidence),
        ),
        verdict => verdict,
    }
}

/// A rule for every cause that one side can be judged by, in the order of the article's search.
pub(super) static RULES: &[Rule] = &[
    ("network.shaping", io::shaping),
    ("peer.slow", io::peer),
    ("storage.latency", io::latency),
    ("storage.throttle", io::throttle),
    ("storage.contention", io::contention),
    ("storage.durability", io::durability),
    ("app.work", work),
    ("cpu.saturated", saturated),
    ("cpu.contention", contention),
    ("cpu.priority", priority),
    ("cpu.quota", quota),
    ("cpu.affinity", affinity),
    ("app.lock", lock),
    ("app.wait", wait),
    ("app.query_cache", query_cache),
    ("syscall.entry", system_calls),
    ("kernel.trace", trace),
    ("process.creation", creation),
    ("cpu.mitigation", mitigation),
    ("network.delay", io::delay),
    ("network.accept_queue", io::accept_queue),
    ("memory.limit", io::memory_limit),
    ("memory.page_size", io::page_size),
    ("client.saturated", client),
    ("host.steal", steal),
];
