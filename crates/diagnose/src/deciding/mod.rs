//! Deciding experiments: what to change where passive signs leave causes that look alike, and what the requests' answer
//! says.
//!
//! Pure: suspects and what can be changed come in, and which experiments to make go out ([`plan()`]); paired stretches
//! come in, and the effect with its interval goes out ([`effect()`]); findings and experiments come in, and findings go
//! out that the answers have changed ([`verdict()`]). Who carries an experiment out is elsewhere.

mod effect;
mod plan;
mod verdict;

pub use effect::{answer, effect, interval};
pub use plan::{Course, Offer, Planned, Policy, course, plan};
pub use verdict::verdict;

use std::cmp::Ordering;

use fingerpost_record::{Change, Experiment, Finding};

use crate::causes;

/// How a change decides about the causes that it takes away ([`causes::taken_away_by`]).
#[derive(Debug)]
pub struct Decides {
    /// The change.
    pub change: Change,
    /// Whether it takes them away whole, so that requests that are as fast as before clear them. A higher weight may
    /// help nothing against a neighbour in another group, and holding one neighbour says nothing of others.
    pub clears: bool,
    /// How long a stretch is at least, in seconds.
    pub stretch_s: f64,
    /// How long a stretch may be, in seconds.
    pub longest_s: f64,
    /// How long after each change nothing is counted, in seconds.
    pub settle_s: f64,
}

/// The kernel accounts quotas in periods of 100 ms: a stretch has several, and what the period before left over is not
/// counted.
const QUOTA_PERIOD_S: f64 = 0.1;
/// Stretches of changes that act at once.
const SHORT_S: f64 = 0.1;
const LONGEST_S: f64 = 0.5;
/// How long the scheduler takes to move threads to CPUs that they may use now: its balancing runs every few
/// milliseconds when busy.
const BALANCED_S: f64 = 0.02;
/// A neighbour is held for no longer than this, settling included.
pub const LONGEST_HOLD_S: f64 = 0.1;

const fn short(change: Change, clears: bool) -> Decides {
    Decides {
        change,
        clears,
        stretch_s: SHORT_S,
        longest_s: LONGEST_S,
        settle_s: BALANCED_S,
    }
}

/// What each change decides about.
pub static DECIDES: [Decides; 7] = [
    short(Change::Priority, false),
    short(Change::Weight, false),
    Decides {
        stretch_s: 3.0 * QUOTA_PERIOD_S,
        longest_s: 6.0 * QUOTA_PERIOD_S,
        settle_s: QUOTA_PERIOD_S,
        ..short(Change::Quota, true)
    },
    short(Change::Cpus, true),
    Decides {
        stretch_s: LONGEST_HOLD_S - BALANCED_S,
        longest_s: LONGEST_HOLD_S - BALANCED_S,
        ..short(Change::Hold, false)
    },
    short(Change::Client, false),
    short(Change::HugePages, false),
];

/// Whether a change takes a cause away: where requests are faster with it, the one of these that was the most likely is
/// confirmed.
pub(crate) fn takes_away(change: Change, cause: &str) -> bool {
    causes::cause(cause).is_some_and(|c| c.experiments.contains(&change))
}

/// Whether an experiment decides about what is found.
pub(crate) fn decides_about(experiment: &Experiment, f: &Finding) -> bool {
    takes_away(experiment.change, &f.cause) && experiment.tests.contains(&f.cause)
}

/// The order of suspects, from the one that is the most likely.
pub(crate) fn by_suspicion(a: &Finding, b: &Finding) -> Ordering {
    a.status
        .cmp(&b.status)
        .then(b.share.partial_cmp(&a.share).unwrap_or(Ordering::Equal))
}

/// What a change decides about.
pub fn decides(change: Change) -> &'static Decides {
    DECIDES
        .iter()
        .find(|d| d.change == change)
        .unwrap_or(&DECIDES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_there_once_and_names_causes_that_there_are() {
        let all = [
            Change::Priority,
            Change::Weight,
            Change::Quota,
            Change::Cpus,
            Change::Hold,
            Change::Client,
            Change::HugePages,
        ];
        for change in all {
            assert_eq!(DECIDES.iter().filter(|d| d.change == change).count(), 1);
            let d = decides(change);
            assert_eq!(d.change, change);
            assert!(causes::taken_away_by(change).next().is_some(), "{change:?}");
            assert!(d.stretch_s > 0.0 && d.stretch_s <= d.longest_s && d.settle_s > 0.0);
        }
        let hold = decides(Change::Hold);
        assert!(
            hold.longest_s + hold.settle_s <= LONGEST_HOLD_S + 1e-9,
            "a neighbour is held for no longer than that"
        );
    }
}
