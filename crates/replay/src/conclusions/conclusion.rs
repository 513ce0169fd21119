//! A conclusion of a document, and how it is judged.

use fingerpost_record::Run;
use serde::Serialize;

use super::doubted;
use super::judged::{Answer, Judged};

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
            Document::ObjectDatabase => {
                "Dave Winer, Frontier's object database against the Macintosh file system"
            }
            Document::Mysteries => "Johan De Gelas, No More Apple Mysteries, Part Two",
        }
    }
}

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
    pub(super) source: fn() -> Judged,
    pub(super) here: Here,
}

/// What conclusions have alike: their document, the tables that they are about, and the section.
#[derive(Clone, Copy)]
pub(super) struct About {
    document: Document,
    tables: &'static [&'static str],
    place: &'static str,
}

impl About {
    pub const fn new(document: Document, tables: &'static [&'static str]) -> About {
        About {
            document,
            tables,
            place: "",
        }
    }

    /// In this section.
    pub const fn at(self, place: &'static str) -> About {
        About { place, ..self }
    }

    /// One of them.
    pub const fn conclusion(
        self,
        key: &'static str,
        says: &'static str,
        source: fn() -> Judged,
        here: Here,
    ) -> Conclusion {
        let About {
            document,
            tables,
            place,
        } = self;
        Conclusion {
            key,
            document,
            place,
            says,
            tables,
            source,
            here,
        }
    }
}

/// Conclusions of the document that several lists share.
pub(super) const fn mysteries(tables: &'static [&'static str]) -> About {
    About::new(Document::Mysteries, tables)
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
            Here::By(judge, needs) => doubted::judged(judge, run)
                .unwrap_or_else(|| Judged::not(&format!("{NO_ROW}fingerpost run {needs}"))),
        }
    }

    /// Whether a run of this machine can judge it at all.
    pub(crate) fn asks_runs(&self) -> bool {
        matches!(self.here, Here::By(..))
    }

    /// Whether a run has rows of what measures this; nothing is judged yet.
    pub(crate) fn may_be_judged_by(&self, run: &Run) -> bool {
        let Here::By(_, needs) = self.here else {
            return false;
        };
        let family = needs
            .trim_start_matches('\'')
            .split([' ', '.'])
            .next()
            .unwrap_or_default();
        run.measurements
            .iter()
            .any(|m| m.probe.split('.').next() == Some(family))
    }

    /// Whether a run has the rows for it. One that only has a reason why it says nothing leaves it to others.
    pub(crate) fn is_judged_by(&self, run: &Run) -> bool {
        matches!(self.here, Here::By(judge, _) if judge(run).is_some_and(|judged| judged.answer != Answer::NotMeasured))
    }
}
