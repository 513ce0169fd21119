//! Pieces that a run is told in.

use fingerpost_record::{Profile, Run};

/// A name and what there is to say under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name.
    pub name: &'static str,
    /// The text, cleaned.
    pub text: String,
}

/// A doubt's first sentence, which says what is the matter, and the rest, which says what to do.
pub fn parts_of_doubt(doubt: &str) -> (&str, &str) {
    let begins = |at: &usize| doubt[at + 2..].starts_with(char::is_uppercase);
    let end = doubt.match_indices(". ").map(|(at, _)| at).find(begins);
    end.map_or((doubt, ""), |at| (&doubt[..=at], &doubt[at + 2..]))
}

/// What the column of intervals is called: a printed figure's is what it was rounded from.
pub fn interval_title(run: &Run) -> &'static str {
    if run.profile == Profile::Imported { "Interval" } else { "95 % interval" }
}
