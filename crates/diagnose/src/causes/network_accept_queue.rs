//! `network.accept_queue`: a full listen queue.

use fingerpost_record::cause::id;
use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, Rest, TwoSides, Words};
use crate::counts;
use crate::facts::{Facts, sum};
use crate::judging::{Verdict, judged, ruled_out};
use crate::places::{Kind, Place, add};
use crate::sides::clues::Clues;
use crate::sides::fitting::grows;
use crate::sides::growth::Pair;
use crate::sides::losses::costs;
use crate::sides::sign::Sign::{self, Fits};
use crate::thresholds::{HANDSHAKE_AGAIN, MANY_OVERFLOWS, MORE_OF_A_COUNT, MOST_OF_CHANGE};

pub(super) static CAUSE: Cause = Cause {
    name: id::NETWORK_ACCEPT_QUEUE,
    layer: Layer::Network,
    words: Words {
        label: "accept queue",
        slower: "a full listen queue",
        takes: None,
        tells: "the listen queue overflows; a handshake is repeated after a second",
        remedy: "raise the listen backlog (and net.core.somaxconn), accept faster, or keep connections",
    },
    places: &[Place::OnTheWay],
    moves: &[Kind::Network],
    probes: &[],
    needs: &[Followed, Reading(name::TCP_LISTEN_OVERFLOWS)],
    follows: &[],
    told_from: &[],
    thresholds: &[
        MORE_OF_A_COUNT,
        HANDSHAKE_AGAIN,
        MANY_OVERFLOWS,
        MOST_OF_CHANGE,
    ],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        rest: |_| Rest::Surely,
        ..TwoSides::of_parts(17, two_sides)
    }),
    experiments: &[],
    fault: Some(Fault::ShortListenQueue),
};

/// A handshake that finds the queue full is repeated after a second: what that costs lies outside of what is followed.
fn one_side(f: &Facts) -> Option<Verdict> {
    let listen = f
        .known(name::TCP_LISTEN_OVERFLOWS)
        .into_iter()
        .chain(f.known(name::TCP_LISTEN_DROPS))
        .reduce(f64::max);
    let overflows = sum([listen, f.known(name::TCP_REQUEST_QUEUE_DROPS)])?;
    let accept = f
        .known(name::ACCEPT_QUEUE_MAX)
        .zip(f.known(name::ACCEPT_BACKLOG));
    let mut evidence = vec![Evidence::figure(Metric::QueueOverflows, overflows)];
    evidence
        .extend(accept.map(|(most, may)| Evidence::figure(Metric::AcceptQueue, most).out_of(may)));
    // The kernel counts overflows for all of the host.
    if overflows < 1.0 || accept.is_some_and(|(_, may)| may <= 0.0) {
        return ruled_out(evidence);
    }
    let outside = f.followed.as_ref().and_then(|followed| followed.outside);
    evidence.extend((f.stalled > 0.0).then(|| Evidence::figure(Metric::Stalled, f.stalled)));
    evidence.extend(outside.map(|share| Evidence::figure(Metric::OutsideOfFollowed, share)));
    let share = f.share(&[Place::OnTheWay]).map(|mut share| {
        // Each overflow costs about as much: what they cost together is as uncertain as their number.
        let lost = f.stalled.max(outside.unwrap_or(0.0));
        let [low, high] = counts::interval(overflows).map(|n| lost * n / overflows);
        add(
            &mut share,
            &Share {
                seconds: 0.0,
                share: lost,
                low,
                high,
            },
        );
        Share {
            share: share.share.min(1.0),
            low: share.low.min(1.0),
            ..share
        }
    });
    judged(f, share, true, true, evidence)
}

/// The kernel counts the overflows of all of the host: few that others have, and that cost little, are no matter of
/// ours.
fn two_sides(clues: &Clues) -> Sign {
    if let Some(told) = not_let_in(clues) {
        return Fits(vec![told]);
    }
    let many = clues
        .per_transaction(name::TCP_LISTEN_OVERFLOWS)
        .is_some_and(|pair| pair.slow >= MANY_OVERFLOWS.value);
    match costs(
        clues,
        name::TCP_LISTEN_OVERFLOWS,
        HANDSHAKE_AGAIN.value,
        Metric::QueueOverflows,
    ) {
        Fits(told) => Fits(told),
        _ if many => grows(
            clues,
            name::TCP_LISTEN_OVERFLOWS,
            MORE_OF_A_COUNT.value,
            Metric::QueueOverflows,
        ),
        sign => sign,
    }
}

/// Clients that wait to be let in, where that makes most of the time that transactions take longer and the queue was
/// full: by Little's law their mean number, times the time, divided by the transactions, is what a transaction waits
/// so. A handshake that was refused is tried again after one second, two, four: one overflow may keep a client out for
/// longer than anybody looks.
fn not_let_in(clues: &Clues) -> Option<Evidence> {
    let (clients, each) = (
        clues.total(name::CONNECTING_MEAN)?,
        clues.per_transaction(name::ELAPSED_SECONDS)?,
    );
    let waited = Pair {
        fast: clients.fast * each.fast,
        slow: clients.slow * each.slow,
    };
    let overflows = clues
        .total(name::TCP_LISTEN_OVERFLOWS)
        .is_some_and(|p| p.slow > p.fast);
    let backlog = clues.total(name::ACCEPT_BACKLOG).filter(|b| b.slow > 0.0);
    let full = backlog
        .zip(clues.total(name::ACCEPT_QUEUE_MAX))
        .is_some_and(|(may, most)| most.slow >= may.slow);
    // A queue that is shorter than the number of clients is full between two looks as well.
    let shorter = backlog
        .filter(|may| may.slow < may.fast)
        .zip(clues.total(name::STEP_CLIENTS));
    let short = shorter.is_some_and(|(may, clients)| may.slow < clients.slow);
    let most =
        waited.more() >= MOST_OF_CHANGE.value * clues.turn().more().max(0.0) && waited.more() > 0.0;
    (most && (overflows || full || short)).then(|| clues.told(Metric::LetInWait, waited))
}
