//! What a proof gives: its document, and the status that it ends with.

use fingerpost_labs::prove::{Proof, Result as Verdict};
use serde::{Deserialize, Serialize};

use crate::exit::Done;

/// The whole proof.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    /// A row for each plant and control.
    pub plants: Vec<Proof>,
    /// Plants whose cause came first, and plants that were tried.
    pub named_first: [usize; 2],
    /// Plants whose layer came first, and plants that were tried.
    pub layer_first: [usize; 2],
    /// Controls on which somebody was accused, and controls that were tried.
    pub false_accusations: [usize; 2],
    /// How long all of it took.
    pub seconds: f64,
}

/// How it ends by what became of the plants.
pub fn status(mut results: impl Iterator<Item = Verdict> + Clone, interrupted: bool) -> Done {
    if interrupted || results.clone().any(|r| r == Verdict::Failed) {
        Done::MeasurementFailed
    } else if results.any(|r| !matches!(r, Verdict::Right | Verdict::Skipped)) {
        Done::FailOn
    } else {
        Done::Well
    }
}
