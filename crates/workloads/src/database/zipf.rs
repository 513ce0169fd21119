//! Skewed popularity: a few threads and members get most of the attention, as on a real site.

use std::sync::Arc;

/// How steep the skew is. 0.99 is what the Yahoo cloud serving benchmark uses for the popularity of records
/// (Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010).
pub const SKEW: f64 = 0.99;

/// Draws numbers 1 to `n`, of which the one of rank r comes up in proportion to r to the power of −[`SKEW`].
///
/// Ranks are scattered over the numbers, so that what is popular does not lie side by side on disk. Clones share the
/// table.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// The share of all draws that go to this rank or a more popular one.
    cumulative: Arc<[f64]>,
    step: u64,
}

impl Zipf {
    /// A distribution over 1 to `n`; `n` is at least 1.
    pub fn new(n: u64) -> Zipf {
        let weights = (1..=n.max(1)).map(|rank| (rank as f64).powf(-SKEW));
        let mut cumulative: Vec<f64> = weights
            .scan(0.0, |sum, w| {
                *sum += w;
                Some(*sum)
            })
            .collect();
        let total = cumulative[cumulative.len() - 1];
        cumulative.iter_mut().for_each(|c| *c /= total);
        let n = cumulative.len() as u64;
        // Steps of about the golden section spread neighbours widely; a step without a common divisor reaches every
        // number once.
        let start = ((n as f64 * 0.618) as u64).max(1);
        let step = (start..start + n).find(|s| gcd(*s, n) == 1).unwrap_or(1);
        Zipf {
            cumulative: cumulative.into(),
            step,
        }
    }

    /// How many numbers there are.
    pub fn len(&self) -> u64 {
        self.cumulative.len() as u64
    }

    /// One draw.
    #[inline]
    pub fn draw(&self, rng: &mut fastrand::Rng) -> i64 {
        let at = rng.f64();
        let rank = self.cumulative.partition_point(|c| *c <= at) as u64;
        self.number(rank.min(self.len() - 1))
    }

    /// The number of a rank, the most popular being 0.
    pub fn number(&self, rank: u64) -> i64 {
        1 + ((u128::from(rank) * u128::from(self.step)) % u128::from(self.len())) as i64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_has_a_number_of_its_own() {
        for n in [1, 2, 7, 100, 4000] {
            let zipf = Zipf::new(n);
            let numbers: BTreeSet<i64> = (0..n).map(|rank| zipf.number(rank)).collect();
            assert_eq!(numbers.len() as u64, n);
            assert_eq!(
                (numbers.first().copied(), numbers.last().copied()),
                (Some(1), Some(n as i64))
            );
        }
    }

    #[test]
    fn popular_numbers_come_up_as_often_as_the_distribution_says() {
        let zipf = Zipf::new(1000);
        let mut rng = fastrand::Rng::with_seed(7);
        let draws = 200_000;
        let mut counts = vec![0u64; 1001];
        (0..draws).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
        let total: f64 = (1..=1000).map(|r| f64::from(r).powf(-SKEW)).sum();
        for rank in [0u64, 1, 9, 99] {
            let expected = ((rank + 1) as f64).powf(-SKEW) / total * f64::from(draws);
            let seen = counts[zipf.number(rank) as usize] as f64;
            // Five standard deviations of a count.
            assert!(
                (seen - expected).abs() < 5.0 * expected.sqrt(),
                "rank {rank}: {seen}, expected {expected}"
            );
        }
    }
}
