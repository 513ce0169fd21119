//! `app.lock`: a lock in the application.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::Followed;
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, judged, told};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::{followed, grows};
use crate::sides::let_go;
use crate::sides::sign::Sign;
use crate::thresholds::{FILE_LOCKS, GOOD_PART, LONGER_WAIT};

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_LOCK,
    layer: Layer::Application,
    words: Words {
        label: "locks",
        slower: "a lock in the application",
        takes: Some("locks inside {server}"),
        tells: "waiting for a lock whose holder works or sleeps",
        remedy: "hold the lock for less long, or split it: the chain says who holds it and what for",
    },
    places: &[Place::Lock],
    moves: &[Kind::Lock],
    probes: &[],
    needs: &[Followed],
    follows: &[id::APP_SETTING],
    told_from: &[],
    thresholds: &[LONGER_WAIT, GOOD_PART, FILE_LOCKS],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        also: let_go::with_a_lock,
        ..TwoSides::of_parts(21, two_sides)
    }),
    experiments: &[],
    fault: Some(Fault::OneLock),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let share = f.share(CAUSE.places)?;
    let mut evidence = vec![Evidence::share(Metric::LockWait, share)];
    evidence.extend(told(f.place(Place::Lock)));
    if let Some(s) = f.scaling {
        evidence.push(Evidence::figure(Metric::BestThroughput, s.best).out_of(s.best_clients));
        evidence.push(Evidence::figure(Metric::ThroughputKept, s.kept).out_of(s.most_clients));
    }
    judged(f, Some(share), true, false, evidence)
}

/// Waiting for a lock; what it lets go waits for a CPU after it.
fn two_sides(clues: &Clues) -> Sign {
    followed(clues, &[Place::Lock], Metric::LockWait).unwrap_or_else(|| {
        grows(
            clues,
            name::SERVER_BLOCKED_LOCK_SECONDS,
            LONGER_WAIT.value,
            Metric::LockBlocked,
        )
    })
}
