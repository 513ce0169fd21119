//! The ratio of values that were measured in pairs.

use fingerpost_measure::estimate::sorted;

use super::{ENOUGH, QuantileWeights, Ratio};

/// ln of how many times slower the new side is in each pair of positive values.
pub fn pairs(base: &[f64], new: &[f64], higher_is_better: bool) -> Vec<f64> {
    let both = base.iter().zip(new).filter(|(b, n)| **b > 0.0 && **n > 0.0);
    both.map(|(b, n)| {
        if higher_is_better {
            (b / n).ln()
        } else {
            (n / b).ln()
        }
    })
    .collect()
}

/// The ratio of values that were measured in pairs, as the two settings of one interleaved run are: drift hits both of
/// a pair and cancels, and there is no other run to vary to. Nothing with fewer than three pairs of positive values.
pub fn paired(base: &[f64], new: &[f64], higher_is_better: bool) -> Option<Ratio> {
    of_pairs(&pairs(base, new, higher_is_better))
}

/// The ratio of pairs as [`pairs`] lists them: their median. Nothing with fewer than three.
pub fn of_pairs(pairs: &[f64]) -> Option<Ratio> {
    if pairs.len() < ENOUGH {
        return None;
    }
    let logs = sorted(pairs);
    let variance = QuantileWeights::default().variance(&logs, 0.5);
    let middle = (logs[(logs.len() - 1) / 2] + logs[logs.len() / 2]) / 2.0;
    Some(Ratio::from_log(middle, variance, (logs.len() - 1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_cancel_the_drift_that_both_share() {
        let drift: Vec<f64> = (0..12)
            .map(|i| 100.0 * (1.0 + 0.1 * f64::from(i)))
            .collect();
        let slower: Vec<f64> = drift
            .iter()
            .enumerate()
            .map(|(i, v)| v * (1.01 + 0.0002 * (i % 3) as f64))
            .collect();
        let r = paired(&drift, &slower, false).unwrap();
        assert!(r.low > 1.009 && r.high < 1.012, "{r:?}");
        assert!(paired(&[1.0, 2.0], &[1.0, 2.0], false).is_none());
    }
}
