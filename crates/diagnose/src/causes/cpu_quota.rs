//! `cpu.quota`: a CPU quota.

use fingerpost_record::cause::id;
use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Evidence, Layer, Metric, Status};

use super::parts::HELD_BACK;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, Rest, TwoSides, Words};
use crate::counts;
use crate::facts::Facts;
use crate::judging::{LIKELY, Verdict, at_most_likely, doubted, judged, part, reaches, ruled_out};
use crate::one_side::cpus::{CPU, throttled};
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::fitting::grows_by;
use crate::sides::sign::Sign;
use crate::thresholds::{MOST_OF_OUTSIDE, MOST_OF_WAITING, PERIODS_CUT, TWICE};

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_QUOTA,
    layer: Layer::Scheduler,
    words: Words {
        label: "CPU quota",
        slower: "a CPU quota",
        takes: None,
        tells: "waiting for a CPU while the group is throttled",
        remedy: "raise or remove the CPU quota of the server's control group (cpu.max)",
    },
    places: &[
        Place::CpuIdle,
        Place::CpuServer,
        Place::CpuClient,
        Place::CpuUnknown,
    ],
    moves: HELD_BACK,
    probes: &[],
    needs: &[Followed, Reading(name::THROTTLE_SECONDS)],
    follows: &[],
    told_from: &[],
    thresholds: &[PERIODS_CUT, TWICE, MOST_OF_OUTSIDE, MOST_OF_WAITING],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        rest: |c| Rest::surely(stops_outlast_windows(c)),
        ..TwoSides::of_parts(1, two_sides)
    }),
    experiments: &[Change::Quota],
    fault: Some(Fault::CpuQuota),
};

/// A thread that a quota stopped is ready to run, whoever has the CPU meanwhile; what a named process had is that
/// process's.
fn one_side(f: &Facts) -> Option<Verdict> {
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
    let verdict = judged(f, f.share(CAUSE.places), true, true, evidence.clone())?;
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

fn two_sides(clues: &Clues) -> Sign {
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
fn stops_outlast_windows(clues: &Clues) -> bool {
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
    clues.sign(CAUSE.name).speaks()
        && outside.more() > 0.0
        && share * turn.slow >= MOST_OF_OUTSIDE.value * outside.more()
}
