//! `cpu.priority`: a low priority.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, judged, ruled_out};
use crate::one_side::cpus::{lowered, others};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::growth::Pair;
use crate::sides::sign::Sign::{self, Against, Fits, Unknown};
use crate::thresholds::LOW_WEIGHT;

/// The server's threads, ready to run, where any other has the CPUs before them.
const COME_LATER: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::CpuOthers,
    Kind::CpuClient,
];

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_PRIORITY,
    layer: Layer::Scheduler,
    words: Words {
        label: "priority",
        slower: "a low priority",
        takes: None,
        tells: "as contention, with a lower weight or a higher nice value",
        remedy: "give the server the usual nice value and CPU weight",
    },
    places: &[Place::CpuOther],
    moves: COME_LATER,
    probes: &[],
    needs: &[Followed, Reading(name::SERVER_NICE)],
    follows: &[],
    told_from: &[],
    thresholds: &[LOW_WEIGHT],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(3, two_sides)),
    experiments: &[Change::Priority, Change::Weight],
    fault: Some(Fault::Niced),
};

fn one_side(f: &Facts) -> Option<Verdict> {
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

/// A higher nice value or a lower weight on the slower side only. Either may be the one that was changed; neither hides
/// the other.
fn two_sides(clues: &Clues) -> Sign {
    let nice = clues
        .total(name::SERVER_NICE)
        .map(|p| (p.slow > p.fast, clues.told(Metric::Nice, p)));
    let weight = weight(clues).map(|p| {
        (
            p.slow < LOW_WEIGHT.value * p.fast,
            clues.told(Metric::CpuWeight, p),
        )
    });
    let told: Vec<(bool, Evidence)> = nice.into_iter().chain(weight).collect();
    if told.is_empty() {
        return Unknown;
    }
    let lowered = told.iter().any(|t| t.0);
    let told = told.into_iter().map(|t| t.1).collect();
    if lowered { Fits(told) } else { Against(told) }
}

/// The CPU weight of the server's group relative to the usual, where the version that it is of is known.
fn weight(clues: &Clues) -> Option<Pair> {
    let (weight, version) = (
        clues.total(name::CGROUP_CPU_WEIGHT)?,
        clues.total(name::CGROUP_CPU_WEIGHT_VERSION)?,
    );
    let usual = crate::facts::usual_weight;
    Some(Pair {
        fast: weight.fast / usual(version.fast)?,
        slow: weight.slow / usual(version.slow)?,
    })
}
