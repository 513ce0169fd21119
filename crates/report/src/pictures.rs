//! What laboratories add to a run's table and to its Markdown: pictures and sentences that draw on many rows together.

use fingerpost_record::Run;

use crate::explain;
use crate::grid::Grid;
use crate::labs::{self, Shown};
use crate::style::Style;
use crate::words::clean;

/// Each laboratory's picture for a terminal, between what was found and the rows; nothing where the run has none of its
/// rows.
pub fn terminal(run: &Run, style: &Style) -> String {
    let apart = |text: String| if text.is_empty() { text } else { format!("\n{text}") };
    let picture = |shown: &Shown| apart(shown.grids.iter().map(|grid| grid.render(style)).collect());
    around(run, &apart(explained(run, style)), picture)
}

/// The steps that speak for the run's servers, explained in short; nothing where none was watched.
fn explained(run: &Run, style: &Style) -> String {
    let found = explain::speaking(explain::of_run(run));
    if found.is_empty() {
        return String::new();
    }
    let more = "Every step and every figure: fingerpost explain";
    format!("{}\n{more} {}\n", explain::render(&found, style), clean(&run.id))
}

/// What laboratories add to a run in Markdown.
pub fn markdown(run: &Run) -> String {
    let found = explain::speaking(explain::of_run(run));
    let explained = if found.is_empty() { String::new() } else { format!("\n{}", explain::markdown(&found)) };
    around(run, &explained, |shown| {
        shown.markdown.clone().unwrap_or_else(|| shown.grids.iter().map(Grid::markdown).collect())
    })
}

/// What each analysis shows, with what explains the time of requests at its place.
fn around(run: &Run, explained: &str, show: impl Fn(&Shown) -> String) -> String {
    let (before, after): (Vec<_>, Vec<_>) = labs::of(run).into_iter().partition(|(of, _)| of.before_requests);
    let part = |part: Vec<(_, Shown)>| part.iter().map(|(_, shown)| show(shown)).collect::<String>();
    [part(before), explained.to_owned(), part(after)].concat()
}
