//! A sink for tests: keeps rows as a record does.

use fingerpost_record::{Measurement, Observation};

use crate::Sink;

/// What was told.
#[derive(Default)]
pub struct Listener {
    /// The last of each row.
    pub rows: Vec<Measurement>,
    /// Every observation.
    pub observations: Vec<Observation>,
    /// Every warning.
    pub warnings: Vec<String>,
    /// Steps that may still be done before the user interrupts.
    pub patience: usize,
    /// Whether the run takes turns with another one.
    pub in_turns: bool,
}

impl Sink for Listener {
    fn measurement(&mut self, row: Measurement) {
        self.rows.retain(|r| !r.same_row(&row));
        self.rows.push(row);
    }
    fn observation(&mut self, observation: Observation) {
        self.observations.push(observation);
    }
    fn warn(&mut self, sentence: &str) {
        self.warnings.push(sentence.to_owned());
    }
    fn takes_turns(&self) -> bool {
        self.in_turns
    }
    fn progress(&mut self, _: &str, done: f64) {
        assert!((0.0..=1.0).contains(&done));
        self.patience = self.patience.saturating_sub(1);
    }
    fn interrupted(&self) -> bool {
        self.patience == 0
    }
}
