//! `client.saturated`: the load generator.

use fingerpost_record::cause::id;
use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, Rest, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{
    CONFIRMED, LIKELY, Verdict, at_most_likely, doubted, judged, missing, part, reaches,
};
use crate::places::{Kind, Place};
use crate::sides::client::stopped;
use crate::sides::clues::Clues;
use crate::sides::growth::{self, Growth, Pair};
use crate::sides::sign::Sign::{self, Fits, Unknown};
use crate::sides::sign::Told;
use crate::thresholds::{
    CLIENT_DOES_MORE, CLIENT_FULL, MOST_OF_CHANGE, MOST_PASSES, MUCH_WORK, SAME_COST,
};

/// The load generator, and what it has of the CPUs while the server or it itself waits for one.
const OF_CLIENT: &[Kind] = &[
    Kind::Client,
    Kind::ClientCpu,
    Kind::ClientCpuClient,
    Kind::ClientCpuFree,
    Kind::CpuClient,
];

pub(super) static CAUSE: Cause = Cause {
    name: id::CLIENT_SATURATED,
    layer: Layer::Client,
    words: Words {
        label: "the client itself",
        slower: "the load generator",
        takes: None,
        tells: "the client says that it was the limit, or used its CPUs up",
        remedy: "give the load generator more CPUs, or another machine: it is the limit, and not the server",
    },
    places: &[Place::Client, Place::CpuClient],
    moves: OF_CLIENT,
    probes: &[],
    needs: &[Followed, Reading(name::CLIENT_CPU_SECONDS)],
    follows: &[],
    told_from: &[],
    thresholds: &[CLIENT_FULL, MOST_PASSES, MUCH_WORK, CLIENT_DOES_MORE],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        rest: |_| Rest::Surely,
        ..TwoSides::of_parts(25, two_sides)
    }),
    experiments: &[Change::Client],
    fault: Some(Fault::BusyClient),
};

fn one_side(f: &Facts) -> Option<Verdict> {
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
    let share = f.share(CAUSE.places);
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

fn two_sides(clues: &Clues) -> Sign {
    // Over several passes, the share of those in which it said so.
    if clues
        .total(name::STEP_CLIENT_SATURATED)
        .is_some_and(|p| p.slow > MOST_PASSES.value && p.fast < MOST_PASSES.value)
    {
        return Fits(vec![Evidence::of(Metric::ClientSaysLimitOnSlowerSide)]);
    }
    if let Some(told) = client_does_more(clues).or_else(|| stopped(clues)) {
        return Fits(told);
    }
    let Some(counted) = client_share(clues) else {
        return Unknown;
    };
    let share = counted.pair;
    let told = vec![clues.told(Metric::ClientCpus, share)];
    let full = |share: f64| share > CLIENT_FULL.value;
    let ([fast_low, fast_high], [slow_low, slow_high]) = (counted.fast(), counted.slow());
    match full(share.slow) && !full(share.fast) {
        true => growth::fits(told, full(slow_low) && !full(fast_high)),
        false => growth::against(told, !full(slow_high) || full(fast_low)),
    }
}

/// A load generator that does clearly more for each transaction than on the other side, by its CPU time, between
/// requests and in them: the most of the change is in its own work and in what waits for the CPUs that it has.
fn client_does_more(clues: &Clues) -> Option<Told> {
    let work = clues
        .per_transaction(name::CLIENT_CPU_SECONDS)
        .filter(|c| c.fast > 0.0 && c.ratio() > CLIENT_DOES_MORE.value)?;
    // Who is sent the same in more pieces reads more often: that is the server's doing.
    if clues
        .calls_per_transaction()
        .is_some_and(|calls| calls.ratio() * SAME_COST.value >= work.ratio())
    {
        return None;
    }
    let behind = clues.parts(|layer, part| {
        matches!(
            Kind::of(layer, part),
            Kind::ClientCpuClient | Kind::CpuClient
        )
    });
    let change = clues.turn().more();
    let more = work.more() + behind.more().max(0.0);
    (clues.followed() && change > 0.0 && more > MOST_OF_CHANGE.value * change).then(|| {
        vec![
            clues.told(Metric::ClientWork, work),
            clues.told(Metric::BehindClient, behind),
        ]
    })
}

/// The share of its CPUs that the load generator used.
fn client_share(clues: &Clues) -> Option<Growth> {
    let (cpu, elapsed, cpus) = (
        clues.total(name::CLIENT_CPU_SECONDS)?,
        clues.total(name::ELAPSED_SECONDS)?,
        clues.total(name::STEP_CLIENT_CPUS)?,
    );
    let of_all = Pair {
        fast: elapsed.fast * cpus.fast.max(1.0),
        slow: elapsed.slow * cpus.slow.max(1.0),
    };
    Some(clues.in_cpus(cpu, of_all))
}
