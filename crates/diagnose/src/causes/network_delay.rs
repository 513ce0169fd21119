//! `network.delay`: delayed acknowledgements.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, Rest, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, doubted, judged, ruled_out};
use crate::one_side::network::{acks_delayed, acks_untold, dropped, on_the_way};
use crate::places::{Kind, Place};
use crate::sides::client::stopped;
use crate::sides::clues::Clues;
use crate::sides::fitting::{grows, set_now};
use crate::sides::growth;
use crate::sides::losses::{costs, lost};
use crate::sides::sign::Sign;
use crate::thresholds::{DELAYED_ACK, MANY_DELAYED, MOST_OF_CHANGE, TWICE};

pub(super) static CAUSE: Cause = Cause {
    name: id::NETWORK_DELAY,
    layer: Layer::Network,
    words: Words {
        label: "TCP latency",
        slower: "delayed acknowledgements",
        takes: None,
        tells: "steps of 40 ms with late acknowledgements, no drops",
        remedy: "send each answer in one write, or set TCP_NODELAY",
    },
    places: &[Place::OnTheWay, Place::Peer],
    moves: &[Kind::Network],
    probes: &[],
    needs: &[Followed, Reading(name::TCP_DELAYED_ACKS)],
    follows: &[],
    told_from: &[],
    thresholds: &[MANY_DELAYED, TWICE, DELAYED_ACK, MOST_OF_CHANGE],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        rest,
        ..TwoSides::of_parts(18, two_sides)
    }),
    experiments: &[],
    fault: Some(Fault::Nagle),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let acks = f.delayed_acks?;
    let counted = Evidence::figure(Metric::DelayedAcks, acks);
    let evidence: Vec<Evidence> = on_the_way(f).into_iter().chain([counted]).collect();
    let delayed = acks_delayed(f) == Some(true) && !dropped(f);
    let share = f.share(CAUSE.places);
    match judged(f, share, delayed, delayed, evidence.clone()) {
        None => doubted(f, None, acks_untold(f), ruled_out(evidence)),
        verdict => doubted(f, share, acks_untold(f), verdict),
    }
}

fn two_sides(clues: &Clues) -> Sign {
    // Acknowledgements come late where segments are lost, too.
    match lost(clues) {
        Some((told, surely)) => growth::against(told, surely),
        // So often they are a pattern, however long each was.
        None if clues
            .per_transaction(name::TCP_DELAYED_ACKS)
            .is_some_and(|pair| pair.slow >= MANY_DELAYED.value) =>
        {
            grows(
                clues,
                name::TCP_DELAYED_ACKS,
                TWICE.value,
                Metric::DelayedAcks,
            )
        }
        None => costs(
            clues,
            name::TCP_DELAYED_ACKS,
            DELAYED_ACK.value,
            Metric::DelayedAcks,
        ),
    }
}

/// A server or a client that a quota or a limit on its disk stops acknowledges late as well, and is not waited for
/// because of that.
fn rest(clues: &Clues) -> Rest {
    let held = clues.sign(id::CPU_QUOTA).speaks() || set_now(clues, name::CGROUP_DISK_LIMITS);
    Rest::surely(!held && stopped(clues).is_none())
}
