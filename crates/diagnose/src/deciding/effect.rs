//! From paired stretches to how many times faster requests were, with an interval.

use crate::thresholds::LIKELY;
use fingerpost_record::{Answer, Asked, Estimate, Measure, Pair};

/// The interval's coverage is at least this.
const CONFIDENCE: f64 = 0.95;
/// Pairs that an interval needs: with five, no choice of Walsh averages covers 95 %.
pub const LEAST_PAIRS: usize = 6;
/// Requests that both sides together must have had: below, a pair is one request or none.
const LEAST_REQUESTS: u64 = 40;

/// How many times faster requests were with the change; nothing where too little was seen.
pub fn effect(pairs: &[Pair], by: Measure) -> Option<Estimate> {
    let requests: u64 = pairs
        .iter()
        .map(|p| p.base.requests.saturating_add(p.changed.requests))
        .fold(0, u64::saturating_add);
    let logs: Vec<f64> = pairs.iter().filter_map(|p| log_ratio(p, by)).collect();
    if requests < LEAST_REQUESTS {
        return None;
    }
    let (value, low, high) = interval(&logs)?;
    Some(Estimate {
        value: value.exp(),
        low: low.exp(),
        high: high.exp(),
        confidence: CONFIDENCE,
    })
}

/// What the effect says: it matters from the share on from which a cause is likely, of the time with the change or
/// without.
pub fn answer(effect: Option<&Estimate>) -> Answer {
    let matters = 1.0 / (1.0 - LIKELY.value);
    match effect {
        None => Answer::Unresolved,
        Some(e) if e.low > matters => Answer::Faster,
        Some(e) if e.high < 1.0 / matters => Answer::Slower,
        Some(e) if e.high <= matters && e.low >= 1.0 / matters => Answer::Same,
        Some(_) => Answer::Unresolved,
    }
}

/// The logarithm of how many times faster the changed side was. A stretch in which no request ended has half a one
/// (Agresti, Categorical Data Analysis, 3.1.1: 0.5 added to each count), so that a server that stood still counts, and
/// is not infinitely slow; a pair in which none ended at all says nothing of the change.
fn log_ratio(pair: &Pair, by: Measure) -> Option<f64> {
    if pair.base.requests == 0 && pair.changed.requests == 0 {
        return None;
    }
    let ratio = match by {
        Measure::Rate => rate(&pair.changed)? / rate(&pair.base)?,
        Measure::Latency => pair.base.latency_ns? / pair.changed.latency_ns?,
    };
    (ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
}

fn rate(asked: &Asked) -> Option<f64> {
    (asked.seconds > 0.0).then(|| (asked.requests as f64 + 0.5) / asked.seconds)
}

/// The Hodges-Lehmann estimate of the centre of differences with the exact interval of Wilcoxon's signed-rank test
/// (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.2 and 3.3): the median of all means of two
/// (Walsh averages), and those of them that lie as far from the ends as the test's distribution allows. No shape is
/// assumed but symmetry, which pairs in turns have when nothing was changed. Nothing for fewer than six.
pub fn interval(differences: &[f64]) -> Option<(f64, f64, f64)> {
    let n = differences.len();
    if n < LEAST_PAIRS {
        return None;
    }
    let mut walsh: Vec<f64> = (0..n)
        .flat_map(|i| (i..n).map(move |j| (i, j)))
        .map(|(i, j)| (differences[i] + differences[j]) / 2.0)
        .collect();
    walsh.sort_by(f64::total_cmp);
    let middle = (walsh[(walsh.len() - 1) / 2] + walsh[walsh.len() / 2]) / 2.0;
    let end = critical(n, (1.0 - CONFIDENCE) / 2.0).checked_sub(1)?;
    Some((middle, walsh[end], walsh[walsh.len() - 1 - end]))
}

/// The place, from 1, of the Walsh average at which the interval ends: the largest c with P(T ≤ c − 1) at most `alpha`,
/// of the signed-rank statistic T of n differences, whose distribution is counted; 0 where there is none.
fn critical(n: usize, alpha: f64) -> usize {
    let most = n * (n + 1) / 2;
    // The share of all choices of signs with which the positive ranks add up to each sum.
    let mut shares = vec![0.0; most + 1];
    shares[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=most).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = (shares[sum] + with) / 2.0;
        }
    }
    let mut below = 0.0;
    let within = |share: &&f64| {
        below += **share;
        below <= alpha
    };
    shares.iter().take_while(within).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(base: u64, changed: u64) -> Pair {
        let asked = |requests: u64| Asked {
            requests,
            seconds: 0.1,
            latency_ns: (requests > 0).then(|| 1e8 / requests as f64),
        };
        Pair {
            base: asked(base),
            changed: asked(changed),
        }
    }

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // R: qsignrank(0.025, n), which is where wilcox.test(conf.int = TRUE) takes its ends.
        for (n, expected) in [(5, 0), (6, 1), (7, 3), (8, 4), (10, 9), (12, 14), (20, 53)] {
            assert_eq!(critical(n, 0.025), expected, "n = {n}");
        }
        // Of six the interval is the whole range, and covers 1 − 2/64.
        assert_eq!(
            interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            Some((3.5, 1.0, 6.0))
        );
        let eight: Vec<f64> = (1..=8).map(f64::from).collect();
        assert_eq!(
            interval(&eight),
            Some((4.5, 2.0, 7.0)),
            "the fourth of 36 means from each end"
        );
        assert_eq!(interval(&[1.0; 5]), None);
    }

    #[test]
    fn twice_the_requests_are_twice_as_fast_by_either_measure() {
        let pairs: Vec<Pair> = (0..8).map(|i| pair(100 + i, 200 + 2 * i)).collect();
        for by in [Measure::Rate, Measure::Latency] {
            let e = effect(&pairs, by).unwrap();
            assert!(
                (e.value - 2.0).abs() < 0.01 && e.low > 1.98 && e.high < 2.02,
                "{by:?} {e:?}"
            );
            assert_eq!(answer(Some(&e)), Answer::Faster);
        }
    }

    #[test]
    fn one_stretch_that_went_wrong_does_not_decide() {
        let mut pairs: Vec<Pair> = (0..10).map(|i| pair(100 + i % 3, 101 - i % 2)).collect();
        pairs[3] = pair(2, 100);
        let e = effect(&pairs, Measure::Rate).unwrap();
        assert!((e.value - 1.0).abs() < 0.03, "{e:?}");
        assert_ne!(answer(Some(&e)), Answer::Faster);
    }

    #[test]
    fn a_server_that_stood_still_counts_and_silence_says_nothing() {
        let stopped: Vec<Pair> = (0..8).map(|i| pair(0, 100 + i)).collect();
        assert_eq!(
            answer(effect(&stopped, Measure::Rate).as_ref()),
            Answer::Faster
        );
        assert_eq!(
            effect(&stopped, Measure::Latency),
            None,
            "of nothing there is no latency"
        );
        let dead = [
            pair(100, 200),
            pair(100, 200),
            pair(0, 0),
            pair(0, 0),
            pair(0, 0),
            pair(0, 0),
            pair(0, 0),
            pair(0, 0),
        ];
        assert_eq!(
            effect(&dead, Measure::Rate),
            None,
            "a server that ended says nothing of the change"
        );
        let silence = [pair(1, 2); 8];
        assert_eq!(
            (effect(&silence, Measure::Rate), answer(None)),
            (None, Answer::Unresolved)
        );
    }

    #[test]
    fn answers_need_the_whole_interval() {
        let of = |low, high| {
            answer(Some(&Estimate {
                value: (low + high) / 2.0,
                low,
                high,
                confidence: 0.95,
            }))
        };
        assert_eq!(of(1.06, 1.3), Answer::Faster);
        assert_eq!(of(1.01, 1.3), Answer::Unresolved);
        assert_eq!(of(0.97, 1.04), Answer::Same);
        assert_eq!(of(0.5, 0.8), Answer::Slower);
    }

    #[test]
    fn of_many_experiments_without_an_effect_few_say_that_there_is_one() {
        let mut rng = 1_u64;
        let mut noise = || {
            rng = rng
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            80 + (rng >> 33) % 41
        };
        let mut excluded = 0;
        for _ in 0..2000 {
            let pairs: Vec<Pair> = (0..8).map(|_| pair(noise(), noise())).collect();
            let e = effect(&pairs, Measure::Rate).unwrap();
            excluded += usize::from(e.low > 1.0 || e.high < 1.0);
        }
        assert!(
            (20..=100).contains(&excluded),
            "1 to 5 % of 2000: {excluded}"
        );
    }
}
