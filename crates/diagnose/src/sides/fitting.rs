//! Whether a reading, a part of a budget or a place of followed requests fits a cause: what all discriminators share.

use crate::thresholds::{GOOD_PART, LONGER_WAIT, TWICE};
use fingerpost_record::evidence::Held;
use fingerpost_record::reading::Name;
use fingerpost_record::{Component, Evidence, Layer, Metric, Quantity};

use super::clues::Clues;
use super::growth::{Growth, Pair, grown};
use super::sign::Sign::{self, Fits, NotGrown, Unknown};
use super::sign::Told;
use crate::places::Place;

/// A total that must grow clearly for the cause to fit. Seconds are no events.
pub(crate) fn grows(clues: &Clues, name: Name, by: f64, metric: Metric) -> Sign {
    let growth = if name.is_seconds() {
        None
    } else {
        clues.growth(name)
    };
    grows_by(clues, name, growth, by, metric)
}

/// The same of a total that so many events make.
pub(crate) fn grows_by(
    clues: &Clues,
    name: Name,
    growth: Option<Growth>,
    by: f64,
    metric: Metric,
) -> Sign {
    let Some(pair) = clues.per_transaction(name) else {
        return Unknown;
    };
    let mut told = clues.told(metric, pair);
    // What is a number of one side is one for each transaction here.
    if metric.unit() == Quantity::Count {
        told = told.counted_in(Quantity::PerTransaction);
    }
    grown(pair, growth, by, vec![told])
}

/// Whether a setting holds on the slower side only.
pub(crate) fn set_now(clues: &Clues, name: Name) -> bool {
    clues.total(name).is_some_and(|p| p.slow > p.fast)
}

/// A level (not a sum over the step) that must be clearly higher for the cause to fit.
pub(crate) fn higher(clues: &Clues, name: Name, metric: Metric) -> Sign {
    let Some(level) = clues.total(name) else {
        return Unknown;
    };
    grown(level, None, TWICE.value, vec![clues.told(metric, level)])
}

/// The ends of the ratio of two sides' parts, with the 95 % interval of their difference; nothing where requests were
/// not followed on both.
pub(crate) fn ends(clues: &Clues, pick: fn(Layer, &Component) -> bool) -> Option<[f64; 2]> {
    clues.followed().then(|| {
        let (pair, width) = (clues.parts(pick), clues.width(pick));
        [pair.slow - width, pair.slow + width].map(|slow| slow.max(0.0) / pair.fast.max(1e-12))
    })
}

/// What is told of a cause because of another, which is there by middle values: it neither accuses nor clears.
pub(crate) fn told_of_another(told: Told) -> Sign {
    NotGrown(told, None)
}

/// Whether these seconds are a good part of what a transaction takes longer.
pub(crate) fn is_good_part(clues: &Clues, more: f64) -> bool {
    more > GOOD_PART.value * clues.wall().more().max(0.0)
}

/// Whether a wait became clearly longer, and is a good part of the change.
pub(crate) fn grew(clues: &Clues, waited: Pair) -> bool {
    is_good_part(clues, waited.more()) && waited.ratio() > LONGER_WAIT.value
}

/// Whether requests spent clearly more in these places; nothing where they were not followed on both sides.
pub(crate) fn followed(clues: &Clues, places: &[Place], metric: Metric) -> Option<Sign> {
    let pair = clues.places(places)?;
    let whom = places.first().and_then(|place| clues.whom(*place));
    let told = Evidence {
        who: whom
            .map(|(by, share)| Held { by, share })
            .into_iter()
            .collect(),
        ..clues
            .told(metric, pair)
            .counted_in(Quantity::SecondsPerRequest)
    };
    let told = vec![told];
    Some(if grew(clues, pair) {
        Fits(told)
    } else {
        NotGrown(told, clues.grew_at_most(places))
    })
}
