//! What a quantile of some values weighs each of them by, and how much it varies for that.

use std::collections::HashMap;

use crate::special::beta_inc;

/// Harrell–Davis weights of the order statistics, kept per number of values and quantile in hundredths.
#[derive(Debug, Default)]
pub struct QuantileWeights(HashMap<(usize, u8), Vec<f64>>);

impl QuantileWeights {
    fn of(&mut self, n: usize, hundredths: u8) -> &[f64] {
        self.0.entry((n, hundredths)).or_insert_with(|| {
            let quantile = f64::from(hundredths) / 100.0;
            let (a, b) = (
                (n as f64 + 1.0) * quantile,
                (n as f64 + 1.0) * (1.0 - quantile),
            );
            let edge: Vec<f64> = (0..=n)
                .map(|i| beta_inc(a, b, i as f64 / n as f64))
                .collect();
            edge.windows(2).map(|w| w[1] - w[0]).collect()
        })
    }

    /// The bootstrap variance of a quantile of these values (Maritz and Jarrett). They must be sorted.
    pub(super) fn variance(&mut self, sorted: &[f64], quantile: f64) -> f64 {
        let weights = self.of(sorted.len(), (quantile * 100.0).round() as u8);
        let mean: f64 = weights.iter().zip(sorted).map(|(w, x)| w * x).sum();
        weights
            .iter()
            .zip(sorted)
            .map(|(w, x)| w * (x - mean) * (x - mean))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;

    #[test]
    fn the_bootstrap_variance_of_a_median_has_its_textbook_value() {
        // For n = 1 the median is the value; for equal values it does not vary; for a large normal sample it is π/2n ·
        // σ².
        let mut w = QuantileWeights::default();
        assert_eq!(w.variance(&[3.0], 0.5), 0.0);
        assert!(w.variance(&[2.0; 7], 0.5).abs() < 1e-15);
        let mut rng = fastrand::Rng::with_seed(7);
        let mut mean = 0.0;
        for _ in 0..200 {
            let mut v: Vec<f64> = (0..101).map(|_| normal(&mut rng)).collect();
            v.sort_by(f64::total_cmp);
            mean += w.variance(&v, 0.5) / 200.0;
        }
        let textbook = std::f64::consts::PI / 2.0 / 101.0;
        assert!(
            (mean / textbook - 1.0).abs() < 0.15,
            "{mean} against {textbook}"
        );
    }
}
