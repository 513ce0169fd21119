//! What tells the causes of CPUs, kernel and memory from their neighbours, and the helpers that all discriminators share.

use fingerpost_record::Layer;
use fingerpost_record::cause::thresholds::{
    AS_MANY_CALLS, CLIENT_TOO, DEAREST_ENTRY, FEW_CALLS, FEW_FAULTS, GOOD_PART, IN_PROPORTION, LESS_BUSY, LIKE_AMOUNTS, LONGER_WAIT,
    MORE_OF_A_COUNT, MORE_ROUND_TRIPS, MORE_STOLEN, MORE_THAN_KERNEL, MORE_TO_DO, MOST_BY_NUMBER, MOST_OF_CPU, MOST_OF_OUTSIDE,
    SLOWER_CODE, TOLD_BY_TICKS, TWICE,
};

use super::catalogue::Sign::{self, Against, Fits, NotGrown, Perhaps, Unknown};
use super::catalogue::{kernel, on_cpu, user};
use super::clues::{Clues, Pair, quantity};
use super::growth::{self, Growth, grown};
use super::{commits, crowded, let_go, signs_io};
use crate::entering::Entering;
use crate::hosts::TASK_MITIGATIONS;
use crate::places::{Kind, Place, name};
use crate::rules::limit;

/// A total that must grow clearly for the cause to fit. Seconds are no events.
pub(super) fn grows(clues: &Clues, name: &str, by: f64, words: &str) -> Sign {
    let growth = if name.ends_with("seconds") { None } else { clues.growth(name) };
    grows_by(clues, name, growth, by, words)
}

/// The same of a total that so many events make.
fn grows_by(clues: &Clues, name: &str, growth: Option<Growth>, by: f64, words: &str) -> Sign {
    let Some(pair) = clues.per_transaction(name) else { return Unknown };
    grown(pair, growth, by, format!("{words}: {} a transaction", clues.arrow(pair, name)))
}

/// Whether a setting holds on the slower side only.
pub(super) fn set_now(clues: &Clues, name: &str) -> bool {
    clues.total(name).is_some_and(|p| p.slow > p.fast)
}

/// A level (not a sum over the step) that must be clearly higher for the cause to fit.
pub(super) fn higher(clues: &Clues, name: &str, words: &str) -> Sign {
    let Some(level) = clues.total(name) else { return Unknown };
    let text = format!("{words}: {}", clues.arrow(level, name));
    grown(level, None, TWICE.value, text)
}

/// The ends of the ratio of two sides' parts, with the 95 % interval of their difference; nothing where requests were not followed on both.
fn ends(clues: &Clues, pick: fn(Layer, &str) -> bool) -> Option<[f64; 2]> {
    clues.followed().then(|| {
        let (pair, width) = (clues.parts(pick), clues.width(pick));
        [pair.slow - width, pair.slow + width].map(|slow| slow.max(0.0) / pair.fast.max(1e-12))
    })
}

/// What speaks against a cause: surely where it holds with whole intervals, else, and where these are not known, as little as a middle value says.
fn against(text: String, surely: Option<bool>) -> Sign {
    growth::against(text, surely == Some(true))
}

/// What is told of a cause because of another, which is there by middle values: it neither accuses nor clears.
pub(super) fn told_of_another(text: String) -> Sign {
    NotGrown(text, None)
}

/// CPUs of the machine that idled meanwhile, as CPUs' worth.
fn idle(clues: &Clues) -> Option<f64> {
    Some(clues.total("cpu.idle.seconds")?.slow / clues.total("elapsed.seconds")?.slow.max(1e-9))
}

pub(super) fn quota(clues: &Clues) -> Sign {
    // The quota stopped the server so many times.
    let stops = clues.per_transaction("throttle.seconds").and_then(|pair| clues.growth_of(pair, &["throttle.throttled_periods"]));
    grows_by(clues, "throttle.seconds", stops, TWICE.value, "throttled time")
}

/// Whether a quota's stops make the most of what transactions take longer outside of followed requests. A stop lasts for tens of
/// milliseconds, and what it holds up is cut by windows that are shorter. The kernel adds up the stops of each CPU: all of the server
/// stands still for at least the mean of its CPUs.
pub(super) fn stops_outlast_windows(clues: &Clues) -> bool {
    let (Some(stopped), Some(elapsed), Some(turn), Some(outside)) =
        (clues.total("throttle.seconds"), clues.total("elapsed.seconds"), clues.turnaround(), clues.outside())
    else {
        return false;
    };
    let cpus = clues.total("server.cpus_allowed").map_or(1.0, |may| may.slow.max(1.0));
    let share = (stopped.slow / elapsed.slow.max(1e-9) / cpus).min(1.0);
    quota(clues).speaks() && outside.more() > 0.0 && share * turn.slow >= MOST_OF_OUTSIDE.value * outside.more()
}

pub(super) fn affinity(clues: &Clues) -> Sign {
    let Some(allowed) = clues.total("server.cpus_allowed").filter(|p| p.slow >= 1.0) else { return Unknown };
    let idling = idle(clues).map_or(String::new(), |i| format!(", while {i:.1} CPUs idled on the slower side"));
    let text = format!("CPUs that the server may use: {}{idling}", clues.arrow(allowed, ""));
    if allowed.slow < allowed.fast { Fits(text) } else { Against(text) }
}

/// A higher nice value or a lower weight on the slower side only. Either may be the one that was changed; neither hides the other.
pub(super) fn priority(clues: &Clues) -> Sign {
    let nice = clues.total("server.nice").map(|p| (p.slow > p.fast, format!("the server's nice value: {}", clues.arrow(p, ""))));
    let weight =
        weight(clues).map(|p| (p.slow < limit("cpu.priority") * p.fast, format!("its CPU weight, of the usual: {}", clues.arrow(p, ""))));
    let told: Vec<(bool, String)> = nice.into_iter().chain(weight).collect();
    if told.is_empty() {
        return Unknown;
    }
    let (lowered, words) = (told.iter().any(|t| t.0), told.into_iter().map(|t| t.1).collect::<Vec<_>>().join("; "));
    if lowered { Fits(words) } else { Against(words) }
}

/// The CPU weight of the server's group relative to the usual, where the version that it is of is known.
fn weight(clues: &Clues) -> Option<Pair> {
    let (weight, version) = (clues.total("cgroup.cpu_weight")?, clues.total("cgroup.cpu_weight.version")?);
    let usual = crate::facts::usual_weight;
    Some(Pair { fast: weight.fast / usual(version.fast)?, slow: weight.slow / usual(version.slow)? })
}

/// Whether these seconds are a good part of what a transaction takes longer.
pub(super) fn is_good_part(clues: &Clues, more: f64) -> bool {
    more > GOOD_PART.value * clues.wall().more().max(0.0)
}

/// Whether a wait became clearly longer, and is a good part of the change.
pub(super) fn grew(clues: &Clues, waited: Pair) -> bool {
    is_good_part(clues, waited.more()) && waited.ratio() > LONGER_WAIT.value
}

/// Whether requests spent clearly more in these places; nothing where they were not followed on both sides.
pub(super) fn followed(clues: &Clues, places: &[Place], words: &str) -> Option<Sign> {
    let pair = clues.places(places)?;
    let whom = places.first().and_then(|place| clues.whom(*place)).map_or(String::new(), |name| format!(", most of it with {name}"));
    let text = format!("{words}: {} of a request{whom}", clues.arrow(pair, "seconds"));
    Some(if grew(clues, pair) { Fits(text) } else { NotGrown(text, clues.grew_at_most(places)) })
}

/// CPUs' worth of time that other processes used.
pub(super) fn others_used(clues: &Clues) -> Option<Growth> {
    Some(clues.in_cpus(clues.total("other.cpu.seconds")?, clues.total("elapsed.seconds")?))
}

pub(super) fn contention(clues: &Clues) -> Sign {
    if let Some(sign) = followed(clues, &[Place::CpuOther], "waiting for a CPU that another process had") {
        return match (sign, crowded::left_too_few(clues)) {
            (Fits(text), Some(more)) => Fits(format!("{text}; {more}")),
            (_, Some(text)) => Fits(text),
            (Fits(text), None) => match let_go::by_either(clues).filter(|_| crowded::on_both_sides(clues).is_some()) {
                Some(other) => told_of_another(format!("{text}; others are on both sides; {other}")),
                None => Fits(text),
            },
            (sign, None) => sign,
        };
    }
    let Some(others) = others_used(clues) else { return Unknown };
    let Pair { fast, slow } = others.pair;
    let most = clues.largest("other.cpu.", ".seconds").map_or(String::new(), |name| format!(", most of it {name}"));
    let text = format!("other processes used {slow:.2} CPUs{most}; {fast:.2} on the faster side");
    crowded::sign(&others, text)
}

/// A guest that does not get its CPUs does everything more slowly, in proportion: the share of the time that it wanted a CPU and that
/// was taken from it must be larger on the slower side, and large enough to make a good part of the change.
pub(super) fn steal(clues: &Clues) -> Sign {
    let busy = ["cpu.user.seconds", "cpu.system.seconds", "cpu.interrupts.seconds"].map(|name| clues.total(name));
    let Some(stolen) = clues.total("cpu.steal.seconds") else { return Unknown };
    let sum = |side: fn(Pair) -> f64| busy.iter().flatten().map(|p| side(*p)).sum::<f64>();
    let share = |stolen: f64, busy: f64| if stolen > 0.0 { stolen / (stolen + busy) } else { 0.0 };
    let busy = Pair { fast: sum(|p| p.fast), slow: sum(|p| p.slow) };
    let (fast, slow) = (share(stolen.fast, busy.fast), share(stolen.slow, busy.slow));
    // What was taken is counted in ticks: its ends beside what was left.
    let ticks = clues.in_cpus(stolen, Pair { fast: 1.0, slow: 1.0 });
    let (fast_ends, slow_ends) = (ticks.fast().map(|s| share(s, busy.fast)), ticks.slow().map(|s| share(s, busy.slow)));
    let text = format!(
        "the hypervisor took {:.0} % of the time in which CPUs were wanted, {:.0} % on the faster side",
        slow * 100.0,
        fast * 100.0
    );
    let much = |fast: f64, slow: f64| {
        slow > fast + MORE_STOLEN.value && clues.parts(on_cpu).slow * (slow - fast) > GOOD_PART.value * clues.wall().more()
    };
    match much(fast, slow) {
        true => growth::fits(text, much(fast_ends[1], slow_ends[0])),
        false => growth::against(text, !much(fast_ends[0], slow_ends[1])),
    }
}

pub(super) fn mitigation(clues: &Clues) -> Sign {
    let mut differs = clues.fast().host_clues(&clues.slow(), &["mitigations", TASK_MITIGATIONS]);
    let tasks = [
        ("server.store_bypass.mitigated", "speculative store bypass"),
        ("server.indirect_branch.mitigated", "indirect branch speculation"),
    ];
    for (name, words) in tasks {
        differs.extend(set_now(clues, name).then(|| format!("{words} is mitigated for the server on the slower side only")));
    }
    if differs.is_empty() && tasks.iter().all(|(name, _)| clues.total(name).is_none()) {
        return Unknown;
    }
    let Some(fact) = differs.first() else { return Against("the mitigations are the same".into()) };
    let on_user = clues.parts(user);
    let text = format!("user code takes {:.2} times as long; {fact}", on_user.ratio());
    if on_user.ratio() > SLOWER_CODE.value {
        return Fits(text);
    }
    against(text, ends(clues, user).map(|[_, high]| high <= SLOWER_CODE.value))
}

pub(super) fn speed(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let proportion = (on_user.ratio(), on_kernel.ratio());
    let text = format!("user code takes {:.2} times, the kernel {:.2} times as long", proportion.0, proportion.1);
    if let Some((more, surely)) = more_to_do(clues) {
        return growth::against(format!("{text}; {more}"), surely);
    }
    if !together(clues) {
        return against(text, surely_apart(clues));
    }
    if let Some(others) = crowded::slow_the_same_work(clues) {
        return told_of_another(others);
    }
    if let Some(spared) = client_spared(clues, proportion.0.min(proportion.1)) {
        return against(format!("{text}; {spared}"), surely_spared(clues));
    }
    // Of one processor model only its clock could differ; another build or setting is named first.
    match build(clues).into_iter().chain(setting(clues)).next() {
        Some(changed) => Against(format!("{text}; {changed}")),
        None => Fits(text),
    }
}

/// Whether user code and kernel take longer in proportion, and neither by nothing.
pub(super) fn together(clues: &Clues) -> bool {
    let (on_user, on_kernel) = (clues.parts(user).ratio(), clues.parts(kernel).ratio());
    on_user > SLOWER_CODE.value && on_kernel > SLOWER_CODE.value && (on_user / on_kernel).ln().abs() < IN_PROPORTION.value
}

/// Whether they do not, with their whole intervals; nothing where these are not known.
fn surely_apart(clues: &Clues) -> Option<bool> {
    let ([user_low, user_high], [kernel_low, kernel_high]) = (ends(clues, user)?, ends(clues, kernel)?);
    let out_of_proportion = IN_PROPORTION.value.exp();
    Some(
        user_high <= SLOWER_CODE.value
            || kernel_high <= SLOWER_CODE.value
            || user_low >= out_of_proportion * kernel_high
            || kernel_low >= out_of_proportion * user_high,
    )
}

/// The load generator does the same work for each transaction on both sides. Where it runs on the server's machine, a slower CPU makes its
/// work longer as well: where that grew by less than half as much (of the logarithms), the CPU is not what the server's code suffers from.
/// Its CPU time has interrupts and waking up in it, of which a server that answers later makes more; what followed requests spend in its own
/// code has neither, and tells as well where it is known.
fn client_spared(clues: &Clues, server: f64) -> Option<String> {
    let counted = clues.per_transaction("client.cpu.seconds");
    let followed = clues.followed().then(|| clues.parts(|layer, part| Kind::of(layer, part) == Kind::Client));
    let known = [counted, followed].into_iter().flatten().filter(|c| c.fast > 0.0 && c.slow > 0.0);
    let client = known.map(Pair::ratio).min_by(f64::total_cmp)?;
    let text = format!("the load generator's own work takes {client:.2} times as long, and a slower CPU would slow it as well");
    (client.ln() < server.ln() * CLIENT_TOO.value).then_some(text)
}

/// Whether it is spared with whole intervals; nothing where these are not known. What it used of a CPU is counted over all transactions.
fn surely_spared(clues: &Clues) -> Option<bool> {
    let server = ends(clues, user)?[0].min(ends(clues, kernel)?[0]);
    let counted = clues.per_transaction("client.cpu.seconds").filter(|c| c.fast > 0.0).map_or(f64::INFINITY, Pair::ratio);
    let client = counted.min(ends(clues, |layer, part| Kind::of(layer, part) == Kind::Client)?[1]);
    Some(client.ln() < server.ln() * CLIENT_TOO.value)
}

/// Another compiler or library on the same processor, or a parameter of the sides that names a build.
pub(super) fn build(clues: &Clues) -> Option<String> {
    let (fast, slow) = clues.hosts();
    let same_cpu = fast.cpu.model == slow.cpu.model;
    let differs = || clues.fast().host_clues(&clues.slow(), &["compilers", "C library"]).into_iter().next();
    let named = clues.changed().iter().find(|c| c.is_build).map(|c| c.words.clone());
    named.or_else(|| differs().filter(|_| same_cpu))
}

/// A parameter or variable that differs between the sides and is no build.
pub(super) fn setting(clues: &Clues) -> Option<String> {
    clues.changed().iter().find(|c| !c.is_build).map(|c| c.words.clone())
}

/// Page faults of the server per transaction.
fn faults(clues: &Clues) -> Option<Growth> {
    let minor = clues.per_transaction("server.faults.minor")?;
    let all = clues.per_transaction("server.faults.major").map(|major| Pair::sum(minor, major));
    match all {
        Some(all) => clues.growth_of(all, &["server.faults.minor", "server.faults.major"]),
        None => clues.growth_of(minor, &["server.faults.minor"]),
    }
}

/// Whether a count is so many times as large, and more than a few of a transaction: by its middle, and with its whole interval.
fn more_than_few(count: &Growth, by: f64, few: f64) -> [bool; 2] {
    let middle = count.pair.ratio() > by && count.pair.slow > few;
    [middle, middle && count.ratio()[0] > by && count.slow()[0] > few]
}

/// What makes the CPU do more for a transaction, so that its longer time says nothing of its speed, and whether that is so for sure.
pub(super) fn more_to_do(clues: &Clues) -> Option<(String, bool)> {
    if ["server.thp_disabled", "server.seccomp.filters", "server.store_bypass.mitigated"].iter().any(|name| set_now(clues, name)) {
        return Some(("a setting of the server's tasks differs that costs CPU time".into(), true));
    }
    if let Some(more) = round_trips(clues) {
        return Some((more, true));
    }
    let grew = |count: Option<Growth>, least: f64, words: &str| {
        let count = count?;
        let [middle, surely] = more_than_few(&count, MORE_TO_DO.value, least);
        middle.then(|| (format!("{words} a transaction: {}", clues.arrow(count.pair, "")), surely))
    };
    let (of_faults, of_calls) =
        (grew(faults(clues), FEW_FAULTS.value, "faults"), grew(clues.growth_of_calls(), FEW_CALLS.value, "system calls"));
    match (of_faults, of_calls) {
        (Some((_, false)), Some(calls @ (_, true))) => Some(calls),
        (of_faults, of_calls) => of_faults.or(of_calls),
    }
}

/// Kernel time that grew outside of calls, in words.
fn outside_of_calls(fast: &Entering, slow: &Entering) -> Option<String> {
    let (more, seconds) = (slow.more_than(fast), |s| quantity(s, "seconds"));
    let each = if slow.calls >= 1.0 { format!(", {} a call", seconds(more / slow.calls)) } else { String::new() };
    let by_trace = seconds(slow.traced_user - fast.traced_user);
    let words = "before a call's entry is traced, seccomp filters and what else enters the kernel run";
    (more > 0.0).then(|| {
        format!("of {by_trace} more that the trace sees outside of calls, ticks count {} as the kernel's{each}: {words}", seconds(more))
    })
}

/// Entering costs every call a like amount. Where one kind of call has all the growth and others, made as often, have next to none, it is
/// that call's work that grew.
fn one_call(clues: &Clues) -> Option<(String, bool)> {
    let mut calls: Vec<(&str, Pair, f64)> = clues
        .kernel_parts()
        .into_iter()
        .filter_map(|(call, seconds)| {
            let count = clues.per_transaction(&format!("server.call.{call}.count"))?;
            Some((call, seconds, count.slow))
        })
        .collect();
    calls.sort_by(|a, b| b.1.more().total_cmp(&a.1.more()));
    let (&(most, grew, count), rest) = calls.split_first()?;
    let others: f64 = rest.iter().map(|c| c.2).sum();
    let (expected, had) = (grew.more() * others / count.max(1e-9), rest.iter().map(|c| c.1.more()).sum::<f64>());
    let is = |call: &str, part: &str| part.strip_prefix(name::KERNEL) == Some(call);
    let (width, of_others) = (clues.width(|_, part| is(most, part)), clues.width(|_, part| rest.iter().any(|other| is(other.0, part))));
    let least = (grew.more() - width).max(0.0) * others / count.max(1e-9);
    // Few others tell nothing.
    (grew.more() > 0.0 && others > count / 2.0 && had < LIKE_AMOUNTS.value * expected).then(|| {
        let arrow = clues.arrow(grew, "seconds");
        let text = format!("of the calls {most} alone takes longer ({arrow} of a request), and entering costs all of them a like amount");
        (text, clues.followed() && had + of_others < LIKE_AMOUNTS.value * least)
    })
}

/// Whether the kernel takes no longer than before, or no longer than user code does, with whole intervals; nothing where these are not known.
fn surely_no_dearer(clues: &Clues) -> Option<bool> {
    let ([user_low, _], [_, kernel_high]) = (ends(clues, user)?, ends(clues, kernel)?);
    Some(kernel_high <= SLOWER_CODE.value || kernel_high <= user_low * SLOWER_CODE.value)
}

pub(super) fn entry(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let text = format!("the kernel takes {:.2} times as long, user code {:.2} times", on_kernel.ratio(), on_user.ratio());
    // Of followed requests, how many calls one makes is known better than from counts in windows that may have missed the server.
    let entering = clues.entering();
    let counted = clues.growth_of_calls();
    let calls = entering.map(|[fast, slow]| Pair { fast: fast.calls, slow: slow.calls }).or_else(|| clues.calls_per_transaction());
    let mut facts = clues.fast().host_clues(&clues.slow(), &["seccomp", "seccomp filters"]);
    facts.extend(entering.and_then(|[fast, slow]| outside_of_calls(&fast, &slow)));
    let filtered = ["server.seccomp.mode", "server.seccomp.filters"].iter().any(|name| set_now(clues, name));
    facts.extend(filtered.then(|| "system calls pass a seccomp filter on the slower side only".to_owned()));
    facts.extend(calls.map(|c| format!("{} calls a transaction", clues.arrow(c, ""))));
    let text = facts.into_iter().fold(text, |t, fact| format!("{t}; {fact}"));
    // Calls that map and unmap memory get slower with the number of its pages, and faults are no calls.
    let more_faults = faults(clues).filter(|_| !filtered).map(|count| more_than_few(&count, MORE_OF_A_COUNT.value, FEW_FAULTS.value));
    if let Some([true, surely]) = more_faults {
        return growth::against(format!("{text}; the pages that it handles grew in number"), surely);
    }
    // Packets that are held up are held up in the calls that send them.
    if let Some(shaped) = (!filtered).then(|| signs_io::shaped(clues)).flatten() {
        return growth::against(format!("{text}; {shaped}"), signs_io::surely_shaped(clues));
    }
    if let Some((text, surely)) = (!filtered).then(|| one_call(clues)).flatten() {
        return growth::against(text, surely);
    }
    // So much no entry takes: it is traps, or work of the kernel's that no call asks for.
    if let Some([fast, slow]) = entering.filter(|_| !filtered) {
        let (more, dearest) = (slow.more_than(&fast), DEAREST_ENTRY.value * slow.calls.max(1.0));
        if more > dearest {
            let surely = more - 2.0 * slow.error.hypot(fast.error) > dearest;
            return growth::against(format!("{text}; that is more than entering a call takes"), surely);
        }
    }
    let slower = on_kernel.ratio() > SLOWER_CODE.value && on_kernel.ratio() > on_user.ratio() * SLOWER_CODE.value;
    // A filter that only the slower side has is a fact; counts of very many calls come from samples of the trace.
    match calls {
        _ if !slower && filtered && on_user.ratio() > SLOWER_CODE.value && filters_are_untold(clues) => Unknown,
        _ if !slower => against(text, surely_no_dearer(clues)),
        _ if filtered => Fits(text),
        // Without a count of the calls nothing tells slow calls from many.
        None => Unknown,
        Some(calls) if calls.ratio() < AS_MANY_CALLS.value => Fits(text),
        Some(_) => growth::against(text, counted.is_some_and(|count| count.ratio()[0] >= AS_MANY_CALLS.value)),
    }
}

pub(super) fn memory_limit(clues: &Clues) -> Sign {
    let mut signs = Vec::new();
    for (name, words) in [
        ("memory.swap_in.pages", "pages swapped in"),
        ("server.faults.major", "major faults"),
        ("memory.direct_reclaim.pages", "pages reclaimed directly"),
    ] {
        match grows(clues, name, MORE_OF_A_COUNT.value, words) {
            fits @ Fits(_) => return fits,
            other => signs.push(other),
        }
    }
    match grows(clues, "psi.memory.some.seconds", MORE_OF_A_COUNT.value, "stalled for memory") {
        fits @ Fits(_) => fits,
        // One that may have grown is not cleared by another that did not.
        last => {
            let perhaps = signs.iter().position(|sign| matches!(sign, Perhaps(_)));
            let untold = signs.iter().position(|sign| matches!(sign, NotGrown(..)));
            perhaps.or(untold.filter(|_| !last.speaks())).map_or(last, |at| signs.swap_remove(at))
        }
    }
}

pub(super) fn page_size(clues: &Clues) -> Sign {
    let mut facts = clues.fast().host_clues(&clues.slow(), &["transparent huge pages"]);
    let off = set_now(clues, "server.thp_disabled") || clues.total("thp.always").is_some_and(|p| p.slow < p.fast);
    facts.extend((facts.is_empty() && off).then(|| "the server may use huge pages on the faster side only".to_owned()));
    match (grows(clues, "server.faults.minor", MORE_OF_A_COUNT.value, "minor faults"), facts.first()) {
        (Fits(text), Some(fact)) => Fits(format!("{text}; {fact}")),
        (Perhaps(text), Some(fact)) => Perhaps(format!("{text}; {fact}")),
        // Misses of the TLB without more faults are what small pages cost a server that keeps its memory; nothing counts them.
        (_, Some(_)) => Unknown,
        (_, None) if clues.total("server.thp_disabled").is_none() && clues.total("thp.always").is_none() => Unknown,
        (_, None) => Against("huge pages are set alike".into()),
    }
}

/// A timer that the path ends in.
pub(super) fn wait(clues: &Clues) -> Sign {
    if let Some(other) = let_go::by_file_locks(clues) {
        return told_of_another(other);
    }
    followed(clues, &[Place::Sleeping], "sleeping until a time").unwrap_or(Unknown)
}

pub(super) fn app_work(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let text = format!("user code takes {:.2} times as long, the kernel {:.2} times", on_user.ratio(), on_kernel.ratio());
    if let Some(others) = crowded::slow_the_same_work(clues) {
        return told_of_another(others);
    }
    // Code that works longer makes more of the kernel's work besides it, too (interrupts, colder caches); the most of it is its own.
    let most = on_user.more() > MOST_OF_CPU.value * (on_user.more() + on_kernel.more());
    let spared = on_user.ratio() > 1.0 && client_spared(clues, on_user.ratio()).is_some();
    match on_user.ratio() > SLOWER_CODE.value && (on_user.ratio() > MORE_THAN_KERNEL.value * on_kernel.ratio() || most || spared) {
        true if filters_are_untold(clues) => Unknown,
        true => Fits(text),
        // That the kernel grew as well, or the load generator, has no interval of its own: only code that takes no longer clears.
        false => against(text, ends(clues, user).map(|[_, high]| high <= SLOWER_CODE.value)),
    }
}

/// Whether nothing tells filters that only the slower side has from the server's own code: they run before a call's entry is traced, and ticks
/// of user mode, which they are not, either are too few or did not grow with that code.
fn filters_are_untold(clues: &Clues) -> bool {
    let told = |[fast, slow]: [Entering; 2]| slow.user - fast.user > TOLD_BY_TICKS.value * (slow.traced_user - fast.traced_user);
    set_now(clues, "server.seccomp.filters") && clues.followed() && !clues.entering().is_some_and(told)
}

/// Round trips between client and server that a transaction makes more of on the slower side: each asks for the server's work, its calls, and
/// waits for CPUs and the network again.
pub(super) fn round_trips(clues: &Clues) -> Option<String> {
    let turns = clues.total("step.turns_per_transaction").filter(|t| t.fast >= 1.0 && t.ratio() > MORE_ROUND_TRIPS.value)?;
    Some(format!("a transaction makes {} round trips to the server", clues.arrow(turns, "")))
}

/// More calls at about the cost of each.
pub(super) fn calls(clues: &Clues) -> Sign {
    if let Some(text) = round_trips(clues) {
        return Fits(text);
    }
    let (Some(calls), Some(count)) = (clues.calls_per_transaction(), clues.growth_of_calls()) else { return Unknown };
    if let Some(text) = commits::journals(clues) {
        return told_of_another(text);
    }
    let on_kernel = clues.parts(kernel);
    let text = format!("{} calls a transaction, the kernel {:.2} times as long", clues.arrow(calls, ""), on_kernel.ratio());
    let often = limit("app.calls");
    // Slower calls besides are another's doing; a call's cost grows with what it moves, and so may a part of it.
    let at_same_cost = on_kernel.ratio() < calls.ratio() * often || by_number(clues).is_some_and(|part| part >= MOST_BY_NUMBER.value);
    match calls.ratio() > often && calls.slow > 1.0 {
        true if at_same_cost => growth::fits(text, count.ratio()[0] > often && count.slow()[0] > 1.0),
        // What each costs has an interval that the ratio of the kernel's time does not tell.
        true => NotGrown(text, None),
        false => growth::against(text, count.ratio()[1] <= often || count.slow()[1] <= 1.0),
    }
}

/// What part of the growth in the calls that both sides made their greater number makes, at what each cost on the faster side.
fn by_number(clues: &Clues) -> Option<f64> {
    let of = |(call, seconds): (&str, Pair)| {
        let count = clues.per_transaction(&format!("server.call.{call}.count")).filter(|c| c.fast > 0.0)?;
        Some((seconds.more(), (count.more() * seconds.fast / count.fast).clamp(0.0, seconds.more().max(0.0))))
    };
    let (grew, by_number) = clues.kernel_parts().into_iter().filter_map(of).fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (grew > 0.0).then(|| by_number / grew)
}

/// What traces or audits on the slower side only. Where some of it is not known of both, nothing speaks against it.
pub(super) fn trace(clues: &Clues) -> Sign {
    let watched = [
        ("server.traced", "processes of the server are traced (ptrace)"),
        ("audit.rules", "audit rules are loaded"),
        ("tracing.events", "trace events are switched on"),
        ("tracing.tracers", "tracers are switched on"),
        ("tracing.programs", "programs in the kernel trace for others"),
    ];
    let known: Vec<(Pair, &str)> = watched.iter().filter_map(|(name, words)| Some((clues.total(name)?, *words))).collect();
    match known.iter().find(|(pair, _)| pair.slow > pair.fast) {
        Some((pair, words)) => Fits(format!("{} {words}", clues.arrow(*pair, ""))),
        None if known.len() < watched.len() => Unknown,
        None => Against("no program traces or audits the server on the slower side alone".into()),
    }
}

/// Waiting for a CPU that the server itself had, where it keeps its CPUs busy.
pub(super) fn saturated(clues: &Clues) -> Sign {
    let Some(sign) = followed(clues, &[Place::CpuServer], "waiting for a CPU that the server itself had") else { return Unknown };
    if let Some(other) = crowded::left_too_few(clues).or_else(|| let_go::by_either(clues)).or_else(|| let_go::by_a_shaper(clues)) {
        return told_of_another(other);
    }
    let used = ["server.user.seconds", "server.kernel.seconds"].iter().filter_map(|name| clues.total(name)).reduce(Pair::sum);
    let (Some(used), Some(elapsed), Some(may)) = (used, clues.total("elapsed.seconds"), clues.total("server.cpus_allowed")) else {
        return Unknown;
    };
    let counted = clues.in_cpus(used, elapsed);
    let used = counted.pair;
    let text = format!("the server used {:.2} of {} CPUs on the slower side", used.slow, may.slow);
    // CPUs that have less to do than on the faster side are not what became too few.
    let of_may = may.fast / may.slow.max(1e-9);
    if (Pair { fast: used.fast / may.fast, slow: used.slow / may.slow }).ratio() < LESS_BUSY.value {
        let surely = counted.ratio()[1] * of_may < LESS_BUSY.value;
        return growth::against(format!("{text}, {:.2} of {} on the faster side", used.fast, may.fast), surely);
    }
    let enough = limit("cpu.saturated") * may.slow;
    match sign {
        Fits(sign) | Perhaps(sign) | NotGrown(sign, _) | Against(sign) if used.slow < enough => {
            growth::against(format!("{sign}; {text}"), counted.slow()[1] < enough)
        }
        Fits(sign) => Fits(format!("{sign}; {text}")),
        Perhaps(sign) => Perhaps(format!("{sign}; {text}")),
        NotGrown(sign, at_most) => NotGrown(format!("{sign}; {text}"), at_most),
        Against(sign) => Against(format!("{sign}; {text}")),
        Unknown => Unknown,
    }
}
