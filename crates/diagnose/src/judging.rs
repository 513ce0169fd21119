//! How a share of followed requests and counters beside it become a verdict: what the rules of all causes share.

use fingerpost_record::evidence::{Chain, Held};
use fingerpost_record::paths::Share;
use fingerpost_record::reading::{Missing, Name};
use fingerpost_record::{Evidence, Metric, Status};

use super::facts::Facts;
use super::places::{Place, Sum};
use super::thresholds::{self, MUCH_WORK};

/// What a rule found: the status, the share of the time that the cause is held responsible for, and the facts.
pub(crate) struct Verdict {
    pub status: Status,
    pub share: f64,
    pub evidence: Vec<Evidence>,
    /// Another cause of which is told what requests spend where this one acts as well, so that it is not observed.
    pub told_of: Option<&'static str>,
}

/// A share from which on a cause that its evidence singles out is confirmed, and from which on it is likely.
pub(crate) const CONFIRMED: f64 = thresholds::CONFIRMED.value;

/// See [`CONFIRMED`].
pub(crate) const LIKELY: f64 = thresholds::LIKELY.value;

/// Above this share of requests' time that could not be followed nothing is confirmed: it could hold as much as what was
/// followed of a cause.
pub const TOO_LITTLE_FOLLOWED: f64 = thresholds::NOT_FOLLOWED.value;

/// The share of these places, where requests were followed.
pub(crate) fn part(f: &Facts, places: &[Place], metric: Metric) -> Option<Evidence> {
    f.share(places).map(|share| Evidence::share(metric, share))
}

/// Holders that are told of one place.
const MOST_HELD: usize = 3;
/// Chains that are.
const MOST_CHAINS: usize = 2;

/// Who had it and by which chains requests came there, the largest of each.
pub(crate) fn told(sum: Option<&Sum>) -> Vec<Evidence> {
    let Some(sum) = sum else { return Vec::new() };
    let held = Evidence {
        who: sum
            .whom
            .iter()
            .take(MOST_HELD)
            .map(|(by, share)| Held {
                by: by.clone(),
                share: *share,
            })
            .collect(),
        ..Evidence::of(Metric::HeldBy)
    };
    let led = Evidence {
        chains: sum
            .chains
            .iter()
            .take(MOST_CHAINS)
            .map(|((links, end), share)| Chain {
                links: links.clone(),
                end: end.clone(),
                share: *share,
            })
            .collect(),
        ..Evidence::of(Metric::LedBy)
    };
    let held = (!held.who.is_empty()).then_some(held);
    let led = (!led.chains.is_empty()).then_some(led);
    held.into_iter().chain(led).collect()
}

/// The share of requests' time that could not be followed; all of it where none was.
fn not_followed(f: &Facts) -> f64 {
    f.followed
        .as_ref()
        .map_or(1.0, |followed| followed.not_followed)
}

/// That so much could not be followed that a cause may be in it.
fn may_be_unseen(not_followed: f64) -> Evidence {
    Evidence::figure(Metric::MayBeNotFollowed, not_followed).beside(TOO_LITTLE_FOLLOWED)
}

/// That a share's interval reaches further than its middle says.
fn undecided(share: Share, accuses: f64) -> Evidence {
    Evidence::share(Metric::ShareOfTime, share)
        .beside(accuses)
        .undecided()
}

/// The verdict on a share of followed requests: confirmed where `proof` holds and the whole interval is large, likely
/// where the share is, else ruled out. Without followed requests, likely where counters `point` to it, and else not
/// judged.
pub(crate) fn judged(
    f: &Facts,
    share: Option<Share>,
    proof: bool,
    points: bool,
    mut evidence: Vec<Evidence>,
) -> Option<Verdict> {
    let Some(share) = share else {
        evidence.push(Evidence::of(Metric::NotFollowed));
        return points.then_some(Verdict {
            status: Status::Likely,
            share: 0.0,
            evidence,
            told_of: None,
        });
    };
    let not_followed = not_followed(f);
    let unseen = not_followed > TOO_LITTLE_FOLLOWED;
    let (status, why) = match share {
        s if s.low >= CONFIRMED && proof && unseen => {
            let why = Evidence::figure(Metric::TooLittleFollowed, not_followed);
            (Status::Likely, Some(why.beside(TOO_LITTLE_FOLLOWED)))
        }
        s if s.low >= CONFIRMED && proof => (Status::Confirmed, None),
        s if s.share >= LIKELY && proof => (Status::Likely, None),
        // What is ruled out by its share must be small with its whole interval, and not in what nobody could see.
        s if s.high >= CONFIRMED && proof => (Status::NotObserved, Some(undecided(s, CONFIRMED))),
        _ if unseen && proof => (Status::NotObserved, Some(may_be_unseen(not_followed))),
        _ => (Status::RuledOut, None),
    };
    evidence.extend(why);
    let share = if status == Status::NotObserved {
        0.0
    } else {
        share.share
    };
    Some(Verdict {
        status,
        share,
        evidence,
        told_of: None,
    })
}

/// A verdict that clears by the middle of a count or of a share (`doubt` says so) clears only where the cause's part of
/// a request is small with its whole interval.
pub(crate) fn doubted(
    f: &Facts,
    share: Option<Share>,
    doubt: Option<Evidence>,
    verdict: Option<Verdict>,
) -> Option<Verdict> {
    let mut v = verdict?;
    // Whatever else is known, that clears.
    let surely_small =
        not_followed(f) <= TOO_LITTLE_FOLLOWED && share.is_some_and(|s| s.high < CONFIRMED);
    if let Some(doubt) = doubt.filter(|_| v.status == Status::RuledOut && !surely_small) {
        (v.status, v.share) = (Status::NotObserved, 0.0);
        v.evidence.push(doubt);
    }
    Some(v)
}

/// Why a count does not clear: with its interval it reaches what accuses.
pub(crate) fn reaches(what: Metric, high: f64, limit: f64) -> Option<Evidence> {
    (high >= limit).then(|| Evidence {
        high: Some(high),
        ..Evidence::of(what).beside(limit).undecided()
    })
}

/// Why a share does not clear that is less than much by its middle.
pub(crate) fn may_be_much(f: &Facts, share: Share) -> Option<Evidence> {
    let not_followed = not_followed(f);
    if not_followed > TOO_LITTLE_FOLLOWED {
        return Some(may_be_unseen(not_followed));
    }
    (share.share < MUCH_WORK.value && share.high >= MUCH_WORK.value)
        .then(|| undecided(share, MUCH_WORK.value))
}

/// A verdict that one run cannot prove: confirmed becomes likely, with the reason.
pub(crate) fn at_most_likely(verdict: Option<Verdict>, why: Metric) -> Option<Verdict> {
    let mut v = verdict?;
    if v.status == Status::Confirmed {
        v.status = Status::Likely;
        v.evidence.push(Evidence::of(why));
    }
    Some(v)
}

/// A verdict without readings that tell the cause from another: nothing is confirmed, and it is said what is missing.
pub(crate) fn without(
    f: &Facts,
    readings: &[Name],
    other: &str,
    verdict: Option<Verdict>,
) -> Option<Verdict> {
    let mut v = verdict?;
    if readings.iter().all(|name| f.known(*name).is_none()) && v.status.accuses() {
        v.status = Status::Likely;
        let missing = readings.iter().map(|name| missing(f, *name)).collect();
        v.evidence.push(Evidence {
            missing,
            ..Evidence::of(Metric::Missing).about(other)
        });
    }
    Some(v)
}

/// A reading that is not known, and why.
pub(crate) fn missing(f: &Facts, name: Name) -> Missing {
    let of = f
        .readings
        .and_then(|readings| readings.why_missing(name.as_str()));
    Missing {
        reading: name.into(),
        of: of.into_iter().collect(),
        compared: false,
    }
}

/// A verdict that another cause, which is there, keeps from being one: what is more than little with its whole interval
/// is not ruled out.
pub(crate) fn told_of(
    other: &'static str,
    is_there: bool,
    share: Option<Share>,
    verdict: Option<Verdict>,
) -> Option<Verdict> {
    let mut v = verdict?;
    let much = share.is_some_and(|s| s.share >= LIKELY || s.high >= CONFIRMED);
    if is_there && much && v.status == Status::RuledOut {
        (v.status, v.share) = (Status::NotObserved, 0.0);
        v.told_of = Some(other);
        v.evidence
            .push(Evidence::of(Metric::CountedFor).about(other));
    }
    Some(v)
}

pub(crate) fn ruled_out(evidence: Vec<Evidence>) -> Option<Verdict> {
    Some(Verdict {
        status: Status::RuledOut,
        share: 0.0,
        evidence,
        told_of: None,
    })
}

/// Whose total between this prefix and this suffix is the largest.
pub(crate) fn mostly(f: &Facts, prefix: &str, suffix: &str) -> Option<String> {
    f.readings
        .and_then(|readings| readings.largest(prefix, suffix))
        .map(str::to_owned)
}
