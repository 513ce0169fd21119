//! What a load generator on another machine saw, beside what the service's sockets saw.

use fingerpost_diagnose::client::Beside;

use crate::grid::{Grid, Line};
use crate::style::Tone;
use crate::words::clean;

/// The lines; none without such a load generator.
pub(super) fn grid(client: Option<&Beside>) -> Grid {
    let Some(client) = client else { return Grid::default() };
    let mut lines = vec![Line::Note(clean(&client.sentence), Tone::Strong)];
    let notes = client.notes.iter().enumerate();
    // What the client says against itself comes after the figures.
    lines.extend(notes.map(|(n, note)| Line::Note(clean(note), if n == 0 { Tone::Faint } else { Tone::Doubtful })));
    lines.push(Line::Note(clean(&client.who), Tone::Faint));
    Grid { columns: Vec::new(), lines }
}
