//! What each of several changes makes of a difference by itself, measured: the sides differ in more than one thing, and one at a time was
//! set as on the new side while all else stayed as on the base side.
//!
//! The answer of such a pair counts above every passive sign. Who measures it is elsewhere (`compare --settle`).

use fingerpost_diagnose::sides::settled::{Measured, put_first};
use fingerpost_diagnose::unexplained_beside;
use fingerpost_record::cause::GUILTY;
use fingerpost_record::{Finding, Layer, Status};

use crate::causes::changed::{BUILD, PLACEMENT, SETTING, TOGETHER};
use crate::causes::workloads;
use crate::changes::{Change, Kind};
use crate::comparison::Comparison;
use crate::headline::first_said;
use crate::settled::MOST;

pub use crate::settled::{Answer, Settled};

impl Comparison {
    /// Adds what was measured of single changes, and has the causes and the headline say so.
    pub fn settle(&mut self, settled: Vec<Settled>) {
        let of_step = workloads::most_changed(&self.waterfalls, &self.rows, self.threshold).cloned();
        let mut measured = Vec::new();
        for (cause, answers) in by_cause(&settled, &self.changes, &self.causes) {
            if !self.causes.iter().any(|f| f.cause == cause) && made(&answers).is_some_and(|made| made.share > 0.0) {
                self.causes.insert(0, unsuspected(cause, &self.changes));
            }
            let Some(finding) = self.causes.iter_mut().find(|f| f.cause == cause) else { continue };
            let before = finding.share;
            let kind = if of_step.is_some() { Of::Step } else { Of::Probes { unexplained: self.unexplained } };
            decide(finding, &answers, kind);
            match of_step {
                // Of a step, what follows from the change has its part by itself: only what is measured adds to it.
                Some(_) if finding.status.accuses() => self.unexplained = self.unexplained.min(1.0 - finding.share),
                Some(_) => {}
                None => self.unexplained = (self.unexplained + before - finding.share).clamp(0.0, 1.0),
            }
            if answers.iter().any(Settled::is_known) {
                measured.push(Measured { cause, least: made(&answers).map_or(0.0, |made| made.least) });
            }
        }
        match of_step {
            _ if measured.is_empty() => {}
            Some(_) => {
                put_first(&mut self.causes, &measured);
                self.unexplained = unexplained_beside(&self.causes, self.unexplained);
            }
            None => self.causes.sort_by_key(|f| !f.status.accuses()),
        }
        self.settled = settled;
        self.headline = first_said(self, of_step.as_ref());
    }
}

/// The answers by the cause that each speaks of: that of its kind of change; where the comparison accuses another one of what was changed,
/// because the changes were told as one, that.
fn by_cause(settled: &[Settled], changes: &[Change], causes: &[Finding]) -> Vec<(&'static str, Vec<Settled>)> {
    let named = |cause: &str| causes.iter().any(|f| f.cause == cause);
    let mut found: Vec<(&'static str, Vec<Settled>)> = Vec::new();
    for one in settled {
        let kind = changes.iter().find(|c| c.what == one.what).map_or(Kind::Setting, |c| c.kind);
        let own = match kind {
            Kind::Build => BUILD,
            // A load that comes from elsewhere is nothing that is set, and never measured by itself.
            Kind::Setting | Kind::Client => SETTING,
            Kind::Placement => PLACEMENT,
        };
        let cause = [own, BUILD, SETTING, PLACEMENT].into_iter().find(|cause| named(cause)).unwrap_or(own);
        match found.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, answers)) => answers.push(one.clone()),
            None => found.push((cause, vec![one.clone()])),
        }
    }
    found
}

/// What was changed, where no passive sign points to it.
fn unsuspected(cause: &'static str, changes: &[Change]) -> Finding {
    let layer = fingerpost_record::cause::cause(cause).map_or(Layer::Application, |c| c.layer);
    let evidence = changes.iter().filter(|c| c.kind != Kind::Client).map(|c| format!("{} (base → new)", c.words())).collect();
    Finding { cause: cause.into(), layer, status: Status::NotJudged, share: 0.0, evidence, relation: None }
}

/// What changes make together of the difference.
struct Made {
    share: f64,
    /// The sum of what their intervals leave them for sure.
    least: f64,
    /// Whether the interval of one of them lies above the share that makes guilty.
    surely: bool,
}

/// What those that were measured make; nothing where none was.
fn made(settled: &[Settled]) -> Option<Made> {
    if settled.iter().all(|s| s.answer == Answer::NotDone) {
        return None;
    }
    let makes = || settled.iter().filter(|s| matches!(s.answer, Answer::Decides | Answer::Part));
    Some(Made {
        share: makes().filter_map(|s| s.share).sum(),
        least: makes().filter_map(Settled::least).filter(|least| *least > 0.0).sum(),
        surely: makes().filter_map(Settled::least).any(|least| least >= GUILTY.value),
    })
}

/// What a difference is of.
#[derive(Clone, Copy)]
enum Of {
    /// A workload's step: a change has the share that was measured.
    Step,
    /// Probes: a change has no more than the rows that it concerns, or, where nobody knows how much that is, than no other cause explains.
    Probes { unexplained: f64 },
}

/// The answers are evidence above every passive sign: they convict, and they clear where each change was measured and none matters.
fn decide(finding: &mut Finding, settled: &[Settled], of: Of) {
    let Some(made) = made(settled) else { return };
    if settled.iter().all(|s| s.answer != Answer::NotDone) {
        finding.evidence.retain(|line| line != TOGETHER);
    }
    for (at, one) in settled.iter().enumerate() {
        finding.evidence.insert(at, one.words());
    }
    if made.share > 0.0 {
        finding.status = if made.share >= MOST || made.surely { Status::Guilty } else { Status::Suspected };
        finding.share = match of {
            Of::Step => made.share.min(1.0),
            Of::Probes { unexplained } if finding.share == 0.0 => made.share.min(unexplained),
            Of::Probes { .. } if made.share >= MOST => finding.share,
            Of::Probes { .. } => finding.share.min(made.share),
        };
    } else if settled.iter().all(|s| matches!(s.answer, Answer::Nothing | Answer::Against)) {
        finding.status = Status::Cleared;
        finding.share = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Kind;
    use crate::row::Row;
    use crate::{Ratio, Verdict};
    use fingerpost_record::{Better, Estimate, Layer, Params, Unit};

    fn row(slower: f64, verdict: Verdict) -> Row {
        let of = |value| Estimate { value, low: value, high: value, confidence: 0.95 };
        Row {
            probe: "database.throughput".into(),
            params: Params::new().with("clients", 8),
            unit: Unit::PerSecond,
            better: Better::Higher,
            base: of(slower),
            new: of(1.0),
            ratio: Some(Ratio::from_log(slower.ln(), 1e-4, 1e6)),
            pairs: Vec::new(),
            verdict,
            real: verdict != Verdict::Unresolved,
            untrusted: false,
            note: None,
            counters: Vec::new(),
        }
    }

    fn change(what: &str) -> Change {
        Change { what: what.into(), base: "off".into(), new: "on".into(), kind: Kind::Setting, of: Some("database".into()) }
    }

    fn settled(whole: f64, alone: f64, verdict: Verdict) -> Settled {
        Settled::judged(&change("query_cache"), &row(whole, Verdict::Slower), &row(alone, verdict), Vec::new())
    }

    #[test]
    fn a_change_decides_by_its_part_of_the_difference_in_logarithms() {
        let cases = [
            (4.0, 4.0, Verdict::Slower, Answer::Decides, 1.0),
            (4.0, 2.0, Verdict::Slower, Answer::Part, 0.5),
            (4.0, 1.001, Verdict::Same, Answer::Nothing, 0.0),
            (4.0, 0.5, Verdict::Faster, Answer::Against, -0.5),
            (4.0, 1.2, Verdict::Unresolved, Answer::Unresolved, 0.13),
        ];
        for (whole, alone, verdict, answer, share) in cases {
            let s = settled(whole, alone, verdict);
            assert_eq!(s.answer, answer, "{s:?}");
            assert!((s.share.unwrap() - share).abs() < 0.01, "{s:?}");
            assert!(s.words().contains("query_cache: off → on") && s.words().contains("clients=8"), "{}", s.words());
        }
        let open = Settled { reason: Some("too few turns".into()), ..settled(4.0, 1.2, Verdict::Unresolved) };
        assert!(open.words().ends_with("which is not resolved: too few turns"), "{}", open.words());
        let hidden = Settled::judged(&change("x"), &row(1.0, Verdict::Same), &row(2.0, Verdict::Slower), Vec::new());
        assert_eq!((hidden.answer, hidden.share), (Answer::Part, None));
    }

    fn finding() -> Finding {
        let evidence = vec!["storage: innodb → aria (base → new)".to_owned(), TOGETHER.to_owned()];
        Finding { cause: SETTING.into(), layer: Layer::Application, status: Status::Suspected, share: 0.9, evidence, relation: None }
    }

    #[test]
    fn an_answer_convicts_and_clears_and_what_was_not_measured_does_neither() {
        let mut convicted = finding();
        let probes = Of::Probes { unexplained: 0.1 };
        decide(&mut convicted, &[settled(4.0, 4.0, Verdict::Slower), settled(4.0, 1.0, Verdict::Same)], probes);
        assert_eq!((convicted.status, convicted.share), (Status::Guilty, 0.9));
        assert!(convicted.evidence[0].contains("100 % of the difference") && !convicted.evidence.iter().any(|e| e == TOGETHER));

        let mut cleared = finding();
        decide(&mut cleared, &[settled(4.0, 1.0, Verdict::Same)], probes);
        assert_eq!((cleared.status, cleared.share), (Status::Cleared, 0.0));

        let mut unknown = finding();
        decide(&mut unknown, &[Settled::not_done(&change("engine"), None, "nothing of it is installed".into())], Of::Step);
        assert_eq!(unknown, finding());

        // Half of it for sure is guilt of half of it; of less than what makes guilty it is a suspicion.
        let mut half = finding();
        decide(&mut half, &[settled(4.0, 2.0, Verdict::Slower), settled(4.0, 1.2, Verdict::Unresolved)], probes);
        assert_eq!((half.status, half.share), (Status::Guilty, 0.5));
        // Between two systems the share was not known before.
        let mut unknown = Finding { share: 0.0, ..finding() };
        decide(&mut unknown, &[settled(4.0, 2.0, Verdict::Slower)], Of::Probes { unexplained: 1.0 });
        assert_eq!((unknown.status, unknown.share), (Status::Guilty, 0.5));
        let mut little = finding();
        decide(&mut little, &[settled(4.0, 1.1, Verdict::Slower)], Of::Step);
        assert_eq!(little.status, Status::Suspected);
        assert!((little.share - 1.1_f64.ln() / 4.0_f64.ln()).abs() < 1e-9);
    }
}
