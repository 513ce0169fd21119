//! `storage.durability`: more flushes per transaction.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::DISKS;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::counts;
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, doubted, judged, reaches};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::grew;
use crate::sides::flushes::{self, Cost, MORE_FLUSHES, counted_flushes, flush_cost, in_flushes};
use crate::sides::sign::Sign::{self, NotGrown, Unknown};
use crate::sides::{growth, let_go};
use crate::thresholds::{
    FEW_FLUSHES, FLUSHES_MATTER, MANY_SYNCS, MORE_OF_A_COUNT, MOST_OF_COMMITS, NO_FLUSHES,
    SAME_COST,
};

pub(super) static CAUSE: Cause = Cause {
    name: id::STORAGE_DURABILITY,
    layer: Layer::Application,
    words: Words {
        label: "how often it syncs",
        slower: "more flushes per transaction",
        takes: None,
        tells: "more syncs per transaction at the same cost each",
        remedy: "flush once for several transactions (group commit), or less often where the last ones may be lost",
    },
    places: &[
        Place::DiskHeld,
        Place::DiskBehindOthers,
        Place::DiskOwn,
        Place::DiskBesideOthers,
        Place::DiskDevice,
    ],
    moves: DISKS,
    probes: &[],
    needs: &[Followed, Reading(name::SERVER_CALL_FSYNC_COUNT)],
    follows: &[id::APP_SETTING],
    told_from: &[],
    thresholds: &[
        MORE_OF_A_COUNT,
        FLUSHES_MATTER,
        MANY_SYNCS,
        SAME_COST,
        FEW_FLUSHES,
        MOST_OF_COMMITS,
        NO_FLUSHES,
    ],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        also: |c, layer, part| {
            flushes::with_journals(c, layer, part) || let_go::with_flushes(c, layer, part)
        },
        ..TwoSides::of_parts(13, two_sides)
    }),
    experiments: &[],
    fault: Some(Fault::SyncEach),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let (count, share) = (f.syncs?, f.share(CAUSE.places)?);
    let mut evidence = vec![Evidence::figure(Metric::Fsyncs, count)];
    evidence.extend(f.sync_s.map(|s| Evidence::figure(Metric::FsyncSeconds, s)));
    let doubt = reaches(
        Metric::Fsyncs,
        counts::rate(count, f.transactions)[1],
        MANY_SYNCS.value,
    );
    at_most_likely(
        doubted(
            f,
            Some(share),
            doubt,
            judged(f, Some(share), count > MANY_SYNCS.value, false, evidence),
        ),
        Metric::FlushesNeedComparison,
    )
}

fn two_sides(clues: &Clues) -> Sign {
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
