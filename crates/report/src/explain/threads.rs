//! What a server's threads did, as a table.

use fingerpost_diagnose::threads::State;

use super::bar::bar;
use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::words::{clean, percent, time};

/// What threads did. It is no budget: they are nobody's requests.
pub(super) fn threads_grid(states: &[State]) -> Grid {
    let mut grid = Grid::titled([
        ("what the threads did", Align::Left, 0),
        ("layer", Align::Left, 2),
        ("time", Align::Right, 0),
        ("of their life", Align::Right, 0),
        ("", Align::Left, 3),
    ]);
    for s in states {
        grid.lines.push(Line::Cells(
            vec![clean(&s.state), s.layer.to_string(), time(s.seconds), percent(s.share), bar(0.0, s.share)],
            Tone::Plain,
        ));
    }
    grid
}
