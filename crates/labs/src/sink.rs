//! Where a lab's results go.

use std::time::Duration;

use fingerpost_record::{Budget, Experiment, Finding, Measurement, Observation, Paths};

/// Takes results as soon as they exist, and tells whether to go on. What a sink has no use for it leaves out.
pub trait Sink {
    /// A row, new or measured further: a row with the same probe, version and parameters is replaced.
    fn measurement(&mut self, row: Measurement);
    /// What an observer saw.
    fn observation(&mut self, _observation: Observation) {}
    /// Where a transaction's time went.
    fn budget(&mut self, _budget: Budget) {}
    /// Requests of a step that were followed.
    fn paths(&mut self, _paths: Paths) {}
    /// A cause, named or ruled out.
    fn finding(&mut self, _finding: Finding) {}
    /// An experiment that was made to decide between causes.
    fn experiment(&mut self, _experiment: Experiment) {}
    /// A sentence for the person who waits (standard error), such as a setting that had no effect.
    fn warn(&mut self, _sentence: &str) {}
    /// What is being done now, and the share done so far, 0 to 1.
    fn progress(&mut self, _doing: &str, _done: f64) {}
    /// Whether this run takes turns with another one: two servers, of which each round should be of another start,
    /// since what a start makes of a server is in all rounds of it.
    fn takes_turns(&self) -> bool {
        false
    }
    /// Returns when this run may load the machine, where it takes turns with another run. What is measured until
    /// [`Sink::turn_over`] has the machine to itself.
    fn wait_for_turn(&mut self) {}
    /// This run's turn is over: returns when the other has had its own.
    fn turn_over(&mut self) {}
    /// How long this run has waited for turns.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
    /// Whether the user asked to stop: finish the step, keep what there is, clean up, return.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Measures something when it is this run's turn.
pub fn in_turn<T>(sink: &mut dyn Sink, measure: impl FnOnce(&mut dyn Sink) -> T) -> T {
    sink.wait_for_turn();
    let measured = measure(sink);
    sink.turn_over();
    measured
}
