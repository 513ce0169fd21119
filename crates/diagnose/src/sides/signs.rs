//! What tells the causes of CPUs, kernel and memory from their neighbours.

use fingerpost_record::cause::thresholds::*;
use fingerpost_record::reading::name;
use fingerpost_record::{Component, Evidence, Metric};

use super::clues::Clues;
use super::fitting::{ends, followed, grows, set_now, told_of_another};
use super::given::others_used;
use super::growth::{self, Pair};
use super::sign::Sign::{self, Against, Fits, NotGrown, Perhaps, Unknown};
use super::sign::{Told, kernel, on_cpu, user};
use super::work::{build, faults, more_than_few, more_to_do, round_trips, setting, together};
use super::{contention, flushes, let_go, signs_io};
use crate::entering::Entering;
use crate::hosts::TASK_MITIGATIONS;
use crate::places::{Kind, Place};

pub(super) fn contention(clues: &Clues) -> Sign {
    if let Some(sign) = followed(clues, &[Place::CpuOther], Metric::CpuWaitOthers) {
        return match (sign, contention::left_too_few(clues)) {
            (sign @ Fits(_), Some(more)) => sign.and(more),
            (_, Some(told)) => Fits(told),
            (Fits(mut told), None) => {
                match let_go::by_either(clues).zip(contention::on_both_sides(clues)) {
                    Some((other, both)) => {
                        told.push(clues.told(Metric::OtherCpus, both));
                        told.extend(other);
                        told_of_another(told)
                    }
                    None => Fits(told),
                }
            }
            (sign, None) => sign,
        };
    }
    let Some(others) = others_used(clues) else {
        return Unknown;
    };
    let told = Evidence {
        name: clues.largest("other.cpu.", ".seconds").map(str::to_owned),
        ..clues.told(Metric::OtherCpus, others.pair)
    };
    contention::sign(&others, vec![told])
}

/// A guest that does not get its CPUs does everything more slowly, in proportion: the share of the time that it wanted
/// a CPU and that was taken from it must be larger on the slower side, and large enough to make a good part of the
/// change.
pub(super) fn steal(clues: &Clues) -> Sign {
    let busy = [
        name::CPU_USER_SECONDS,
        name::CPU_SYSTEM_SECONDS,
        name::CPU_INTERRUPTS_SECONDS,
    ];
    let busy = busy
        .iter()
        .filter_map(|name| clues.total(*name))
        .fold(Pair::of([0.0; 2]), Pair::sum);
    let Some(stolen) = clues.total(name::CPU_STEAL_SECONDS) else {
        return Unknown;
    };
    let share = |stolen: f64, busy: f64| {
        if stolen > 0.0 {
            stolen / (stolen + busy)
        } else {
            0.0
        }
    };
    let (fast, slow) = (share(stolen.fast, busy.fast), share(stolen.slow, busy.slow));
    // What was taken is counted in ticks: its ends beside what was left.
    let ticks = clues.in_cpus(
        stolen,
        Pair {
            fast: 1.0,
            slow: 1.0,
        },
    );
    let (fast_ends, slow_ends) = (
        ticks.fast().map(|s| share(s, busy.fast)),
        ticks.slow().map(|s| share(s, busy.slow)),
    );
    let told = vec![clues.told(Metric::StolenOfWanted, Pair { fast, slow })];
    let much = |fast: f64, slow: f64| {
        slow > fast + MORE_STOLEN.value
            && clues.parts(on_cpu).slow * (slow - fast) > GOOD_PART.value * clues.wall().more()
    };
    match much(fast, slow) {
        true => growth::fits(told, much(fast_ends[1], slow_ends[0])),
        false => growth::against(told, !much(fast_ends[0], slow_ends[1])),
    }
}

pub(super) fn mitigation(clues: &Clues) -> Sign {
    let mut differs = clues
        .fast()
        .host_clues(&clues.slow(), &["mitigations", TASK_MITIGATIONS]);
    let tasks = [
        (
            name::SERVER_STORE_BYPASS_MITIGATED,
            "speculative store bypass",
        ),
        (
            name::SERVER_INDIRECT_BRANCH_MITIGATED,
            "indirect branch speculation",
        ),
    ];
    for (name, words) in tasks {
        differs.extend(
            set_now(clues, name)
                .then(|| Evidence::of(Metric::TaskMitigationOnSlowerSide).named(words)),
        );
    }
    if differs.is_empty() && tasks.iter().all(|(name, _)| clues.total(*name).is_none()) {
        return Unknown;
    }
    let Some(fact) = differs.first() else {
        return Against(vec![Evidence::of(Metric::SameMitigations)]);
    };
    let on_user = clues.parts(user);
    let told = vec![
        Evidence::figure(Metric::UserCodeTimes, on_user.ratio()),
        fact.clone(),
    ];
    if on_user.ratio() > SLOWER_CODE.value {
        return Fits(told);
    }
    growth::against(
        told,
        ends(clues, user).map(|[_, high]| high <= SLOWER_CODE.value),
    )
}

/// How many times as long user code takes, and the kernel.
fn code_times(user: Pair, kernel: Pair) -> Told {
    vec![
        Evidence::figure(Metric::UserCodeTimes, user.ratio()),
        Evidence::figure(Metric::KernelTimes, kernel.ratio()),
    ]
}

/// These facts and more of them.
fn and(told: Told, more: impl IntoIterator<Item = Evidence>) -> Told {
    told.into_iter().chain(more).collect()
}

pub(super) fn speed(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let proportion = (on_user.ratio(), on_kernel.ratio());
    let told = code_times(on_user, on_kernel);
    if let Some((more, surely)) = more_to_do(clues) {
        return growth::against(and(told, more), surely);
    }
    if !together(clues) {
        return growth::against(told, surely_apart(clues));
    }
    if let Some(others) = contention::slow_the_same_work(clues) {
        return told_of_another(others);
    }
    if let Some(spared) = client_spared(clues, proportion.0.min(proportion.1)) {
        return growth::against(and(told, spared), surely_spared(clues));
    }
    // Of one processor model only its clock could differ; another build or setting is named first.
    match build(clues).into_iter().chain(setting(clues)).next() {
        Some(changed) => Against(and(told, [changed])),
        None => Fits(told),
    }
}

/// Whether they do not, with their whole intervals; nothing where these are not known.
fn surely_apart(clues: &Clues) -> Option<bool> {
    let ([user_low, user_high], [kernel_low, kernel_high]) =
        (ends(clues, user)?, ends(clues, kernel)?);
    let out_of_proportion = IN_PROPORTION.value.exp();
    Some(
        user_high <= SLOWER_CODE.value
            || kernel_high <= SLOWER_CODE.value
            || user_low >= out_of_proportion * kernel_high
            || kernel_low >= out_of_proportion * user_high,
    )
}

/// The load generator does the same work for each transaction on both sides. Where it runs on the server's machine, a
/// slower CPU makes its work longer as well: where that grew by less than half as much (of the logarithms), the CPU is
/// not what the server's code suffers from. Its CPU time has interrupts and waking up in it, of which a server that
/// answers later makes more; what followed requests spend in its own code has neither, and tells as well where it is
/// known.
fn client_spared(clues: &Clues, server: f64) -> Option<Told> {
    let counted = clues.per_transaction(name::CLIENT_CPU_SECONDS);
    let followed = clues
        .followed()
        .then(|| clues.parts(|layer, part| Kind::of(layer, part) == Kind::Client));
    let known = [counted, followed]
        .into_iter()
        .flatten()
        .filter(|c| c.fast > 0.0 && c.slow > 0.0);
    let client = known.map(Pair::ratio).min_by(f64::total_cmp)?;
    let told = || {
        vec![
            Evidence::figure(Metric::ClientWorkTimes, client),
            Evidence::of(Metric::ClientNotSlowed),
        ]
    };
    (client.ln() < server.ln() * CLIENT_TOO.value).then(told)
}

/// Whether it is spared with whole intervals; nothing where these are not known. What it used of a CPU is counted over
/// all transactions.
fn surely_spared(clues: &Clues) -> Option<bool> {
    let server = ends(clues, user)?[0].min(ends(clues, kernel)?[0]);
    let counted = clues
        .per_transaction(name::CLIENT_CPU_SECONDS)
        .filter(|c| c.fast > 0.0)
        .map_or(f64::INFINITY, Pair::ratio);
    let client = counted.min(ends(clues, |layer, part| Kind::of(layer, part) == Kind::Client)?[1]);
    Some(client.ln() < server.ln() * CLIENT_TOO.value)
}

/// Kernel time that grew outside of calls.
fn outside_of_calls(fast: &Entering, slow: &Entering) -> Option<Told> {
    let more = slow.more_than(fast);
    let grew =
        Evidence::figure(Metric::OutsideOfCalls, more).out_of(slow.traced_user - fast.traced_user);
    let each =
        (slow.calls >= 1.0).then(|| Evidence::figure(Metric::OutsideOfOneCall, more / slow.calls));
    (more > 0.0).then(|| std::iter::once(grew).chain(each).collect())
}

/// Entering costs every call a like amount. Where one kind of call has all the growth and others, made as often, have
/// next to none, it is that call's work that grew.
fn one_call(clues: &Clues) -> Option<(Told, bool)> {
    let counted = |(call, seconds)| {
        Some((
            call,
            seconds,
            clues
                .per_transaction_as(&format!("server.call.{call}.count"))?
                .slow,
        ))
    };
    let mut calls: Vec<(&str, Pair, f64)> = clues
        .kernel_parts()
        .into_iter()
        .filter_map(counted)
        .collect();
    calls.sort_by(|a, b| b.1.more().total_cmp(&a.1.more()));
    let (&(most, grew, count), rest) = calls.split_first()?;
    let others: f64 = rest.iter().map(|c| c.2).sum();
    let (expected, had) = (
        grew.more() * others / count.max(1e-9),
        rest.iter().map(|c| c.1.more()).sum::<f64>(),
    );
    let is = |call: &str, part: &Component| part.call() == Some(call);
    let (width, of_others) = (
        clues.width(|_, part| is(most, part)),
        clues.width(|_, part| rest.iter().any(|other| is(other.0, part))),
    );
    let least = (grew.more() - width).max(0.0) * others / count.max(1e-9);
    // Few others tell nothing.
    (grew.more() > 0.0 && others > count / 2.0 && had < LIKE_AMOUNTS.value * expected).then(|| {
        let told = vec![
            clues.told(Metric::OneCall, grew).named(most),
            Evidence::of(Metric::NotAllCalls),
        ];
        (
            told,
            clues.followed() && had + of_others < LIKE_AMOUNTS.value * least,
        )
    })
}

/// Whether the kernel takes no longer than before, or no longer than user code does, with whole intervals; nothing
/// where these are not known.
fn surely_no_more_expensive(clues: &Clues) -> Option<bool> {
    let ([user_low, _], [_, kernel_high]) = (ends(clues, user)?, ends(clues, kernel)?);
    Some(kernel_high <= SLOWER_CODE.value || kernel_high <= user_low * SLOWER_CODE.value)
}

pub(super) fn entry(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let mut told = code_times(on_user, on_kernel);
    // Of followed requests, how many calls one makes is known better than from counts in windows that may have missed
    // the server.
    let entering = clues.entering;
    let counted = clues.growth_of_calls();
    let calls = entering
        .map(|[fast, slow]| Pair {
            fast: fast.calls,
            slow: slow.calls,
        })
        .or_else(|| clues.calls_per_transaction());
    told.extend(
        clues
            .fast()
            .host_clues(&clues.slow(), &["seccomp", "seccomp filters"]),
    );
    let outside = entering.and_then(|[fast, slow]| outside_of_calls(&fast, &slow));
    told.extend(outside.into_iter().flatten());
    let filtered = [name::SERVER_SECCOMP_MODE, name::SERVER_SECCOMP_FILTERS]
        .iter()
        .any(|name| set_now(clues, *name));
    told.extend(filtered.then(|| Evidence::of(Metric::FilterOnSlowerSide)));
    told.extend(calls.map(|c| clues.told(Metric::Calls, c)));
    // Calls that map and unmap memory get slower with the number of its pages, and faults are no calls.
    let more_faults = faults(clues)
        .filter(|_| !filtered)
        .map(|count| more_than_few(&count, MORE_OF_A_COUNT.value, FEW_FAULTS.value));
    if let Some([true, surely]) = more_faults {
        return growth::against(and(told, [Evidence::of(Metric::MorePages)]), surely);
    }
    // Packets that are held up are held up in the calls that send them.
    if let Some(shaped) = (!filtered).then(|| signs_io::shaped(clues)).flatten() {
        return growth::against(and(told, shaped), signs_io::surely_shaped(clues));
    }
    if let Some((told, surely)) = (!filtered).then(|| one_call(clues)).flatten() {
        return growth::against(told, surely);
    }
    // So much no entry takes: it is traps, or work of the kernel's that no call asks for.
    if let Some([fast, slow]) = entering.filter(|_| !filtered) {
        let (more, most_expensive) = (
            slow.more_than(&fast),
            MOST_EXPENSIVE_ENTRY.value * slow.calls.max(1.0),
        );
        if more > most_expensive {
            let surely = more - 2.0 * slow.error.hypot(fast.error) > most_expensive;
            return growth::against(and(told, [Evidence::of(Metric::MoreThanEntering)]), surely);
        }
    }
    let slower = on_kernel.ratio() > SLOWER_CODE.value
        && on_kernel.ratio() > on_user.ratio() * SLOWER_CODE.value;
    // A filter that only the slower side has is a fact; counts of very many calls come from samples of the trace.
    match calls {
        _ if !slower
            && filtered
            && on_user.ratio() > SLOWER_CODE.value
            && filters_are_untold(clues) =>
        {
            Unknown
        }
        _ if !slower => growth::against(told, surely_no_more_expensive(clues)),
        _ if filtered => Fits(told),
        // Without a count of the calls nothing tells slow calls from many.
        None => Unknown,
        Some(calls) if calls.ratio() < AS_MANY_CALLS.value => Fits(told),
        Some(_) => growth::against(
            told,
            counted.is_some_and(|count| count.ratio()[0] >= AS_MANY_CALLS.value),
        ),
    }
}

pub(super) fn memory_limit(clues: &Clues) -> Sign {
    let mut signs = Vec::new();
    for (name, metric) in [
        (name::MEMORY_SWAP_IN_PAGES, Metric::PagesSwappedIn),
        (name::SERVER_FAULTS_MAJOR, Metric::MajorFaultsPerTransaction),
        (name::MEMORY_DIRECT_RECLAIM_PAGES, Metric::PagesReclaimed),
    ] {
        match grows(clues, name, MORE_OF_A_COUNT.value, metric) {
            fits @ Fits(_) => return fits,
            other => signs.push(other),
        }
    }
    match grows(
        clues,
        name::PSI_MEMORY_SOME_SECONDS,
        MORE_OF_A_COUNT.value,
        Metric::MemoryStalled,
    ) {
        fits @ Fits(_) => fits,
        // One that may have grown is not ruled out by another that did not.
        last => {
            let perhaps = signs.iter().position(|sign| matches!(sign, Perhaps(_)));
            let untold = signs.iter().position(|sign| matches!(sign, NotGrown(..)));
            perhaps
                .or(untold.filter(|_| !last.speaks()))
                .map_or(last, |at| signs.swap_remove(at))
        }
    }
}

pub(super) fn page_size(clues: &Clues) -> Sign {
    let mut facts = clues
        .fast()
        .host_clues(&clues.slow(), &["transparent huge pages"]);
    let off = set_now(clues, name::SERVER_THP_DISABLED)
        || clues
            .total(name::THP_ALWAYS)
            .is_some_and(|p| p.slow < p.fast);
    facts.extend((facts.is_empty() && off).then(|| Evidence::of(Metric::HugePagesOnFasterSide)));
    match (
        grows(
            clues,
            name::SERVER_FAULTS_MINOR,
            MORE_OF_A_COUNT.value,
            Metric::MinorFaults,
        ),
        facts.first(),
    ) {
        (sign, Some(fact)) if sign.speaks() => sign.and([fact.clone()]),
        // Misses of the TLB without more faults are what small pages cost a server that keeps its memory; nothing
        // counts them.
        (_, Some(_)) => Unknown,
        (_, None)
            if clues.total(name::SERVER_THP_DISABLED).is_none()
                && clues.total(name::THP_ALWAYS).is_none() =>
        {
            Unknown
        }
        (_, None) => Against(vec![Evidence::of(Metric::SameHugePages)]),
    }
}

/// A timer that the path ends in.
pub(super) fn wait(clues: &Clues) -> Sign {
    if let Some(other) = let_go::by_file_locks(clues) {
        return told_of_another(other);
    }
    followed(clues, &[Place::Sleeping], Metric::TimerWait).unwrap_or(Unknown)
}

pub(super) fn app_work(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let told = code_times(on_user, on_kernel);
    if let Some(others) = contention::slow_the_same_work(clues) {
        return told_of_another(others);
    }
    // Code that works longer makes more of the kernel's work besides it, too (interrupts, colder caches); the most of
    // it is its own.
    let most = on_user.more() > MOST_OF_CPU.value * (on_user.more() + on_kernel.more());
    let spared = on_user.ratio() > 1.0 && client_spared(clues, on_user.ratio()).is_some();
    match on_user.ratio() > SLOWER_CODE.value
        && (on_user.ratio() > MORE_THAN_KERNEL.value * on_kernel.ratio() || most || spared)
    {
        true if filters_are_untold(clues) => Unknown,
        true => Fits(told),
        // That the kernel grew as well, or the load generator, has no interval of its own: only code that takes no
        // longer clears.
        false => growth::against(
            told,
            ends(clues, user).map(|[_, high]| high <= SLOWER_CODE.value),
        ),
    }
}

/// Whether nothing tells filters that only the slower side has from the server's own code: they run before a call's
/// entry is traced, and ticks of user mode, which they are not, either are too few or did not grow with that code.
fn filters_are_untold(clues: &Clues) -> bool {
    let told = |[fast, slow]: [Entering; 2]| {
        slow.user - fast.user > TOLD_BY_TICKS.value * (slow.traced_user - fast.traced_user)
    };
    set_now(clues, name::SERVER_SECCOMP_FILTERS)
        && clues.followed()
        && !clues.entering.is_some_and(told)
}

/// More calls at about the cost of each.
pub(super) fn calls(clues: &Clues) -> Sign {
    if let Some(more) = round_trips(clues) {
        return Fits(vec![more]);
    }
    let (Some(calls), Some(count)) = (clues.calls_per_transaction(), clues.growth_of_calls())
    else {
        return Unknown;
    };
    if let Some(other) = flushes::journals(clues) {
        return told_of_another(other);
    }
    let on_kernel = clues.parts(kernel);
    let told = vec![
        clues.told(Metric::Calls, calls),
        Evidence::figure(Metric::KernelTimes, on_kernel.ratio()),
    ];
    let often = MORE_CALLS.value;
    // Slower calls besides are another's doing; a call's cost grows with what it moves, and so may a part of it.
    let at_same_cost = on_kernel.ratio() < calls.ratio() * often
        || by_number(clues).is_some_and(|part| part >= MOST_BY_NUMBER.value);
    match calls.ratio() > often && calls.slow > 1.0 {
        true if at_same_cost => {
            growth::fits(told, count.ratio()[0] > often && count.slow()[0] > 1.0)
        }
        // What each costs has an interval that the ratio of the kernel's time does not tell.
        true => NotGrown(told, None),
        false => growth::against(told, count.ratio()[1] <= often || count.slow()[1] <= 1.0),
    }
}

/// What part of the growth in the calls that both sides made their greater number makes, at what each cost on the
/// faster side.
fn by_number(clues: &Clues) -> Option<f64> {
    let of = |(call, seconds): (&str, Pair)| {
        let count = clues
            .per_transaction_as(&format!("server.call.{call}.count"))
            .filter(|c| c.fast > 0.0)?;
        Some((
            seconds.more(),
            (count.more() * seconds.fast / count.fast).clamp(0.0, seconds.more().max(0.0)),
        ))
    };
    let (grew, by_number) = clues
        .kernel_parts()
        .into_iter()
        .filter_map(of)
        .fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (grew > 0.0).then(|| by_number / grew)
}

/// What traces or audits on the slower side only. Where some of it is not known of both, nothing speaks against it.
pub(super) fn trace(clues: &Clues) -> Sign {
    let watched = [
        (name::SERVER_TRACED, Metric::TracedProcesses),
        (name::AUDIT_RULES, Metric::AuditRules),
        (name::TRACING_EVENTS, Metric::TraceEvents),
        (name::TRACING_TRACERS, Metric::Tracers),
        (name::TRACING_PROGRAMS, Metric::TracingPrograms),
    ];
    let known: Vec<(Pair, Metric)> = watched
        .iter()
        .filter_map(|(name, metric)| Some((clues.total(*name)?, *metric)))
        .collect();
    match known.iter().find(|(pair, _)| pair.slow > pair.fast) {
        Some((pair, metric)) => Fits(vec![clues.told(*metric, *pair)]),
        None if known.len() < watched.len() => Unknown,
        None => Against(vec![Evidence::of(Metric::NoTracing)]),
    }
}

/// Waiting for a CPU that the server itself had, where it keeps its CPUs busy.
pub(super) fn saturated(clues: &Clues) -> Sign {
    let Some(sign) = followed(clues, &[Place::CpuServer], Metric::CpuWaitServer) else {
        return Unknown;
    };
    if let Some(other) = contention::left_too_few(clues)
        .or_else(|| let_go::by_either(clues))
        .or_else(|| let_go::by_a_shaper(clues))
    {
        return told_of_another(other);
    }
    let used = [name::SERVER_USER_SECONDS, name::SERVER_KERNEL_SECONDS]
        .iter()
        .filter_map(|name| clues.total(*name))
        .reduce(Pair::sum);
    let (Some(used), Some(elapsed), Some(may)) = (
        used,
        clues.total(name::ELAPSED_SECONDS),
        clues.total(name::SERVER_CPUS_ALLOWED),
    ) else {
        return Unknown;
    };
    let counted = clues.in_cpus(used, elapsed);
    let used = counted.pair;
    let busy = clues.told(Metric::ServerCpus, used).out_of(may.slow);
    // CPUs that have less to do than on the faster side are not what became too few.
    let of_may = may.fast / may.slow.max(1e-9);
    if (Pair {
        fast: used.fast / may.fast,
        slow: used.slow / may.slow,
    })
    .ratio()
        < LESS_BUSY.value
    {
        let surely = counted.ratio()[1] * of_may < LESS_BUSY.value;
        return growth::against(vec![busy], surely);
    }
    let enough = SERVER_BUSY.value * may.slow;
    match sign.and([busy]) {
        Fits(told) | Perhaps(told) | NotGrown(told, _) | Against(told) if used.slow < enough => {
            growth::against(told, counted.slow()[1] < enough)
        }
        sign => sign,
    }
}
