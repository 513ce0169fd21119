//! Counts that cost a known time each: whether they make what transactions take longer, and packets that were lost.

use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Evidence, Metric, Quantity};

use super::clues::Clues;
use super::fitting::grows;
use super::growth::{self, Pair};
use super::sign::Sign::{self, Fits, NotGrown, Perhaps, Unknown};
use super::sign::Told;
use crate::judging::LIKELY;
use crate::thresholds::{MORE_OF_A_COUNT, MOST_OF_CHANGE};

/// A count that costs so many seconds each: whether its growth makes most of the time that transactions take longer.
/// One that makes less, and more than next to nothing, does not clear it: each may have cost more than the least.
pub(crate) fn costs(clues: &Clues, name: Name, each: f64, metric: Metric) -> Sign {
    let Some(pair) = clues.per_transaction(name) else {
        return Unknown;
    };
    let change = clues.turn().more();
    let of_change = |more: f64| {
        if change > 0.0 {
            more.max(0.0) * each / change
        } else {
            0.0
        }
    };
    let part = of_change(pair.more());
    let counted = clues.growth(name);
    let told = vec![
        clues
            .told(metric, pair)
            .counted_in(Quantity::PerTransaction),
        Evidence::figure(Metric::PartByCount, part.min(1.0)).out_of(each),
    ];
    match part {
        most if pair.ratio() > MORE_OF_A_COUNT.value && most >= MOST_OF_CHANGE.value => {
            // What held these transactions up is counted whole, however likely it was: that another run may have had
            // less of it is in the interval of the row.
            Fits(told)
        }
        some if some >= LIKELY => NotGrown(told, None),
        _ => growth::against(
            told,
            counted.is_some_and(|count| of_change(count.more_at_most()) < LIKELY),
        ),
    }
}

/// Packets that were lost, more of them on the slower side. Segments are sent again, too, where their acknowledgement
/// comes late (tail loss probes, RFC 8985): that is a loss only where they are many beside those. Whether there are
/// more for sure comes with it.
pub(crate) fn lost(clues: &Clues) -> Option<(Told, bool)> {
    let fits = |name, metric| match grows(clues, name, MORE_OF_A_COUNT.value, metric) {
        Fits(told) => Some((told, true)),
        Perhaps(told) => Some((told, false)),
        _ => None,
    };
    let more = |name| clues.per_transaction(name).map_or(0.0, Pair::more);
    let probes = more(name::TCP_RETRANSMITS) < MOST_OF_CHANGE.value * more(name::TCP_DELAYED_ACKS);
    fits(name::NET_DROPS, Metric::PacketsDropped)
        .or_else(|| fits(name::TCP_RETRANSMITS, Metric::SegmentsSentAgain).filter(|_| !probes))
}
