//! What the authors of the published tables concluded, in words of our own, with its place in their document: judged
//! from their own figures by the rules that judge any run, and again from a run of today's machine.
//!
//! To add one, write it into the list of its document. A conclusion for which the document gives no figure says so
//! itself; one that cannot be judged from a run of this machine says why not.

mod conclusion;
mod doubted;
mod judged;
mod launching;
mod own;
mod primitives;
mod servers;
mod source;
mod storing;
mod suspects;
mod zeroing;

pub(crate) use conclusion::NO_ROW;
pub use conclusion::{Conclusion, Document};
pub use judged::{Answer, Judged};
pub(crate) use own::best;

/// All conclusions, document by document.
pub fn all() -> impl Iterator<Item = &'static Conclusion> {
    [
        servers::LIST,
        suspects::LIST,
        primitives::LIST,
        launching::LIST,
        zeroing::LIST,
        storing::LIST,
    ]
    .into_iter()
    .flatten()
}

/// Those that are about one of these tables.
pub fn of_tables<'a>(tables: &'a [&'a str]) -> impl Iterator<Item = &'static Conclusion> + 'a {
    all().filter(move |c| c.tables.iter().any(|t| tables.contains(t)))
}
