//! What other processes that came take besides the CPU that they have while a request waits for it: too few CPUs are
//! left for the server's own threads, which then wait for each other, and caches hold what the others used.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric, Quantity};

use super::clues::Clues;
use super::fitting::grew;
use super::growth::{Growth, Pair};
use super::sign::Sign::{Against, NotGrown};
use super::sign::{Told, kernel, on_cpu, user};
use super::work;
use crate::places::Place;
use crate::thresholds::{BEYOND_WORK, OTHERS_CAME, OTHERS_CAME_TIMES, SAME_NEIGHBOURS, SAME_WORK};

/// CPUs' worth of time that others use, where they are neighbours on both sides.
pub(crate) fn on_both_sides(clues: &Clues) -> Option<Pair> {
    others_used(clues)
        .map(|o| o.pair)
        .filter(|o| o.fast >= OTHERS_CAME.value && o.fast >= SAME_NEIGHBOURS.value * o.slow)
}

/// CPUs' worth of time that others use, where that is clearly more on the slower side.
pub(crate) fn came(clues: &Clues) -> Option<Pair> {
    others_used(clues)
        .map(|o| o.pair)
        .filter(|o| more(o.slow, o.fast))
}

pub(crate) fn more(slow: f64, fast: f64) -> bool {
    slow > fast + OTHERS_CAME.value && slow > OTHERS_CAME_TIMES.value * fast
}

/// Why the server's threads wait for each other although their work is the same, or much longer than their longer work
/// makes them: others have the CPUs on which they ran. Nothing where the server was given fewer CPUs itself, or where
/// nobody read how many.
pub(crate) fn left_too_few(clues: &Clues) -> Option<Told> {
    let others = came(clues)?;
    // Without the throttled time others are likely at most (`unread`).
    let limited = !matches!(clues.sign(id::CPU_AFFINITY), Against(_) | NotGrown(..))
        || clues.sign(id::CPU_QUOTA).speaks();
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
pub(crate) fn slow_the_same_work(clues: &Clues) -> Option<Told> {
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

/// CPUs' worth of time that other processes used.
pub(crate) fn others_used(clues: &Clues) -> Option<Growth> {
    Some(clues.in_cpus(
        clues.total(name::OTHER_CPU_SECONDS)?,
        clues.total(name::ELAPSED_SECONDS)?,
    ))
}
