//! What one of several changes makes of a difference by itself.

use fingerpost_diagnose::sides::alone::{Alone, MOST};
use fingerpost_record::{Evidence, Metric, Params};
use serde::Serialize;

use crate::changes::Change;
use crate::ratio::Ratio;
use crate::row::Row;
use crate::verdict::Verdict;

pub use fingerpost_diagnose::sides::alone::Answer;

/// One change that was measured by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settled {
    /// The parameter's name.
    pub what: String,
    /// How it was on the base side.
    pub base: String,
    /// How it was on the new side.
    pub new: String,
    /// The row by which it was judged: the one that differs most of those that the change concerns.
    pub probe: String,
    /// That row's parameters.
    pub params: Params,
    /// How many times slower that row is with the change alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// The part of the row's difference that this is, by logarithms: 1 is all of it, more than 1 is more than all.
    /// Absent where the sides' row does not differ, or nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What that says.
    pub answer: Answer,
    /// Why nothing is known, or what to know about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The ids of the two runs that were measured and kept, base first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
}

impl Settled {
    /// A change that could not be measured.
    pub fn not_done(change: &Change, row: Option<&Row>, reason: String) -> Settled {
        let (probe, params) =
            row.map_or_else(Default::default, |r| (r.probe.clone(), r.params.clone()));
        let Change {
            what, base, new, ..
        } = change.clone();
        let (answer, reason) = (Answer::NotDone, Some(reason));
        Settled {
            what,
            base,
            new,
            probe,
            params,
            ratio: None,
            share: None,
            answer,
            reason,
            runs: Vec::new(),
        }
    }

    /// What the change alone did to the row (`alone`), of all that differs in it (`whole`).
    pub fn judged(change: &Change, whole: &Row, alone: &Row, runs: Vec<String>) -> Settled {
        let share = match (whole.verdict, whole.log(), alone.log()) {
            (Verdict::Slower | Verdict::Faster, Some(all), Some(part)) if all != 0.0 => {
                Some(part / all)
            }
            _ => None,
        };
        let answer = match (alone.verdict, share) {
            (Verdict::Unresolved, _) => Answer::Unresolved,
            (Verdict::Same, _) => Answer::Nothing,
            (_, Some(share)) if share < 0.0 => Answer::Against,
            (_, Some(share)) if share >= MOST => Answer::Decides,
            (_, Some(_)) => Answer::Part,
            // The sides' own row does not differ: what this change makes, another one takes back.
            (_, None) => Answer::Part,
        };
        Settled {
            ratio: alone.ratio,
            share,
            answer,
            reason: None,
            runs,
            ..Settled::not_done(change, Some(whole), String::new())
        }
    }

    /// The least part of the difference that the interval leaves for it: its end nearer to no difference.
    fn least(&self) -> Option<f64> {
        let (ratio, share) = (self.ratio?, self.share?);
        let nearer = if ratio.value >= 1.0 {
            ratio.low
        } else {
            ratio.high
        };
        Some(share * nearer.ln() / ratio.value.ln()).filter(|least| least.is_finite())
    }

    /// What it says of the cause that it speaks of.
    pub(crate) fn alone(&self) -> Alone {
        Alone {
            answer: self.answer,
            share: self.share,
            least: self.least(),
            fact: self.fact(),
        }
    }

    /// The same as a fact.
    pub fn fact(&self) -> Evidence {
        Evidence {
            value: self.share,
            ratio: self.ratio.map(|r| fingerpost_record::evidence::Ratio {
                value: r.value,
                low: r.low,
                high: r.high,
            }),
            params: self.params.clone(),
            alone: Some(self.answer),
            text: self.reason.clone(),
            ..Evidence::of(Metric::ChangeAlone)
                .named(&self.what)
                .changing(&self.base, &self.new)
                .among([&self.probe])
        }
    }
}
