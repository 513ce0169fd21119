//! The whole proof with servers as a program reads it.

use fingerpost_labs::prove::servers::{Row, Score};
use serde::Serialize;

/// The whole proof.
#[derive(Debug, Serialize)]
pub struct Document {
    /// What trials were drawn by; nothing for a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// A row for each trial.
    pub trials: Vec<Row>,
    /// The figures over all.
    pub score: Score,
    /// The figures over the plants on which rules may be worked.
    pub plants: Score,
    /// The figures over those that are kept apart.
    pub apart: Score,
    /// How long all of it took.
    pub seconds: f64,
}
