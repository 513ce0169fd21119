//! How much runs, and the rounds of a run, are known to vary: what few of them show is pooled with what is expected.
//!
//! Two or three values say little about their own spread: their variance has one or two degrees of freedom, and an
//! interval made from it is six or two times as wide as it need be, or far too narrow. So a variance is moderated by
//! what is known of its class, as in Smyth, “Linear Models and Empirical Bayes Methods for Assessing Differential
//! Expression in Microarray Experiments”, Statistical Applications in Genetics and Molecular Biology 3 (2004), article
//! 3: the class's variance s0² counts for d0 degrees of freedom,
//!
//! s̃² = (d0·s0² + d·s²) / (d0 + d), with d0 + d degrees of freedom,
//!
//! where s0² and d0 are fitted to all the class's variances by the moments of their logarithms (section 6.2 there).

use fingerpost_measure::estimate::median;

use crate::special::{digamma, f_upper, trigamma, trigamma_inverse};

/// Degrees of freedom that what is known beforehand counts for, and at most what a class's rows add. Rows of one run
/// share its minutes, so that a hundred of them that agree are no hundred independent witnesses.
pub const PRIOR_RUNS: f64 = 8.0;

/// Variances that a class must have before anything is made of them.
const CLASS: usize = 4;

/// A chance at which runs are taken to contradict what is expected of them. Below it the expectation is given up, not
/// before: one comparison has a hundred rows.
const CONTRADICTED: f64 = 0.001;

/// What is known of a variance beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// The variance, s0².
    pub variance: f64,
    /// How many degrees of freedom it counts for, d0.
    pub df: f64,
}

impl Prior {
    /// Of runs that differ as the single ones let expect, in units of that expectation.
    pub const AS_EXPECTED: Prior = Prior {
        variance: 1.0,
        df: PRIOR_RUNS,
    };

    /// A variance with these degrees of freedom, moderated; and the degrees of freedom that it then has.
    pub fn moderate(self, variance: f64, df: f64) -> (f64, f64) {
        (
            (self.df * self.variance + df * variance) / (self.df + df),
            self.df + df,
        )
    }

    /// Whether a variance is too large to be of this class, at a chance of one in a thousand.
    pub fn contradicts(self, variance: f64, df: f64) -> bool {
        self.variance > 0.0 && f_upper(variance / self.variance, df, self.df) < CONTRADICTED
    }
}

/// Smyth's estimate of s0² and d0 from variances, each with its degrees of freedom; d0 is infinite where the variances
/// differ by no more than they would by chance. Nothing for fewer than two, or where all are zero.
pub fn fit(variances: &[(f64, f64)]) -> Option<Prior> {
    let least = 1e-5 * median(&variances.iter().map(|v| v.0).collect::<Vec<_>>());
    if variances.len() < 2 || !(least > 0.0 && least.is_finite()) {
        return None;
    }
    let n = variances.len() as f64;
    // ln s² is distributed about ln s0² as Fisher's z; a variance that happens to be zero has no logarithm.
    let e: Vec<f64> = variances
        .iter()
        .map(|(v, d)| v.max(least).ln() - digamma(d / 2.0) + (d / 2.0).ln())
        .collect();
    let mean = e.iter().sum::<f64>() / n;
    let chance = variances
        .iter()
        .map(|(_, d)| trigamma(d / 2.0))
        .sum::<f64>()
        / n;
    let beyond = e.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) - chance;
    if beyond <= 0.0 {
        return Some(Prior {
            variance: mean.exp(),
            df: f64::INFINITY,
        });
    }
    let half = trigamma_inverse(beyond);
    Some(Prior {
        variance: (mean + digamma(half) - half.ln()).exp(),
        df: 2.0 * half,
    })
}

/// What a class's own variances say of the next one: nothing while they are too few.
pub fn of_class(variances: &[(f64, f64)]) -> Option<Prior> {
    let fitted = (variances.len() >= CLASS)
        .then(|| fit(variances))
        .flatten()?;
    Some(Prior {
        df: fitted.df.min(PRIOR_RUNS),
        ..fitted
    })
}

/// What is to be expected of the spread between runs, in units of what single runs let expect: that, moderated by what
/// the runs of the class show. They count by the moments of their logarithms, so that one row whose runs contradict
/// each other speaks for itself alone.
///
/// Less than single runs let expect it is only where those know little (`few` rounds, of which one that met a neighbour
/// says nothing of the middle one), and then it is as sure as the rows of the class are alike.
pub fn between_runs(seen: &[(f64, f64)], few: bool) -> Prior {
    let df: f64 = seen.iter().map(|s| s.1).sum();
    let Some(fitted) = (if seen.len() < CLASS { None } else { fit(seen) }) else {
        return Prior::AS_EXPECTED;
    };
    let (moderated, _) = Prior::AS_EXPECTED.moderate(fitted.variance, df);
    match moderated < 1.0 {
        true if few => Prior {
            variance: moderated,
            df: fitted.df.min(PRIOR_RUNS),
        },
        _ => Prior {
            variance: moderated.max(1.0),
            ..Prior::AS_EXPECTED
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variances drawn from the model: s0²·d0/χ²(d0) for the row, times χ²(d)/d for what is seen of it.
    fn drawn(rng: &mut fastrand::Rng, s0: f64, d0: u32, d: u32) -> (f64, f64) {
        let mut chi = |n: u32| {
            (0..n)
                .map(|_| crate::ratio::tests::normal(rng).powi(2))
                .sum::<f64>()
        };
        let of_row = s0 * f64::from(d0) / chi(d0);
        (of_row * chi(d) / f64::from(d), f64::from(d))
    }

    #[test]
    fn a_moderated_variance_is_the_papers() {
        let prior = Prior {
            variance: 2.0,
            df: 4.0,
        };
        assert_eq!(
            prior.moderate(5.0, 2.0),
            ((4.0 * 2.0 + 2.0 * 5.0) / 6.0, 6.0)
        );
        // Many degrees of freedom of its own overrule what is expected.
        assert!((prior.moderate(5.0, 4e6).0 - 5.0).abs() < 1e-4);
    }

    #[test]
    fn equal_variances_have_the_known_fit() {
        // All e are ln s² − ψ(d/2) + ln(d/2), their spread is none: d0 is infinite, s0² = s²·(d/2)/exp ψ(d/2); for d =
        // 2 that is s²·exp γ.
        let prior = fit(&[(3.0, 2.0); 5]).unwrap();
        assert!(
            prior.df.is_infinite()
                && (prior.variance - 3.0 * 0.577_215_664_9_f64.exp()).abs() < 1e-6,
            "{prior:?}"
        );
        assert_eq!((fit(&[(1.0, 2.0)]), fit(&[(0.0, 2.0); 4])), (None, None));
    }

    #[test]
    fn the_fit_finds_what_the_variances_were_drawn_with() {
        let mut rng = fastrand::Rng::with_seed(11);
        for (s0, d0, d) in [(1.0, 8, 2), (0.04, 4, 3), (1e-6, 20, 1)] {
            let many: Vec<(f64, f64)> = (0..4000).map(|_| drawn(&mut rng, s0, d0, d)).collect();
            let prior = fit(&many).unwrap();
            assert!(
                (prior.variance / s0 - 1.0).abs() < 0.15
                    && (prior.df / f64::from(d0) - 1.0).abs() < 0.4,
                "{prior:?} for {s0} {d0} {d}"
            );
        }
    }

    #[test]
    fn a_moderated_t_covers_what_it_says() {
        // Two values a row, the mean of which is sought: by the row's own variance t has one degree of freedom,
        // moderated it has nine.
        let mut rng = fastrand::Rng::with_seed(12);
        let (mut covered, rows) = (0, 4000);
        for _ in 0..rows {
            let variance = 8.0
                / (0..8)
                    .map(|_| crate::ratio::tests::normal(&mut rng).powi(2))
                    .sum::<f64>();
            let values = [0; 2].map(|_| crate::ratio::tests::normal(&mut rng) * variance.sqrt());
            let (seen, df) = Prior {
                variance: 1.0,
                df: 8.0,
            }
            .moderate((values[0] - values[1]).powi(2) / 2.0, 1.0);
            let half = crate::special::t_two_sided(0.95, df) * (seen / 2.0).sqrt();
            covered += usize::from(((values[0] + values[1]) / 2.0).abs() <= half);
        }
        let share = covered as f64 / f64::from(rows);
        assert!((share - 0.95).abs() < 0.011, "{share}");
    }

    #[test]
    fn runs_that_all_differ_more_than_expected_change_the_expectation_and_one_that_does_hardly() {
        let one = between_runs(
            &[
                (1.2, 1.0),
                (0.1, 1.0),
                (0.7, 1.0),
                (0.4, 1.0),
                (0.2, 1.0),
                (0.5, 1.0),
                (400.0, 1.0),
            ],
            false,
        );
        assert!(one.variance < 2.0, "{one:?}");
        assert_eq!(
            between_runs(
                &[(0.3, 1.0), (0.1, 1.0), (0.7, 1.0), (0.4, 1.0), (0.2, 1.0)],
                false
            ),
            Prior::AS_EXPECTED
        );
        // Rows whose few rounds promised less than their runs keep.
        let better = between_runs(
            &[
                (0.1, 1.0),
                (0.03, 1.0),
                (0.06, 1.0),
                (0.01, 1.0),
                (0.05, 1.0),
                (0.04, 1.0),
                (0.02, 1.0),
                (0.1, 1.0),
            ],
            true,
        );
        assert!(
            better.variance < 0.7 && better.df <= PRIOR_RUNS,
            "{better:?}"
        );
        let apart = between_runs(
            &[
                (30.0, 1.0),
                (25.0, 1.0),
                (40.0, 1.0),
                (10.0, 1.0),
                (50.0, 1.0),
                (44.0, 1.0),
                (20.0, 1.0),
                (33.0, 1.0),
            ],
            false,
        );
        assert!(apart.variance > 10.0 && apart.df == PRIOR_RUNS, "{apart:?}");
        assert_eq!(between_runs(&[], true), Prior::AS_EXPECTED);
        assert!(
            Prior::AS_EXPECTED.contradicts(30.0, 1.0) && !Prior::AS_EXPECTED.contradicts(20.0, 1.0)
        );
    }
}
