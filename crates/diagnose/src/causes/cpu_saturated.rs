//! `cpu.saturated`: more threads than CPUs.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, ToldFrom, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, doubted, judged, reaches, ruled_out, told_of};
use crate::one_side::cpus::throttled;
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::{followed, told_of_another};
use crate::sides::growth::{self, Pair};
use crate::sides::sign::Sign::{self, Against, Fits, NotGrown, Perhaps, Unknown};
use crate::sides::{contention, let_go};
use crate::thresholds::{GOOD_PART, LESS_BUSY, LONGER_WAIT, SERVER_BUSY};

/// Ready to run, where the server had the CPUs.
const BEHIND_SERVER: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::ClientCpu,
    Kind::CpuServer,
    Kind::ClientCpuServer,
];

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_SATURATED,
    layer: Layer::Scheduler,
    words: Words {
        label: "run queue: more threads than CPUs",
        slower: "more threads than CPUs",
        takes: Some("waiting for a CPU (more threads than CPUs)"),
        tells: "waiting for a CPU that the server itself had, with the server's CPUs busy",
        remedy: "give the server more CPUs, or less to do for each request; more threads do not help",
    },
    places: &[Place::CpuServer],
    moves: BEHIND_SERVER,
    probes: &[],
    needs: &[
        Followed,
        Reading(name::SERVER_USER_SECONDS),
        Reading(name::SERVER_CPUS_ALLOWED),
    ],
    follows: &[
        id::CPU_AFFINITY,
        id::APP_WORK,
        id::APP_CALLS,
        id::SYSCALL_ENTRY,
        id::CPU_MITIGATION,
        id::MEMORY_PAGE_SIZE,
        id::CPU_SPEED,
        id::HOST_STEAL,
        id::KERNEL_TRACE,
    ],
    told_from: &[ToldFrom {
        other: id::CPU_QUOTA,
        by: &[name::THROTTLE_SECONDS],
    }],
    thresholds: &[SERVER_BUSY, LONGER_WAIT, GOOD_PART, LESS_BUSY],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        explained_by: &[
            id::CPU_AFFINITY,
            id::CPU_QUOTA,
            id::CPU_PRIORITY,
            id::STORAGE_DURABILITY,
            id::APP_LOCK,
        ],
        ..TwoSides::of_parts(24, two_sides)
    }),
    experiments: &[],
    fault: None,
};

/// More runnable threads than CPUs: a fact about the load, not yet a fault. CPUs that the server leaves idle are not
/// saturated, however its threads happen to wait for one another's.
fn one_side(f: &Facts) -> Option<Verdict> {
    let may = f.known(name::SERVER_CPUS_ALLOWED).or(f.cpus)?;
    let (share, used) = (f.share(CAUSE.places)?, f.server_cpus?);
    let mut evidence = vec![
        Evidence::share(Metric::CpuWaitServer, share),
        Evidence::figure(Metric::ServerCpus, used).out_of(may),
    ];
    evidence.extend(
        f.idle
            .map(|idle| Evidence::figure(Metric::CpuIdleShare, idle)),
    );
    let enough = SERVER_BUSY.value * may;
    if used < enough {
        let doubt = reaches(Metric::ServerCpus, f.busy_cpus(used)[1], enough);
        return doubted(f, Some(share), doubt, ruled_out(evidence));
    }
    let verdict = at_most_likely(
        judged(f, Some(share), !throttled(f), false, evidence),
        Metric::LoadAsksForMore,
    );
    told_of(id::CPU_QUOTA, throttled(f), Some(share), verdict)
}

/// Waiting for a CPU that the server itself had, where it keeps its CPUs busy.
fn two_sides(clues: &Clues) -> Sign {
    let Some(sign) = followed(clues, &[Place::CpuServer], Metric::CpuWaitServer) else {
        return Unknown;
    };
    if let Some(other) = contention::left_too_few(clues)
        .or_else(|| let_go::by_either(clues))
        .or_else(|| let_go::by_a_shaper(clues))
    {
        return told_of_another(other);
    }
    let used = [name::SERVER_USER_SECONDS, name::SERVER_KERNEL_SECONDS]
        .iter()
        .filter_map(|name| clues.total(*name))
        .reduce(Pair::sum);
    let (Some(used), Some(elapsed), Some(may)) = (
        used,
        clues.total(name::ELAPSED_SECONDS),
        clues.total(name::SERVER_CPUS_ALLOWED),
    ) else {
        return Unknown;
    };
    let counted = clues.in_cpus(used, elapsed);
    let used = counted.pair;
    let busy = clues.told(Metric::ServerCpus, used).out_of(may.slow);
    // CPUs that have less to do than on the faster side are not what became too few.
    let of_may = may.fast / may.slow.max(1e-9);
    if (Pair {
        fast: used.fast / may.fast,
        slow: used.slow / may.slow,
    })
    .ratio()
        < LESS_BUSY.value
    {
        let surely = counted.ratio()[1] * of_may < LESS_BUSY.value;
        return growth::against(vec![busy], surely);
    }
    let enough = SERVER_BUSY.value * may.slow;
    match sign.and([busy]) {
        Fits(told) | Perhaps(told) | NotGrown(told, _) | Against(told) if used.slow < enough => {
            growth::against(told, counted.slow()[1] < enough)
        }
        sign => sign,
    }
}
