//! From samples to a figure with its interval.
//!
//! Two levels. Within a process, many batches: their noise is one-sided (an interrupt, a neighbour's cache traffic only
//! ever adds time), so a low quantile of an operation that only computes repeats far better than the median; an
//! operation that blocks or wakes somebody has noise on both sides, and the median repeats better. Across processes,
//! the quarter from the good side: whole processes are slowed as well, by neighbours that take memory, caches or the
//! other CPU, and most of what happens to them adds time. It repeats as well as the median on a quiet machine and twice
//! to five times as well on a noisy one (`docs/measuring.md`). Values that set figures against each other, or come from
//! contention for one thing, err to both sides, and points of a curve are fitted together: for those, the median.
//! Memory beyond the caches is slowed by neighbours most of the time: the tenth from the good side.

use fingerpost_record::{Better, Estimate, Percentiles};

/// How samples of one process become one value, and values of processes a figure: a quantile of either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Center {
    /// Of the samples.
    pub within: f64,
    /// Of the processes.
    pub across: f64,
    /// Of the processes, where too few kept the CPU's pace, so that slowed ones are among them. Nothing where all
    /// processes count, whatever their pace.
    pub across_slowed: Option<f64>,
}

impl Center {
    /// The medians of both.
    pub const MEDIAN: Center = Center {
        within: 0.5,
        across: 0.5,
        across_slowed: Some(0.5),
    };

    /// The tenth of the samples from the good side of the unit: for operations that only use a CPU.
    pub fn good_tenth(better: Better) -> Center {
        Center {
            within: from_good_side(0.1, better),
            ..Center::MEDIAN
        }
    }

    /// The same, and the quarter of the processes from the good side; of slowed ones the tenth, nearer to those that
    /// were slowed least.
    pub fn across_good_quarter(self, better: Better) -> Center {
        Center {
            across: from_good_side(0.25, better),
            across_slowed: Some(from_good_side(0.1, better)),
            ..self
        }
    }

    /// The same, and the tenth from the good side of all processes: for operations that wait for memory, which the
    /// CPU's pace says little about, and which neighbours slow most of the time.
    pub fn across_good_tenth_of_all(self, better: Better) -> Center {
        Center {
            across: from_good_side(0.1, better),
            across_slowed: None,
            ..self
        }
    }

    /// The same of all processes: for values that err to both sides when a CPU is slowed.
    pub fn of_all(self) -> Center {
        Center {
            across_slowed: None,
            ..self
        }
    }

    /// One for two that are set against each other: theirs, or where they differ the medians, which suit every
    /// operation.
    pub fn common(self, other: Center) -> Center {
        let all = self.across_slowed.is_none() || other.across_slowed.is_none();
        if self == other {
            self
        } else {
            Center {
                across_slowed: (!all).then_some(0.5),
                ..Center::MEDIAN
            }
        }
    }
}

fn from_good_side(quantile: f64, better: Better) -> f64 {
    if better == Better::Lower {
        quantile
    } else {
        1.0 - quantile
    }
}

/// The nominal coverage of our intervals.
pub const CONFIDENCE: f64 = 0.95;

/// Undisturbed samples that an estimate wants. With fewer, the disturbed ones are better than nothing.
pub const MIN_UNDISTURBED: usize = 5;

/// What two runs of an unchanged machine differ by beyond what their processes differ by, as a share of the value (one
/// standard deviation). Minutes apart, the same probe meets other neighbours, other physical pages and another clock
/// rate. The trial that this way of measuring comes from varied by 0.24 to 0.33 % from run to run for operations that
/// only compute; `bench/repeatability` holds it against later ones (see `docs/measuring.md`). The intervals of a run
/// and the ratios of a comparison are made with the same.
pub const BETWEEN_RUNS: f64 = 0.003;

/// A quantile by linear interpolation between order statistics (Hyndman and Fan's type 7), of a sorted slice.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> f64 {
    match sorted {
        [] => f64::NAN,
        [only] => *only,
        _ => {
            let h = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
            let i = (h.floor() as usize).min(sorted.len() - 2);
            sorted[i] + (h - i as f64) * (sorted[i + 1] - sorted[i])
        }
    }
}

/// Values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v
}

/// The median; not a number for no values.
pub fn median(values: &[f64]) -> f64 {
    quantile_sorted(&sorted(values), 0.5)
}

/// One process's value, from its undisturbed samples; nothing for no samples.
pub fn within_process(values: &[f64], disturbed: &[u32], center: Center) -> Option<f64> {
    let clean: Vec<f64> = values
        .iter()
        .enumerate()
        .filter(|(i, _)| !disturbed.contains(&(*i as u32)))
        .map(|(_, v)| *v)
        .collect();
    let used = if clean.len() >= MIN_UNDISTURBED.min(values.len()) {
        &clean
    } else {
        values
    };
    (!used.is_empty()).then(|| quantile_sorted(&sorted(used), center.within))
}

/// Where all samples lie, disturbed ones included, from the good side: `p99` is the bad end, whatever the unit.
pub fn percentiles(samples: &[f64], better: Better) -> Option<Percentiles> {
    if samples.is_empty() {
        return None;
    }
    let s = sorted(samples);
    let at = |q: f64| quantile_sorted(&s, from_good_side(q, better));
    Some(Percentiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
    })
}

/// The figure over processes: their median, and an interval meant to hold the figure of a repetition of the run.
///
/// The interval of the median itself comes from order statistics (no assumption about the distribution; Hettmansperger
/// and Sheather's interpolation between ranks). A repetition has an error of its own, as large, so the half widths grow
/// by √2; and runs differ by more than their processes do, by [`BETWEEN_RUNS`], which is added in quadrature.
///
/// Times and rates are above zero and err by factors, so all of this happens to their logarithms: an interval never
/// reaches zero.
pub fn across_processes(values: &[f64]) -> Option<Estimate> {
    quantile_across(values, Center::MEDIAN.across, 0.0)
}

/// The same for another quantile than the median, and for processes beside which the CPU was slower than at best, so
/// that the figure may be off by a factor of which `slowed` is the logarithm ([`crate::pace`]). Half of that, either
/// way, is taken for one standard deviation.
pub fn quantile_across(values: &[f64], quantile: f64, slowed: f64) -> Option<Estimate> {
    let between_runs = BETWEEN_RUNS.hypot(slowed / 2.0);
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let s = sorted(values);
    let value = quantile_sorted(&s, quantile);
    let (low, high) = if s[0] > 0.0 {
        let logarithms: Vec<f64> = s.iter().map(|v| v.ln()).collect();
        let (low, high) = repetition_interval(&logarithms, quantile, between_runs);
        (low.exp(), high.exp())
    } else {
        repetition_interval(&s, quantile, between_runs * value.abs())
    };
    // A quantile of the logarithms is not quite the logarithm of the quantile when it lies between two values.
    Some(Estimate {
        value,
        low: low.min(value),
        high: high.max(value),
        confidence: CONFIDENCE,
    })
}

/// Where the quantile of another run would lie, for a sorted sample and a standard deviation between runs.
fn repetition_interval(sorted: &[f64], quantile: f64, between_runs: f64) -> (f64, f64) {
    let centre = quantile_sorted(sorted, quantile);
    let (low, high) = quantile_interval(sorted, quantile);
    let between = 1.96 * std::f64::consts::SQRT_2 * between_runs;
    let widen = |half: f64| (2.0 * half * half + between * between).sqrt();
    (centre - widen(centre - low), centre + widen(high - centre))
}

/// A 95 % interval for a quantile of a sorted sample: for the median [`median_interval`]; else from order statistics,
/// by the normal approximation of their binomial ranks. Where the outer end would lie beyond the sample it is as far
/// away as the inner end; and where not one value is expected beyond the quantile, both are further away by as much as
/// that is less than one: 91 % instead of 81 % coverage with the tenth of five values, 90 % instead of 87 % with that
/// of eight (by simulation, a third of them slowed).
fn quantile_interval(sorted: &[f64], quantile: f64) -> (f64, f64) {
    let n = sorted.len();
    if quantile == 0.5 || n < 3 {
        return median_interval(sorted);
    }
    let centre = quantile_sorted(sorted, quantile);
    let half = 1.96 * (quantile * (1.0 - quantile) / n as f64).sqrt();
    let (low, high) = (
        quantile_sorted(sorted, quantile - half),
        quantile_sorted(sorted, quantile + half),
    );
    let low = if quantile < half {
        low.min(2.0 * centre - high)
    } else {
        low
    };
    let high = if quantile + half > 1.0 {
        high.max(2.0 * centre - low)
    } else {
        high
    };
    let beyond = (n as f64 * quantile.min(1.0 - quantile)).clamp(0.1, 1.0);
    (
        centre - (centre - low) / beyond,
        centre + (high - centre) / beyond,
    )
}

/// A 95 % interval for the median of a sorted sample.
///
/// For six values or more, ranks `k` and `n+1-k` with binomial coverage, interpolated to 95 % as in Hettmansperger and
/// Sheather, “Confidence intervals based on interpolated order statistics”, Statistics & Probability Letters 4 (1986).
/// For fewer, even the extremes cover less than 95 %, so the extremes are moved outwards by the ratio of the normal
/// quantiles.
pub fn median_interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    if n < 6 {
        return few_values_interval(sorted);
    }
    // Coverage of (X[k], X[n+1-k]), ranks from 1: 1 − 2 P(Bin(n, ½) ≤ k−1).
    let coverage = |k: usize| 1.0 - 2.0 * binomial_half_cdf(n, k - 1);
    let mut k = 1;
    while k < n / 2 && coverage(k + 1) >= CONFIDENCE {
        k += 1;
    }
    let (wide, narrow) = (coverage(k), coverage(k + 1));
    let i = if wide - narrow > 0.0 {
        (wide - CONFIDENCE) / (wide - narrow)
    } else {
        0.0
    };
    let lambda = (n - k) as f64 * i / (k as f64 + (n as f64 - 2.0 * k as f64) * i);
    let low = (1.0 - lambda) * sorted[k - 1] + lambda * sorted[k];
    let high = (1.0 - lambda) * sorted[n - k] + lambda * sorted[n - k - 1];
    (low, high)
}

/// Two to five values: their range covers 1 − 2^(1−n) of cases; it is widened about the median as if the median were
/// normal. One value says nothing about its spread: a quarter either way (of a logarithm: a factor of 1.28), which no
/// comparison can mistake for knowledge.
fn few_values_interval(sorted: &[f64]) -> (f64, f64) {
    let value = quantile_sorted(sorted, 0.5);
    // Normal quantiles of the coverage of the range of n values: 50 %, 75 %, 87.5 %, 93.75 %.
    let z = match sorted.len() {
        0 | 1 => return (value - 0.25, value + 0.25),
        2 => 0.674_49,
        3 => 1.150_35,
        4 => 1.534_12,
        _ => 1.862_73,
    };
    let grow = 1.959_96 / z;
    (
        value - grow * (value - sorted[0]),
        value + grow * (sorted[sorted.len() - 1] - value),
    )
}

/// P(Bin(n, ½) ≤ k), by the recurrence of the binomial coefficients.
fn binomial_half_cdf(n: usize, k: usize) -> f64 {
    let mut term = 0.5f64.powi(n as i32);
    let mut sum = term;
    for i in 0..k {
        term *= (n - i) as f64 / (i + 1) as f64;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_known_lists() {
        let v = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile_sorted(&v, 0.5), 2.5);
        assert_eq!(quantile_sorted(&v, 0.0), 1.0);
        assert_eq!(quantile_sorted(&v, 1.0), 4.0);
        // R: quantile(1:4, 0.1) is 1.3.
        assert!((quantile_sorted(&v, 0.1) - 1.3).abs() < 1e-12);
    }

    #[test]
    fn binomial_tails_are_those_of_the_tables() {
        // R: pbinom(2, 12, .5) = 0.01928711; pbinom(0, 6, .5) = 0.015625.
        assert!((binomial_half_cdf(12, 2) - 0.019_287_11).abs() < 1e-8);
        assert!((binomial_half_cdf(6, 0) - 0.015_625).abs() < 1e-12);
    }

    #[test]
    fn disturbed_samples_are_left_out_while_enough_remain() {
        let values = [10.0, 10.0, 10.0, 10.0, 10.0, 500.0];
        assert_eq!(within_process(&values, &[5], Center::MEDIAN), Some(10.0));
        // All disturbed: they are used, for want of better.
        let all: Vec<u32> = (0..6).collect();
        assert!(within_process(&values, &all, Center::MEDIAN).is_some());
        assert_eq!(
            within_process(&[], &[], Center::good_tenth(Better::Lower)),
            None
        );
    }

    #[test]
    fn percentiles_tell_the_bad_end_whatever_the_unit() {
        let v: Vec<f64> = (1..=101).map(f64::from).collect();
        let rounded = |better| {
            percentiles(&v, better).map(|p| [p.p50, p.p90, p.p99].map(|x| (x * 1e6).round() / 1e6))
        };
        assert_eq!(rounded(Better::Lower), Some([51.0, 91.0, 100.0]));
        assert_eq!(rounded(Better::Higher), Some([51.0, 11.0, 2.0]));
    }

    /// A standard normal deviate (Box and Muller).
    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
    }

    #[test]
    fn the_interval_of_the_median_covers_it_as_often_as_it_says() {
        let mut rng = fastrand::Rng::with_seed(1);
        for n in [3usize, 5, 6, 8, 12, 13, 25] {
            let trials = 4000;
            let hits = (0..trials)
                .filter(|_| {
                    // Skewed, with median 0: an exponential shifted by its median.
                    let v = sorted(
                        &(0..n)
                            .map(|_| -(1.0 - rng.f64()).ln() - std::f64::consts::LN_2)
                            .collect::<Vec<_>>(),
                    );
                    let (low, high) = median_interval(&v);
                    low <= 0.0 && 0.0 <= high
                })
                .count();
            let coverage = hits as f64 / trials as f64;
            let least = if n < 6 { 0.85 } else { 0.93 };
            assert!(coverage >= least && coverage <= 0.995, "n={n}: {coverage}");
        }
    }

    /// A run: `processes` values around 100 with a spread between processes, all shifted by what this run differs by.
    fn run(rng: &mut fastrand::Rng, processes: usize, spread: f64, between: f64) -> Estimate {
        let shift = 1.0 + between * normal(rng);
        let values: Vec<f64> = (0..processes)
            .map(|_| 100.0 * shift * (1.0 + spread * normal(rng)))
            .collect();
        across_processes(&values).unwrap()
    }

    #[test]
    fn the_interval_of_one_run_holds_the_next_runs_value() {
        let mut rng = fastrand::Rng::with_seed(2);
        for (processes, spread) in [(6, 0.002), (12, 0.002), (12, 0.03), (25, 0.05)] {
            let trials = 3000;
            let hits = (0..trials)
                .filter(|_| {
                    let (one, next) = (
                        run(&mut rng, processes, spread, BETWEEN_RUNS),
                        run(&mut rng, processes, spread, BETWEEN_RUNS),
                    );
                    one.low <= next.value && next.value <= one.high
                })
                .count();
            let coverage = hits as f64 / trials as f64;
            assert!(
                coverage >= 0.90,
                "{processes} processes, spread {spread}: {coverage}"
            );
        }
    }

    #[test]
    fn the_interval_of_a_quantile_holds_the_next_runs_quantile() {
        let mut rng = fastrand::Rng::with_seed(11);
        for (quantile, processes) in [
            (0.25, 8),
            (0.25, 16),
            (0.25, 63),
            (0.1, 5),
            (0.1, 8),
            (0.1, 16),
            (0.1, 63),
        ] {
            // A third of the processes have a neighbour that makes them up to half slower.
            let mut run = || {
                let slowed = |rng: &mut fastrand::Rng| {
                    if rng.f64() < 0.33 {
                        1.0 + 0.5 * rng.f64()
                    } else {
                        1.0
                    }
                };
                let values: Vec<f64> = (0..processes)
                    .map(|_| 100.0 * (1.0 + 0.01 * normal(&mut rng)) * slowed(&mut rng))
                    .collect();
                quantile_across(&values, quantile, 0.0).unwrap()
            };
            let held = (0..1000)
                .map(|_| (run(), run()))
                .filter(|(a, b)| (a.low..=a.high).contains(&b.value))
                .count();
            assert!(
                held >= 890,
                "{held} of 1000 with the {quantile} of {processes} processes"
            );
        }
    }

    #[test]
    fn two_centers_that_differ_have_the_medians_in_common() {
        let (quarter, tenth) = (
            Center::MEDIAN.across_good_quarter(Better::Lower),
            Center::MEDIAN.across_good_tenth_of_all(Better::Lower),
        );
        assert_eq!(quarter.common(quarter), quarter);
        assert_eq!(quarter.common(Center::MEDIAN), Center::MEDIAN);
        assert_eq!(quarter.common(tenth), Center::MEDIAN.of_all());
    }

    #[test]
    fn slow_processes_move_the_good_quarter_less_than_the_median() {
        let mut values = vec![100.0; 10];
        values.extend([140.0; 12]);
        assert_eq!(quantile_across(&values, 0.25, 0.0).unwrap().value, 100.0);
        assert_eq!(across_processes(&values).unwrap().value, 140.0);
        let rates: Vec<f64> = values.iter().map(|v| 1e4 / v).collect();
        let center = Center::MEDIAN.across_good_quarter(Better::Higher);
        assert_eq!(
            quantile_across(&rates, center.across, 0.0).unwrap().value,
            100.0
        );
    }

    #[test]
    fn one_sided_noise_hardly_moves_the_low_quantile() {
        let mut rng = fastrand::Rng::with_seed(3);
        // A clean machine, and one on which four batches in ten meet an interruption of up to half their length.
        let noisy: Vec<f64> = (0..200)
            .map(|_| {
                100.0
                    + if rng.f64() < 0.4 {
                        50.0 * rng.f64()
                    } else {
                        0.1 * rng.f64()
                    }
            })
            .collect();
        let low = within_process(&noisy, &[], Center::good_tenth(Better::Lower)).unwrap();
        let mean = noisy.iter().sum::<f64>() / 200.0;
        assert!((low - 100.0).abs() < 0.2, "{low}");
        assert!(mean > 105.0);
    }

    #[test]
    fn two_modes_across_processes_widen_the_interval_to_both() {
        // Half of the processes are given bad pages: the figure must not look certain.
        let e =
            across_processes(&[100.0, 100.1, 100.2, 120.0, 120.1, 120.2, 100.0, 120.0]).unwrap();
        assert!(e.low <= 100.0 && e.high >= 120.0, "{e:?}");
    }

    #[test]
    fn drift_within_a_process_does_not_narrow_the_interval() {
        let drifting: Vec<f64> = (0..12).map(|i| 100.0 + f64::from(i)).collect();
        let e = across_processes(&drifting).unwrap();
        assert!(e.high - e.low > 5.0, "{e:?}");
    }

    #[test]
    fn no_values_or_not_a_number_give_no_figure() {
        assert_eq!(across_processes(&[]), None);
        assert_eq!(across_processes(&[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn an_estimate_lies_in_its_interval(values in prop::collection::vec(-1e12f64..1e12, 1..40)) {
            let e = across_processes(&values).unwrap();
            prop_assert!(e.low <= e.value && e.value <= e.high);
        }

        #[test]
        fn an_interval_scales_with_its_values(
            values in prop::collection::vec(1.0f64..1e6, 1..20),
            factor in 0.001f64..1000.0
        ) {
            let one = across_processes(&values).unwrap();
            let scaled = across_processes(&values.iter().map(|v| v * factor).collect::<Vec<_>>()).unwrap();
            prop_assert!((scaled.value / (one.value * factor) - 1.0).abs() < 1e-9);
            prop_assert!(((scaled.high - scaled.low) / ((one.high - one.low) * factor) - 1.0).abs() < 1e-6);
            prop_assert!(scaled.low > 0.0);
        }
    }
}
