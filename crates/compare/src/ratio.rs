//! The ratio of two rows, with its interval.
//!
//! Everything is done on logarithms, where a ratio is a difference, noise is nearly symmetric, and "twice" and "half"
//! weigh the same. The levels of repetition are the process within a run and the run between runs:
//!
//! - within a run, the variance of the figure, a quantile of the processes, is the exact bootstrap variance (Maritz and
//!   Jarrett 1978: what resampling the processes infinitely often would give, in closed form), so that nothing is
//!   random and no seed is needed;
//! - to it comes what no run can see of itself, [`RUN_TO_RUN`], and on a virtual machine, for what its host decides,
//!   how far consecutive parts of the run are apart, or are known to be ([`crate::figure::HostMade`]);
//! - it is never taken as smaller than what the record itself states, which knows of a CPU that did not keep its pace.
//!   Our own intervals hold the figure of another run, errors of both included: half of that variance is one run's;
//! - few rounds (of a server under load, three at the quick profile) do not know their spread: it is moderated by that
//!   of the probe's other rows ([`crate::spread`]);
//! - several runs per side show their spread themselves. Two or three of them say little about it, so it is moderated
//!   by what the single runs let expect. Unless they contradict that, an interval is no wider than one run's.

mod pairs;
mod weights;

use fingerpost_measure::estimate::{quantile_sorted, sorted};
use serde::Serialize;

use crate::figure::Figure;
use crate::special::{t_two_sided, t_upper, z_two_sided};
use crate::spread::{self, Prior};

pub use pairs::{of_pairs, paired, pairs};
pub use weights::QuantileWeights;

/// Relative standard deviation between runs of one system that intervals from within a run cannot see: the one that
/// they are made with.
pub use fingerpost_measure::estimate::BETWEEN_RUNS as RUN_TO_RUN;

/// The same for a figure without any repetition (published tables, imported results): besides its rounding it is one
/// draw of unknown spread.
pub const RUN_TO_RUN_PUBLISHED: f64 = 0.02;

/// Degrees of freedom that are left of the expectation where runs contradict it. With none, two runs a side would have
/// one each, and an interval six times their spread; the variance that they show is among the largest that theirs can
/// be, since it was found to contradict.
const CONTRADICTED_RUNS: f64 = 2.0;

/// Below this many times what single runs let expect, the variance between runs of a family of probes is about that.
/// With twice the variance two runs are as precise as one is thought to be.
const AS_FAR: f64 = 2.0;

/// Coverage of every ratio's interval.
pub const CONFIDENCE: f64 = 0.95;

/// How many repetitions it takes before their spread is used.
const ENOUGH: usize = 3;

/// Up to so many repetitions their spread is moderated by that of others: rounds of a server. Processes of a probe are
/// more.
const FEW: usize = 7;

/// A row's value on one side, as a logarithm with its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// ln of the value.
    pub log: f64,
    /// Variance of `log`.
    pub variance: f64,
    /// Degrees of freedom of `variance`.
    pub df: f64,
    /// What of `variance` hits all rows of a run alike, and so does not become less with their number.
    pub common: f64,
    /// Whether several runs are further apart than they let expect.
    pub contradicted: bool,
}

/// What is known of a row beside its own figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The variance of one run's figure by its rounds, where those are few.
    pub rounds: Option<Prior>,
    /// The variance between runs, in units of what single runs let expect.
    pub runs: Prior,
}

impl Known {
    /// Nothing but what the runs themselves let expect.
    pub const NOTHING: Known = Known {
        rounds: None,
        runs: Prior::AS_EXPECTED,
    };

    /// What the rows of one probe, on both sides, say of each other's rounds.
    pub fn of_rounds<'a>(
        rows: impl Iterator<Item = &'a [Figure]>,
        weights: &mut QuantileWeights,
    ) -> Known {
        let few = |f: &&Figure| f.processes.len() <= FEW;
        let rounds: Vec<(f64, f64)> = rows
            .flatten()
            .filter(few)
            .filter_map(|f| own_variance(f, weights))
            .map(|own| (own.variance, own.df))
            .collect();
        Known {
            rounds: spread::of_class(&rounds),
            ..Known::NOTHING
        }
    }

    /// How far the runs of a row are apart, in units of what each lets expect, with its degrees of freedom; nothing for
    /// one run.
    pub fn seen(&self, figures: &[Figure], weights: &mut QuantileWeights) -> Option<(f64, f64)> {
        if figures.len() < 2 {
            return None;
        }
        let (expected, seen) = between_runs(&singles(figures, weights, self)?)?;
        Some((seen / expected, figures.len() as f64 - 1.0))
    }
}

/// How many times slower the new side is: above 1 is worse, whatever the unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of the two figures.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// ln(value)'s standard error, for verdicts.
    #[serde(skip)]
    pub error: f64,
    /// The standard error's degrees of freedom.
    #[serde(skip)]
    pub df: f64,
    /// What of the squared error all rows of the two sides have in common.
    #[serde(skip)]
    pub common: f64,
}

impl Ratio {
    /// A ratio from a difference of logarithms, its variance and degrees of freedom.
    pub fn from_log(log: f64, variance: f64, df: f64) -> Ratio {
        let error = variance.max(0.0).sqrt();
        let half = t_two_sided(CONFIDENCE, df) * error;
        Ratio {
            value: log.exp(),
            low: (log - half).exp(),
            high: (log + half).exp(),
            error,
            df,
            common: 0.0,
        }
    }

    /// A ratio whose squared error is one that was estimated, with its degrees of freedom, and one that all rows have
    /// in common and that is known beforehand: it was not estimated from these values, and so has no part in the
    /// degrees of freedom (Satterthwaite).
    pub fn with_common(log: f64, own: f64, df: f64, common: f64) -> Ratio {
        let df = if own > 0.0 {
            ((own + common) / own).powi(2) * df
        } else {
            f64::INFINITY
        };
        Ratio {
            common,
            ..Ratio::from_log(log, own + common, df.min(KNOWN))
        }
    }

    /// The probability of a ratio at least this far from one, either way, where nothing differs.
    pub fn p_of_no_difference(&self) -> f64 {
        let distance = self.value.ln().abs();
        if self.error == 0.0 {
            return if distance > 0.0 { 0.0 } else { 1.0 };
        }
        (2.0 * t_upper(distance / self.error, self.df)).min(1.0)
    }
}

/// A figure's log, or nothing when it is not positive: a ratio of it would mean nothing.
pub fn single(figure: &Figure, weights: &mut QuantileWeights, known: &Known) -> Option<Level> {
    if !(figure.value > 0.0 && figure.value.is_finite()) {
        return None;
    }
    let between = RUN_TO_RUN * RUN_TO_RUN;
    let Some(Own {
        variance: own,
        df: own_df,
        within,
    }) = own_variance(figure, weights)
    else {
        let variance = stated_variance(figure) + RUN_TO_RUN_PUBLISHED * RUN_TO_RUN_PUBLISHED;
        return Some(Level {
            log: figure.value.ln(),
            variance,
            df: KNOWN,
            common: between,
            contradicted: false,
        });
    };
    let few = figure.processes.len() <= FEW;
    // What a record states beyond what its processes show is a CPU that did not keep its pace, and every row of the run
    // had that one.
    let pace = if few { 0.0 } else { own - within };
    let (own, own_df) = known
        .rounds
        .filter(|_| few)
        .map_or((own, own_df), |prior| prior.moderate(own, own_df));
    // What the host does may be for the whole of one run and for none of the next: then runs differ as the parts of one
    // do.
    let drift = figure.host_made.map_or(Drift::NONE, |host| {
        let (logs, quantile) = placed(figure);
        let shown = if host.in_parts {
            between_parts(&logs, quantile)
        } else {
            Drift::NOT_SHOWN
        };
        shown.at_least(host.least)
    });
    let variance = own + between + drift.variance;
    // Satterthwaite: only what was estimated from few processes, or few parts, is itself uncertain.
    let uncertain = |part: f64, df: f64| (part / variance).powi(2) / df;
    let df = 1.0 / (uncertain(own, own_df) + uncertain(drift.variance, drift.df)).max(1e-6);
    Some(Level {
        log: figure.value.ln(),
        variance,
        df: df.max(1.0),
        common: between + drift.variance + pace,
        contradicted: false,
    })
}

/// The logarithms of a figure's processes in the order of their measuring, and which quantile of them it is.
fn placed(figure: &Figure) -> (Vec<f64>, f64) {
    let logs: Vec<f64> = figure
        .processes
        .iter()
        .filter(|v| **v > 0.0)
        .map(|v| v.ln())
        .collect();
    let quantile = place(&sorted(&logs), figure.value.ln());
    (logs, quantile)
}

/// The variance of a figure's logarithm that its run knows of.
struct Own {
    /// By its processes, and never less than the record states.
    variance: f64,
    /// Degrees of freedom.
    df: f64,
    /// By its processes alone.
    within: f64,
}

/// What a figure's own run says of its variance; nothing with too few processes.
fn own_variance(figure: &Figure, weights: &mut QuantileWeights) -> Option<Own> {
    if figure.processes.iter().filter(|v| **v > 0.0).count() < ENOUGH
        || figure.value.is_nan()
        || figure.value <= 0.0
    {
        return None;
    }
    let (logs, quantile) = placed(figure);
    let within = weights.variance(&sorted(&logs), quantile);
    let variance = within.max(stated_variance(figure) / 2.0 - RUN_TO_RUN * RUN_TO_RUN);
    Some(Own {
        variance,
        df: (logs.len() - 1) as f64,
        within,
    })
}

/// Consecutive parts of a run that are set against each other. More would say more about their spread and less about
/// each.
const PARTS: usize = 4;

/// Degrees of freedom of what is not estimated from the run.
const KNOWN: f64 = 1e6;

/// How far the parts of a run are apart.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drift {
    variance: f64,
    df: f64,
}

impl Drift {
    const NONE: Drift = Drift {
        variance: 0.0,
        df: KNOWN,
    };
    /// Of a run that cannot tell: nothing is seen, by nothing.
    const NOT_SHOWN: Drift = Drift {
        variance: 0.0,
        df: 0.0,
    };

    /// Never smaller than what is known of other runs, which adds degrees of freedom the more the two agree.
    fn at_least(self, deviation: f64) -> Drift {
        let least = deviation * deviation;
        let variance = self.variance.max(least);
        let agreement = if variance > 0.0 {
            least / variance
        } else {
            0.0
        };
        Drift {
            variance,
            df: self.df + spread::PRIOR_RUNS * agreement * agreement,
        }
    }
}

/// The variance of the quantile over consecutive parts of these values (batch means, where a batch is as long as the
/// run can show). It is not divided by the number of parts, because another run is one that the host may treat like one
/// part. Of values that are too few for parts it is their own.
fn between_parts(in_order: &[f64], quantile: f64) -> Drift {
    let n = in_order.len();
    let figures: Vec<f64> = if n < PARTS * ENOUGH {
        in_order.to_vec()
    } else {
        (0..PARTS)
            .map(|i| {
                quantile_sorted(
                    &sorted(&in_order[i * n / PARTS..(i + 1) * n / PARTS]),
                    quantile,
                )
            })
            .collect()
    };
    let df = (figures.len() - 1) as f64;
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    Drift {
        variance: figures.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / df,
        df,
    }
}

/// Which quantile of these sorted values a figure is: ours are the median, or the quarter or the tenth from the good
/// side, and others' a mean.
fn place(sorted: &[f64], value: f64) -> f64 {
    let last = (sorted.len() - 1) as f64;
    // Equal values are all in one place.
    let (below, upto) = (
        sorted.partition_point(|x| *x < value) as f64,
        sorted.partition_point(|x| *x <= value) as f64,
    );
    let rank = match (below, upto) {
        (below, upto) if below < upto => f64::midpoint(below, upto - 1.0),
        (below, _) => below - 0.5,
    };
    (rank / last).clamp(0.1, 0.9)
}

fn stated_variance(figure: &Figure) -> f64 {
    let high = figure.high.max(figure.value);
    // An interval that reaches zero has no log; the upper half tells the width.
    let low = if figure.low > 0.0 {
        figure.low.min(figure.value)
    } else {
        figure.value * figure.value / high
    };
    let half = (high / low).ln() / 2.0;
    (half / z_two_sided(figure.confidence)).powi(2)
}

fn singles(figures: &[Figure], weights: &mut QuantileWeights, known: &Known) -> Option<Vec<Level>> {
    figures.iter().map(|f| single(f, weights, known)).collect()
}

/// The variance between runs that the single ones let expect, and that which they show; nothing for fewer than two.
fn between_runs(singles: &[Level]) -> Option<(f64, f64)> {
    if singles.len() < 2 {
        return None;
    }
    let runs = singles.len() as f64;
    let log = singles.iter().map(|l| l.log).sum::<f64>() / runs;
    let expected = singles.iter().map(|l| l.variance).sum::<f64>() / runs;
    let seen = singles.iter().map(|l| (l.log - log).powi(2)).sum::<f64>() / (runs - 1.0);
    Some((expected, seen))
}

/// A row's level on one side, from one run or several, by its own figures alone.
pub fn level(figures: &[Figure], weights: &mut QuantileWeights) -> Option<Level> {
    level_with(figures, weights, &Known::NOTHING)
}

/// A row's level on one side, from one run or several.
pub fn level_with(
    figures: &[Figure],
    weights: &mut QuantileWeights,
    known: &Known,
) -> Option<Level> {
    let singles = singles(figures, weights, known)?;
    let Some((expected, seen)) = between_runs(&singles) else {
        return singles.first().copied();
    };
    let runs = singles.len() as f64;
    let log = singles.iter().map(|l| l.log).sum::<f64>() / runs;
    let expected_df = runs * runs * expected * expected
        / singles
            .iter()
            .map(|l| l.variance * l.variance / l.df)
            .sum::<f64>();
    let prior = Prior {
        df: known.runs.df.min(expected_df),
        ..known.runs
    };
    let (moderated, df) = prior.moderate(seen / expected, runs - 1.0);
    let common = singles.iter().map(|l| l.common).sum::<f64>() / runs;
    let of = |spread: f64, runs: f64, df: f64| Level {
        log,
        variance: expected * spread / runs,
        df,
        common: common / runs + expected * (spread - 1.0).max(0.0) / runs,
        contradicted: false,
    };
    // Less than single runs let expect only where their class does, and never less than what no run sees.
    let least = prior.variance.min(1.0).max(common / expected);
    let several = of(moderated.max(least), runs, df);
    // Runs that contradict each other speak for themselves, and what was expected of them hardly counts.
    if Prior::AS_EXPECTED.contradicts(seen / expected / prior.variance.max(1.0), runs - 1.0) {
        return Some(Level {
            contradicted: true,
            ..of(seen / expected, runs, runs - 1.0 + CONTRADICTED_RUNS)
        });
    }
    // Else what one run would tell, several do as well, as long as runs of its kind are about as far apart as one of
    // them lets expect.
    let one = of(
        if prior.variance < AS_FAR {
            1.0
        } else {
            prior.variance
        },
        1.0,
        expected_df,
    );
    let width = |l: &Level| t_two_sided(CONFIDENCE, l.df) * l.variance.sqrt();
    Some(if width(&several) <= width(&one) {
        several
    } else {
        one
    })
}

/// The ratio of two levels; `higher_is_better` turns it round, so that above 1 is always worse.
pub fn between(base: Level, new: Level, higher_is_better: bool) -> Ratio {
    let log = if higher_is_better {
        base.log - new.log
    } else {
        new.log - base.log
    };
    let variance = base.variance + new.variance;
    // Degrees of freedom by Welch.
    let parts = base.variance * base.variance / base.df + new.variance * new.variance / new.df;
    let df = if parts > 0.0 {
        (variance.powi(2) / parts).clamp(1.0, 1e6)
    } else {
        1e6
    };
    Ratio {
        common: base.common + new.common,
        ..Ratio::from_log(log, variance, df)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figure::HostMade;
    use crate::spread::PRIOR_RUNS;

    fn published(value: f64, half: f64) -> Figure {
        Figure {
            value,
            low: value - half,
            high: value + half,
            confidence: 0.95,
            processes: Vec::new(),
            host_made: None,
        }
    }

    fn ratio(base: &[Figure], new: &[Figure], higher: bool) -> Ratio {
        let mut w = QuantileWeights::default();
        between(
            level(base, &mut w).unwrap(),
            level(new, &mut w).unwrap(),
            higher,
        )
    }

    #[test]
    fn the_ratio_says_how_many_times_slower_whatever_the_unit() {
        let slow = ratio(&[published(0.14, 0.005)], &[published(1.13, 0.005)], false);
        assert!(
            (slow.value - 8.0714).abs() < 1e-3 && slow.low < slow.value && slow.value < slow.high
        );
        let fewer = ratio(&[published(443.0, 0.5)], &[published(62.0, 0.5)], true);
        assert!((fewer.value - 443.0 / 62.0).abs() < 1e-9);
    }

    #[test]
    fn a_figure_has_its_own_place_among_its_values() {
        let values: Vec<f64> = (0..9).map(f64::from).collect();
        assert_eq!(
            [2.0, 4.0, 6.0].map(|v| place(&values, v)),
            [0.25, 0.5, 0.75]
        );
        assert_eq!([-1.0, 9.0].map(|v| place(&values, v)), [0.1, 0.9]);
        assert_eq!(place(&[5.0; 7], 5.0), 0.5);
        assert!((place(&values, 2.2) - 2.5 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn figures_that_have_no_ratio_give_none() {
        let mut w = QuantileWeights::default();
        assert!(level(&[published(0.0, 0.0)], &mut w).is_none());
        assert!(level(&[published(-1.0, 0.5)], &mut w).is_none());
        assert!(level(&[], &mut w).is_none());
        assert!(
            level(&[published(1.0, 2.0)], &mut w)
                .unwrap()
                .variance
                .is_finite()
        );
    }

    #[test]
    fn an_interval_that_holds_another_run_is_not_counted_twice() {
        // Both sides state ±2 % for another run: that is ±2 % for their ratio. Processes that agree better do not make
        // it narrower.
        let figure = |value: f64| Figure {
            value,
            low: value / 1.02,
            high: value * 1.02,
            confidence: 0.95,
            processes: vec![value; 16],
            host_made: None,
        };
        let r = ratio(&[figure(100.0)], &[figure(110.0)], false);
        assert!((r.high / r.value / 1.02 - 1.0).abs() < 1e-3, "{r:?}");
    }

    #[test]
    fn runs_of_what_the_host_decides_differ_as_the_parts_of_one_do() {
        // Sixty values, either rising all the time or the same ones in an order that any part of the run has its share
        // of.
        let figure = |value: f64, spread: f64, rising: bool, host_made: Option<f64>| {
            let place = |i: u32| f64::from(if rising { i } else { i * 7 % 60 });
            let processes = (0..60)
                .map(|i| value * (1.0 + spread * (place(i) - 29.5) / 20.0))
                .collect();
            let host_made = host_made.map(|least| HostMade {
                least,
                in_parts: true,
            });
            Figure {
                value,
                low: value / 1.01,
                high: value * 1.01,
                confidence: 0.95,
                processes,
                host_made,
            }
        };
        let between = |spread: f64, rising: bool, host_made: Option<f64>, runs: usize| {
            let side = |value: f64| vec![figure(value, spread, rising, host_made); runs];
            ratio(&side(100.0), &side(115.0), false)
        };
        assert!(
            between(0.08, true, None, 1).low > 1.05,
            "sixty independent processes tell"
        );
        assert!(
            between(0.08, true, Some(0.0), 1).low < 1.0,
            "a run that drifts does not"
        );
        assert!(between(0.08, true, Some(0.0), 10).low > 1.05, "several do");
        assert!(
            between(0.08, false, Some(0.0), 1).low > 1.05,
            "nor is there a doubt where every part of the run says the same"
        );
        assert!(
            between(0.005, true, Some(0.0), 1).low > 1.05,
            "or the drift is small"
        );
        assert!(
            between(0.005, true, Some(0.07), 1).low < 1.0,
            "except where runs are known to differ more than any of them shows"
        );
    }

    #[test]
    fn parts_of_a_run_have_the_variance_of_their_medians() {
        let steps: Vec<f64> = (0..12).map(|i| f64::from(i / 3)).collect();
        assert_eq!(
            between_parts(&steps, 0.5),
            Drift {
                variance: 5.0 / 3.0,
                df: 3.0
            }
        );
        // Too few for parts: their own.
        assert_eq!(
            between_parts(&[1.0, 2.0, 3.0], 0.5),
            Drift {
                variance: 1.0,
                df: 2.0
            }
        );
        assert_eq!(between_parts(&steps[..11], 0.5).df, 10.0);
    }

    #[test]
    fn what_is_known_of_other_runs_makes_a_drift_more_certain_the_more_they_agree() {
        let seen = |variance: f64| Drift { variance, df: 3.0 }.at_least(0.1);
        assert_eq!(
            seen(0.001),
            Drift {
                variance: 0.1 * 0.1,
                df: 3.0 + PRIOR_RUNS
            }
        );
        let (alike, apart) = (seen(0.0101), seen(1.0));
        assert!(alike.df > 10.0 && apart.df < 3.01, "{alike:?} {apart:?}");
        assert_eq!(
            Drift {
                variance: 0.0,
                df: 3.0
            }
            .at_least(0.0),
            Drift {
                variance: 0.0,
                df: 3.0
            }
        );
        assert_eq!(
            Drift::NOT_SHOWN.at_least(0.1),
            Drift {
                variance: 0.1 * 0.1,
                df: PRIOR_RUNS
            }
        );
    }

    #[test]
    fn more_runs_narrow_the_interval_and_their_disagreement_widens_it() {
        let one = ratio(&[published(100.0, 1.0)], &[published(110.0, 1.0)], false);
        let agreeing = ratio(
            &[
                published(100.0, 1.0),
                published(100.2, 1.0),
                published(99.8, 1.0),
            ],
            &vec![published(110.0, 1.0); 3],
            false,
        );
        let apart = ratio(
            &[
                published(70.0, 1.0),
                published(100.0, 1.0),
                published(140.0, 1.0),
            ],
            &vec![published(110.0, 1.0); 3],
            false,
        );
        assert!(agreeing.high - agreeing.low < one.high - one.low);
        assert!(apart.high - apart.low > one.high - one.low);
    }

    pub(crate) fn normal(rng: &mut fastrand::Rng) -> f64 {
        (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
    }
}
