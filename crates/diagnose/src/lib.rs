//! One run, or two beside each other, explained: where a request's time went, and who is to blame.
//!
//! Pure: computed from what runs have on record, without a clock and without chance. Of one side: from the requests
//! that were followed ([`fingerpost_record::Paths`]), the totals that observers wrote ([`Readings`]) and the figures of
//! the step ([`StepFigures`]) to a budget and findings ([`explain`]). Of two sides: from what each knows of its
//! workload steps ([`KnownSide`]) to the way from one budget to the other and the causes of the difference ([`sides`]).
//! The names of the totals are listed in `docs/observers.md`.

mod budget;
pub mod cause;
pub mod causes;
mod chain;
pub mod check;
pub mod client;
pub mod code_path;
mod counts;
pub mod deciding;
pub mod doing;
pub mod entering;
pub mod facts;
pub mod first_touch;
pub mod fleet;
mod followed;
pub mod hosts;
mod judging;
pub mod mapped;
mod one_side;
pub mod outside;
pub mod places;
pub mod probes;
pub mod service;
pub mod sides;
pub mod slow;
mod step;
pub mod steps;
pub mod suspects;
pub mod threads;
pub mod thresholds;
mod windows;

use fingerpost_record::{Budget, Finding, Paths, Readings};

pub use budget::budget;
pub use causes::label;
pub use chain::{
    Overlap, follows_from, named_without_share, overlap, overlapping, unexplained_beside,
};
pub use check::check;
pub use facts::{Facts, PROGRAMS};
pub use judging::TOO_LITTLE_FOLLOWED;
pub use one_side::network::packets_lost;
pub use slow::slow_ones;
pub use step::{STEP, StepFigures};
pub use steps::{KnownSide, Steps};
pub use suspects::suspects;
pub use threads::threads;

/// The budget and the findings of one step, from its figures, what observers saw of it, and its followed requests.
/// Without those the budget has no parts, and nothing is confirmed.
pub fn explain(
    step: &StepFigures,
    readings: &Readings,
    paths: Option<&Paths>,
) -> (Budget, Vec<Finding>) {
    (
        budget(step, paths),
        suspects(&Facts::of(step, readings, paths)),
    )
}
