//! Rows that move together, taken together: eight rows that are each 7 % slower, none of them beyond doubt, are no
//! eight chances.
//!
//! The rows of one part of the system are pooled by a random-effects model on logarithms: the variance between rows by
//! DerSimonian and Laird (“Meta-Analysis in Clinical Trials”, Controlled Clinical Trials 7, 1986), the interval by
//! Hartung and Knapp (Statistics in Medicine 20, 2001) with Student's t, never narrower than the rows' own errors allow
//! (Röver, Knapp and Friede, BMC Medical Research Methodology 15, 2015). What hits all rows of a run alike (another
//! clock rate, another neighbour) does not become less with their number: it is left out of the rows' own errors and
//! added to the pooled one whole ([`crate::Ratio`]'s `common`).
//!
//! Rows of a workload that were compared pair by pair are taken together pair by pair: what belongs to a turn (its
//! start of the server, what the host did meanwhile) is in all its rows, so the mean of the rows within each turn is
//! one value, and Student's t is of those values.
//!
//! Only parts are pooled of which no row is called slower or faster by itself, and the false discoveries over the parts
//! are controlled as those over the rows are.

use std::collections::BTreeMap;

use fingerpost_diagnose::probes::groups::Group;
use serde::Serialize;

use crate::ratio::Ratio;
use crate::row::Row;
use crate::verdict::{self, Verdict};

/// Rows that a part must have: two that agree do so half of the time.
const LEAST: usize = 3;

/// A variance that nothing is below: figures have six digits.
const TINY: f64 = 1e-12;

/// The rows of one part of the system, taken together.
#[derive(Clone, Debug, Serialize)]
pub struct Pooled {
    /// What they have in common, in words.
    pub of: String,
    /// How many rows.
    pub rows: usize,
    /// How many times slower the new side is in them.
    pub ratio: Ratio,
    /// What that says: `slower` or `faster`.
    pub verdict: Verdict,
    /// Their places among the rows.
    #[serde(skip)]
    pub places: Vec<usize>,
}

/// What belongs together: a part of the system, or the rows of one measurement of a workload.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Together<'a>(Group, &'a str);

/// The parts that are slower or faster as a whole, of the rows in these places: those that can be judged.
pub fn pooled(rows: &[Row], judged: &[usize], threshold: f64) -> Vec<Pooled> {
    let mut parts: BTreeMap<Together, Vec<usize>> = BTreeMap::new();
    for &place in judged.iter().filter(|i| !is_made_of_others(&rows[**i])) {
        let probe = rows[place].probe.as_str();
        let of = Group::of(probe, rows[place].descriptor.exercises);
        parts
            .entry(Together(of, if of == Group::Workload { probe } else { "" }))
            .or_default()
            .push(place);
    }
    let alone = |place: &usize| matches!(rows[*place].verdict, Verdict::Slower | Verdict::Faster);
    parts.retain(|_, places| places.len() >= LEAST && !places.iter().any(alone));
    let (keys, ratios): (Vec<(String, Vec<usize>)>, Vec<Ratio>) = parts
        .into_iter()
        .filter_map(|(part, places)| {
            let ratios: Vec<Ratio> = places.iter().filter_map(|i| rows[*i].ratio).collect();
            let turns = if part.0 == Group::Workload {
                turns(places.iter().map(|i| &rows[*i]))
            } else {
                Vec::new()
            };
            Some((
                (words(&part), places),
                pool_turns(&turns, &ratios).or_else(|| pool(&ratios))?,
            ))
        })
        .unzip();
    let verdicts = verdict::judge(&ratios, threshold);
    let all = keys.into_iter().zip(ratios).zip(verdicts);
    all.filter(|(_, verdict)| matches!(verdict, Verdict::Slower | Verdict::Faster))
        .map(|(((of, places), ratio), verdict)| Pooled {
            of,
            rows: places.len(),
            ratio,
            verdict,
            places,
        })
        .collect()
}

/// A mean of other rows says what they say.
fn is_made_of_others(row: &Row) -> bool {
    row.params
        .iter()
        .any(|(_, value)| value.to_string() == "average")
}

fn words(part: &Together) -> String {
    match part.0 {
        Group::Workload => part.1.to_owned(),
        of => of
            .cause()
            .map_or("user-mode arithmetic", |c| c.words.slower)
            .to_owned(),
    }
}

/// The mean of the rows' logarithms in each pair, where all of them have the same pairs; else nothing.
fn turns<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<f64> {
    let rows: Vec<&[f64]> = rows.map(|row| row.pairs.as_slice()).collect();
    let pairs = rows.first().map_or(0, |first| first.len());
    if rows.iter().any(|row| row.len() != pairs) {
        return Vec::new();
    }
    (0..pairs)
        .map(|pair| rows.iter().map(|row| row[pair]).sum::<f64>() / rows.len() as f64)
        .collect()
}

/// The ratio that rows of the same turns have in common, with what is known of both sides beforehand; nothing for fewer
/// than three turns.
fn pool_turns(turns: &[f64], rows: &[Ratio]) -> Option<Ratio> {
    if turns.len() < LEAST {
        return None;
    }
    let (n, df) = (turns.len() as f64, turns.len() as f64 - 1.0);
    let mean = turns.iter().sum::<f64>() / n;
    let own = (turns.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / df / n).max(TINY);
    let common = rows.iter().map(|r| r.common).sum::<f64>() / rows.len() as f64;
    Some(Ratio::with_common(mean, own, df, common))
}

/// The ratio that several have in common; nothing for fewer than two.
pub fn pool(ratios: &[Ratio]) -> Option<Ratio> {
    if ratios.len() < 2 {
        return None;
    }
    let degrees = ratios.len() as f64 - 1.0;
    let logs: Vec<f64> = ratios.iter().map(|r| r.value.ln()).collect();
    let own: Vec<f64> = ratios
        .iter()
        .map(|r| (r.error * r.error - r.common).max(TINY))
        .collect();
    let mean = |weights: &[f64], of: &[f64]| {
        weights.iter().zip(of).map(|(w, x)| w * x).sum::<f64>() / weights.iter().sum::<f64>()
    };
    let scatter = |weights: &[f64]| {
        let middle = mean(weights, &logs);
        weights
            .iter()
            .zip(&logs)
            .map(|(w, y)| w * (y - middle).powi(2))
            .sum::<f64>()
    };
    let fixed: Vec<f64> = own.iter().map(|v| 1.0 / v).collect();
    let sum: f64 = fixed.iter().sum();
    let scale = sum - fixed.iter().map(|w| w * w).sum::<f64>() / sum;
    let between = if scale > 0.0 {
        ((scatter(&fixed) - degrees) / scale).max(0.0)
    } else {
        0.0
    };
    let random: Vec<f64> = own.iter().map(|v| 1.0 / (v + between)).collect();
    let of_rows = (scatter(&random) / degrees).max(1.0) / random.iter().sum::<f64>();
    let common = mean(
        &random,
        &ratios.iter().map(|r| r.common).collect::<Vec<_>>(),
    );
    Some(Ratio::with_common(
        mean(&random, &logs),
        of_rows,
        degrees,
        common,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::tests::normal;

    fn ratio(value: f64, error: f64, common: f64) -> Ratio {
        Ratio {
            common: common * common,
            ..Ratio::from_log(value.ln(), error * error + common * common, 1e6)
        }
    }

    #[test]
    fn the_pooled_ratio_has_its_textbook_value() {
        // Equal errors, and logs that scatter by exactly as much: no variance between rows, the mean, and its error by
        // 1/√n.
        let e = 0.02_f64;
        let three = [
            ratio((0.1 - e).exp(), e, 0.0),
            ratio(0.1_f64.exp(), e, 0.0),
            ratio((0.1 + e).exp(), e, 0.0),
        ];
        let r = pool(&three).unwrap();
        assert!(
            (r.value.ln() - 0.1).abs() < 1e-12
                && (r.error - e / 3.0_f64.sqrt()).abs() < 1e-12
                && (r.df - 2.0).abs() < 1e-9,
            "{r:?}"
        );
        // DerSimonian and Laird by hand: variances 1 and 1, effects 0 and 4 have Q = 8 and τ² = (8 − 1) / (2 − 1) = 7;
        // the mean's error by Hartung and Knapp is √(1/2 · Σ(y−2)²/8 / 1 · 8 …) = 2.
        let two = [
            Ratio::from_log(0.0, 1.0, 1e6),
            Ratio::from_log(4.0, 1.0, 1e6),
        ];
        let r = pool(&two).unwrap();
        assert!(
            (r.value.ln() - 2.0).abs() < 1e-12 && (r.error - 2.0).abs() < 1e-9,
            "{r:?}"
        );
        assert!(pool(&two[..1]).is_none());
    }

    #[test]
    fn what_all_rows_have_in_common_does_not_become_less_with_their_number() {
        let rows = vec![ratio(1.1, 0.02, 0.03); 400];
        let r = pool(&rows).unwrap();
        assert!(r.error > 0.03 && r.error < 0.0302, "{r:?}");
    }

    #[test]
    fn rows_of_the_same_turns_are_one_value_a_turn() {
        // Student's own example of paired differences (“The Probable Error of a Mean”, Biometrika 6, 1908): the mean of
        // 1.58 with n = 10 has t = 4.06.
        let turns = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let r = pool_turns(&turns, &[ratio(1.0, 0.1, 0.0)]).unwrap();
        assert!(
            (r.value.ln() - 1.58).abs() < 1e-9
                && (r.value.ln() / r.error - 4.0621).abs() < 1e-3
                && r.df == 9.0,
            "{r:?}"
        );
        assert!(pool_turns(&turns[..2], &[ratio(1.0, 0.1, 0.0)]).is_none());
    }

    #[test]
    fn what_belongs_to_a_turn_does_not_become_less_with_the_number_of_rows() {
        let mut rng = fastrand::Rng::with_seed(5);
        let (mut by_turns, mut by_rows, trials) = (0, 0, 1000);
        for _ in 0..trials {
            let starts: Vec<f64> = (0..5).map(|_| 0.07 * normal(&mut rng)).collect();
            let rows: Vec<Vec<f64>> = (0..7)
                .map(|_| {
                    starts
                        .iter()
                        .map(|start| start + 0.02 * normal(&mut rng))
                        .collect()
                })
                .collect();
            let ratios: Vec<Ratio> = rows
                .iter()
                .filter_map(|row| crate::ratio::of_pairs(row))
                .collect();
            let means: Vec<f64> = (0..5)
                .map(|turn| rows.iter().map(|row| row[turn]).sum::<f64>() / 7.0)
                .collect();
            let outside = |r: Ratio| usize::from(r.low > 1.0 || r.high < 1.0);
            by_turns += outside(pool_turns(&means, &ratios).unwrap());
            by_rows += outside(pool(&ratios).unwrap());
        }
        assert!(
            by_turns <= 65 && by_rows > 200,
            "{by_turns} and {by_rows} of {trials}"
        );
    }

    #[test]
    fn equal_systems_are_called_different_as_seldom_as_the_control_says() {
        let mut rng = fastrand::Rng::with_seed(21);
        let (mut outside, trials) = (0, 2000);
        for _ in 0..trials {
            let of_run = 0.004 * normal(&mut rng);
            let rows: Vec<Ratio> = (0..9)
                .map(|_| ratio((of_run + 0.01 * normal(&mut rng)).exp(), 0.01, 0.004))
                .collect();
            let r = pool(&rows).unwrap();
            outside += usize::from(r.low > 1.0 || r.high < 1.0);
        }
        assert!(
            outside as f64 <= 0.05 * f64::from(trials),
            "{outside} of {trials}"
        );
    }
}
