//! From a run's rows to points of curves, and arithmetic with figures that have intervals.

use fingerpost_measure::estimate::{BETWEEN_RUNS, CONFIDENCE, median, quantile_sorted, sorted};
use fingerpost_record::{Estimate, Measurement, Run};

/// One row of a curve over page counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Number of base pages.
    pub pages: i64,
    /// The row's figure, in nanoseconds.
    pub figure: Estimate,
    /// One value per process: what resampling draws from.
    pub processes: Vec<f64>,
}

/// The rows of a probe that have a figure and this word as this parameter, by number of pages.
pub fn curve(run: &Run, probe: &str, key: &str, word: &str) -> Vec<Point> {
    let wanted = |m: &&Measurement| m.probe == probe && m.params.text(key) == Some(word);
    let point = |m: &Measurement| {
        let (pages, figure) = (
            m.params.int("pages").filter(|n| *n > 0)?,
            m.estimate.filter(sound)?,
        );
        Some(Point {
            pages,
            figure,
            processes: m.process_values(),
        })
    };
    let mut points: Vec<Point> = run
        .measurements
        .iter()
        .filter(wanted)
        .filter_map(point)
        .collect();
    points.sort_by_key(|p| p.pages);
    points.dedup_by_key(|p| p.pages);
    points
}

/// A time is above zero and finite, also in a file from elsewhere.
fn sound(e: &Estimate) -> bool {
    e.value.is_finite()
        && e.value > 0.0
        && e.low.is_finite()
        && e.high.is_finite()
        && e.low <= e.value
        && e.value <= e.high
}

/// The words of a parameter that a probe's rows with figures have, in the order measured.
pub fn words<'a>(run: &'a Run, probe: &str, key: &str) -> Vec<&'a str> {
    let mut list: Vec<&str> = Vec::new();
    for m in run
        .measurements
        .iter()
        .filter(|m| m.probe == probe && m.estimate.is_some())
    {
        if let Some(word) = m.params.text(key).filter(|w| !list.contains(w)) {
            list.push(word);
        }
    }
    list.sort_unstable();
    list
}

/// The point with this many pages.
pub fn at(points: &[Point], pages: i64) -> Option<Estimate> {
    points.iter().find(|p| p.pages == pages).map(|p| p.figure)
}

/// A resampling of a point: the median of as many processes, drawn with replacement. A point without processes stays as
/// it is.
pub fn redraw(point: &Point, rng: &mut fastrand::Rng) -> f64 {
    if point.processes.is_empty() {
        return point.figure.value;
    }
    let drawn: Vec<f64> = (0..point.processes.len())
        .map(|_| point.processes[rng.usize(..point.processes.len())])
        .collect();
    median(&drawn)
}

/// A value with the interval that its resamplings give, widened as all intervals here are: it is meant to hold the
/// value of another run, whose own error is as large, and runs differ by more than their processes do.
pub fn interval(value: f64, draws: &[f64]) -> Estimate {
    let s = sorted(draws);
    let (low, high) = if s.is_empty() {
        (value, value)
    } else {
        (quantile_sorted(&s, 0.025), quantile_sorted(&s, 0.975))
    };
    let between = 1.96 * std::f64::consts::SQRT_2 * BETWEEN_RUNS * value.abs();
    let widen = |half: f64| (2.0 * half.max(0.0).powi(2) + between * between).sqrt();
    Estimate {
        value,
        low: value - widen(value - low),
        high: value + widen(high - value),
        confidence: CONFIDENCE,
    }
}

/// A figure from a value and its half widths.
fn around(value: f64, below: f64, above: f64) -> Estimate {
    Estimate {
        value,
        low: value - below,
        high: value + above,
        confidence: CONFIDENCE,
    }
}

/// The sum of two figures whose errors are independent: half widths add in quadrature.
pub fn add(a: Estimate, b: Estimate) -> Estimate {
    around(
        a.value + b.value,
        (a.value - a.low).hypot(b.value - b.low),
        (a.high - a.value).hypot(b.high - b.value),
    )
}

/// The difference of two such figures.
pub fn subtract(a: Estimate, b: Estimate) -> Estimate {
    around(
        a.value - b.value,
        (a.value - a.low).hypot(b.high - b.value),
        (a.high - a.value).hypot(b.value - b.low),
    )
}

/// A figure times a number above zero.
pub fn scale(a: Estimate, factor: f64) -> Estimate {
    around(
        a.value * factor,
        (a.value - a.low) * factor,
        (a.high - a.value) * factor,
    )
}

/// The ratio of two such figures; nothing where the divisor may be zero.
pub fn ratio(a: Estimate, b: Estimate) -> Option<Estimate> {
    if b.low <= 0.0 || !(a.value / b.value).is_finite() {
        return None;
    }
    // To the first order: δ(a/b) = δa/b and a·δb/b².
    let r = a.value / b.value;
    let below = ((a.value - a.low) / b.value).hypot(r * (b.high - b.value) / b.value);
    let above = ((a.high - a.value) / b.value).hypot(r * (b.value - b.low) / b.value);
    Some(around(r, below, above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(value: f64, half: f64) -> Estimate {
        around(value, half, half)
    }

    #[test]
    fn errors_add_in_quadrature() {
        let sum = add(e(10.0, 3.0), e(20.0, 4.0));
        assert_eq!((sum.value, sum.low, sum.high), (30.0, 25.0, 35.0));
        let difference = subtract(e(20.0, 4.0), e(10.0, 3.0));
        assert_eq!(
            (difference.value, difference.low, difference.high),
            (10.0, 5.0, 15.0)
        );
        let r = ratio(e(10.0, 0.0), e(20.0, 2.0)).unwrap();
        assert!((r.value - 0.5).abs() < 1e-12 && (r.high - 0.55).abs() < 1e-12);
        assert_eq!(ratio(e(1.0, 0.0), e(1.0, 2.0)), None);
    }

    #[test]
    fn resampling_stays_within_what_was_measured() {
        let point = Point {
            pages: 1,
            figure: e(10.0, 1.0),
            processes: vec![9.0, 10.0, 11.0],
        };
        let mut rng = fastrand::Rng::with_seed(1);
        let draws: Vec<f64> = (0..200).map(|_| redraw(&point, &mut rng)).collect();
        assert!(draws.iter().all(|d| (9.0..=11.0).contains(d)) && draws.iter().any(|d| *d != 10.0));
        let i = interval(10.0, &draws);
        assert!(i.low < 10.0 && i.high > 10.0);
        assert!(interval(10.0, &[]).low < 10.0);
    }
}
