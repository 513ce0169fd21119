//! Rows that a published table has and no probe of ours: made from those that measure its parts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fingerpost_record::{Outcome, Params};

use crate::figure::Figure;
use crate::side::{Side, SideRow};

/// lmbench's summary gives reading and writing one byte as one figure: their mean.
const NULL_IO: &str = "lmbench.null_io";

/// The side with what the other side's published rows ask for; itself where they ask for nothing.
pub fn with<'a>(side: &'a Side, other: &Side) -> Cow<'a, Side> {
    let key = |probe: &str| (probe.to_owned(), 1, Params::new());
    let has = |side: &Side, probe: &str| side.rows.contains_key(&key(probe));
    if !has(other, NULL_IO) || has(side, NULL_IO) {
        return Cow::Borrowed(side);
    }
    let (Some(read), Some(write)) = (side.rows.get(&key("syscall.read")), side.rows.get(&key("syscall.write"))) else {
        return Cow::Borrowed(side);
    };
    let Some(row) = mean(read, write) else { return Cow::Borrowed(side) };
    let mut side = side.clone();
    side.rows.insert(key(NULL_IO), row);
    Cow::Owned(side)
}

/// The mean of two rows of the same runs; nothing where either was not measured in one of them.
fn mean(a: &SideRow, b: &SideRow) -> Option<SideRow> {
    let alike = a.unit == b.unit && a.figures.len() == b.figures.len() && !a.figures.is_empty();
    let measured = [a, b].iter().all(|row| row.outcome == Outcome::Measured);
    (alike && measured).then(|| SideRow {
        figures: a.figures.iter().zip(&b.figures).map(|(a, b)| mean_of(a, b)).collect(),
        counters: BTreeMap::new(),
        ..a.clone()
    })
}

fn mean_of(a: &Figure, b: &Figure) -> Figure {
    let mid = |a: f64, b: f64| (a + b) / 2.0;
    let same_number = a.processes.len() == b.processes.len();
    let processes = if same_number { a.processes.iter().zip(&b.processes).map(|(a, b)| mid(*a, *b)).collect() } else { Vec::new() };
    Figure {
        value: mid(a.value, b.value),
        low: mid(a.low, b.low),
        high: mid(a.high, b.high),
        confidence: a.confidence.min(b.confidence),
        processes,
        host_made: a.host_made.or(b.host_made),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Measurement, Run, Unit};

    use super::*;
    use crate::{Options, compare, references};

    fn own() -> Run {
        let row = |probe: &str, value: f64| {
            let mut row =
                Measurement::without_figure(probe, 1, Params::new(), Unit::Nanoseconds, Better::Lower, Outcome::Measured, String::new());
            row.reason = None;
            row.estimate = Some(Estimate { value, low: value * 0.99, high: value * 1.01, confidence: 0.95 });
            row
        };
        Run { measurements: vec![row("syscall.read", 200.0), row("syscall.write", 100.0)], ..Run::default() }
    }

    #[test]
    fn reading_and_writing_are_put_beside_null_io_and_nothing_is_made_up_without_it() {
        let reference = references::load("g5-2.5-linux").unwrap();
        let c = compare(std::slice::from_ref(&reference), &[own()], &Options::default());
        let row = c.rows.iter().find(|r| r.probe == NULL_IO).unwrap();
        assert!((row.new.value - 150.0).abs() < 1e-9 && (row.base.value - 260.0).abs() < 1e-9);
        let mut half = own();
        half.measurements.pop();
        let c = compare(&[reference], &[half], &Options::default());
        assert!(c.rows.iter().all(|r| r.probe != NULL_IO));
        let c = compare(&[own()], &[own()], &Options::default());
        assert!(c.rows.iter().all(|r| r.probe != NULL_IO));
    }
}
