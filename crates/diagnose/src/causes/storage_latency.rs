//! `storage.latency`: a slower disk.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::DISKS;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, judged, part, ruled_out, told};
use crate::one_side::disks::{figures, others_compete};
use crate::one_side::pages::reads_again;
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::fitting::followed;
use crate::sides::flushes::{flush_cost, more_of_the_same};
use crate::sides::growth;
use crate::sides::sign::Sign::{self, Fits, Unknown};
use crate::sides::sign::Told;
use crate::thresholds::{DISK_BUSY, DISK_IDLE, GOOD_PART, LONGER_WAIT, SAME_COST};

pub(super) static CAUSE: Cause = Cause {
    name: id::STORAGE_LATENCY,
    layer: Layer::Storage,
    words: Words {
        label: "disk latency",
        slower: "a slower disk",
        takes: None,
        tells: "time in the device and in its queue behind the server's own I/O",
        remedy: "move the files to a faster device, or read and write less: a larger cache, fewer flushes",
    },
    places: &[Place::DiskOwn, Place::DiskBesideOthers, Place::DiskDevice],
    moves: DISKS,
    probes: &[],
    needs: &[Followed, Reading(name::DISK_BUSY_SECONDS)],
    follows: &[id::STORAGE_DURABILITY],
    told_from: &[],
    thresholds: &[DISK_BUSY, DISK_IDLE, LONGER_WAIT, GOOD_PART],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(16, two_sides)),
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let device = part(
        f,
        &[Place::DiskBesideOthers, Place::DiskDevice],
        Metric::DiskDevice,
    );
    let evidence: Vec<Evidence> = device
        .into_iter()
        .chain(told(f.place(Place::DiskDevice)))
        .chain(figures(f))
        .collect();
    if evidence.is_empty() {
        return None;
    }
    let of_the_disk: &[Place] = &[Place::DiskOwn, Place::DiskBesideOthers, Place::DiskDevice];
    let places = if others_compete(f) {
        &[Place::DiskOwn]
    } else {
        of_the_disk
    };
    let busy = f.disk_busy.is_some_and(|busy| busy > DISK_BUSY.value)
        && f.syncs.is_none_or(|n| n > 0.0)
        && f.disk_per_s.is_none_or(|b| b > 0.0);
    let verdict = judged(
        f,
        f.share(places),
        true,
        busy && !others_compete(f) && f.known(name::CGROUP_DISK_LIMITS).is_none_or(|n| n == 0.0),
        evidence.clone(),
    );
    match verdict {
        verdict if reads_again(f) => at_most_likely(verdict, Metric::PagesReadAgain),
        None if f.disk_busy.is_some_and(|busy| busy < DISK_IDLE.value) => ruled_out(evidence),
        verdict => verdict,
    }
}

fn two_sides(clues: &Clues) -> Sign {
    let places = [Place::DiskDevice, Place::DiskBesideOthers, Place::DiskOwn];
    if let Some(sign) = followed(clues, &places, Metric::DiskDeviceAndQueue) {
        return match (sign, more_of_the_same(clues)) {
            (Fits(told), Some((why, surely))) => growth::against([told, why].concat(), surely),
            (sign, _) => sign,
        };
    }
    let (busy, cost) = (clues.a_second(name::DISK_BUSY_SECONDS), flush_cost(clues));
    let flush: Told = cost
        .map(|cost| Evidence::figure(Metric::FlushCost, cost.times))
        .into_iter()
        .collect();
    let of_time = |busy| vec![Evidence::figure(Metric::DiskBusy, busy)];
    match (busy, cost) {
        (Some(busy), _) if busy >= DISK_BUSY.value => Fits([of_time(busy), flush].concat()),
        (_, Some(cost)) if cost.times > SAME_COST.value => Fits(flush),
        (_, Some(cost)) => growth::against(flush, cost.at_most <= SAME_COST.value),
        // A time has no events: that it was short clears only where it was next to none.
        (Some(busy), None) => growth::against(of_time(busy), busy < DISK_IDLE.value),
        (None, None) => Unknown,
    }
}
