//! What other processes that came take besides the CPU that they have while a request waits for it: too few CPUs are
//! left for the server's own threads, which then wait for each other, and caches hold what the others used.

use fingerpost_record::cause::thresholds::{
    BEYOND_WORK, OTHERS_CAME, OTHERS_CAME_TIMES, SAME_NEIGHBOURS, SAME_WORK,
};
use fingerpost_record::place::Kind;
use fingerpost_record::{Component, Evidence, Layer, Metric, Quantity};

use super::clues::Clues;
use super::fitting::grew;
use super::growth::{self, Growth, Pair};
use super::sign::Sign::{self, Against, NotGrown};
use super::sign::{Told, kernel, on_cpu, user};
use super::{given, work};
use crate::places::Place;

/// CPUs' worth of time that others use, where they are neighbours on both sides.
pub(super) fn on_both_sides(clues: &Clues) -> Option<Pair> {
    given::others_used(clues)
        .map(|o| o.pair)
        .filter(|o| o.fast >= OTHERS_CAME.value && o.fast >= SAME_NEIGHBOURS.value * o.slow)
}

/// CPUs' worth of time that others use, where that is clearly more on the slower side.
pub(super) fn came(clues: &Clues) -> Option<Pair> {
    given::others_used(clues)
        .map(|o| o.pair)
        .filter(|o| more(o.slow, o.fast))
}

fn more(slow: f64, fast: f64) -> bool {
    slow > fast + OTHERS_CAME.value && slow > OTHERS_CAME_TIMES.value * fast
}

/// What it says of contention that others use so much: with the whole intervals of the ticks in which their time is
/// counted, or by the middle.
pub(super) fn sign(others: &Growth, told: Told) -> Sign {
    let ([fast_low, fast_high], [slow_low, slow_high]) = (others.fast(), others.slow());
    match more(others.pair.slow, others.pair.fast) {
        true => growth::fits(told, more(slow_low, fast_high)),
        false => growth::against(told, !more(slow_high, fast_low)),
    }
}

/// Why the server's threads wait for each other although their work is the same, or much longer than their longer work
/// makes them: others have the CPUs on which they ran. Nothing where the server was given fewer CPUs itself, or where
/// nobody read how many.
pub(super) fn left_too_few(clues: &Clues) -> Option<Told> {
    let others = came(clues)?;
    // Without the throttled time others are likely at most (`unread`).
    let limited = !matches!(given::affinity(clues), Against(_) | NotGrown(..))
        || given::quota(clues).speaks();
    let waited = clues
        .places(&[Place::CpuServer])
        .filter(|waited| grew(clues, *waited) && !limited)?;
    let more_work = clues.parts(on_cpu).ratio();
    let more = match more_work {
        same if same < SAME_WORK.value => Vec::new(),
        more if waited.ratio() > BEYOND_WORK.value * more => vec![
            Evidence::figure(Metric::WaitForEachOther, waited.ratio()),
            Evidence::figure(Metric::MoreWork, more),
        ],
        _ => return None,
    };
    let waited = clues
        .told(Metric::CpuWaitServer, waited)
        .counted_in(Quantity::SecondsPerRequest);
    let mut told = vec![clues.told(Metric::OtherCpusLeftTooFew, others), waited];
    told.extend(more);
    Some(told)
}

/// Why the server's code and the kernel take longer for the same calls: others run on the CPUs in between.
pub(super) fn slow_the_same_work(clues: &Clues) -> Option<Told> {
    let others = came(clues)?;
    let shared = clues
        .places(&[Place::CpuOther])
        .is_some_and(|p| p.more() > 0.0);
    let same = work::more_to_do(clues).is_none()
        && work::build(clues).is_none()
        && work::setting(clues).is_none();
    (shared && same && work::together(clues)).then(|| {
        let (on_user, on_kernel) = (clues.parts(user).ratio(), clues.parts(kernel).ratio());
        vec![
            clues.told(Metric::OtherCpus, others),
            Evidence::of(Metric::ColderCaches),
            Evidence::figure(Metric::UserCodeTimes, on_user),
            Evidence::figure(Metric::KernelTimes, on_kernel),
        ]
    })
}

/// Whether a part of a budget is longer because of them.
pub(super) fn moves(clues: &Clues, layer: Layer, part: &Component) -> bool {
    match Kind::of(layer, part) {
        Kind::CpuServer | Kind::CpuClient | Kind::ClientCpuServer | Kind::ClientCpuClient => {
            left_too_few(clues).is_some()
        }
        Kind::UserCode | Kind::Kernel | Kind::Faults => slow_the_same_work(clues).is_some(),
        _ => false,
    }
}
