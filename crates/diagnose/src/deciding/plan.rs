//! Which experiments decide between the suspects, of those that can be made here.

use fingerpost_record::{Change, Finding, Relation, Status};

use super::{decides, takes_away};
use crate::causes;

/// Pairs of stretches of an experiment: enough for an interval that leaves a few out.
const PAIRS: usize = 10;
/// Requests that a stretch should have.
const WANTED: f64 = 40.0;
/// How many mean latencies after a change nothing is counted: what was under way when it came is over then.
const LATENCIES: f64 = 2.0;
/// The longest that is waited for that, in seconds.
const LONGEST_SETTLE_S: f64 = 0.3;

/// A change that can be made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What is changed.
    pub change: Change,
    /// The same in words, as the end of “with …”.
    pub what: String,
    /// Why it cannot be carried out, where it is of use and cannot be.
    pub hindrance: Option<String>,
}

/// When experiments are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Where the suspects are not told apart: more than one is accused, or the first is only likely.
    WhereUndecided,
    /// Wherever a change could say anything: the user asked for it.
    Asked,
}

/// An experiment to be made: the place of its offer, and the causes that it decides about here.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The place in the list of offers.
    pub offer: usize,
    /// The causes.
    pub tests: Vec<&'static str>,
    /// The largest share that any of them is said to have.
    weight: f64,
}

/// The experiments to make, the one about the largest share first, at most `most` of them. An offer is taken where it
/// decides about a cause that is accused, or about one that could not be judged while somebody is accused, and that is
/// told of no other; where the user asked, also with nobody accused.
pub fn plan(findings: &[Finding], offers: &[Offer], policy: Policy, most: usize) -> Vec<Planned> {
    let accused: Vec<&Finding> = findings.iter().filter(|f| f.status.accuses()).collect();
    let undecided =
        accused.len() > 1 || accused.first().is_some_and(|f| f.status == Status::Likely);
    if policy == Policy::WhereUndecided && !undecided {
        return Vec::new();
    }
    // Where another cause has what is spent where this one acts, that one is tried.
    let is_told_elsewhere = |f: &Finding| matches!(f.relation, Some(Relation::ToldOf(_)));
    let worth = |cause: &str| {
        let finding = findings.iter().find(|f| f.cause == cause);
        match (finding, policy) {
            (Some(f), _) if f.status.accuses() => Some(f.share),
            (Some(f), _) if f.status == Status::NotObserved && !is_told_elsewhere(f) => Some(0.0),
            (_, Policy::Asked) => Some(0.0),
            _ => None,
        }
    };
    let planned = |(offer, o): (usize, &Offer)| {
        let shares =
            causes::taken_away_by(o.change).map(|cause| Some((cause.name, worth(cause.name)?)));
        let tests: Vec<(&'static str, f64)> = shares.flatten().collect();
        let weight = tests.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        // That it cannot be made is worth telling where it would decide about somebody who is accused.
        let worth_telling =
            o.hindrance.is_none() || accused.iter().any(|f| takes_away(o.change, &f.cause));
        (!tests.is_empty() && worth_telling).then(|| Planned {
            offer,
            tests: tests.iter().map(|(cause, _)| *cause).collect(),
            weight,
        })
    };
    let mut all: Vec<Planned> = offers.iter().enumerate().filter_map(planned).collect();
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    all.truncate(most);
    all
}

/// How an experiment goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Pairs of stretches.
    pub pairs: usize,
    /// The length of a stretch, in seconds.
    pub stretch_s: f64,
    /// How long after each change nothing is counted, in seconds.
    pub settle_s: f64,
}

impl Course {
    /// How long it takes, in seconds.
    pub fn seconds(&self) -> f64 {
        2.0 * self.pairs as f64 * (self.stretch_s + self.settle_s)
    }
}

/// How an experiment with this change goes where so many requests come a second and take so many seconds in the mean:
/// long enough for requests to be counted, within what the change allows. Nobody but the server is kept changed for
/// longer because requests are few.
pub fn course(change: Change, rate: f64, latency_s: f64) -> Course {
    let d = decides(change);
    let wanted = if rate > 0.0 {
        WANTED / rate
    } else {
        d.longest_s
    };
    let settle_s = match change {
        Change::Hold => d.settle_s,
        _ => (LATENCIES * latency_s).clamp(d.settle_s, LONGEST_SETTLE_S.max(d.settle_s)),
    };
    Course {
        pairs: PAIRS,
        stretch_s: wanted.clamp(d.stretch_s, d.longest_s),
        settle_s,
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Layer, fixture};

    use super::*;

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        fixture::loaded::finding(cause, Layer::Scheduler, status, share, "as seen")
    }

    fn offers(changes: &[Change]) -> Vec<Offer> {
        changes
            .iter()
            .map(|&change| Offer {
                change,
                what: format!("{change:?}"),
                hindrance: None,
            })
            .collect()
    }

    fn chosen(findings: &[Finding], offered: &[Change], policy: Policy) -> Vec<Change> {
        let offers = offers(offered);
        plan(findings, &offers, policy, 9)
            .iter()
            .map(|p| offers[p.offer].change)
            .collect()
    }

    const ALL: [Change; 4] = [Change::Weight, Change::Quota, Change::Cpus, Change::Hold];

    #[test]
    fn what_is_decided_needs_no_experiment() {
        let confirmed = [
            finding("cpu.quota", Status::Confirmed, 0.6),
            finding("cpu.contention", Status::RuledOut, 0.0),
        ];
        assert_eq!(chosen(&confirmed, &ALL, Policy::WhereUndecided), []);
        assert_eq!(
            chosen(&[], &ALL, Policy::WhereUndecided),
            [],
            "nobody is accused"
        );
        assert_eq!(
            chosen(&confirmed, &ALL, Policy::Asked)[0],
            Change::Quota,
            "the user asked: the accused first"
        );
    }

    #[test]
    fn two_causes_are_told_apart_by_what_changes_one_of_them() {
        let both = [
            finding("cpu.contention", Status::Confirmed, 0.3),
            finding("cpu.quota", Status::Likely, 0.5),
        ];
        assert_eq!(
            chosen(&both, &ALL, Policy::WhereUndecided),
            [Change::Quota, Change::Weight, Change::Hold]
        );
        assert_eq!(
            chosen(&both, &[Change::Cpus], Policy::WhereUndecided),
            [],
            "that would say nothing of either"
        );
    }

    #[test]
    fn a_suspect_that_nothing_here_can_decide_about_is_left() {
        let lock = [finding("app.lock", Status::Likely, 0.6)];
        assert_eq!(chosen(&lock, &ALL, Policy::WhereUndecided), []);
        let unknown = [
            finding("app.lock", Status::Likely, 0.6),
            finding("cpu.quota", Status::NotObserved, 0.0),
        ];
        assert_eq!(
            chosen(&unknown, &ALL, Policy::WhereUndecided),
            [Change::Quota],
            "what could not be judged is asked"
        );
    }

    #[test]
    fn what_is_told_of_an_accused_cause_is_not_asked_besides() {
        let mut left = finding("cpu.contention", Status::NotObserved, 0.0);
        let asked = |left: &Finding| {
            let found = [
                finding("cpu.priority", Status::Likely, 0.6),
                finding("cpu.quota", Status::Likely, 0.2),
                left.clone(),
            ];
            chosen(
                &found,
                &[Change::Hold, Change::Quota],
                Policy::WhereUndecided,
            )
        };
        assert_eq!(asked(&left), [Change::Quota, Change::Hold]);
        left.relation = Some(Relation::ToldOf("cpu.priority".into()));
        assert_eq!(asked(&left), [Change::Quota]);
    }

    #[test]
    fn what_cannot_be_made_is_told_where_somebody_is_accused_of_it() {
        let findings = [
            finding("cpu.contention", Status::Likely, 0.6),
            finding("memory.page_size", Status::NotObserved, 0.0),
        ];
        let mut offers = offers(&[Change::HugePages, Change::Weight]);
        offers
            .iter_mut()
            .for_each(|o| o.hindrance = Some("which needs root".into()));
        let found = plan(&findings, &offers, Policy::WhereUndecided, 9);
        assert_eq!(found.iter().map(|p| p.offer).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn the_largest_share_comes_first_and_no_more_than_there_is_time_for() {
        let all = [
            finding("cpu.affinity", Status::Likely, 0.1),
            finding("cpu.contention", Status::Likely, 0.4),
            finding("cpu.quota", Status::Likely, 0.2),
        ];
        let found = plan(&all, &offers(&ALL), Policy::WhereUndecided, 2);
        assert_eq!(found.iter().map(|p| p.offer).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(
            found[0].tests,
            ["cpu.contention"],
            "the nice value was not accused"
        );
    }

    #[test]
    fn a_stretch_is_long_enough_to_count_and_no_neighbour_is_held_for_longer() {
        let fast = course(Change::Weight, 5000.0, 1e-3);
        assert_eq!((fast.stretch_s, fast.settle_s), (0.1, 0.02));
        let slow = course(Change::Weight, 100.0, 0.05);
        assert_eq!((slow.stretch_s, slow.settle_s), (0.4, 0.1));
        let hold = course(Change::Hold, 10.0, 0.5);
        assert!(hold.stretch_s + hold.settle_s <= 0.1 + 1e-9);
        let quota = course(Change::Quota, 5000.0, 1e-3);
        assert!(
            quota.stretch_s >= 0.3 && quota.settle_s >= 0.1,
            "several periods of the quota"
        );
        assert!(quota.seconds() < 10.0);
    }
}
