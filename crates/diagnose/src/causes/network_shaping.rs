//! `network.shaping`: a shaped or full network.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, Rest, TwoSides, Words};
use crate::counts;
use crate::facts::Facts;
use crate::judging::{LIKELY, Verdict, doubted, judged, reaches, ruled_out};
use crate::one_side::network::{acks_delayed, acks_untold, dropped, on_the_way};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::{followed, higher};
use crate::sides::losses::{costs, lost};
use crate::sides::shaped::{of_sending, shaped};
use crate::sides::sign::Sign::{self, Against, Fits, NotGrown, Perhaps, Unknown};
use crate::sides::{growth, let_go};
use crate::thresholds::{GOOD_PART, MORE_OF_A_COUNT, SEGMENTS_AGAIN, SENT_AGAIN};

pub(super) static CAUSE: Cause = Cause {
    name: id::NETWORK_SHAPING,
    layer: Layer::Network,
    words: Words {
        label: "network bandwidth",
        slower: "a shaped or full network",
        takes: None,
        tells: "data on the way, with drops or a backlog, and no late acknowledgements; CPUs idle",
        remedy: "raise or remove the limit on the interface (tc qdisc), or send less: compress, cache, shorten answers",
    },
    places: &[Place::OnTheWay],
    moves: &[Kind::Network],
    probes: &[],
    needs: &[
        Followed,
        Reading(name::NET_DROPS),
        Reading(name::TCP_DELAYED_ACKS),
    ],
    follows: &[],
    told_from: &[],
    thresholds: &[SEGMENTS_AGAIN, MORE_OF_A_COUNT, GOOD_PART, SENT_AGAIN],
    one_side: Some(one_side),
    two_sides: Some(TwoSides {
        explained_by: &[
            id::NETWORK_DELAY,
            id::CPU_AFFINITY,
            id::CPU_QUOTA,
            id::CPU_PRIORITY,
        ],
        also: |c, layer, part| {
            of_sending(layer, part) && shaped(c).is_some() || let_go::with_a_shaper(c, layer, part)
        },
        rest: |c| Rest::surely(outlast_windows(c)),
        ..TwoSides::of_parts(20, two_sides)
    }),
    experiments: &[],
    fault: Some(Fault::SlowLoopback),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let retransmits = f.known(name::TCP_RETRANSMITS);
    let rates = f
        .known(name::NET_IN_MBIT_S)
        .zip(f.known(name::NET_OUT_MBIT_S))
        .map(|(i, o)| {
            let peak_in = f.known(name::NET_IN_PEAK_MBIT_S).unwrap_or(i);
            let peak = f.known(name::NET_OUT_PEAK_MBIT_S).unwrap_or(o).max(peak_in);
            [
                Evidence::figure(Metric::NetworkIn, i),
                Evidence::figure(Metric::NetworkOut, o),
                Evidence::figure(Metric::NetworkPeak, peak),
            ]
        });
    let lost = f.drops.zip(retransmits).map(|(d, r)| {
        [
            Evidence::figure(Metric::PacketsDropped, d),
            Evidence::figure(Metric::SegmentsSentAgain, r),
        ]
    });
    let evidence: Vec<Evidence> = on_the_way(f)
        .into_iter()
        .chain(rates.into_iter().flatten())
        .chain(lost.into_iter().flatten())
        .collect();
    if evidence.is_empty() {
        return None;
    }
    // What tells it from late acknowledgements is not known, and there is something to tell.
    let share = f.share(CAUSE.places);
    if !dropped(f) && acks_delayed(f).is_none() && share.is_some_and(|s| s.high >= LIKELY) {
        return None;
    }
    // What is queued and not dropped is held up as well: without followed requests only a network that limits nothing
    // is ruled out.
    let free =
        f.drops.is_some() && retransmits.is_some() && f.known(name::NET_SHAPERS) == Some(0.0);
    match judged(
        f,
        share,
        dropped(f) || acks_delayed(f) == Some(false),
        dropped(f),
        evidence.clone(),
    ) {
        None if free => doubted(f, None, may_be_lost(f), ruled_out(evidence)),
        verdict => doubted(f, share, acks_untold(f), verdict),
    }
}

/// Why segments that were sent again clear nobody by their middle alone.
fn may_be_lost(f: &Facts) -> Option<Evidence> {
    let sent = f.known(name::TCP_RETRANSMITS).filter(|n| *n > 0.0)?;
    let limit = SEGMENTS_AGAIN.value * f.transactions.max(100.0);
    reaches(Metric::SegmentsSentAgain, counts::interval(sent)[1], limit)
}

fn two_sides(clues: &Clues) -> Sign {
    if let Some((told, surely)) = lost(clues) {
        return growth::fits(told, surely);
    }
    if let Some(told) = shaped(clues).or_else(|| let_go::by_a_shaper(clues)) {
        return Fits(told);
    }
    // Nothing was lost, and a wait for acknowledgements is told apart by its length.
    match clues.sign(id::NETWORK_DELAY).clone() {
        Fits(told) => return Against(told),
        Perhaps(told) => return NotGrown(told, None),
        _ => {}
    }
    let on_the_way = followed(clues, &[Place::OnTheWay], Metric::OnTheWay);
    match on_the_way
        .unwrap_or_else(|| higher(clues, name::QUEUE_NETWORK_MEAN, Metric::BytesOnTheWay))
    {
        // Acknowledgements that come late would fit as well.
        Fits(_) if clues.total(name::TCP_DELAYED_ACKS).is_none() => Unknown,
        sign => sign,
    }
}

/// Whether segments that were lost and sent again make the most of what transactions take longer: their requests
/// outlast the windows in which requests are followed.
fn outlast_windows(clues: &Clues) -> bool {
    lost(clues).is_some()
        && costs(
            clues,
            name::TCP_RETRANSMITS,
            SENT_AGAIN.value,
            Metric::SegmentsSentAgain,
        )
        .speaks()
}
