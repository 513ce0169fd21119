//! The suspects, one rule per cause: what accuses it, what tells it from its neighbours, and what clears it.
//!
//! Where requests were followed, their leaves decide: the share is what requests spent where the cause acts, and a
//! verdict needs its interval. Counters tell causes apart that act in one place. Where requests could not be followed,
//! counters that point to a cause make it likely, and nothing makes it confirmed.

use fingerpost_record::cause::id;
use fingerpost_record::cause::thresholds::{
    CLIENT_FULL, CPUS_FULL, CPUS_IDLE, LITTLE_OF_CPUS, LOW_WEIGHT, MOST_OF_WAITING, MUCH_OF_CPUS,
    MUCH_WORK, PERIODS_CUT, SERVER_BUSY,
};
use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric, Status};

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
    f.known(name::THROTTLE_SECONDS).is_some_and(|s| s > 0.0)
        && f.throttled_periods
            .is_none_or(|share| share >= PERIODS_CUT.value)
}

/// Where nobody read the throttled time, nothing tells the cause from a quota.
fn beside_a_quota(f: &Facts, verdict: Option<Verdict>) -> Option<Verdict> {
    without(f, &[name::THROTTLE_SECONDS], id::CPU_QUOTA, verdict)
}

/// A thread that a quota stopped is ready to run, whoever has the CPU meanwhile; what a named process had is that
/// process's.
fn quota(f: &Facts) -> Option<Verdict> {
    let limit = Evidence {
        value: f.known(name::CGROUP_CPU_QUOTA_CPUS),
        ..Evidence::of(Metric::Quota)
    };
    if !throttled(f) {
        let stopped = f.known(name::THROTTLE_SECONDS)?;
        let verdict = ruled_out(vec![limit, Evidence::figure(Metric::Throttled, stopped)]);
        // So many periods were cut short of so many.
        let cut = f.known(name::THROTTLE_THROTTLED_PERIODS);
        let most = cut
            .zip(f.throttled_periods)
            .filter(|(cut, share)| *cut > 0.0 && *share > 0.0);
        let most = most
            .map(|(cut, share)| counts::interval(cut)[1] * share / cut)
            .filter(|_| stopped > 0.0);
        let doubt = most.and_then(|most| reaches(Metric::PeriodsCut, most, PERIODS_CUT.value));
        return doubted(f, f.share(&CPU), doubt, verdict);
    }
    let mut evidence = vec![limit];
    evidence.extend(
        f.throttled_periods
            .map(|share| Evidence::figure(Metric::PeriodsCut, share)),
    );
    let stopped = f.known(name::THROTTLE_SECONDS).unwrap_or(0.0);
    evidence.push(Evidence::figure(Metric::Throttled, stopped));
    evidence.extend(
        f.known(name::THROTTLE_LEVELS_ABOVE)
            .filter(|above| *above > 0.0)
            .map(|above| Evidence::figure(Metric::QuotaLevelsAbove, above)),
    );
    evidence.extend(part(f, &CPU, Metric::CpuWait));
    let verdict = judged(f, share_of(f, id::CPU_QUOTA), true, true, evidence.clone())?;
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
        evidence.push(Evidence::figure(Metric::StoodStill, stopped));
        return judged(f, Some(share), true, true, evidence);
    }
    if verdict.status != Status::RuledOut {
        return Some(verdict);
    }
    at_most_likely(
        judged(f, Some(all), true, true, evidence),
        Metric::OthersRanWhileStopped,
    )
}

/// The share of the time for which the server stood still because of a quota. The kernel adds up the stops of all CPUs:
/// of as many as the server uses while nothing stops it, which are those that it used and those that were stopped, and
/// one at least.
fn stood_still(f: &Facts) -> Option<f64> {
    let (stops, used) = (f.a_second(name::THROTTLE_SECONDS)?, f.server_cpus?);
    Some(stops / (stops + used).max(1.0))
}

fn affinity(f: &Facts) -> Option<Verdict> {
    let (may, all) = (f.known(name::SERVER_CPUS_ALLOWED)?, f.cpus?);
    let allowed = Evidence::figure(Metric::CpusAllowed, may).out_of(all);
    if may >= all {
        return ruled_out(vec![allowed]);
    }
    let mut evidence = vec![allowed];
    evidence.extend(part(f, &[Place::CpuIdle], Metric::CpuWaitIdle));
    let full = f
        .server_cpus
        .is_some_and(|used| used > CPUS_FULL.value * may);
    let share = share_of(f, id::CPU_AFFINITY);
    let verdict = judged(
        f,
        share,
        !throttled(f),
        full && f.idle.is_some_and(|idle| idle > CPUS_IDLE.value),
        evidence,
    );
    beside_a_quota(f, told_of(id::CPU_QUOTA, throttled(f), share, verdict))
}

fn lowered(f: &Facts) -> bool {
    f.known(name::SERVER_NICE).is_some_and(|nice| nice > 0.0)
        || f.weight.is_some_and(|w| w < LOW_WEIGHT.value)
}

/// What speaks for other processes on the CPUs, whether by contention or by priority.
fn others(f: &Facts) -> (Option<Share>, bool, Vec<Evidence>) {
    let mut evidence: Vec<Evidence> = part(f, &[Place::CpuOther], Metric::CpuWaitOthers)
        .into_iter()
        .collect();
    evidence.extend(told(f.place(Place::CpuOther)));
    evidence.extend(f.other_cpus.map(|n| Evidence {
        name: mostly(f, "other.cpu.", ".seconds"),
        ..Evidence::figure(Metric::OtherCpus, n)
    }));
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
        verdict if throttled(f) => at_most_likely(verdict, Metric::QuotaStoppedMeanwhile),
        verdict => verdict,
    };
    // The weight is known where its version is.
    let told = told_of(id::CPU_PRIORITY, lowered(f), share, verdict);
    let verdict = if f.weight.is_some() {
        told
    } else {
        without(
            f,
            &[name::SERVER_NICE, name::CGROUP_CPU_WEIGHT_VERSION],
            id::CPU_PRIORITY,
            told,
        )
    };
    beside_a_quota(f, verdict)
}

fn priority(f: &Facts) -> Option<Verdict> {
    let nice = f.known(name::SERVER_NICE);
    if nice.is_none() && f.weight.is_none() {
        return None;
    }
    let nice = nice.map(|n| Evidence::figure(Metric::Nice, n));
    let weight = f.weight.map(|w| Evidence::figure(Metric::CpuWeight, w));
    let rank: Vec<Evidence> = nice.into_iter().chain(weight).collect();
    if !lowered(f) {
        return ruled_out(rank);
    }
    let (share, points, others) = others(f);
    let evidence = [rank, others].concat();
    judged(f, share, true, points, evidence)
}

/// More runnable threads than CPUs: a fact about the load, not yet a fault. CPUs that the server leaves idle are not
/// saturated, however its threads happen to wait for one another's.
fn saturated(f: &Facts) -> Option<Verdict> {
    let may = f.known(name::SERVER_CPUS_ALLOWED).or(f.cpus)?;
    let (share, used) = (share_of(f, id::CPU_SATURATED)?, f.server_cpus?);
    let mut evidence = vec![
        Evidence::share(Metric::CpuWaitServer, share),
        Evidence::figure(Metric::ServerCpus, used).out_of(may),
    ];
    evidence.extend(
        f.idle
            .map(|idle| Evidence::figure(Metric::CpuIdleShare, idle)),
    );
    let enough = SERVER_BUSY.value * may;
    if used < enough {
        let doubt = reaches(Metric::ServerCpus, f.busy_cpus(used)[1], enough);
        return doubted(f, Some(share), doubt, ruled_out(evidence));
    }
    let verdict = at_most_likely(
        judged(f, Some(share), !throttled(f), false, evidence),
        Metric::LoadAsksForMore,
    );
    beside_a_quota(
        f,
        told_of(id::CPU_QUOTA, throttled(f), Some(share), verdict),
    )
}

fn filtered(f: &Facts) -> bool {
    f.seccomp_filters.is_some_and(|n| n > 0.0)
}

/// What of the server's own code is seccomp filters' work: they run before a call's entry is traced.
fn entering(f: &Facts) -> Option<(Share, Vec<Evidence>)> {
    let (entering, user) = (
        f.entering.filter(|_| filtered(f))?,
        f.share(&[Place::User])?,
    );
    let part = entering.part(user);
    let outside =
        Evidence::figure(Metric::OutsideOfCalls, entering.outside()).out_of(entering.traced_user);
    let each = entering
        .per_call()
        .map(|s| Evidence::figure(Metric::OutsideOfOneCall, s));
    (part.share > 0.0).then(|| (part, std::iter::once(outside).chain(each).collect()))
}

fn work(f: &Facts) -> Option<Verdict> {
    let traced = f.share(&[Place::User])?;
    let filters = entering(f);
    let share = filters
        .as_ref()
        .map_or(traced, |(part, _)| less(traced, *part));
    let mut evidence = vec![Evidence::share(Metric::OwnCode, share)];
    evidence.extend(filters.into_iter().flat_map(|(_, facts)| facts));
    evidence.extend(
        f.server_cpus
            .zip(f.cpus)
            .map(|(used, all)| Evidence::figure(Metric::ServerCpus, used).out_of(all)),
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
        Metric::WorkNeedsComparison,
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
    let (mut share, calls) = (share_of(f, id::SYSCALL_ENTRY)?, f.calls?);
    let filters = entering(f);
    filters.iter().for_each(|(part, _)| add(&mut share, part));
    let mut evidence = vec![Evidence::share(Metric::KernelTime, share)];
    evidence.extend(filters.into_iter().flat_map(|(_, facts)| facts));
    evidence.push(Evidence::figure(Metric::Calls, calls));
    evidence.extend(
        f.seccomp_filters
            .map(|n| Evidence::figure(Metric::SeccompFilters, n)),
    );
    let proof = filtered(f) || share.share >= MUCH_WORK.value;
    at_most_likely(
        doubted(
            f,
            Some(share),
            may_be_much(f, share),
            judged(f, Some(share), proof, false, evidence),
        ),
        Metric::CallsNeedComparison,
    )
}

/// Somebody who traces or audits the server, or all of the machine: each of its calls, switches or functions then does
/// work for them.
fn trace(f: &Facts) -> Option<Verdict> {
    let events = f
        .known(name::TRACING_EVENTS)
        .zip(f.known(name::TRACING_TRACERS));
    let watched = [
        (f.known(name::SERVER_TRACED), Metric::TracedProcesses),
        (f.known(name::AUDIT_RULES), Metric::AuditRules),
        (events.map(|on| on.0), Metric::TraceEvents),
        (events.map(|on| on.1), Metric::Tracers),
        (f.known(name::TRACING_PROGRAMS), Metric::TracingPrograms),
    ];
    let on = watched.iter().any(|(n, _)| n.is_some_and(|n| n > 0.0));
    // Where some of it could not be seen, nothing clears it.
    if !on && watched.iter().any(|(n, _)| n.is_none()) {
        return None;
    }
    let mut evidence: Vec<Evidence> = watched
        .iter()
        .filter_map(|(n, metric)| Some(Evidence::figure(*metric, (*n)?)))
        .collect();
    if !on {
        return ruled_out(evidence);
    }
    evidence.extend(part(
        f,
        &[Place::Kernel, Place::Making],
        Metric::TracedKernel,
    ));
    at_most_likely(
        judged(f, share_of(f, id::KERNEL_TRACE), true, true, evidence),
        Metric::TracingNeedsComparison,
    )
}

fn mitigation(f: &Facts) -> Option<Verdict> {
    let mitigated = [
        name::SERVER_STORE_BYPASS_MITIGATED,
        name::SERVER_INDIRECT_BRANCH_MITIGATED,
    ]
    .map(|name| f.known(name));
    let on = sum(mitigated)?;
    let mut evidence = vec![Evidence::figure(Metric::TaskMitigations, on)];
    if on <= 0.0 {
        return ruled_out(evidence);
    }
    let code = [Place::User, Place::Kernel, Place::Making];
    evidence.extend(part(f, &code, Metric::SlowedCode));
    let mut v = judged(f, share_of(f, id::CPU_MITIGATION), true, true, evidence)?;
    if v.status == Status::Confirmed {
        v.status = Status::Likely;
    }
    // How much of the code's time it costs is not known.
    v.share = 0.0;
    Some(v)
}

fn creation(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, id::PROCESS_CREATION)?;
    let mut evidence = vec![Evidence::share(Metric::TaskCreation, share)];
    // Calls are counted in windows and scaled up; the kernel counts all that the whole machine made.
    let made = sum(["clone", "clone3", "fork", "vfork"].map(|call| f.called(call)));
    let made = made
        .map(|n| f.known(name::MACHINE_FORKS).map_or(n, |all| n.min(all)))
        .and_then(|n| f.per_transaction(n));
    evidence.extend(made.map(|n| Evidence::figure(Metric::TasksMade, n)));
    judged(f, Some(share), true, false, evidence)
}

fn lock(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, id::APP_LOCK)?;
    let mut evidence = vec![Evidence::share(Metric::LockWait, share)];
    evidence.extend(told(f.place(Place::Lock)));
    if let Some(s) = f.scaling {
        evidence.push(Evidence::figure(Metric::BestThroughput, s.best).out_of(s.best_clients));
        evidence.push(Evidence::figure(Metric::ThroughputKept, s.kept).out_of(s.most_clients));
    }
    judged(f, Some(share), true, false, evidence)
}

fn query_cache(f: &Facts) -> Option<Verdict> {
    let on = f.query_cache?;
    let cache = Evidence::figure(Metric::QueryCache, f64::from(u8::from(on)));
    if !on {
        return ruled_out(vec![cache]);
    }
    let share = share_of(f, id::APP_QUERY_CACHE)?;
    let waited = Evidence::share(Metric::QueryCacheLock, share);
    at_most_likely(
        judged(f, Some(share), true, false, vec![cache, waited]),
        Metric::QueryCacheNeedsExperiment,
    )
}

fn wait(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, id::APP_WAIT)?;
    let mut evidence = vec![Evidence::share(Metric::TimerWait, share)];
    evidence.extend(told(f.place(Place::Sleeping)));
    judged(f, Some(share), true, false, evidence)
}

fn client(f: &Facts) -> Option<Verdict> {
    let says = |text: &String| Evidence::of(Metric::ClientSaysLimit).saying(text);
    let mut evidence: Vec<Evidence> = f.client_saturated.iter().map(says).collect();
    evidence.extend(part(
        f,
        &[Place::Client, Place::CpuClient],
        Metric::ClientTime,
    ));
    evidence.extend(
        f.client_busy
            .map(|busy| Evidence::figure(Metric::ClientCpus, busy)),
    );
    evidence.extend(
        (f.client_errors > 0.0).then(|| Evidence::figure(Metric::ClientErrors, f.client_errors)),
    );
    let share = share_of(f, id::CLIENT_SATURATED);
    if evidence.is_empty()
        || share.is_none()
            && f.client_saturated.is_none()
            && f.client_busy.is_none_or(|busy| busy <= CLIENT_FULL.value)
    {
        return None;
    }
    // A client that says that it was the limit is, even where its own part of a request is small.
    let told = f.client_saturated.is_some();
    let busy = f.client_busy.is_some_and(|busy| busy > CLIENT_FULL.value)
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
        Some(busy) => reaches(Metric::ClientCpus, f.busy_cpus(busy)[1], CLIENT_FULL.value),
        None => Some(Evidence {
            missing: vec![missing(f, name::CLIENT_CPU_SECONDS)],
            ..Evidence::of(Metric::Missing)
        }),
    };
    let between = doubt
        .filter(|_| share.is_some_and(|s| s.high > MUCH_WORK.value))
        .or_else(|| {
            let behind = f.share(&[Place::CpuClient]).unwrap_or_default();
            (behind.high >= CONFIRMED).then(|| {
                Evidence::share(Metric::CpuWaitClient, behind)
                    .beside(CONFIRMED)
                    .undecided()
            })
        });
    let verdict = doubted(f, share, between, verdict);
    if told || busy {
        return verdict;
    }
    at_most_likely(verdict, Metric::ClientSharesCpus)
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
    let evidence = vec![Evidence::figure(Metric::Stolen, stolen)];
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
            reaches(Metric::Stolen, share.high, CONFIRMED),
            ruled_out(evidence),
        ),
        verdict => verdict,
    }
}

/// A rule for every cause that one side can be judged by, in the order of the article's search.
pub(super) static RULES: &[Rule] = &[
    (id::NETWORK_SHAPING, io::shaping),
    (id::PEER_SLOW, io::peer),
    (id::STORAGE_LATENCY, io::latency),
    (id::STORAGE_THROTTLE, io::throttle),
    (id::STORAGE_CONTENTION, io::contention),
    (id::STORAGE_DURABILITY, io::durability),
    (id::APP_WORK, work),
    (id::CPU_SATURATED, saturated),
    (id::CPU_CONTENTION, contention),
    (id::CPU_PRIORITY, priority),
    (id::CPU_QUOTA, quota),
    (id::CPU_AFFINITY, affinity),
    (id::APP_LOCK, lock),
    (id::APP_WAIT, wait),
    (id::APP_QUERY_CACHE, query_cache),
    (id::SYSCALL_ENTRY, system_calls),
    (id::KERNEL_TRACE, trace),
    (id::PROCESS_CREATION, creation),
    (id::CPU_MITIGATION, mitigation),
    (id::NETWORK_DELAY, io::delay),
    (id::NETWORK_ACCEPT_QUEUE, io::accept_queue),
    (id::MEMORY_LIMIT, io::memory_limit),
    (id::MEMORY_PAGE_SIZE, io::page_size),
    (id::CLIENT_SATURATED, client),
    (id::HOST_STEAL, steal),
];
