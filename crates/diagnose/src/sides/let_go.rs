//! What waiting together leads to: threads that sleep in a flush, for a lock, or for packets that were held back, are
//! let go at once, and wait for each other for a CPU; a CPU that they left free has to wake first, and neighbours that
//! are there on both sides run on it meanwhile. Who finds a file locked by a commit sleeps and tries again.

use fingerpost_record::cause::id;
use fingerpost_record::place::Kind;
use fingerpost_record::reading::name;
use fingerpost_record::{Component, Layer, Metric};

use super::clues::Clues;
use super::contention;
use super::fitting::grew;
use super::flushes::in_flushes;
use super::shaped::shapers;
use super::sign::Sign::{Against, Fits, NotGrown};
use super::sign::{Told, on_cpu};
use crate::places::Place;
use crate::thresholds::{FILE_LOCKS, SAME_WORK};

/// Why waits for a CPU belong to how the server commits: it flushes more often, and threads sleep in flushes.
fn by_flushes(clues: &Clues) -> Option<Told> {
    after(clues, id::STORAGE_DURABILITY, in_flushes, 0.0)
}

/// Why waits for a CPU belong to how the server commits or to a lock.
pub(crate) fn by_either(clues: &Clues) -> Option<Told> {
    by_flushes(clues).or_else(|| by_a_lock(clues))
}

/// Why they belong to a lock: what threads wait longer for it is more than what they wait longer for a CPU.
fn by_a_lock(clues: &Clues) -> Option<Told> {
    after(clues, id::APP_LOCK, |kind| kind == Kind::Lock, 1.0)
}

/// Where the sign of this cause fits, and what is slept longer in these parts is a good part of the change and at least so many times
/// what is waited longer for a CPU. Nothing where others came, or where the server was given less of the CPUs: waits
/// for a CPU have causes of their own then.
fn after(clues: &Clues, of: &str, sleeps: fn(Kind) -> bool, times: f64) -> Option<Told> {
    let Fits(mut told) = clues.sign(of).clone() else {
        return None;
    };
    let slept = clues.parts(|layer, part| sleeps(Kind::of(layer, part)));
    let waited = clues.parts(|layer, part| for_a_cpu(clues, layer, part));
    let led = grew(clues, slept) && grew(clues, waited) && slept.more() >= times * waited.more();
    (led && left_alone(clues)).then(|| {
        told.push(clues.told(Metric::AsleepTogether, slept));
        told.push(clues.told(Metric::CpuWaitAfterWaking, waited));
        told
    })
}

/// Whether it is known that no others came, and that the server was given no less of the CPUs: what nobody read is not
/// nothing.
fn left_alone(clues: &Clues) -> bool {
    let as_before = [id::CPU_AFFINITY, id::CPU_QUOTA, id::CPU_PRIORITY]
        .iter()
        .all(|of| matches!(clues.sign(of), Against(_) | NotGrown(..)));
    as_before && contention::others_used(clues).is_some() && contention::came(clues).is_none()
}

/// Why waits for a CPU belong to a queueing discipline: it lets packets that it held go together, so that those who get
/// them all want a CPU at once, with no more to do than before.
pub(crate) fn by_a_shaper(clues: &Clues) -> Option<Told> {
    let shapers = shapers(clues)?;
    let waited = clues.parts(|layer, part| for_a_cpu(clues, layer, part));
    let same_work = clues.parts(on_cpu).ratio() < SAME_WORK.value;
    (same_work && grew(clues, waited) && left_alone(clues)).then(|| {
        vec![
            clues.told(Metric::Shapers, shapers),
            clues.told(Metric::LetGoTogether, waited),
        ]
    })
}

/// Why sleeps belong to how the server commits: it locks its files with each transaction, and who finds one locked
/// sleeps for a while and tries again (SQLite's busy handler); who commits holds the lock until its flushes are done.
pub(crate) fn by_file_locks(clues: &Clues) -> Option<Told> {
    let Fits(mut told) = clues.sign(id::STORAGE_DURABILITY).clone() else {
        return None;
    };
    let locks = clues
        .per_transaction(name::SERVER_CALL_FCNTL_COUNT)
        .filter(|c| c.fast >= FILE_LOCKS.value && c.slow >= FILE_LOCKS.value)?;
    let slept = clues
        .places(&[Place::Sleeping])
        .filter(|slept| grew(clues, *slept))?;
    told.push(clues.told(Metric::FileLockCalls, locks));
    told.push(clues.told(Metric::AsleepForFileLock, slept));
    Some(told)
}

/// Waiting for a CPU that no other process has, or one that is a neighbour on both sides.
fn for_a_cpu(clues: &Clues, layer: Layer, part: &Component) -> bool {
    use Kind::{
        ClientCpuClient, ClientCpuFree, ClientCpuOthers, ClientCpuServer, CpuClient, CpuFree,
        CpuOthers, CpuServer,
    };
    match Kind::of(layer, part) {
        CpuServer | CpuClient | CpuFree | ClientCpuServer | ClientCpuClient | ClientCpuFree => true,
        CpuOthers | ClientCpuOthers => contention::on_both_sides(clues).is_some(),
        _ => false,
    }
}

/// Whether a part of a budget is longer because of how the server commits.
pub(crate) fn with_flushes(clues: &Clues, layer: Layer, part: &Component) -> bool {
    let tried_again = Kind::of(layer, part) == Kind::Sleeping && by_file_locks(clues).is_some();
    tried_again || for_a_cpu(clues, layer, part) && by_flushes(clues).is_some()
}

/// Whether a part of a budget is longer because a queueing discipline lets packets go together.
pub(crate) fn with_a_shaper(clues: &Clues, layer: Layer, part: &Component) -> bool {
    for_a_cpu(clues, layer, part) && by_a_shaper(clues).is_some()
}

/// Whether a part of a budget is longer because of a lock.
pub(crate) fn with_a_lock(clues: &Clues, layer: Layer, part: &Component) -> bool {
    for_a_cpu(clues, layer, part) && by_a_lock(clues).is_some()
}
