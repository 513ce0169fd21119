//! What became of a conclusion: an answer, with the figure that gives it.

use fingerpost_record::{Estimate, Status};
use serde::Serialize;

/// What became of a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Answer {
    /// The figures bear it out.
    #[serde(rename = "true")]
    True,
    /// They contradict it.
    #[serde(rename = "false")]
    False,
    /// There are figures, and their intervals leave both open.
    #[serde(rename = "not resolved")]
    NotResolved,
    /// There is no figure that could.
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl Answer {
    /// The answer as every format prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Answer::True => "true",
            Answer::False => "false",
            Answer::NotResolved => "not resolved",
            Answer::NotMeasured => "not measured",
        }
    }
}

/// An answer with the figure that gives it, or with the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The answer.
    pub answer: Answer,
    /// The figure or the reason, as one sentence without its full stop.
    pub figure: String,
}

impl Judged {
    /// By a figure. One that is no number, because a row that it is made of has none, judges nothing.
    pub(super) fn by(holds: bool, figure: String) -> Judged {
        if figure.contains("NaN") {
            return Judged::not(MISSING);
        }
        Judged {
            answer: if holds { Answer::True } else { Answer::False },
            figure,
        }
    }

    /// By a figure that must reach a limit: its interval decides, or leaves both open.
    pub(super) fn at_least(e: &Estimate, limit: f64, figure: String) -> Judged {
        match e {
            Estimate { low, .. } if *low >= limit => Judged::by(true, figure),
            Estimate { high, .. } if *high < limit => Judged::by(false, figure),
            Estimate { value, .. } if value.is_nan() => Judged::not(MISSING),
            _ => Judged::open(figure),
        }
    }

    /// By a figure that must stay below a limit.
    pub(super) fn below(e: &Estimate, limit: f64, figure: String) -> Judged {
        let judged = Judged::at_least(e, limit, figure);
        let answer = match judged.answer {
            Answer::True => Answer::False,
            Answer::False => Answer::True,
            open => open,
        };
        Judged { answer, ..judged }
    }

    /// By whether the first figure is larger than the second; open where their intervals overlap.
    pub(super) fn larger(first: &Estimate, second: &Estimate, figure: String) -> Judged {
        if first.low > second.high || first.high < second.low {
            return Judged::by(first.value > second.value, figure);
        }
        Judged::open(format!("{figure}, with intervals that overlap"))
    }

    /// By what a comparison says of a cause, which it may say nothing of.
    pub(super) fn by_cause(
        said: Option<(Status, String)>,
        holds: impl FnOnce(Status, &str) -> bool,
    ) -> Judged {
        match said {
            Some((status, figure)) if status != Status::NotObserved => {
                Judged::by(holds(status, &figure), figure)
            }
            _ => Judged::not(MISSING),
        }
    }

    /// Measured, by a figure whose interval does not decide it.
    pub(super) fn open(figure: String) -> Judged {
        Judged {
            answer: Answer::NotResolved,
            figure,
        }
    }

    /// There is no figure, for this reason.
    pub(super) fn not(why: &str) -> Judged {
        Judged {
            answer: Answer::NotMeasured,
            figure: why.to_owned(),
        }
    }
}

/// Why a conclusion is not judged whose figure is missing.
const MISSING: &str = "a figure that it needs is missing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_figure_judges_nothing_and_an_interval_across_the_limit_leaves_it_open() {
        let nan = f64::NAN;
        assert_eq!(
            Judged::by(nan > 2.0, format!("{nan:.1} times")),
            Judged::not(MISSING)
        );
        assert_eq!(Judged::by(false, "1.5 times".into()).answer, Answer::False);
        let e = |low, high| Estimate {
            value: (low + high) / 2.0,
            low,
            high,
            confidence: 0.95,
        };
        let [above, across, under] = [e(2.0, 3.0), e(1.9, 3.0), e(1.0, 1.9)]
            .map(|e| Judged::at_least(&e, 2.0, "x".into()).answer);
        assert_eq!(
            [above, across, under],
            [Answer::True, Answer::NotResolved, Answer::False]
        );
        let [above, across, under] = [e(2.0, 3.0), e(1.9, 3.0), e(1.0, 1.9)]
            .map(|e| Judged::below(&e, 2.0, "x".into()).answer);
        assert_eq!(
            [above, across, under],
            [Answer::False, Answer::NotResolved, Answer::True]
        );
        assert_eq!(
            Judged::below(&e(nan, nan), 2.0, "x".into()),
            Judged::not(MISSING)
        );
        let by = |said| Judged::by_cause(said, |status, _| status == Status::RuledOut).answer;
        assert_eq!(by(None), Answer::NotMeasured);
        assert_eq!(
            by(Some((Status::NotObserved, "nothing is known".into()))),
            Answer::NotMeasured
        );
        assert_eq!(by(Some((Status::Confirmed, "60 %".into()))), Answer::False);
        assert_eq!(by(Some((Status::RuledOut, "2 %".into()))), Answer::True);
    }
}
