//! What changes that were measured one at a time make of a difference, and what that says of the causes: it counts
//! above every passive sign.

use crate::thresholds::CONFIRMED;
use crate::thresholds::MOST_OF_DIFFERENCE;
use fingerpost_record::{Evidence, Finding, Metric, Status};

use super::settled::{Measured, put_first};
use crate::chain::unexplained_beside;

/// The share of a difference, by logarithms, from which on a change is said to make it.
pub const MOST: f64 = MOST_OF_DIFFERENCE.value;

/// What a change made by itself.
pub use fingerpost_record::evidence::Alone as Answer;

/// One change that was measured by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// What it made.
    pub answer: Answer,
    /// The part of the difference that this is, where it is known.
    pub share: Option<f64>,
    /// The least part that its interval leaves for it.
    pub least: Option<f64>,
    /// The same as a fact.
    pub fact: Evidence,
}

/// The changes that speak of one cause.
#[derive(Clone, Debug)]
pub struct OfCause {
    /// The finding of it, where no passive sign pointed to it.
    pub unnamed: Finding,
    /// What each made.
    pub answers: Vec<Alone>,
}

/// Has causes say what was measured of single changes, and returns what is left unexplained. Where the difference is
/// one of a workload's step, what was measured comes first, and its consequences after it.
pub fn settle(
    causes: &mut Vec<Finding>,
    mut unexplained: f64,
    measured: &[OfCause],
    of_step: bool,
) -> f64 {
    let mut known: Vec<Measured> = Vec::new();
    for OfCause { unnamed, answers } in measured {
        let cause = unnamed.cause.as_str();
        if !causes.iter().any(|f| f.cause == cause)
            && made(answers).is_some_and(|made| made.share > 0.0)
        {
            causes.insert(0, unnamed.clone());
        }
        let Some(finding) = causes.iter_mut().find(|f| f.cause == cause) else {
            continue;
        };
        let before = finding.share;
        decide(finding, answers, (!of_step).then_some(unexplained));
        match of_step {
            // Of a step, what follows from the change has its part by itself: only what is measured adds to it.
            true if finding.status.accuses() => unexplained = unexplained.min(1.0 - finding.share),
            true => {}
            false => unexplained = (unexplained + before - finding.share).clamp(0.0, 1.0),
        }
        if answers
            .iter()
            .any(|one| !matches!(one.answer, Answer::NotDone | Answer::Unresolved))
        {
            known.push(Measured {
                cause,
                least: made(answers).map_or(0.0, |made| made.least),
            });
        }
    }
    match of_step {
        _ if known.is_empty() => unexplained,
        true => {
            put_first(causes, &known);
            unexplained_beside(causes, unexplained)
        }
        false => {
            causes.sort_by_key(|f| !f.status.accuses());
            unexplained
        }
    }
}

/// What changes make together of the difference.
struct Made {
    share: f64,
    /// The sum of what their intervals leave them for sure.
    least: f64,
    /// Whether the interval of one of them lies above the share that confirms.
    surely: bool,
}

/// What those that were measured make; nothing where none was.
fn made(answers: &[Alone]) -> Option<Made> {
    if answers.iter().all(|one| one.answer == Answer::NotDone) {
        return None;
    }
    let makes = || {
        answers
            .iter()
            .filter(|one| matches!(one.answer, Answer::Decides | Answer::Part))
    };
    Some(Made {
        share: makes().filter_map(|one| one.share).sum(),
        least: makes()
            .filter_map(|one| one.least)
            .filter(|least| *least > 0.0)
            .sum(),
        surely: makes()
            .filter_map(|one| one.least)
            .any(|least| least >= CONFIRMED.value),
    })
}

/// The answers are evidence above every passive sign: they convict, and they clear where each change was measured and
/// none matters. Of a workload's step a change has the share that was measured; of probes, of whose difference so much
/// is `unexplained`, no more than the rows that it concerns, or, where nobody knows how much that is, than no other
/// cause explains.
fn decide(finding: &mut Finding, answers: &[Alone], unexplained: Option<f64>) {
    let Some(made) = made(answers) else { return };
    if answers.iter().all(|one| one.answer != Answer::NotDone) {
        finding
            .evidence
            .retain(|fact| fact.metric != Metric::ChangedTogether);
    }
    for (at, one) in answers.iter().enumerate() {
        finding.evidence.insert(at, one.fact.clone());
    }
    if made.share > 0.0 {
        finding.status = if made.share >= MOST || made.surely {
            Status::Confirmed
        } else {
            Status::Likely
        };
        finding.share = match unexplained {
            None => made.share.min(1.0),
            Some(unexplained) if finding.share == 0.0 => made.share.min(unexplained),
            Some(_) if made.share >= MOST => finding.share,
            Some(_) => finding.share.min(made.share),
        };
    } else if answers
        .iter()
        .all(|one| matches!(one.answer, Answer::Nothing | Answer::Against))
    {
        finding.status = Status::RuledOut;
        finding.share = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;

    use super::*;

    /// A change that makes a row so many times slower, of four times.
    fn alone(times: f64, answer: Answer) -> Alone {
        let share = Some(times.ln() / 4.0_f64.ln());
        Alone {
            answer,
            share,
            least: share,
            fact: Evidence::figure(Metric::ChangeAlone, times),
        }
    }

    fn finding() -> Finding {
        Finding {
            cause: "app.setting".into(),
            layer: Layer::Application,
            status: Status::Likely,
            share: 0.9,
            evidence: vec![
                Evidence::of(Metric::Changed)
                    .named("storage")
                    .changing("innodb", "aria"),
                Evidence::of(Metric::ChangedTogether),
            ],
            step: None,
            relation: None,
        }
    }

    #[test]
    fn an_answer_convicts_and_clears_and_what_was_not_measured_does_neither() {
        let mut convicted = finding();
        let probes = Some(0.1);
        decide(
            &mut convicted,
            &[alone(4.0, Answer::Decides), alone(1.0, Answer::Nothing)],
            probes,
        );
        assert_eq!(
            (convicted.status, convicted.share),
            (Status::Confirmed, 0.9)
        );
        assert!(
            convicted.evidence[0].value == Some(4.0)
                && !convicted
                    .evidence
                    .iter()
                    .any(|e| e.metric == Metric::ChangedTogether)
        );

        let mut ruled_out = finding();
        decide(&mut ruled_out, &[alone(1.0, Answer::Nothing)], probes);
        assert_eq!((ruled_out.status, ruled_out.share), (Status::RuledOut, 0.0));

        let mut unknown = finding();
        let not_done = Alone {
            share: None,
            least: None,
            ..alone(1.0, Answer::NotDone)
        };
        decide(&mut unknown, &[not_done], None);
        assert_eq!(unknown, finding());

        // Half of it for sure is guilt of half of it; of less than what confirms it is a suspicion.
        let mut half = finding();
        decide(
            &mut half,
            &[alone(2.0, Answer::Part), alone(1.2, Answer::Unresolved)],
            probes,
        );
        assert_eq!((half.status, half.share), (Status::Confirmed, 0.5));
        // Between two systems the share was not known before.
        let mut unknown = Finding {
            share: 0.0,
            ..finding()
        };
        decide(&mut unknown, &[alone(2.0, Answer::Part)], Some(1.0));
        assert_eq!((unknown.status, unknown.share), (Status::Confirmed, 0.5));
        let mut little = finding();
        decide(&mut little, &[alone(1.1, Answer::Part)], None);
        assert_eq!(little.status, Status::Likely);
        assert!((little.share - 1.1_f64.ln() / 4.0_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn what_nobody_likely_and_makes_the_difference_comes_first() {
        let other = Finding {
            cause: "cpu.speed".into(),
            layer: Layer::Cpu,
            evidence: Vec::new(),
            ..finding()
        };
        let of = |answer, times| OfCause {
            unnamed: Finding {
                status: Status::NotObserved,
                share: 0.0,
                ..finding()
            },
            answers: vec![alone(times, answer)],
        };
        let mut causes = vec![other.clone()];
        let left = settle(&mut causes, 0.6, &[of(Answer::Part, 2.0)], false);
        assert_eq!(
            (causes[0].cause.as_str(), causes[0].status, causes.len()),
            ("app.setting", Status::Confirmed, 2)
        );
        assert!(
            (left - 0.1).abs() < 1e-9,
            "half of it is explained now: {left}"
        );
        let mut causes = vec![other];
        assert_eq!(
            settle(&mut causes, 0.6, &[of(Answer::Nothing, 1.0)], false),
            0.6
        );
        assert_eq!(
            causes.len(),
            1,
            "what makes nothing and was not likely is not told"
        );
    }
}
