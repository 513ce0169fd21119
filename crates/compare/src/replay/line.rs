//! A line of a replayed table.

use fingerpost_record::Estimate;
use fingerpost_record::unit::significant;
use serde::Serialize;

/// One line: what it is a figure of, as printed, and as measured here.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The probe, with the parameters that the source states.
    pub what: String,
    /// Each system's figure as printed; nothing where the source has none.
    pub printed: Vec<Option<String>>,
    /// This machine's figure in the table's unit.
    pub here: Option<Here>,
}

/// A figure of this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Here {
    /// The figure with its interval, in the table's unit.
    pub estimate: Estimate,
    /// Whether the run says that it is to be trusted.
    pub trusted: bool,
    /// What stands for what, and what the source leaves unsaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Here {
    /// The value alone, in three or four digits.
    pub fn text(&self) -> String {
        significant(self.estimate.value)
    }
}
