//! What a lab is to a report, and what each of its analyses has to show.
//!
//! No format names a lab: every one takes its parts from the list that the caller hands to
//! [`View::of`](crate::View::of), which is made of the labs' descriptors.

pub mod derived;

use fingerpost_record::Run;

use crate::document;
use crate::html::content;

/// What a report knows of a lab.
#[derive(Clone, Copy)]
pub struct LabView {
    /// Its name, as `fingerpost run` takes it.
    pub name: &'static str,
    /// What is said of its server; nothing of a lab that loads none.
    pub server: Option<ServerWords>,
    /// Its analyses in the order shown. Labs may share one: of a run it is made once, for the rows of all of them.
    pub analyses: &'static [&'static Analysis],
}

/// The words of a lab that loads a server. Its rows of throughput are called by its name: `database.throughput`.
#[derive(Clone, Copy)]
pub struct ServerWords {
    /// What its throughput is called among a machine's key figures.
    pub called: &'static str,
    /// The title of its curves over those who ask.
    pub curves: &'static str,
    /// What is counted in a second.
    pub counted: &'static str,
}

/// How an analysis is made, and where it stands.
pub struct Analysis {
    /// Whether it stands before what the time of requests went to: a curve shows whether there is anything to explain.
    pub before_requests: bool,
    /// The place of its answer among those of a run of several labs. It is none of the order shown: what a machine
    /// does for whom it serves is told before what its parts can do.
    pub rank: u8,
    /// What it finds in a run, given the list of labs; nothing where the run has none of its rows.
    pub of: fn(&Run, Labs) -> Option<Shown>,
}

/// The labs of a report, in the order shown.
pub type Labs<'a> = &'a [LabView];

/// An analysis, and what it finds in a run.
pub type Found = (&'static Analysis, Shown);

/// What an analysis has found.
#[derive(Default)]
pub struct Shown {
    /// Sentences that a person reads first.
    pub answers: Vec<String>,
    /// The answer where no analysis before it has one, and it has no other.
    pub alone: Option<String>,
    /// The sentence of a run without any answer.
    pub otherwise: Option<String>,
    /// What every format shows.
    pub sections: Vec<document::Section>,
    /// What a page has in place of them, where that is more than a document can say.
    pub page: Option<Vec<content::Section>>,
}

impl Shown {
    /// Sections that every format shows, without an answer.
    pub fn of(sections: impl IntoIterator<Item = document::Section>) -> Shown {
        Shown {
            sections: sections.into_iter().collect(),
            ..Shown::default()
        }
    }
}

/// What the labs' analyses find in a run, in the order shown.
pub fn found(run: &Run, labs: Labs) -> Vec<Found> {
    let mut all: Vec<&'static Analysis> = Vec::new();
    for analysis in labs.iter().flat_map(|lab| lab.analyses) {
        if !all.iter().any(|other| std::ptr::eq(*other, *analysis)) {
            all.push(analysis);
        }
    }
    all.into_iter()
        .filter_map(|analysis| Some((analysis, (analysis.of)(run, labs)?)))
        .collect()
}
