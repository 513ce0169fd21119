//! What each of several changes makes of a difference by itself, measured: the sides differ in more than one thing, and
//! one at a time was set as on the new side while all else stayed as on the base side.
//!
//! The answer of such a pair counts above every passive sign (`fingerpost_diagnose::sides::alone`). Who measures it is
//! elsewhere (`compare --settle`).

use fingerpost_diagnose::probes::changed::{BUILD, PLACEMENT, SETTING};
use fingerpost_diagnose::sides::alone::{self, Alone, OfCause};
use fingerpost_record::{Evidence, Finding, Layer, Metric, Status};

use crate::causes::workloads;
use crate::changes::{Change, Kind};
use crate::comparison::Comparison;
use crate::headline::first_said;

pub use crate::settled::{Answer, Settled};

impl Comparison {
    /// Adds what was measured of single changes, and has the causes and the headline say so.
    pub fn settle(&mut self, settled: Vec<Settled>) {
        let of_step =
            workloads::most_changed(&self.waterfalls, &self.rows, self.threshold).cloned();
        let of_cause = |(cause, answers)| OfCause {
            unnamed: unnamed(cause, &self.changes),
            answers,
        };
        let measured: Vec<OfCause> = by_cause(&settled, &self.changes, &self.causes)
            .into_iter()
            .map(of_cause)
            .collect();
        self.unexplained = alone::settle(
            &mut self.causes,
            self.unexplained,
            &measured,
            of_step.is_some(),
        );
        self.settled = settled;
        self.headline = first_said(self, of_step.as_ref());
    }
}

/// The answers by the cause that each speaks of: that of its kind of change; where the comparison accuses another one
/// of what was changed, because the changes were told as one, that.
fn by_cause(
    settled: &[Settled],
    changes: &[Change],
    causes: &[Finding],
) -> Vec<(&'static str, Vec<Alone>)> {
    let named = |cause: &str| causes.iter().any(|f| f.cause == cause);
    let mut found: Vec<(&'static str, Vec<Alone>)> = Vec::new();
    for one in settled {
        let kind = changes
            .iter()
            .find(|c| c.what == one.what)
            .map_or(Kind::Setting, |c| c.kind);
        let own = match kind {
            Kind::Build => BUILD,
            // A load that comes from elsewhere is nothing that is set, and never measured by itself.
            Kind::Setting | Kind::Client => SETTING,
            Kind::Placement => PLACEMENT,
        };
        let cause = [own, BUILD, SETTING, PLACEMENT]
            .into_iter()
            .find(|cause| named(cause))
            .unwrap_or(own);
        match found.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, answers)) => answers.push(one.alone()),
            None => found.push((cause, vec![one.alone()])),
        }
    }
    found
}

/// What was changed, where no passive sign points to it.
fn unnamed(cause: &'static str, changes: &[Change]) -> Finding {
    let layer = fingerpost_diagnose::causes::cause(cause).map_or(Layer::Application, |c| c.layer);
    let evidence = changes
        .iter()
        .filter(|c| c.kind != Kind::Client)
        .map(|c| {
            Evidence::of(Metric::Changed)
                .named(&c.what)
                .changing(&c.base, &c.new)
        })
        .collect();
    Finding {
        cause: cause.into(),
        layer,
        status: Status::NotObserved,
        share: 0.0,
        evidence,
        step: None,
        relation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Kind;
    use crate::row::Row;
    use crate::{Ratio, Verdict};
    use fingerpost_record::descriptor::{Descriptor, table};
    use fingerpost_record::{Better, Estimate, Params, Unit};

    fn row(slower: f64, verdict: Verdict) -> Row {
        let of = |value| Estimate {
            value,
            low: value,
            high: value,
            confidence: 0.95,
        };
        Row {
            probe: "database.throughput".into(),
            descriptor: Descriptor::of(&table::OTHER),
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
        Change {
            what: what.into(),
            base: "off".into(),
            new: "on".into(),
            kind: Kind::Setting,
            of: Some("database".into()),
        }
    }

    fn settled(whole: f64, alone: f64, verdict: Verdict) -> Settled {
        Settled::judged(
            &change("query_cache"),
            &row(whole, Verdict::Slower),
            &row(alone, verdict),
            Vec::new(),
        )
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
            let fact = s.fact();
            assert_eq!(
                (
                    fact.name.as_deref(),
                    fact.from.as_deref(),
                    fact.to.as_deref()
                ),
                (Some("query_cache"), Some("off"), Some("on"))
            );
            assert_eq!(
                (fact.alone, fact.params.int("clients")),
                (Some(answer), Some(8))
            );
        }
        let open = Settled {
            reason: Some("too few turns".into()),
            ..settled(4.0, 1.2, Verdict::Unresolved)
        };
        assert_eq!(open.fact().text.as_deref(), Some("too few turns"));
        let hidden = Settled::judged(
            &change("x"),
            &row(1.0, Verdict::Same),
            &row(2.0, Verdict::Slower),
            Vec::new(),
        );
        assert_eq!((hidden.answer, hidden.share), (Answer::Part, None));
    }
}
