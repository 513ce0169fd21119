//! What a load generator on another machine saw, beside what the service's sockets saw.

use fingerpost_diagnose::client::{Beside, beside};
use fingerpost_record::Run;

use super::explanation::Explanation;
use super::wording::WORKLOAD;
use crate::grid::{Grid, Line};
use crate::style::Tone;
use crate::words::clean;

impl Explanation {
    /// With what a load generator elsewhere saw of this service, where the run has it.
    pub(super) fn with_client_of(mut self, run: &Run) -> Explanation {
        self.client = if self.workload == WORKLOAD { beside(run) } else { None };
        self
    }
}

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
