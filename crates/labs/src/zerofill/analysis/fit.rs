//! The costs from all page counts together: two straight lines in place of the article's two points.
//!
//! Allocating and freeing `n` pages is taken as `base + n · page`, and what touching adds as `object + n · fault`. Each
//! line is the one with the least sum of squared relative residuals, so that a thousand pages count as much as one.
//! Costs rise once the pages no longer fit in a cache, so the lines are fitted up to where they stop being straight,
//! and that place, the knee, is reported.

use fingerpost_record::{Estimate, Run};
use serde::Serialize;

use super::points::{self, Point};

/// A point of the curve may be this far from its line, as a share of its value.
const STRAIGHT: f64 = 0.12;
/// Page counts that a line needs at least.
const LEAST_POINTS: usize = 4;
/// Resamplings behind each interval.
const DRAWS: usize = 400;

/// A straight line over page counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Its value at no pages.
    pub base: f64,
    /// What one page adds.
    pub per_page: f64,
}

impl Line {
    /// The line with the least squared relative residuals through points `(pages, value)` with values above zero.
    ///
    /// Weights are `1/value²`: minimising `Σ ((y − a − b·x) / y)²` gives the usual normal equations with these weights.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        let mut sums = [0.0; 5];
        for &(x, y) in points.iter().filter(|(_, y)| *y > 0.0 && y.is_finite()) {
            let w = 1.0 / (y * y);
            for (sum, term) in sums.iter_mut().zip([1.0, x, y, x * x, x * y]) {
                *sum += w * term;
            }
        }
        let [w, x, y, xx, xy] = sums;
        let determinant = w * xx - x * x;
        // Fewer than two different page counts have no slope.
        if determinant <= 1e-9 * w * xx {
            return None;
        }
        let per_page = (w * xy - x * y) / determinant;
        Some(Line {
            base: (y - per_page * x) / w,
            per_page,
        })
    }

    /// The line's value at so many pages.
    pub fn at(&self, pages: f64) -> f64 {
        self.base + self.per_page * pages
    }

    /// The largest relative residual of these points.
    fn worst(&self, points: &[(f64, f64)]) -> f64 {
        points
            .iter()
            .map(|&(x, y)| ((y - self.at(x)) / y).abs())
            .fold(0.0, f64::max)
    }
}

/// Where touching becomes slower than the line says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The first page count above the line.
    pub pages: i64,
    /// How many times the line's value the touching there costs.
    pub factor: f64,
}

/// The fitted costs, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Allocating and freeing, without any page.
    pub alloc_base: Estimate,
    /// What a page adds to allocating and freeing.
    pub alloc_page: Estimate,
    /// What touching adds once, whatever the number of pages.
    pub object: Estimate,
    /// What touching adds per page: fault, zero-filling, and the slower freeing.
    pub fault_page: Estimate,
    /// The largest page count that the lines rest on.
    pub up_to: i64,
    /// The largest relative residual of a point that they rest on.
    pub worst_residual: f64,
    /// Where touching leaves the line, if it does.
    pub knee: Option<Knee>,
}

/// One page count with both of its rows.
struct Pair {
    pages: i64,
    alloc: Point,
    touch: Point,
}

/// Fits the rows of one way to get memory; nothing where fewer than four page counts have both rows.
pub fn fit(run: &Run, api: &str) -> Option<Fit> {
    let alloc = points::curve(run, "zerofill.alloc", "api", api);
    let touch = points::curve(run, "zerofill.touch", "api", api);
    let pair = |a: Point| {
        Some(Pair {
            pages: a.pages,
            touch: touch.iter().find(|t| t.pages == a.pages)?.clone(),
            alloc: a,
        })
    };
    fit_pairs(
        &alloc.into_iter().filter_map(pair).collect::<Vec<_>>(),
        run.seed,
    )
}

fn fit_pairs(pairs: &[Pair], seed: u64) -> Option<Fit> {
    let measured: Vec<[f64; 2]> = pairs
        .iter()
        .map(|p| [p.alloc.figure.value, p.touch.figure.value])
        .collect();
    let used = straight_part(pairs, &measured)?;
    let (alloc, extra) = lines(&pairs[..used], &measured)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut draws: [Vec<f64>; 4] = Default::default();
    for _ in 0..DRAWS {
        let drawn: Vec<[f64; 2]> = pairs[..used]
            .iter()
            .map(|p| {
                [
                    points::redraw(&p.alloc, &mut rng),
                    points::redraw(&p.touch, &mut rng),
                ]
            })
            .collect();
        if let Some((alloc, extra)) = lines(&pairs[..used], &drawn) {
            for (list, value) in
                draws
                    .iter_mut()
                    .zip([alloc.base, alloc.per_page, extra.base, extra.per_page])
            {
                list.push(value);
            }
        }
    }
    Some(Fit {
        alloc_base: points::interval(alloc.base, &draws[0]),
        alloc_page: points::interval(alloc.per_page, &draws[1]),
        object: points::interval(extra.base, &draws[2]),
        fault_page: points::interval(extra.per_page, &draws[3]),
        up_to: pairs[used - 1].pages,
        worst_residual: extra.worst(&differences(&pairs[..used], &measured)),
        knee: knee(&pairs[used..], &measured[used..], &extra),
    })
}

/// The two lines: allocating, and what touching adds.
fn lines(pairs: &[Pair], values: &[[f64; 2]]) -> Option<(Line, Line)> {
    let alloc: Vec<(f64, f64)> = pairs
        .iter()
        .zip(values)
        .map(|(p, v)| (p.pages as f64, v[0]))
        .collect();
    Some((
        Line::through(&alloc)?,
        Line::through(&differences(pairs, values))?,
    ))
}

fn differences(pairs: &[Pair], values: &[[f64; 2]]) -> Vec<(f64, f64)> {
    pairs
        .iter()
        .zip(values)
        .map(|(p, v)| (p.pages as f64, v[1] - v[0]))
        .filter(|(_, d)| *d > 0.0)
        .collect()
}

/// How many of the page counts, from the smallest on, lie on one line.
fn straight_part(pairs: &[Pair], values: &[[f64; 2]]) -> Option<usize> {
    let straight = |n: usize| {
        let points = differences(&pairs[..n], values);
        points.len() >= LEAST_POINTS
            && Line::through(&points).is_some_and(|line| line.worst(&points) <= STRAIGHT)
    };
    let enough = (pairs.len() >= LEAST_POINTS).then_some(LEAST_POINTS)?;
    (enough..=pairs.len())
        .rev()
        .find(|n| straight(*n))
        .or(Some(enough))
}

/// The first page count behind the straight part, if touching there is slower than the line says.
fn knee(rest: &[Pair], values: &[[f64; 2]], extra: &Line) -> Option<Knee> {
    differences(rest, values)
        .into_iter()
        .map(|(pages, value)| Knee {
            pages: pages as i64,
            factor: value / extra.at(pages),
        })
        .find(|k| k.factor.is_finite() && k.factor > 1.0 + STRAIGHT)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Machine, run_of};
    use super::*;

    #[test]
    fn a_line_goes_through_points_that_lie_on_one() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 8.0, 512.0]
            .map(|n| (n, 700.0 + 250.0 * n))
            .to_vec();
        let line = Line::through(&points).unwrap();
        assert!((line.base - 700.0).abs() < 1e-6 && (line.per_page - 250.0).abs() < 1e-9);
        assert_eq!(Line::through(&[(1.0, 5.0)]), None);
        assert_eq!(Line::through(&[(2.0, 5.0), (2.0, 6.0)]), None);
        assert_eq!(Line::through(&[]), None);
    }

    #[test]
    fn known_costs_come_back_with_intervals_that_hold_them() {
        let machine = Machine::default();
        let fit = fit(&run_of(&machine, 0.01), "mmap").unwrap();
        let held = |e: &Estimate, truth: f64| {
            e.low <= truth && truth <= e.high && (e.value / truth - 1.0).abs() < 0.05
        };
        assert!(held(&fit.alloc_base, machine.alloc_base), "{fit:?}");
        assert!(held(&fit.fault_page, machine.fault_page), "{fit:?}");
        assert!(held(&fit.object, machine.object), "{fit:?}");
        assert!(fit.knee.is_none() && fit.up_to == 4096);
    }

    #[test]
    fn a_cache_knee_is_found_and_does_not_bend_the_line() {
        let machine = Machine {
            knee_pages: 512.0,
            knee_factor: 1.6,
            ..Machine::default()
        };
        let fit = fit(&run_of(&machine, 0.002), "mmap").unwrap();
        assert!(
            (fit.fault_page.value / machine.fault_page - 1.0).abs() < 0.03,
            "{fit:?}"
        );
        let knee = fit.knee.unwrap();
        assert!(knee.pages == 1024 && knee.factor > 1.2, "{knee:?}");
    }

    #[test]
    fn a_run_without_enough_rows_has_no_fit() {
        let mut run = run_of(&Machine::default(), 0.01);
        run.measurements
            .retain(|m| m.params.int("pages").is_some_and(|n| n <= 4));
        assert_eq!(fit(&run, "mmap"), None);
        assert_eq!(super::fit(&fingerpost_record::Run::default(), "mmap"), None);
    }
}
