//! How much of the CPUs the server is given: quota, affinity, priority, and what others use.

use super::clues::Clues;
use super::fitting::grows_by;
use super::growth::{Growth, Pair};
use super::sign::Sign::{self, Against, Fits, Unknown};
use crate::judging::limit;
use fingerpost_record::cause::thresholds::{MOST_OF_OUTSIDE, TWICE};

pub(super) fn quota(clues: &Clues) -> Sign {
    // The quota stopped the server so many times.
    let stops = clues
        .per_transaction("throttle.seconds")
        .and_then(|pair| clues.growth_of(pair, &["throttle.throttled_periods"]));
    grows_by(
        clues,
        "throttle.seconds",
        stops,
        TWICE.value,
        "throttled time",
    )
}

/// Whether a quota's stops make the most of what transactions take longer outside of followed requests. A stop lasts
/// for tens of milliseconds, and what it holds up is cut by windows that are shorter. The kernel adds up the stops of
/// each CPU: all of the server stands still for at least the mean of its CPUs.
pub(super) fn stops_outlast_windows(clues: &Clues) -> bool {
    let stopped = clues
        .a_second("throttle.seconds")
        .zip(clues.turnaround())
        .zip(clues.outside());
    let Some(((stopped, turn), outside)) = stopped else {
        return false;
    };
    let cpus = clues
        .total("server.cpus_allowed")
        .map_or(1.0, |may| may.slow.max(1.0));
    let share = (stopped / cpus).min(1.0);
    quota(clues).speaks()
        && outside.more() > 0.0
        && share * turn.slow >= MOST_OF_OUTSIDE.value * outside.more()
}

pub(super) fn affinity(clues: &Clues) -> Sign {
    let Some(allowed) = clues.total("server.cpus_allowed").filter(|p| p.slow >= 1.0) else {
        return Unknown;
    };
    let idle = clues.a_second("cpu.idle.seconds");
    let idling = idle.map_or(String::new(), |i| {
        format!(", while {i:.1} CPUs idled on the slower side")
    });
    let text = format!(
        "CPUs that the server may use: {}{idling}",
        clues.arrow(allowed, "")
    );
    if allowed.slow < allowed.fast {
        Fits(text)
    } else {
        Against(text)
    }
}

/// A higher nice value or a lower weight on the slower side only. Either may be the one that was changed; neither hides
/// the other.
pub(super) fn priority(clues: &Clues) -> Sign {
    let nice = clues.total("server.nice").map(|p| {
        (
            p.slow > p.fast,
            format!("the server's nice value: {}", clues.arrow(p, "")),
        )
    });
    let weight = weight(clues).map(|p| {
        (
            p.slow < limit("cpu.priority") * p.fast,
            format!("its CPU weight, of the usual: {}", clues.arrow(p, "")),
        )
    });
    let told: Vec<(bool, String)> = nice.into_iter().chain(weight).collect();
    if told.is_empty() {
        return Unknown;
    }
    let (lowered, words) = (
        told.iter().any(|t| t.0),
        told.into_iter().map(|t| t.1).collect::<Vec<_>>().join("; "),
    );
    if lowered { Fits(words) } else { Against(words) }
}

/// The CPU weight of the server's group relative to the usual, where the version that it is of is known.
pub(super) fn weight(clues: &Clues) -> Option<Pair> {
    let (weight, version) = (
        clues.total("cgroup.cpu_weight")?,
        clues.total("cgroup.cpu_weight.version")?,
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
        clues.total("other.cpu.seconds")?,
        clues.total("elapsed.seconds")?,
    ))
}
