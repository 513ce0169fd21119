//! Two settings of one host, measured in one interleaved run.
//!
//! [`setting`] reads what `--a` and `--b` say; [`probes`] measures probes pair by pair; [`labs`] runs labs in turns;
//! [`pair`] keeps both sides as runs and puts them side by side.

pub mod labs;
pub mod pair;
pub mod probes;
pub mod setting;
pub mod thp;

use std::time::Duration;

use fingerpost_record::Profile;

/// The names of the sides in sentences.
pub const NAMES: [&str; 2] = ["A", "B"];

/// How `ab` is to be made.
pub struct Options {
    /// The time for everything.
    pub budget: Duration,
    /// Turns of a lab that each side gets at the least, whatever the time.
    pub least_turns: usize,
    /// How careful to be.
    pub profile: Profile,
    /// The relative difference that does not matter: measuring ends when every row is known to be on one side of it.
    pub threshold: f64,
    /// Seed of the order.
    pub seed: u64,
    /// Whether the system may be changed (and restored).
    pub allow_system_changes: bool,
}
