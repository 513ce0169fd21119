//! What nothing is confirmed without: the same limits as of one side.

use crate::causes::cause;
use crate::thresholds::{LEAST_LEFT, MOST_UNEXPLAINED};
use fingerpost_record::{Evidence, Finding, Metric, Status};

use super::clues::Clues;
use crate::judging::TOO_LITTLE_FOLLOWED;

/// How far the rows of a step can be relied on.
#[derive(Clone, Debug, PartialEq)]
pub struct Trust {
    /// Why its row is not to be trusted, where that is so.
    pub untrusted: Option<String>,
    /// How many times as long a transaction takes, by the row that was measured without observers: the value and the
    /// ends of its 95 % interval, from the slower side.
    pub ratio: Option<[f64; 3]>,
    /// Whether the change is surely larger than what does not matter. Where it is not, there is a difference all the
    /// same, and whoever fits is likely.
    pub resolved: bool,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust {
            untrusted: None,
            ratio: None,
            resolved: true,
        }
    }
}

impl Trust {
    /// The ends of the interval of a change of so many seconds: as far from it as the row's are. At least a tenth of it
    /// is left, and a row whose interval has none is no change that is judged.
    pub fn change(&self, seconds: f64) -> [f64; 2] {
        let Some([value, low, high]) = self
            .ratio
            .filter(|r| r[0] > 1.0 && r.iter().all(|r| r.is_finite()))
        else {
            return [seconds, seconds];
        };
        let end = |ratio: f64| seconds * ((ratio - 1.0) / (value - 1.0)).max(LEAST_LEFT.value);
        [end(low).min(seconds), end(high).max(seconds)]
    }
}

/// The ends of a change of so many seconds that is known to so many; at least a tenth of it is left, as in
/// [`Trust::change`].
pub(super) fn around(seconds: f64, width: f64) -> [f64; 2] {
    [
        (seconds - width).max(LEAST_LEFT.value * seconds),
        seconds + width,
    ]
}

/// Lets suspects go where the change may be too small to matter and they explain less of it than nobody does.
pub(super) fn spare(findings: &mut [Finding], trust: &Trust, unexplained: f64) {
    if trust.resolved || unexplained <= MOST_UNEXPLAINED.value {
        return;
    }
    for f in findings.iter_mut().filter(|f| f.status == Status::Likely) {
        (f.status, f.share) = (Status::NotObserved, 0.0);
        f.evidence
            .push(Evidence::figure(Metric::UnexplainedOfSmall, unexplained));
    }
}

/// Takes guilt from those that it cannot be said of, with the reason. What a layer has more and no cause is known for
/// is unexplained, too.
pub(super) fn hold(findings: &mut [Finding], clues: &Clues, trust: &Trust, unexplained: f64) {
    let of_layers: f64 = findings
        .iter()
        .filter(|f| f.status.accuses() && cause(&f.cause).is_none())
        .map(|f| f.share)
        .sum();
    let unexplained = (unexplained + of_layers).min(1.0);
    for f in findings
        .iter_mut()
        .filter(|f| f.status == Status::Confirmed)
    {
        let why = match (&trust.untrusted, clues.not_followed()) {
            (Some(why), _) => Evidence::of(Metric::RowNotTrusted).saying(why),
            _ if !trust.resolved => Evidence::of(Metric::MayBeTooSmall),
            (_, None) => Evidence::of(Metric::NoInterval),
            (_, Some(share)) if share > TOO_LITTLE_FOLLOWED => {
                Evidence::figure(Metric::TooLittleFollowed, share).beside(TOO_LITTLE_FOLLOWED)
            }
            _ if unexplained > f.share => {
                Evidence::figure(Metric::LargerPartUnexplained, unexplained)
            }
            _ => continue,
        };
        f.status = Status::Likely;
        f.evidence.push(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_as_uncertain_as_its_row() {
        let trust = Trust {
            untrusted: None,
            ratio: Some([2.0, 1.8, 2.2]),
            resolved: true,
        };
        let [low, high] = trust.change(1e-3);
        assert!((low - 0.8e-3).abs() < 1e-12 && (high - 1.2e-3).abs() < 1e-12);
        assert_eq!(Trust::default().change(1e-3), [1e-3, 1e-3]);
        let vague = Trust {
            untrusted: None,
            ratio: Some([1.5, 0.9, 2.5]),
            resolved: true,
        };
        assert!((vague.change(1.0)[0] - 0.1).abs() < 1e-12);
    }
    #[test]
    fn of_what_may_be_chance_nobody_is_likely_who_explains_little() {
        let suspect = || {
            vec![Finding {
                cause: "cpu.speed".into(),
                layer: fingerpost_record::Layer::Cpu,
                status: Status::Likely,
                share: 0.3,
                evidence: vec![],
                step: None,
                relation: None,
            }]
        };
        let unsure = Trust {
            resolved: false,
            ..Trust::default()
        };
        let status = |trust: &Trust, unexplained: f64| {
            let mut findings = suspect();
            spare(&mut findings, trust, unexplained);
            findings[0].status
        };
        assert_eq!(status(&unsure, 0.6), Status::NotObserved);
        assert_eq!(status(&unsure, 0.4), Status::Likely);
        assert_eq!(status(&Trust::default(), 0.6), Status::Likely);
    }
}
