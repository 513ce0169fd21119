//! What a lab is to a report, and what each of its analyses has to show.

use fingerpost_record::Run;

use super::derived::Derived;
use crate::grid::Grid;
use crate::html::content::Section;

/// A lab of the list, [`super::LABS`].
pub struct LabView {
    /// Its name, as `fingerpost run` takes it.
    pub name: &'static str,
    /// What is said of its server; nothing of a lab that loads none.
    pub loaded: Option<Loaded>,
    /// Its analyses in the order shown. Labs may share one: of a run it is made once, for the rows of all of them.
    pub analyses: &'static [&'static Analysis],
}

/// The words of a lab that loads a server. Its rows of throughput are called by its name: `database.throughput`.
pub struct Loaded {
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

/// The list of labs. It is handed to analyses because it names them: their files cannot import it as well.
pub type Labs = &'static [&'static LabView];

/// What an analysis has found, in the parts that formats are made of. There is no default of it: what a terminal shows,
/// every format has.
pub struct Shown {
    /// Sentences that a person reads first.
    pub answers: Vec<String>,
    /// The answer where no analysis before it has one, and it has no other.
    pub alone: Option<String>,
    /// The sentence of a run without any answer.
    pub otherwise: Option<String>,
    /// Tables and sentences, for a terminal and for Markdown.
    pub grids: Vec<Grid>,
    /// The same in Markdown, where that is another text than the grids'.
    pub markdown: Option<String>,
    /// Figures that are no row's, for CSV.
    pub derived: Vec<Derived>,
    /// Sections of a page.
    pub sections: Vec<Section>,
}
