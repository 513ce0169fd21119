//! `syscall.entry`: the cost of entering the kernel.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Component, Evidence, Layer, Metric};

use super::parts::KERNEL;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::entering::Entering;
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, doubted, judged, may_be_much};
use crate::one_side::filters::{entering, filtered};
use crate::places::{Place, add};
use crate::sides::clues::Clues;
use crate::sides::fitting::{ends, set_now};
use crate::sides::growth::{self, Pair};
use crate::sides::shaped::{shaped, surely_shaped};
use crate::sides::sign::Sign::{self, Fits, Unknown};
use crate::sides::sign::{Told, kernel, user};
use crate::sides::work::{and, code_times, faults, filters_are_untold, more_than_few};
use crate::thresholds::{
    AS_MANY_CALLS, FEW_FAULTS, LIKE_AMOUNTS, LIKE_ENTRIES, MORE_OF_A_COUNT, MOST_EXPENSIVE_ENTRY,
    MOST_OF_ROWS, MUCH_WORK, SLOWER_CODE, TOLD_BY_TICKS,
};

pub(super) static CAUSE: Cause = Cause {
    name: id::SYSCALL_ENTRY,
    layer: Layer::Kernel,
    words: Words {
        label: "system call and signal cost",
        slower: "the cost of entering the kernel",
        takes: None,
        tells: "every call slower by the same amount of time, user code unchanged; seccomp, mitigations",
        remedy: "shorten or remove seccomp filters, weigh the kernel's mitigations, or make fewer calls",
    },
    places: &[Place::Kernel, Place::Making],
    moves: KERNEL,
    probes: &[],
    needs: &[Followed, Reading(name::SERVER_CALL_READ_COUNT)],
    follows: &[id::KERNEL_TRACE],
    told_from: &[],
    thresholds: &[
        SLOWER_CODE,
        AS_MANY_CALLS,
        MORE_OF_A_COUNT,
        FEW_FAULTS,
        MUCH_WORK,
        MOST_EXPENSIVE_ENTRY,
        LIKE_AMOUNTS,
        TOLD_BY_TICKS,
        LIKE_ENTRIES,
        MOST_OF_ROWS,
    ],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(12, two_sides)),
    experiments: &[],
    fault: Some(Fault::CallFilter),
};

/// Without a count of the calls nothing tells a slow call from many.
fn one_side(f: &Facts) -> Option<Verdict> {
    let (mut share, calls) = (f.share(CAUSE.places)?, f.calls?);
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

fn two_sides(clues: &Clues) -> Sign {
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
    if let Some(shaped) = (!filtered).then(|| shaped(clues)).flatten() {
        return growth::against(and(told, shaped), surely_shaped(clues));
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
