//! A line of a replayed table.

use serde::Serialize;

use super::own::Here;

/// One line: what it is a figure of, as printed, and as measured here.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The probe, with the parameters that the source states.
    pub what: String,
    /// What the source's table prints of the line itself, beside the figures; see [`super::Replayed::about`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Each system's figure as printed; nothing where the source has none.
    pub printed: Vec<Option<String>>,
    /// This machine's figure in the table's unit.
    pub here: Option<Here>,
}
