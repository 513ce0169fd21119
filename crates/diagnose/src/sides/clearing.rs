//! What clears a cause of a difference: a fact about itself, or a part of the change that is small with its whole
//! interval and with what nobody saw. A middle value alone clears nobody.

use fingerpost_record::{Evidence, Finding, Metric, Status};

use super::clues::Clues;
use super::decided;
use crate::judging::{CONFIRMED, TOO_LITTLE_FOLLOWED};

/// Why a cause that no fact excludes is not ruled out by its part of the change, whose upper end is `high`; `unseen` is
/// what could not be followed, of the change. Nothing where it is ruled out.
pub(super) fn why_not(
    high: Option<f64>,
    unseen: f64,
    not_followed: Option<f64>,
) -> Option<Evidence> {
    let Some((high, not_followed)) = high.zip(not_followed) else {
        return Some(Evidence::of(Metric::NoIntervalToRuleOut));
    };
    if not_followed > TOO_LITTLE_FOLLOWED {
        return Some(
            Evidence::figure(Metric::MayBeNotFollowed, not_followed).beside(TOO_LITTLE_FOLLOWED),
        );
    }
    let most = (high + unseen).min(1.0);
    (most >= CONFIRMED).then(|| {
        Evidence::figure(Metric::PartAtMost, most)
            .beside(CONFIRMED)
            .undecided()
    })
}

/// Why each cause is not ruled out, by name: of those that are ruled out now.
pub(super) struct Doubts(Vec<(String, Evidence)>);

impl Doubts {
    /// Of these, those whose causes are ruled out.
    pub(super) fn of(doubts: Vec<(&str, Evidence)>, findings: &[Finding]) -> Doubts {
        let ruled_out = |cause: &str| {
            findings
                .iter()
                .any(|f| f.cause == cause && f.status == Status::RuledOut)
        };
        Doubts(
            doubts
                .into_iter()
                .filter(|(cause, _)| ruled_out(cause))
                .map(|(cause, why)| (cause.to_owned(), why))
                .collect(),
        )
    }

    /// Takes back what they speak against. What an experiment ruled out stays ruled out.
    pub(super) fn apply(self, findings: &mut [Finding], clues: &Clues) {
        for (cause, why) in self.0 {
            let ruled_out = |f: &&mut Finding| f.cause == cause && f.status == Status::RuledOut;
            for f in findings
                .iter_mut()
                .filter(ruled_out)
                .filter(|f| !decided::clears(clues, f))
            {
                f.status = Status::NotObserved;
                f.evidence.push(why.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_clears_with_its_whole_interval_and_what_nobody_saw() {
        let says = |high, unseen, not_followed, metric: Metric, value: Option<f64>| {
            why_not(high, unseen, not_followed)
                .is_some_and(|why| why.metric == metric && why.value == value)
        };
        assert_eq!(why_not(Some(0.05), 0.02, Some(0.02)), None);
        let most = Metric::PartAtMost;
        assert!(says(Some(0.9), 0.0, Some(0.02), most, Some(0.9)));
        assert!(
            says(Some(0.06), 0.05, Some(0.02), most, Some(0.06 + 0.05)),
            "what could not be followed is added"
        );
        let unseen = Metric::MayBeNotFollowed;
        assert!(says(Some(0.0), 0.0, Some(0.3), unseen, Some(0.3)));
        assert!(says(None, 0.0, None, Metric::NoIntervalToRuleOut, None));
    }
}
