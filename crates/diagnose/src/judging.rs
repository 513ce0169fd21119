//! How a share of followed requests and counters beside it become a verdict: what the rules of all causes share.

use fingerpost_record::cause::thresholds::MUCH_WORK;
use fingerpost_record::paths::Share;
use fingerpost_record::{Status, cause, unit::significant};

use super::facts::Facts;
use super::places::{Place, Sum};
use super::wording;

/// What a rule found: the status, the share of the time that the cause is held responsible for, and the figures.
pub(super) struct Verdict {
    pub status: Status,
    pub share: f64,
    pub evidence: Vec<String>,
    /// Another cause of which is told what requests spend where this one acts as well, so that it is not observed.
    pub told_of: Option<&'static str>,
}

/// A share from which on a cause that its evidence singles out is confirmed, and from which on it is likely.
pub(crate) const CONFIRMED: f64 = cause::CONFIRMED.value;

/// See [`CONFIRMED`].
pub(crate) const LIKELY: f64 = cause::LIKELY.value;

/// Above this share of requests' time that could not be followed nothing is confirmed: it could hold as much as what was
/// followed of a cause.
pub const TOO_LITTLE_FOLLOWED: f64 = cause::NOT_FOLLOWED.value;

/// Why nothing is confirmed where requests were not followed, and what would allow it.
pub(crate) const NOT_FOLLOWED: &str = "requests could not be followed, so that nothing shows whether they waited for \
    it; following them needs root, CAP_PERFMON or kernel.perf_event_paranoid=-1, and a readable tracefs";

/// From so many per cent on, tenths of one are not told.
const WHOLE: f64 = 10.0;

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= WHOLE {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// A share with its interval.
pub(super) fn interval(s: Share) -> String {
    if s.share <= 0.0 {
        "0 %".to_owned()
    } else {
        format!(
            "{} ({:.0} to {:.0} %)",
            percent(s.share),
            s.low * 100.0,
            s.high * 100.0
        )
    }
}

/// `text` where requests were followed, with the share of these places for its `{}`.
pub(super) fn part(f: &Facts, places: &[Place], what: &str) -> Option<String> {
    f.share(places)
        .map(|s| format!("{what} is {} of a request", interval(s)))
}

/// Who had it and by which chains requests came there, the largest of each.
pub(super) fn told(sum: Option<&Sum>) -> Vec<String> {
    let Some(sum) = sum else { return Vec::new() };
    let names: Vec<String> = sum
        .whom
        .iter()
        .take(3)
        .map(|(who, share)| format!("{} {}", wording::who(who), percent(*share)))
        .collect();
    let chains: Vec<String> = sum
        .chains
        .iter()
        .take(2)
        .map(|((links, end), share)| {
            format!("{} ({})", wording::chain(links, end), percent(*share))
        })
        .collect();
    let whom = (!names.is_empty()).then(|| format!("the wait was for {}", names.join(", ")));
    let led = (!chains.is_empty()).then(|| format!("what led to it: {}", chains.join(", and by ")));
    whom.into_iter().chain(led).collect()
}

/// The share of requests' time that could not be followed; all of it where none was.
fn not_followed(f: &Facts) -> f64 {
    f.followed
        .as_ref()
        .map_or(1.0, |followed| followed.not_followed)
}

/// That so much could not be followed that a cause may be in it.
fn may_be_unseen(not_followed: f64) -> String {
    format!(
        "{} of the requests' time could not be followed, and may have been this",
        percent(not_followed)
    )
}

/// That a share's interval reaches further than its middle says.
fn undecided(share: Share) -> String {
    format!(
        "its interval reaches {}: that neither clears nor accuses",
        percent(share.high)
    )
}

/// The verdict on a share of followed requests: confirmed where `proof` holds and the whole interval is large, likely
/// where the share is, else ruled out. Without followed requests, likely where counters `point` to it, and else not
/// judged.
pub(super) fn judged(
    f: &Facts,
    share: Option<Share>,
    proof: bool,
    points: bool,
    mut evidence: Vec<String>,
) -> Option<Verdict> {
    let Some(share) = share else {
        evidence.push(NOT_FOLLOWED.to_owned());
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
            let (unseen, most) = (percent(not_followed), percent(TOO_LITTLE_FOLLOWED));
            (
                Status::Likely,
                Some(format!(
                    "{unseen} of the requests' time could not be followed: above {most} no cause is confirmed"
                )),
            )
        }
        s if s.low >= CONFIRMED && proof => (Status::Confirmed, None),
        s if s.share >= LIKELY && proof => (Status::Likely, None),
        // What is ruled out by its share must be small with its whole interval, and not in what nobody could see.
        s if s.high >= CONFIRMED && proof => (Status::NotObserved, Some(undecided(s))),
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
pub(super) fn doubted(
    f: &Facts,
    share: Option<Share>,
    doubt: Option<String>,
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
pub(super) fn reaches(what: &str, high: f64, limit: f64) -> Option<String> {
    let may = format!("with its interval {what} may be {}", significant(high));
    (high >= limit).then(|| {
        format!(
            "{may}, and {} would accuse: that neither clears nor accuses",
            significant(limit)
        )
    })
}

/// Why a share does not clear that is less than much by its middle.
pub(super) fn may_be_much(f: &Facts, share: Share) -> Option<String> {
    let not_followed = not_followed(f);
    if not_followed > TOO_LITTLE_FOLLOWED {
        return Some(may_be_unseen(not_followed));
    }
    (share.share < MUCH_WORK.value && share.high >= MUCH_WORK.value).then(|| undecided(share))
}

/// A verdict that one run cannot prove: confirmed becomes likely, with the reason.
pub(super) fn at_most_likely(verdict: Option<Verdict>, why: &str) -> Option<Verdict> {
    let mut v = verdict?;
    if v.status == Status::Confirmed {
        v.status = Status::Likely;
        v.evidence.push(why.to_owned());
    }
    Some(v)
}

/// A verdict without a reading that tells the cause from another: nothing is confirmed, and it is said what is missing.
pub(super) fn without(missing: bool, what: &str, verdict: Option<Verdict>) -> Option<Verdict> {
    let mut v = verdict?;
    if missing && v.status.accuses() {
        v.status = Status::Likely;
        v.evidence.push(what.to_owned());
    }
    Some(v)
}

/// A verdict that another cause, which is there, keeps from being one: what is more than little with its whole interval
/// is not ruled out.
pub(super) fn told_of(
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
        let told = format!(
            "what is waited there is told of {other} ({})",
            cause::label(other)
        );
        v.evidence.push(format!(
            "{told}: how much would be left without that is not known"
        ));
    }
    Some(v)
}

pub(super) fn ruled_out(evidence: Vec<String>) -> Option<Verdict> {
    Some(Verdict {
        status: Status::RuledOut,
        share: 0.0,
        evidence,
        told_of: None,
    })
}

/// The threshold of a cause that has one.
pub(super) fn limit(of: &str) -> f64 {
    cause::cause(of)
        .and_then(|c| c.thresholds.first())
        .map_or(f64::NAN, |t| t.value)
}

/// What followed requests spent in the places where a cause acts.
pub(super) fn share_of(f: &Facts, of: &str) -> Option<Share> {
    f.share(cause::cause(of)?.places)
}

/// Whose total between this prefix and this suffix is the largest.
pub(super) fn mostly(f: &Facts, prefix: &str, suffix: &str) -> String {
    let name = f
        .readings
        .and_then(|readings| readings.largest(prefix, suffix));
    name.map_or(String::new(), |name| format!(", most of it “{name}”"))
}
