//! The cells of the launch laboratory's table: times, and their ratios to the default placement's.

use fingerpost_record::{Estimate, Measurement, Outcome};

use fingerpost_compare::figure::Figure;
use fingerpost_compare::ratio::{self, QuantileWeights, Ratio};

/// A time, and how it compares with the one under the default placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Nanoseconds.
    pub time: Estimate,
    /// Above 1 is slower than the default; none for the default itself.
    pub ratio: Option<Ratio>,
    /// Whether it was not ready in every sequence.
    pub doubtful: bool,
}

/// A figure with its repetitions, in order, and whether it is to be doubted.
pub(super) struct Given {
    pub(super) figure: Figure,
    pub(super) doubtful: bool,
}

/// What a row has to give; nothing where it has no figure.
pub(super) fn given(m: &Measurement) -> Option<Given> {
    Some(Given {
        figure: Figure::of(m.estimate?, m.process_values()),
        doubtful: m.outcome == Outcome::Untrusted,
    })
}

/// The cells of a row, the default's first.
pub(super) fn cells(row: Vec<Option<Given>>, weights: &mut QuantileWeights) -> Vec<Option<Cell>> {
    let base = row.first().and_then(Option::as_ref);
    let mut ratio = |(i, new): (usize, &Option<Given>)| {
        ratio_to(base.filter(|_| i > 0)?, new.as_ref()?, weights)
    };
    let ratios: Vec<Option<Ratio>> = row.iter().enumerate().map(&mut ratio).collect();
    let cell = |(given, ratio): (Option<Given>, Option<Ratio>)| {
        let Given { figure, doubtful } = given?;
        Some(Cell {
            time: figure.estimate(),
            ratio,
            doubtful,
        })
    };
    row.into_iter().zip(ratios).map(cell).collect()
}

/// Round by round where every round has both, else from the two figures.
fn ratio_to(base: &Given, new: &Given, weights: &mut QuantileWeights) -> Option<Ratio> {
    let (b, n) = (&base.figure.processes, &new.figure.processes);
    if b.len() == n.len()
        && !base.doubtful
        && !new.doubtful
        && let Some(ratio) = ratio::paired(b, n, false)
    {
        return Some(ratio);
    }
    let mut level = |of: &Given| ratio::level(std::slice::from_ref(&of.figure), weights);
    Some(ratio::between(level(base)?, level(new)?, false))
}
