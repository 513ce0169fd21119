//! `host.steal`: the host under this guest.

use fingerpost_record::cause::id;
use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::ON_CPU;
use crate::cause::Need::Reading;
use crate::cause::{Cause, TwoSides, Words};
use crate::counts;
use crate::facts::Facts;
use crate::judging::{CONFIRMED, LIKELY, Verdict, doubted, judged, reaches, ruled_out};
use crate::sides::clues::Clues;
use crate::sides::growth::{self, Pair};
use crate::sides::sign::Sign::{self, Unknown};
use crate::sides::sign::on_cpu;
use crate::thresholds::{GOOD_PART, MORE_STOLEN, MORE_STOLEN_SECONDS};

pub(super) static CAUSE: Cause = Cause {
    name: id::HOST_STEAL,
    layer: Layer::Host,
    words: Words {
        label: "host steal",
        slower: "the host under this guest",
        takes: None,
        tells: "steal time, alike for all",
        remedy: "move the guest to a host whose CPUs are free, or have CPUs reserved for it",
    },
    places: &[],
    moves: ON_CPU,
    probes: &[],
    needs: &[Reading(name::CPU_STEAL_SECONDS)],
    follows: &[],
    told_from: &[],
    thresholds: &[MORE_STOLEN, MORE_STOLEN_SECONDS, GOOD_PART],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(7, two_sides)),
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
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

/// A guest that does not get its CPUs does everything more slowly, in proportion: the share of the time that it wanted
/// a CPU and that was taken from it must be larger on the slower side, and large enough to make a good part of the
/// change.
fn two_sides(clues: &Clues) -> Sign {
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
