//! Flushes of a transaction: how many, what each costs, and what another way to commit leads to besides the wait for
//! the disk: calls on files that go with it.

use super::clues::Clues;
use super::fitting::grew;
use super::growth::{self, Growth, Pair};
use super::sign::Sign::{self, Fits, NotGrown, Unknown};
use super::sign::Told;
use crate::counts::Z;
use crate::places::Kind;
use fingerpost_record::cause::thresholds::{
    FEW_FLUSHES, FLUSHES_MATTER, MORE_OF_A_COUNT, MOST_OF_COMMITS, NO_FLUSHES, SAME_COST,
};
use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Component, Evidence, Layer, Metric};

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
pub(super) fn counted_flushes(clues: &Clues) -> Option<Growth> {
    let calls = SYNCS.iter().filter_map(|name| clues.per_transaction(*name));
    // Where the threads that serve make none, others of the server may, and the device counts them.
    let calls = calls.reduce(Pair::sum).filter(|c| c.fast + c.slow > 0.0);
    match calls {
        Some(calls) => clues.growth_of(calls, &SYNCS),
        None => clues.growth_of(flushes(clues)?.0, &[name::DISK_FLUSHES]),
    }
}

pub(super) fn durability(clues: &Clues) -> Sign {
    let Some(counted) = counted_flushes(clues) else {
        return Unknown;
    };
    let count = counted.pair;
    let mut told = vec![clues.told(Metric::Flushes, count)];
    // More flushes at the same cost each are the application's doing; where the cost grew more than the count, the
    // disk's.
    if let Some(Cost { times: cost, .. }) = flush_cost(clues)
        && cost > count.ratio()
    {
        told.push(Evidence::figure(Metric::FlushCost, cost));
        return NotGrown(told, None);
    }
    // A flush in a hundred transactions counts for little, unless transactions are so short that it is a good part of
    // the change.
    let longer = clues.followed()
        && grew(
            clues,
            clues.parts(|layer, part| in_flushes(Kind::of(layer, part))),
        );
    let ([low, high], [least, most]) = (counted.ratio(), counted.slow());
    if count.ratio() > MORE_FLUSHES && (count.slow > FLUSHES_MATTER.value || longer) {
        return growth::fits(
            told,
            low > MORE_FLUSHES && (least > FLUSHES_MATTER.value || longer),
        );
    }
    growth::against(
        told,
        high <= MORE_FLUSHES || !longer && most <= FLUSHES_MATTER.value,
    )
}

/// Whether a part is spent in flushes: in the call, or waiting for the disk.
pub(super) fn in_flushes(kind: Kind) -> bool {
    matches!(kind, Kind::Storage | Kind::Syncs)
}

/// How many times as many flushes a transaction makes where it commits in another way.
const MORE_FLUSHES: f64 = MORE_OF_A_COUNT.value;

/// How many times as long one sync takes: the server's own calls where they were traced, else the device's flushes
/// where there are enough.
pub(super) fn flush_cost(clues: &Clues) -> Option<Cost> {
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
pub(super) struct Cost {
    pub(super) times: f64,
    pub(super) at_most: f64,
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
pub(super) fn more_of_the_same(clues: &Clues) -> Option<(Told, bool)> {
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
pub(super) fn journals(clues: &Clues) -> Option<Told> {
    let Fits(mut told) = durability(clues) else {
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
pub(super) fn with_journals(clues: &Clues, layer: Layer, part: &Component) -> bool {
    of_commits(layer, part) && journals(clues).is_some()
}
