//! What is lost on the network, and what is acknowledged late.

use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric, Readings};

use crate::counts;
use crate::facts::{Facts, drops};
use crate::judging::part;
use crate::places::Place;
use crate::thresholds::{MANY_DELAYED, SEGMENTS_AGAIN};

pub(crate) fn on_the_way(f: &Facts) -> Option<Evidence> {
    part(f, &[Place::OnTheWay], Metric::OnTheWay)
}

pub(crate) fn dropped(f: &Facts) -> bool {
    lost(f.drops, f.known(name::TCP_RETRANSMITS), f.transactions)
}

/// Whether readings tell of packets that were dropped, or of more that were sent again than chance makes.
pub fn packets_lost(readings: &Readings) -> bool {
    lost(
        drops(readings),
        readings.known(name::TCP_RETRANSMITS),
        readings.known(name::STEP_TRANSACTIONS).unwrap_or(0.0),
    )
}

fn lost(drops: Option<f64>, retransmits: Option<f64>, transactions: f64) -> bool {
    drops.is_some_and(|n| n > 0.0)
        || retransmits.is_some_and(|n| n > SEGMENTS_AGAIN.value * transactions.max(100.0))
}

/// Why a number of late acknowledgements on either side of the limit tells nothing by its middle alone.
pub(crate) fn acks_untold(f: &Facts) -> Option<Evidence> {
    let (acks, limit) = (f.delayed_acks?, MANY_DELAYED.value);
    let [low, high] = counts::rate(acks, f.transactions);
    let untold = low <= limit && high > limit;
    untold.then(|| {
        Evidence::figure(Metric::DelayedAcks, acks)
            .within([low, high])
            .beside(limit)
            .undecided()
    })
}

/// Late acknowledgements now and then are usual; one in three transactions is a pattern.
pub(crate) fn acks_delayed(f: &Facts) -> Option<bool> {
    f.delayed_acks.map(|n| n > MANY_DELAYED.value)
}
