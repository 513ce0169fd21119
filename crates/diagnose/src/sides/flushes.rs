//! Flushes of a transaction: how many, what each costs, and what another way to commit leads to besides the wait for
//! the disk: calls on files that go with it.

use fingerpost_record::cause::id;
use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Component, Evidence, Layer, Metric};

use super::clues::Clues;
use super::growth::{Growth, Pair};
use super::sign::Sign::Fits;
use super::sign::Told;
use crate::counts::Z;
use crate::places::Kind;
use crate::thresholds::{FEW_FLUSHES, MORE_OF_A_COUNT, MOST_OF_COMMITS, NO_FLUSHES, SAME_COST};

fn flushes(clues: &Clues) -> Option<(Pair, Pair)> {
    Some((
        clues.per_transaction(name::DISK_FLUSHES)?,
        clues.per_transaction(name::DISK_FLUSH_SECONDS)?,
    ))
}

/// Calls that flush.
const SYNCS: [Name; 2] = [
    name::SERVER_CALL_FSYNC_COUNT,
    name::SERVER_CALL_FDATASYNC_COUNT,
];

/// Flushes of a transaction, with how many were counted.
pub(crate) fn counted_flushes(clues: &Clues) -> Option<Growth> {
    let calls = SYNCS.iter().filter_map(|name| clues.per_transaction(*name));
    // Where the threads that serve make none, others of the server may, and the device counts them.
    let calls = calls.reduce(Pair::sum).filter(|c| c.fast + c.slow > 0.0);
    match calls {
        Some(calls) => clues.growth_of(calls, &SYNCS),
        None => clues.growth_of(flushes(clues)?.0, &[name::DISK_FLUSHES]),
    }
}

/// Whether a part is spent in flushes: in the call, or waiting for the disk.
pub(crate) fn in_flushes(kind: Kind) -> bool {
    matches!(kind, Kind::Storage | Kind::Syncs)
}

/// How many times as many flushes a transaction makes where it commits in another way.
pub(crate) const MORE_FLUSHES: f64 = MORE_OF_A_COUNT.value;

/// How many times as long one sync takes: the server's own calls where they were traced, else the device's flushes
/// where there are enough.
pub(crate) fn flush_cost(clues: &Clues) -> Option<Cost> {
    let call = |name: &str| {
        let of = |what: &str| clues.per_transaction_as(&format!("server.call.{name}.{what}"));
        Some((of("count")?, of("seconds")?))
    };
    let calls = ["fsync", "fdatasync"]
        .into_iter()
        .filter_map(call)
        .reduce(|a, b| (Pair::sum(a.0, b.0), Pair::sum(a.1, b.1)));
    if let Some((count, seconds)) = calls
        && count.fast > 0.0
        && count.slow > 0.0
        && seconds.fast > 0.0
    {
        return Some(Cost::of(
            (seconds.slow / count.slow) / (seconds.fast / count.fast),
            clues.growth_of(count, &SYNCS),
        ));
    }
    let (count, seconds) = flushes(clues)?;
    clues
        .total(name::DISK_FLUSHES)
        .filter(|n| n.fast > FEW_FLUSHES.value && n.slow > FEW_FLUSHES.value)?;
    let each = |seconds: f64, count: f64| (count > 0.0).then(|| seconds / count);
    let times = each(seconds.slow, count.slow)? / each(seconds.fast, count.fast)?.max(1e-12);
    Some(Cost::of(
        times,
        clues.growth_of(count, &[name::DISK_FLUSHES]),
    ))
}

/// How many times as long one of something takes: the value, and the upper end of its 95 % interval, which is as sure
/// as the number of those that were timed where their deviation is no more than their mean.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) times: f64,
    pub(crate) at_most: f64,
}

impl Cost {
    fn of(times: f64, timed: Option<Growth>) -> Cost {
        // How far the ratio of as many on either side is from 1.
        let events = timed
            .map(|timed| timed.events)
            .filter(|n| n.fast > 0.0 && n.slow > 0.0);
        let spread = events.map_or(f64::INFINITY, |n| {
            (Z * (1.0 / n.fast + 1.0 / n.slow).sqrt()).exp()
        });
        Cost {
            times,
            at_most: times * spread,
        }
    }
}

/// Why a longer time in the device is no slower device: there are more flushes, and each takes no longer; and whether
/// that is so for sure.
pub(crate) fn more_of_the_same(clues: &Clues) -> Option<(Told, bool)> {
    let (count, cost) = (counted_flushes(clues)?, flush_cost(clues)?);
    let more = count.pair.ratio() > MORE_FLUSHES && cost.times < SAME_COST.value;
    let surely = count.ratio()[0] > MORE_FLUSHES && cost.at_most < SAME_COST.value;
    more.then(|| {
        (
            vec![
                clues.told(Metric::Flushes, count.pair),
                Evidence::figure(Metric::FlushCost, cost.times),
            ],
            surely,
        )
    })
}

/// Calls that a commit makes on files besides its flushes: a journal is made and removed, checked for, cut and written.
const OF_COMMITS: [&[&str]; 4] = [
    &["openat", "open", "close", "unlink", "unlinkat", "rename"],
    &["newfstatat", "stat", "fstat", "fcntl"],
    &["ftruncate", "fallocate"],
    &["lseek", "pread64", "pwrite64", "pwritev"],
];

/// Why more calls belong to how the server commits: it flushes on the slower side alone, and most of what calls take
/// longer is in those on files.
pub(crate) fn journals(clues: &Clues) -> Option<Told> {
    let Fits(mut told) = clues.sign(id::STORAGE_DURABILITY).clone() else {
        return None;
    };
    let flushed = counted_flushes(clues)?.pair;
    let grew = clues
        .parts(|layer, part| Kind::of(layer, part) == Kind::Kernel)
        .more();
    let of_files = clues.parts(of_commits).more();
    (flushed.fast < NO_FLUSHES.value * flushed.slow
        && grew > 0.0
        && of_files > MOST_OF_COMMITS.value * grew)
        .then(|| {
            told.push(Evidence::of(Metric::CallsOfCommits));
            told
        })
}

/// A part of a budget in which files are prepared for a commit.
fn of_commits(_: Layer, part: &Component) -> bool {
    part.call()
        .is_some_and(|call| OF_COMMITS.iter().any(|calls| calls.contains(&call)))
}

/// Whether a part of a budget is longer because of calls that go with how the server commits.
pub(crate) fn with_journals(clues: &Clues, layer: Layer, part: &Component) -> bool {
    of_commits(layer, part) && journals(clues).is_some()
}
