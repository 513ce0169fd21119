//! How much of the CPUs the server is given: quota, affinity, priority, and what others use.

use super::clues::Clues;
use super::fitting::grows_by;
use super::growth::{Growth, Pair};
use super::sign::Sign::{self, Against, Fits, Unknown};
use fingerpost_record::cause::thresholds::{LOW_WEIGHT, MOST_OF_OUTSIDE, TWICE};
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric};

pub(super) fn quota(clues: &Clues) -> Sign {
    // The quota stopped the server so many times.
    let stops = clues
        .per_transaction(name::THROTTLE_SECONDS)
        .and_then(|pair| clues.growth_of(pair, &[name::THROTTLE_THROTTLED_PERIODS]));
    grows_by(
        clues,
        name::THROTTLE_SECONDS,
        stops,
        TWICE.value,
        Metric::ThrottledPerTransaction,
    )
}

/// Whether a quota's stops make the most of what transactions take longer outside of followed requests. A stop lasts
/// for tens of milliseconds, and what it holds up is cut by windows that are shorter. The kernel adds up the stops of
/// each CPU: all of the server stands still for at least the mean of its CPUs.
pub(super) fn stops_outlast_windows(clues: &Clues) -> bool {
    let stopped = clues
        .a_second(name::THROTTLE_SECONDS)
        .zip(clues.turnaround())
        .zip(clues.outside());
    let Some(((stopped, turn), outside)) = stopped else {
        return false;
    };
    let cpus = clues
        .total(name::SERVER_CPUS_ALLOWED)
        .map_or(1.0, |may| may.slow.max(1.0));
    let share = (stopped / cpus).min(1.0);
    quota(clues).speaks()
        && outside.more() > 0.0
        && share * turn.slow >= MOST_OF_OUTSIDE.value * outside.more()
}

pub(super) fn affinity(clues: &Clues) -> Sign {
    let Some(allowed) = clues
        .total(name::SERVER_CPUS_ALLOWED)
        .filter(|p| p.slow >= 1.0)
    else {
        return Unknown;
    };
    let idle = clues.a_second(name::CPU_IDLE_SECONDS);
    let mut told = vec![clues.told(Metric::CpusAllowed, allowed)];
    told.extend(idle.map(|i| Evidence::figure(Metric::CpusIdle, i)));
    if allowed.slow < allowed.fast {
        Fits(told)
    } else {
        Against(told)
    }
}

/// A higher nice value or a lower weight on the slower side only. Either may be the one that was changed; neither hides
/// the other.
pub(super) fn priority(clues: &Clues) -> Sign {
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
pub(super) fn weight(clues: &Clues) -> Option<Pair> {
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

/// CPUs' worth of time that other processes used.
pub(super) fn others_used(clues: &Clues) -> Option<Growth> {
    Some(clues.in_cpus(
        clues.total(name::OTHER_CPU_SECONDS)?,
        clues.total(name::ELAPSED_SECONDS)?,
    ))
}
