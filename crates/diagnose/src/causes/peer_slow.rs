//! `peer.slow`: another service.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::Followed;
use crate::cause::{Cause, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, judged, told, without};
use crate::one_side::network::acks_delayed;
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::followed;
use crate::sides::sign::Sign::{self, Unknown};
use crate::thresholds::{GOOD_PART, LONGER_WAIT};

pub(super) static CAUSE: Cause = Cause {
    name: id::PEER_SLOW,
    layer: Layer::Network,
    words: Words {
        label: "another service",
        slower: "another service",
        takes: None,
        tells: "the path leaves by a connection of the server's own",
        remedy: "look at that service, by `fingerpost explain` beside it, or ask it less often",
    },
    places: &[Place::Peer, Place::PeerProcess],
    moves: &[Kind::Peer],
    probes: &[],
    needs: &[Followed],
    follows: &[],
    told_from: &[],
    thresholds: &[LONGER_WAIT, GOOD_PART],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(19, two_sides)),
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let share = f.share(CAUSE.places)?;
    let mut evidence = vec![Evidence::share(Metric::PeerWait, share)];
    // Of a process that was seen it is known what it did meanwhile; of one that was not, the way there may be slow.
    let seen = f
        .share(&[Place::PeerProcess])
        .filter(|seen| seen.share > share.share - seen.share);
    let place = if seen.is_some() {
        Place::PeerProcess
    } else {
        Place::Peer
    };
    evidence.extend(told(f.place(place)));
    let proof = seen.is_some() || acks_delayed(f) != Some(true);
    let verdict = judged(f, Some(share), proof, false, evidence);
    if seen.is_some() {
        return verdict;
    }
    without(f, &[name::TCP_DELAYED_ACKS], id::NETWORK_DELAY, verdict)
}

/// Another service that the path leads to.
fn two_sides(clues: &Clues) -> Sign {
    followed(clues, &[Place::Peer, Place::PeerProcess], Metric::PeerWait).unwrap_or(Unknown)
}
