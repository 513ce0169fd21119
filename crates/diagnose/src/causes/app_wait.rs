//! `app.wait`: sleeps and timers.

use fingerpost_record::cause::id;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::Followed;
use crate::cause::{Cause, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, judged, told};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::{followed, told_of_another};
use crate::sides::let_go;
use crate::sides::sign::Sign::{self, Unknown};
use crate::thresholds::{GOOD_PART, LONGER_WAIT};

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_WAIT,
    layer: Layer::Application,
    words: Words {
        label: "sleeps and timers",
        slower: "sleeps and timers",
        takes: Some("sleeps and timers of {server}"),
        tells: "a timer in the path",
        remedy: "remove or shorten the sleep that requests wait for",
    },
    places: &[Place::Sleeping],
    moves: &[Kind::Sleeping],
    probes: &[],
    needs: &[Followed],
    follows: &[],
    told_from: &[],
    thresholds: &[LONGER_WAIT, GOOD_PART],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        explained_by: &[id::STORAGE_DURABILITY],
        ..TwoSides::of_parts(22, two_sides)
    }),
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let share = f.share(CAUSE.places)?;
    let mut evidence = vec![Evidence::share(Metric::TimerWait, share)];
    evidence.extend(told(f.place(Place::Sleeping)));
    judged(f, Some(share), true, false, evidence)
}

/// A timer that the path ends in.
fn two_sides(clues: &Clues) -> Sign {
    if let Some(other) = let_go::by_file_locks(clues) {
        return told_of_another(other);
    }
    followed(clues, &[Place::Sleeping], Metric::TimerWait).unwrap_or(Unknown)
}
