//! What one of several changes makes of a difference by itself.

use fingerpost_diagnose::sides::alone::{Alone, MOST};
use fingerpost_record::Params;
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
            words: self.words(),
        }
    }

    /// In words, as a line of evidence.
    pub fn words(&self) -> String {
        let change = format!("{}: {} → {}", self.what, self.base, self.new);
        let of = if self.params.0.is_empty() {
            self.probe.clone()
        } else {
            format!("{} {}", self.probe, self.params)
        };
        let slower = self.ratio.map_or_else(String::new, slower);
        match self.answer {
            Answer::NotDone => {
                format!(
                    "{change}, alone: not measured: {}",
                    self.reason.as_deref().unwrap_or("for no known reason")
                )
            }
            Answer::Unresolved => {
                let why = self
                    .reason
                    .as_ref()
                    .map_or_else(String::new, |why| format!(": {why}"));
                format!("{change}, alone: {of} {slower}, which is not resolved{why}")
            }
            Answer::Nothing => {
                format!("{change}, alone, makes no difference that matters: {of} {slower}")
            }
            Answer::Against => {
                format!("{change}, alone, works against the difference: {of} {slower}")
            }
            Answer::Part | Answer::Decides => {
                let share = self.share.map_or_else(String::new, |s| {
                    format!(", {:.0} % of the difference", 100.0 * s)
                });
                format!("{change}, alone: {of} {slower}{share}")
            }
        }
    }
}

/// `2.00 × slower (1.90 to 2.10)`; below one, the other way round.
fn slower(r: Ratio) -> String {
    let (word, [value, low, high]) = if r.value < 1.0 {
        ("faster", [r.value, r.high, r.low].map(|v| 1.0 / v))
    } else {
        ("slower", [r.value, r.low, r.high])
    };
    format!(
        "{} × {word} ({} to {})",
        times(value),
        times(low),
        times(high)
    )
}

fn times(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.2}")
    } else {
        fingerpost_record::unit::significant(ratio)
    }
}
