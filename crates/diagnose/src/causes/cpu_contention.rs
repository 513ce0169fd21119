//! `cpu.contention`: other processes on the CPUs.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Component, Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, ToldFrom, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, judged, ruled_out, told_of};
use crate::one_side::cpus::{lowered, others, throttled};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::contention::{self, more, others_used};
use crate::sides::fitting::{followed, told_of_another};
use crate::sides::growth::{self, Growth};
use crate::sides::let_go;
use crate::sides::sign::Sign::{self, Fits, Unknown};
use crate::sides::sign::Told;
use crate::thresholds::{
    BEYOND_WORK, CPUS_IDLE, GOOD_PART, LITTLE_OF_CPUS, LONGER_WAIT, MUCH_OF_CPUS, OTHERS_CAME,
    OTHERS_CAME_TIMES, SAME_NEIGHBOURS, SAME_WORK,
};

/// Ready to run, where others had the CPUs: what they have the load generator lacks as well. Of older records who had
/// them is not known.
const BESIDE_OTHERS: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::ClientCpu,
    Kind::CpuOthers,
    Kind::ClientCpuOthers,
];

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_CONTENTION,
    layer: Layer::Scheduler,
    words: Words {
        label: "run queue: other processes",
        slower: "other processes on the CPUs",
        takes: Some("waiting for a CPU that other processes have"),
        tells: "waiting for a CPU that a named process had, at the usual weight and nice value",
        remedy: "move or limit the other processes, or give the server's group a higher CPU weight",
    },
    places: &[Place::CpuOther],
    moves: BESIDE_OTHERS,
    probes: &[],
    needs: &[Followed, Reading(name::OTHER_CPU_SECONDS)],
    follows: &[],
    told_from: &[
        ToldFrom {
            other: id::CPU_QUOTA,
            by: &[name::THROTTLE_SECONDS],
        },
        ToldFrom {
            other: id::CPU_PRIORITY,
            // The version of a weight is known where the weight is.
            by: &[name::SERVER_NICE, name::CGROUP_CPU_WEIGHT_VERSION],
        },
    ],
    thresholds: &[
        MUCH_OF_CPUS,
        LITTLE_OF_CPUS,
        CPUS_IDLE,
        LONGER_WAIT,
        GOOD_PART,
        OTHERS_CAME,
        OTHERS_CAME_TIMES,
        SAME_NEIGHBOURS,
        SAME_WORK,
        BEYOND_WORK,
    ],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        explained_by: &[
            id::CPU_AFFINITY,
            id::CPU_QUOTA,
            id::CPU_PRIORITY,
            id::STORAGE_DURABILITY,
            id::APP_LOCK,
        ],
        also,
        ..TwoSides::of_parts(4, two_sides)
    }),
    experiments: &[Change::Weight, Change::Hold],
    fault: Some(Fault::BusyNeighbour),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let (share, points, evidence) = others(f);
    if share.is_none() && f.other_cpus.is_none() {
        return None;
    }
    let verdict = match judged(
        f,
        share,
        !lowered(f),
        points && !lowered(f),
        evidence.clone(),
    ) {
        None if f
            .other_cpus
            .is_some_and(|n| f.busy_cpus(n)[1] < LITTLE_OF_CPUS.value) =>
        {
            ruled_out(evidence)
        }
        verdict if throttled(f) => at_most_likely(verdict, Metric::QuotaStoppedMeanwhile),
        verdict => verdict,
    };
    told_of(id::CPU_PRIORITY, lowered(f), share, verdict)
}

fn two_sides(clues: &Clues) -> Sign {
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
    sign(&others, vec![told])
}

/// What it says of contention that others use so much: with the whole intervals of the ticks in which their time is
/// counted, or by the middle.
fn sign(others: &Growth, told: Told) -> Sign {
    let ([fast_low, fast_high], [slow_low, slow_high]) = (others.fast(), others.slow());
    match more(others.pair.slow, others.pair.fast) {
        true => growth::fits(told, more(slow_low, fast_high)),
        false => growth::against(told, !more(slow_high, fast_low)),
    }
}

/// Whether a part of a budget is longer because of them.
fn also(clues: &Clues, layer: Layer, part: &Component) -> bool {
    match Kind::of(layer, part) {
        Kind::CpuServer | Kind::CpuClient | Kind::ClientCpuServer | Kind::ClientCpuClient => {
            contention::left_too_few(clues).is_some()
        }
        Kind::UserCode | Kind::Kernel | Kind::Faults => {
            contention::slow_the_same_work(clues).is_some()
        }
        _ => false,
    }
}
