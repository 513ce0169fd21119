//! `cpu.affinity`: too few CPUs allowed.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Evidence, Layer, Metric};

use super::parts::HELD_BACK;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, ToldFrom, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, judged, part, ruled_out, told_of};
use crate::one_side::cpus::throttled;
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::sign::Sign::{self, Against, Fits, Unknown};
use crate::thresholds::{CPUS_FULL, CPUS_IDLE};

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_AFFINITY,
    layer: Layer::Scheduler,
    words: Words {
        label: "CPU affinity",
        slower: "too few CPUs allowed",
        takes: None,
        tells: "waiting for a CPU while one idles that the server may not use; no throttling",
        remedy: "allow the server more CPUs (taskset, cpuset)",
    },
    places: &[Place::CpuIdle],
    moves: HELD_BACK,
    probes: &[],
    needs: &[Followed, Reading(name::SERVER_CPUS_ALLOWED)],
    follows: &[],
    told_from: &[ToldFrom {
        other: id::CPU_QUOTA,
        by: &[name::THROTTLE_SECONDS],
    }],
    thresholds: &[CPUS_FULL, CPUS_IDLE],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(2, two_sides)),
    experiments: &[Change::Cpus],
    fault: Some(Fault::OneCpu),
};

fn one_side(f: &Facts) -> Option<Verdict> {
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
    let share = f.share(CAUSE.places);
    let verdict = judged(
        f,
        share,
        !throttled(f),
        full && f.idle.is_some_and(|idle| idle > CPUS_IDLE.value),
        evidence,
    );
    told_of(id::CPU_QUOTA, throttled(f), share, verdict)
}

fn two_sides(clues: &Clues) -> Sign {
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
