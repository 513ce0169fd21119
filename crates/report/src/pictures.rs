//! What laboratories add to a run's table and to its Markdown: pictures and sentences that draw on many rows together.

use fingerpost_record::Run;

use crate::explain;
use crate::grid::Grid;
use crate::lab::Shown;
use crate::style::Style;
use crate::view::View;
use crate::words::clean;

/// Each laboratory's picture for a terminal, between what was found and the rows; nothing where the run has none of its
/// rows.
pub fn terminal(run: &Run, view: &View, style: &Style) -> String {
    let apart = |text: String| if text.is_empty() { text } else { format!("\n{text}") };
    let picture = |shown: &Shown| apart(shown.grids.iter().map(|grid| grid.render(style)).collect());
    around(view, &apart(explained(run, style)), picture)
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
pub fn markdown(run: &Run, view: &View) -> String {
    let found = explain::speaking(explain::of_run(run));
    let explained = if found.is_empty() { String::new() } else { format!("\n{}", explain::markdown(&found)) };
    around(view, &explained, |shown| {
        shown.markdown.clone().unwrap_or_else(|| shown.grids.iter().map(Grid::markdown).collect())
    })
}

/// What each analysis shows, with what explains the time of requests at its place.
fn around(view: &View, explained: &str, show: impl Fn(&Shown) -> String) -> String {
    let part = |before: bool| -> String {
        view.found.iter().filter(|(of, _)| of.before_requests == before).map(|(_, shown)| show(shown)).collect()
    };
    [part(true), explained.to_owned(), part(false)].concat()
}
