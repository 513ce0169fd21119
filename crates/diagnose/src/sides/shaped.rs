//! What a queueing discipline holds up: packets, and the calls that send them.

use fingerpost_record::reading::name;
use fingerpost_record::{Component, Layer, Metric};

use super::clues::Clues;
use super::fitting::is_good_part;
use super::growth::Pair;
use super::sign::Told;
use crate::places::Kind;

/// Queueing disciplines that limit or delay, where the slower side alone has them or has more of them.
pub(crate) fn shapers(clues: &Clues) -> Option<Pair> {
    clues.total(name::NET_SHAPERS).filter(|p| p.slow > p.fast)
}

/// Calls that send: what a queueing discipline does with a packet is done in them, or in an interrupt after.
const SENDING: [&str; 7] = [
    "write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile",
];

/// A part of a budget in which packets are sent.
pub(crate) fn of_sending(_: Layer, part: &Component) -> bool {
    *part == Component::Interrupts || part.call().is_some_and(|call| SENDING.contains(&call))
}

/// A queueing discipline that limits or delays on the slower side only, where what it holds up takes a good part of
/// what is longer.
pub(crate) fn shaped(clues: &Clues) -> Option<Told> {
    let shapers = shapers(clues)?;
    let held = clues
        .parts(|layer, part| of_sending(layer, part) || Kind::of(layer, part) == Kind::Network);
    is_good_part(clues, held.more()).then(|| {
        vec![
            clues.told(Metric::Shapers, shapers),
            clues.told(Metric::SendingAndWay, held),
        ]
    })
}

/// Whether that is a good part with its whole interval.
pub(crate) fn surely_shaped(clues: &Clues) -> bool {
    let held = |layer: Layer, part: &Component| {
        of_sending(layer, part) || Kind::of(layer, part) == Kind::Network
    };
    clues.followed() && is_good_part(clues, clues.parts(held).more() - clues.width(held))
}
