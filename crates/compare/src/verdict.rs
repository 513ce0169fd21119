//! Verdicts under a threshold, with the false discoveries over all rows controlled.
//!
//! Two questions are asked of a row, and both must be answered yes before it is called slower or faster. Does it
//! matter: does its whole interval lie beyond the threshold? Is it real: does it stand against no difference at all,
//! once the number of rows that were looked at is allowed for? The second is what keeps two runs of one system quiet,
//! however many rows they have.

use crate::ratio::Ratio;

pub use fingerpost_diagnose::probes::Verdict;

/// The share of false discoveries among the rows called slower or faster that is tolerated.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// The adjusted p-values of Benjamini and Hochberg (1995), in the order given.
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (from_largest, &i) in order.iter().enumerate() {
        let rank = (p.len() - from_largest) as f64;
        least = least.min(p[i] * p.len() as f64 / rank);
        adjusted[i] = least;
    }
    adjusted
}

/// Which of the ratios stand against no difference at all, once the number of rows that were looked at is allowed for.
pub fn real(ratios: &[Ratio]) -> Vec<bool> {
    let p: Vec<f64> = ratios.iter().map(Ratio::p_of_no_difference).collect();
    adjust(&p)
        .into_iter()
        .map(|q| q <= FALSE_DISCOVERIES)
        .collect()
}

/// A verdict per ratio. The threshold is relative: 0.03 calls 3 % more or less the same.
pub fn judge(ratios: &[Ratio], threshold: f64) -> Vec<Verdict> {
    ratios
        .iter()
        .zip(real(ratios))
        .map(|(ratio, real)| one(ratio, real, threshold))
        .collect()
}

fn one(ratio: &Ratio, real: bool, threshold: f64) -> Verdict {
    let (lower, upper) = (1.0 / (1.0 + threshold), 1.0 + threshold);
    if ratio.low >= lower && ratio.high <= upper {
        Verdict::Same
    } else if ratio.low > upper && real {
        Verdict::Slower
    } else if ratio.high < lower && real {
        Verdict::Faster
    } else {
        Verdict::Unresolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64, error: f64) -> Ratio {
        Ratio::from_log(value.ln(), error * error, 1e6)
    }

    #[test]
    fn the_adjusted_values_are_those_of_the_1995_paper() {
        // The fifteen p-values of the paper's example: at q = 0.05 it rejects four.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let q = adjust(&p);
        assert_eq!(q.iter().filter(|q| **q <= 0.05).count(), 4);
        assert!((q[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
        assert!(adjust(&[]).is_empty());
    }

    #[test]
    fn each_verdict_needs_its_whole_interval() {
        let rows = [
            ratio(1.10, 0.01),
            ratio(0.90, 0.01),
            ratio(1.005, 0.005),
            ratio(1.10, 0.05),
            ratio(1.02, 0.02),
            ratio(1.031, 0.0001),
        ];
        let expected = [
            Verdict::Slower,
            Verdict::Faster,
            Verdict::Same,
            Verdict::Unresolved,
            Verdict::Unresolved,
            Verdict::Slower,
        ];
        assert_eq!(judge(&rows, 0.03), expected);
    }

    #[test]
    fn one_lucky_row_among_a_thousand_is_no_discovery() {
        let mut rows = vec![ratio(1.0, 0.02); 999];
        // Alone this would stand; among a thousand rows a ratio as far from one as this comes by chance in every fourth
        // comparison.
        rows.push(ratio(1.03 * (2.17_f64 * 0.02).exp(), 0.02));
        assert_eq!(judge(&rows[999..], 0.03), [Verdict::Slower]);
        assert_eq!(judge(&rows, 0.03)[999], Verdict::Unresolved);
    }
}
