//! Many hosts beside each other: which are slow, whether a group is two populations, what a roll-out changed.
//!
//! Pure arithmetic over logarithms of costs. A host is held against its *peers*, hosts of one kind ([`peer_group`]),
//! unit by unit: each row by itself, each family of rows together, and all rows together ([`Grid`]). What moves a whole
//! family by little is seen in the family and in no row. How far peers are apart in a family is taken from the peers
//! themselves, so that nothing is assumed of how rows depend on each other.

mod confirm;
mod grid;
mod peers;
mod populations;
mod robust;
mod rollout;
mod slow;

pub use confirm::{Confirmation, Tested, confirm, stand};
pub use grid::{Grid, Unit, by_every_cpu, middle};
pub use peers::peer_group;
pub use populations::Populations;
pub use rollout::{Effect, rollout};
pub use slow::{Excess, Judged, judge};

/// A host is slow by at least this share, or nobody's concern (`DESIGN`: an effect beyond 5 %).
pub const LEAST: f64 = 0.05;
/// Below so many peers nobody is accused: the spread of fewer is not known.
pub const FEWEST: usize = 8;
/// The share of false discoveries that is tolerated among hosts × units. Suspects are measured again before they are
/// called slow.
pub const FALSE_DISCOVERIES: f64 = 0.01;

/// Whether an effect counts as one of [`LEAST`]: it is above none after the control over all tests, and its interval
/// reaches 5 %.
///
/// A host that is slow by exactly 5 % is measured at less half of the time; to ask the point for 5 % would miss every
/// second one. What stands after the control is at least four of its standard errors from none, and its interval adds
/// two: nobody who is slow by less than 3.4 % is accused.
fn reaches_least(high: f64) -> bool {
    high >= LEAST.ln_1p()
}
