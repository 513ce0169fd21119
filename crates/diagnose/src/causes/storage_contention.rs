//! `storage.contention`: other processes on the disk.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Evidence, Layer, Metric};

use super::parts::DISKS;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, doubted, judged, mostly, part, ruled_out, told};
use crate::one_side::disks::{figures, others_compete};
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::fitting::followed;
use crate::sides::flushes::flush_cost;
use crate::sides::growth::{self, Pair};
use crate::sides::sign::Sign::{self, Fits, Unknown};
use crate::thresholds::{
    DISK_IN_USE, LESSER_PART, LONGER_WAIT, MORE_BESIDE, OTHERS_BESIDE_OURS, OTHERS_BYTES,
    OTHERS_RATE, SAME_COST, TWICE,
};

pub(super) static CAUSE: Cause = Cause {
    name: id::STORAGE_CONTENTION,
    layer: Layer::Storage,
    words: Words {
        label: "others' disk I/O",
        slower: "other processes on the disk",
        takes: None,
        tells: "waiting in the queue behind another's I/O, or in a device that others keep busy",
        remedy: "move the others' I/O to another device or another time, or give the server's group a higher I/O weight",
    },
    places: &[Place::DiskBehindOthers, Place::DiskBesideOthers],
    moves: DISKS,
    probes: &[],
    needs: &[Followed, Reading(name::OTHER_DISK_BYTES)],
    follows: &[],
    told_from: &[],
    thresholds: &[
        OTHERS_RATE,
        OTHERS_BESIDE_OURS,
        DISK_IN_USE,
        TWICE,
        OTHERS_BYTES,
        LONGER_WAIT,
        MORE_BESIDE,
        LESSER_PART,
    ],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(15, two_sides)),
    experiments: &[Change::Hold],
    fault: Some(Fault::SyncingNeighbour),
};

/// Time in a device that others keep busy is theirs as much as the queue before it: it serves their requests between
/// ours.
fn one_side(f: &Facts) -> Option<Verdict> {
    let queued = f.share(&[Place::DiskBehindOthers]);
    let behind = queued.map(|share| Evidence::share(Metric::DiskQueueOthers, share));
    let beside = part(f, &[Place::DiskBesideOthers], Metric::DiskBesideOthers);
    let moved = f.other_disk_per_s.map(|b| Evidence {
        name: mostly(f, "other.disk.", ".bytes"),
        ..Evidence::figure(Metric::OtherDiskRate, b)
    });
    let whose = [Place::DiskBehindOthers, Place::DiskBesideOthers]
        .map(|place| told(f.place(place)))
        .concat();
    let chain = behind.into_iter().chain(beside).chain(whose).chain(moved);
    let evidence: Vec<Evidence> = chain.chain(figures(f)).collect();
    let compete = others_compete(f);
    let share = if compete {
        f.share(&[
            Place::DiskBehindOthers,
            Place::DiskBesideOthers,
            Place::DiskDevice,
        ])
    } else {
        queued
    };
    match (
        judged(f, share, true, compete, evidence.clone()),
        f.other_disk_per_s,
    ) {
        // So little competes with nobody; of more, what it took of the device is not known.
        (None, Some(others)) => {
            let doubt = (others > OTHERS_RATE.value).then(|| Evidence::of(Metric::NotFollowed));
            doubted(f, None, doubt, ruled_out(evidence))
        }
        (verdict, _) => verdict,
    }
}

fn two_sides(clues: &Clues) -> Sign {
    match followed(
        clues,
        &[Place::DiskBehindOthers, Place::DiskBesideOthers],
        Metric::DiskOthers,
    ) {
        Some(fits @ Fits(_)) if !always_beside(clues) => return fits,
        Some(sign) => {
            // Writes that the kernel does later are nobody's: in a device that others keep busy, more time is theirs as
            // well.
            let device = followed(
                clues,
                &[Place::DiskDevice, Place::DiskBesideOthers],
                Metric::DiskDevice,
            );
            if !matches!(device, Some(Fits(_))) {
                return sign;
            }
        }
        None => {}
    }
    let Some(others) = clues.total(name::OTHER_DISK_BYTES) else {
        return Unknown;
    };
    let told = vec![clues.told(Metric::OtherDiskBytes, others)];
    let cost = flush_cost(clues);
    let slower = cost.is_none_or(|cost| cost.times > SAME_COST.value);
    if others.ratio() > TWICE.value && others.slow > OTHERS_BYTES.value && slower {
        return Fits(told);
    }
    // Bytes are no events. All of them were counted, so that next to none are none.
    growth::against(
        told,
        others.slow <= OTHERS_BYTES.value
            || cost.is_some_and(|cost| cost.at_most <= SAME_COST.value),
    )
}

/// Whether others' I/O was beside ours on the faster side nearly as much, and none of it before ours.
fn always_beside(clues: &Clues) -> bool {
    let behind = clues
        .places(&[Place::DiskBehindOthers])
        .map_or(0.0, Pair::more);
    let (Some(beside), Some(alone)) = (
        clues.places(&[Place::DiskBesideOthers]),
        clues.places(&[Place::DiskDevice]),
    ) else {
        return false;
    };
    let part = |beside: f64, alone: f64| {
        if beside > 0.0 {
            beside / (beside + alone)
        } else {
            0.0
        }
    };
    behind < beside.more()
        && part(beside.slow, alone.slow) < part(beside.fast, alone.fast) + MORE_BESIDE.value
}
