//! `storage.throttle`: a throttled disk.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::DISKS;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, Rest, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, judged, part, ruled_out};
use crate::one_side::disks::figures;
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::fitting::{followed, set_now};
use crate::sides::flushes::{Cost, flush_cost};
use crate::sides::growth;
use crate::sides::sign::Sign::{self, Fits, NotGrown, Unknown};
use crate::thresholds::{DEARER_SYNC, DISK_BUSY};

pub(super) static CAUSE: Cause = Cause {
    name: id::STORAGE_THROTTLE,
    layer: Layer::Storage,
    words: Words {
        label: "a limit on disk I/O",
        slower: "a throttled disk",
        takes: None,
        tells: "I/O held back before it comes to the device's queue; a limit on the group",
        remedy: "raise the limits on block I/O of the server's control group (io.max), or write less",
    },
    places: &[Place::DiskHeld],
    moves: DISKS,
    probes: &[],
    needs: &[Followed, Reading(name::CGROUP_DISK_LIMITS)],
    follows: &[],
    told_from: &[],
    thresholds: &[DEARER_SYNC, DISK_BUSY],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        explained_by: &[id::STORAGE_CONTENTION],
        rest,
        ..TwoSides::of_parts(14, two_sides)
    }),
    experiments: &[],
    fault: Some(Fault::WriteLimit),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let set = f.known(name::CGROUP_DISK_LIMITS);
    let limits = set.map(|n| Evidence::figure(Metric::DiskLimits, n));
    let share = f.share(CAUSE.places);
    let held = part(f, &[Place::DiskHeld], Metric::DiskHeld);
    let evidence: Vec<Evidence> = held.into_iter().chain(limits).chain(figures(f)).collect();
    if share.is_none() && set == Some(0.0) {
        return ruled_out(evidence);
    }
    judged(f, share, true, set.is_some_and(|n| n > 0.0), evidence)
}

fn two_sides(clues: &Clues) -> Sign {
    if set_now(clues, name::CGROUP_DISK_LIMITS) {
        return Fits(vec![Evidence::of(Metric::DiskLimitOnSlowerSide)]);
    }
    if let Some(sign) = followed(clues, &[Place::DiskHeld], Metric::DiskHeld) {
        return sign;
    }
    if let Some(Cost { times, at_most }) = flush_cost(clues)
        && times < DEARER_SYNC.value
    {
        let told = vec![
            Evidence::figure(Metric::FlushCost, times),
            Evidence::of(Metric::NoDiskLimitOnSlowerSide),
        ];
        return growth::against(told, at_most < DEARER_SYNC.value);
    }
    let Some(busy) = clues.a_second(name::DISK_BUSY_SECONDS) else {
        return Unknown;
    };
    let told = vec![Evidence::figure(Metric::DiskBusy, busy)];
    if busy < DISK_BUSY.value && !clues.sign(id::STORAGE_CONTENTION).speaks() {
        Fits(told)
    } else {
        // A time has no events: how sure it is nobody knows.
        NotGrown(told, None)
    }
}

/// A throttle that may hold requests up for longer than windows are open has to be set.
fn rest(clues: &Clues) -> Rest {
    if set_now(clues, name::CGROUP_DISK_LIMITS) {
        Rest::Perhaps
    } else {
        Rest::No
    }
}
