//! What the authors of the published tables concluded, in words of our own, with its place in their document: judged from their own
//! figures by the rules that judge any run, and again from a run of today's machine.
//!
//! To add one, write it into the list of its document. A conclusion for which the document gives no figure says so itself; one that cannot
//! be judged from a run of this machine says why not.

mod doubted;
mod launching;
mod machines;
mod own;
mod primitives;
mod servers;
mod source;
mod storing;
mod suspects;
mod zeroing;

use fingerpost_record::{Run, Status};
pub(crate) use own::best;
use serde::Serialize;

/// A document that tables and conclusions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Document {
    /// Swap file benchmarks of Mac OS X 10.1.
    Swapfile,
    /// Zero-filling, part III.
    ZerofillThree,
    /// Zero-filling, part IV.
    ZerofillFour,
    /// The object database against the file system.
    ObjectDatabase,
    /// No More Apple Mysteries, part two.
    Mysteries,
}

impl Document {
    /// Its author and title.
    pub fn title(self) -> &'static str {
        match self {
            Document::Swapfile => "Andy Moraitis, OSX Version 10.1 Swapfile Benchmarks",
            Document::ZerofillThree => "Nat!, Zerofilling, Part III, Doing the Math",
            Document::ZerofillFour => "Nat!, Zerofilling, Part IV, New and Improved Application",
            Document::ObjectDatabase => "Dave Winer, Frontier's object database against the Macintosh file system",
            Document::Mysteries => "Johan De Gelas, No More Apple Mysteries, Part Two",
        }
    }
}

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
    fn by(holds: bool, figure: String) -> Judged {
        if figure.contains("NaN") {
            return Judged::not(MISSING);
        }
        Judged { answer: if holds { Answer::True } else { Answer::False }, figure }
    }

    /// By what a comparison says of a cause, which it may say nothing of.
    fn by_cause(said: Option<(Status, String)>, holds: impl FnOnce(Status, &str) -> bool) -> Judged {
        match said {
            Some((status, figure)) if status != Status::NotJudged => Judged::by(holds(status, &figure), figure),
            _ => Judged::not(MISSING),
        }
    }

    /// Measured, by a figure whose interval does not decide it.
    fn open(figure: String) -> Judged {
        Judged { answer: Answer::NotResolved, figure }
    }

    fn not(why: &str) -> Judged {
        Judged { answer: Answer::NotMeasured, figure: why.to_owned() }
    }
}

/// Why a conclusion is not judged whose figure is missing.
const MISSING: &str = "a figure that it needs is missing";

/// How the sentence of a conclusion begins for which a run lacks the rows.
pub(crate) const NO_ROW: &str = "the run has no figure for it; measured by: ";

/// How a conclusion is judged from a run of this machine.
#[derive(Clone, Copy)]
pub(crate) enum Here {
    /// By this; nothing where the run lacks the rows, with the names of what measures them.
    By(doubted::Judge, &'static str),
    /// Not at all, because of this.
    Never(&'static str),
}

/// One conclusion.
pub struct Conclusion {
    /// A word for programs, unique.
    pub key: &'static str,
    /// The document.
    pub document: Document,
    /// Where in it: the section.
    pub place: &'static str,
    /// The conclusion in words of our own.
    pub says: &'static str,
    /// The published tables that it is about.
    pub tables: &'static [&'static str],
    source: fn() -> Judged,
    here: Here,
}

/// A conclusion of the document that two lists share.
const fn of_mysteries(
    key: &'static str,
    place: &'static str,
    says: &'static str,
    tables: &'static [&'static str],
    source: fn() -> Judged,
    here: Here,
) -> Conclusion {
    Conclusion { key, document: Document::Mysteries, place, says, tables, source, here }
}

impl Conclusion {
    /// What the document's own figures say of it, by the rules that judge any run.
    pub fn by_source(&self) -> Judged {
        (self.source)()
    }

    /// What this run says of it, and whether that rests on rows that are not to be trusted.
    pub fn by_run(&self, run: &Run) -> Judged {
        match self.here {
            Here::Never(why) => Judged::not(why),
            Here::By(judge, needs) => {
                doubted::judged(judge, run).unwrap_or_else(|| Judged::not(&format!("{NO_ROW}fingerpost run {needs}")))
            }
        }
    }
}

impl Conclusion {
    /// Whether a run has rows of what measures this; nothing is judged yet.
    pub(crate) fn may_be_judged_by(&self, run: &Run) -> bool {
        let Here::By(_, needs) = self.here else { return false };
        let family = needs.trim_start_matches('\'').split([' ', '.']).next().unwrap_or_default();
        run.measurements.iter().any(|m| m.probe.split('.').next() == Some(family))
    }

    /// Whether a run has the rows for it.
    pub(crate) fn is_judged_by(&self, run: &Run) -> bool {
        matches!(self.here, Here::By(judge, _) if judge(run).is_some())
    }
}

/// All conclusions, document by document.
pub fn all() -> impl Iterator<Item = &'static Conclusion> {
    [servers::LIST, suspects::LIST, primitives::LIST, machines::LIST, launching::LIST, zeroing::LIST, storing::LIST].into_iter().flatten()
}

/// Those that are about one of these tables.
pub fn of_tables<'a>(tables: &'a [&'a str]) -> impl Iterator<Item = &'static Conclusion> + 'a {
    all().filter(move |c| c.tables.iter().any(|t| tables.contains(t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_figure_judges_nothing() {
        let nan = f64::NAN;
        assert_eq!(Judged::by(nan > 2.0, format!("{nan:.1} times")), Judged::not(MISSING));
        assert_eq!(Judged::by(false, "1.5 times".into()).answer, Answer::False);
        let by = |said| Judged::by_cause(said, |status, _| status == Status::Cleared).answer;
        assert_eq!(by(None), Answer::NotMeasured);
        assert_eq!(by(Some((Status::NotJudged, "nothing is known".into()))), Answer::NotMeasured);
        assert_eq!(by(Some((Status::Guilty, "60 %".into()))), Answer::False);
        assert_eq!(by(Some((Status::Cleared, "2 %".into()))), Answer::True);
    }
}
