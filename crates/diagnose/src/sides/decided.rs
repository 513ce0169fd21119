//! Deciding experiments that the sides' own runs hold: what a change took away of the difference. Their answers count
//! above every passive sign.

use fingerpost_record::{Answer, Estimate, Evidence, Experiment, Finding, Metric, Status};

use super::clues::Clues;
use super::growth::Pair;
use super::limits::Trust;
use super::own::Own;
use crate::deciding::{by_suspicion, decides, decides_about};
use crate::judging::{CONFIRMED, LIKELY};
use crate::thresholds::LESSER_PART;

/// A part of the difference: the value and the ends of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    value: f64,
    low: f64,
    high: f64,
}

/// Puts the answers of the slower side's experiments above what the findings say.
///
/// - *Faster*: the cause that the change takes away has the part of the difference that it takes away, less what the
///   same change took away of the faster side. It is confirmed where the whole interval of that lies above the share that
///   confirms, and the row can be trusted.
/// - *As fast as before*: what the change takes away whole is ruled out.
/// - *As fast as before* with a change that need not take all of it away (the server before all others): a suspect of
///   `unsure`, whose part of the change may be nothing by its own interval, keeps what the change took away. Where
///   others beside it surely have a part of the change, two doubts together are not named before them.
/// - Else the sentence stands with the suspect.
///
/// What other suspects are said to have is no more than what is left.
pub(super) fn apply(
    findings: &mut [Finding],
    clues: &Clues,
    own: &Own,
    trust: &Trust,
    unsure: &[&str],
) {
    let [slow, fast] = clues.experiments();
    let turn = clues.turn();
    if slow.is_empty() || turn.more() <= 0.0 {
        return;
    }
    let firm = trust.untrusted.is_none() && trust.resolved;
    // Of two experiments that speak of one cause, the surer counts.
    let mut proved: Vec<(String, Part)> = Vec::new();
    for experiment in slow.iter().copied() {
        let alike = fast.iter().copied().find(|c| c.change == experiment.change);
        let Some(of) = suspect(findings, experiment, &slow) else {
            continue;
        };
        let name = findings[of].cause.clone();
        let fact = Evidence::of_experiment(experiment);
        match experiment.answer {
            Answer::Faster => {
                let f = &mut findings[of];
                // Where the faster side suffers from it as well, and was not asked, how much of the difference it is
                // nobody knows.
                let also =
                    alike.is_none() && own.says(&name)[1].is_some_and(|own| own.status.accuses());
                let Some(part) = part(experiment, alike, turn).filter(|_| !also) else {
                    f.evidence.push(fact.clone());
                    continue;
                };
                f.evidence.splice(0..0, [fact.clone(), of_difference(part)]);
                let surer = |known: &&(String, Part)| known.0 == name && known.1.low >= part.low;
                if part.value < LIKELY || proved.iter().any(|known| surer(&known)) {
                    continue;
                }
                f.share = part.value;
                f.status = if firm && part.low >= CONFIRMED {
                    Status::Confirmed
                } else {
                    Status::Likely
                };
                proved.retain(|known| known.0 != name);
                proved.push((name, part));
            }
            Answer::Same if decides(experiment.change).clears => {
                for f in findings
                    .iter_mut()
                    .filter(|f| decides_about(experiment, f) && f.status.accuses())
                {
                    (f.status, f.share) = (Status::RuledOut, 0.0);
                    f.evidence.insert(0, fact.clone());
                }
            }
            answer => {
                let f = &mut findings[of];
                f.evidence.push(fact.clone());
                let doubted = answer == Answer::Same
                    && f.status == Status::Likely
                    && unsure.contains(&name.as_str());
                if let Some(part) = part(experiment, alike, turn).filter(|_| doubted) {
                    leave(f, part.value, Metric::LeftOfUnsure);
                }
            }
        }
    }
    let taken: f64 = proved.iter().map(|p| p.1.value).sum();
    for f in findings
        .iter_mut()
        .filter(|f| f.status.accuses() && !proved.iter().any(|p| p.0 == f.cause))
    {
        leave(f, (1.0 - taken).clamp(0.0, 1.0), Metric::LeftByExperiment);
    }
}

/// Leaves a suspect no more than this share, and says by what.
pub(super) fn leave(f: &mut Finding, left: f64, by: Metric) {
    if f.share <= left {
        return;
    }
    f.evidence.push(Evidence::figure(by, left));
    f.share = left;
    f.status = match f.status {
        Status::Confirmed if left >= CONFIRMED => Status::Confirmed,
        _ if left >= LIKELY => Status::Likely,
        _ => Status::NotObserved,
    };
}

/// Whether an experiment of the slower side took a cause away whole, and nothing came of it.
pub(super) fn clears(clues: &Clues, f: &Finding) -> bool {
    let [slow, _] = clues.experiments();
    slow.iter()
        .any(|e| e.answer == Answer::Same && decides(e.change).clears && decides_about(e, f))
}

/// The place of the cause that is the most likely of those that an experiment decides about. A change that takes several
/// away (a neighbour that is held has neither the CPU nor the disk) tells nothing of one that another change takes away
/// as well, where that helped clearly less, and less than half as much.
fn suspect(findings: &[Finding], experiment: &Experiment, all: &[&Experiment]) -> Option<usize> {
    let helped = experiment
        .effect
        .as_ref()
        .filter(|_| experiment.answer == Answer::Faster);
    let less = |other: &&&Experiment| {
        let lesser = |(e, all): (&Estimate, &Estimate)| {
            e.high < all.low && e.value.ln() < LESSER_PART.value * all.value.ln()
        };
        other.change != experiment.change && other.effect.as_ref().zip(helped).is_some_and(lesser)
    };
    let spared = |f: &Finding| all.iter().filter(less).any(|other| decides_about(other, f));
    let tested = || {
        findings
            .iter()
            .enumerate()
            .filter(|(_, f)| decides_about(experiment, f))
    };
    let (left, any) = (tested().filter(|(_, f)| !spared(f)), tested());
    left.chain(any.filter(|_| tested().all(|(_, f)| spared(f))))
        .min_by(|a, b| by_suspicion(a.1, b.1))
        .map(|(at, _)| at)
}

/// The part of the difference that a change took away: with it a transaction of the slower side takes `slow / effect`.
/// What the same change takes away of the faster side is no part of the difference; nothing where that is not known.
fn part(experiment: &Experiment, alike: Option<&Experiment>, turn: Pair) -> Option<Part> {
    let gained = |seconds: f64, times: f64| seconds * (1.0 - 1.0 / times.max(f64::MIN_POSITIVE));
    let of = |e: &Estimate, seconds| [e.value, e.low, e.high].map(|times| gained(seconds, times));
    let slow = of(experiment.effect.as_ref()?, turn.slow);
    let fast = match alike {
        // What cannot be changed there (a quota that is not set) is not there to be taken away.
        None => [0.0; 3],
        Some(alike) if alike.answer == Answer::NotDone => return None,
        Some(alike) => of(alike.effect.as_ref()?, turn.fast),
    };
    let share = |seconds: f64| (seconds / turn.more()).clamp(0.0, 1.0);
    Some(Part {
        value: share(slow[0] - fast[0]),
        low: share(slow[1] - fast[2].max(0.0)),
        high: share(slow[2] - fast[1].max(0.0)),
    })
}

fn of_difference(part: Part) -> Evidence {
    Evidence::figure(Metric::ExperimentPart, part.value).within([part.low, part.high])
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Change, Layer, Measure, Params};

    use super::*;

    fn experiment(
        change: Change,
        cause: &str,
        effect: Option<[f64; 3]>,
        answer: Answer,
    ) -> Experiment {
        Experiment {
            workload: "database".into(),
            params: Params::new(),
            change,
            what: "it changed".into(),
            tests: vec![cause.into()],
            by: Measure::Rate,
            pairs: Vec::new(),
            effect: effect.map(|[value, low, high]| Estimate {
                value,
                low,
                high,
                confidence: 0.95,
            }),
            answer,
            reason: None,
        }
    }

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        Finding {
            cause: cause.into(),
            layer: Layer::Scheduler,
            status,
            share,
            evidence: Vec::new(),
            step: None,
            relation: None,
        }
    }

    #[test]
    fn what_a_change_takes_away_is_a_part_of_the_difference() {
        // 1 ms, and 3 ms on the slower side; with the quota lifted that is 1.5 ms: three quarters of the 2 ms.
        let turn = Pair {
            fast: 1e-3,
            slow: 3e-3,
        };
        let lifted = experiment(
            Change::Quota,
            "cpu.quota",
            Some([2.0, 1.5, 3.0]),
            Answer::Faster,
        );
        let found = part(&lifted, None, turn).unwrap();
        assert!(
            (found.value - 0.75).abs() < 1e-9
                && (found.low - 0.5).abs() < 1e-9
                && (found.high - 1.0).abs() < 1e-9
        );
    }

    #[test]
    fn what_the_same_change_takes_away_of_the_faster_side_is_no_part_of_the_difference() {
        let turn = Pair {
            fast: 2e-3,
            slow: 4e-3,
        };
        let held = |value: f64| {
            experiment(
                Change::Hold,
                "cpu.contention",
                Some([value, value, value]),
                Answer::Faster,
            )
        };
        // 2 ms of the one and 1 ms of the other.
        let found = part(&held(2.0), Some(&held(2.0)), turn).unwrap();
        assert!((found.value - 0.5).abs() < 1e-9, "{found:?}");
        let not_done = experiment(Change::Hold, "cpu.contention", None, Answer::NotDone);
        assert_eq!(part(&held(2.0), Some(&not_done), turn), None);
    }

    #[test]
    fn a_neighbour_whose_cpu_time_does_not_matter_has_the_disk() {
        let found = [
            finding("cpu.contention", Status::Likely, 0.6),
            finding("storage.contention", Status::Likely, 0.3),
        ];
        let both = ["cpu.contention".to_owned(), "storage.contention".to_owned()];
        let of = |change, tests: &[String], effect, answer| Experiment {
            tests: tests.to_vec(),
            ..experiment(change, "", Some(effect), answer)
        };
        let held = of(Change::Hold, &both, [1.76, 1.66, 1.78], Answer::Faster);
        let first = of(
            Change::Weight,
            &both[..1],
            [0.97, 0.88, 1.06],
            Answer::Unresolved,
        );
        assert_eq!(suspect(&found, &held, &[&first, &held]), Some(1));
        let first = of(Change::Weight, &both[..1], [1.7, 1.6, 1.9], Answer::Faster);
        assert_eq!(suspect(&found, &held, &[&first, &held]), Some(0));
        let first = of(Change::Weight, &both[..1], [1.4, 1.3, 1.5], Answer::Faster);
        assert_eq!(
            suspect(&found, &held, &[&first, &held]),
            Some(0),
            "clearly less, and all the same more than half of it"
        );
        let first = of(Change::Weight, &both[..1], [1.2, 1.1, 1.3], Answer::Faster);
        assert_eq!(
            suspect(&found, &held, &[&first, &held]),
            Some(1),
            "the smaller part"
        );
    }

    #[test]
    fn others_have_no_more_than_what_is_left() {
        let mut other = finding("cpu.contention", Status::Confirmed, 0.9);
        leave(&mut other, 0.4, Metric::LeftByExperiment);
        assert_eq!((other.status, other.share), (Status::Confirmed, 0.4));
        leave(&mut other, 0.01, Metric::LeftByExperiment);
        assert_eq!(other.status, Status::NotObserved);
    }

    #[test]
    fn the_cause_that_is_likely_most_is_the_one() {
        let found = [
            finding("cpu.priority", Status::RuledOut, 0.0),
            finding("cpu.contention", Status::Likely, 0.2),
        ];
        let mut weight = experiment(Change::Weight, "cpu.contention", None, Answer::Faster);
        assert_eq!(suspect(&found, &weight, &[]), Some(1));
        weight.tests = vec!["app.lock".into()];
        assert_eq!(
            suspect(&found, &weight, &[]),
            None,
            "a record cannot accuse whom it likes"
        );
    }
}
