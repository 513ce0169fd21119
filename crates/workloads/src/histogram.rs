//! A histogram of latencies that keeps every sample and is wrong by at most half a percent.
//!
//! Buckets are linear below 256 and log-linear above: each power of two is cut into 128 equal parts (the scheme of
//! HdrHistogram, <https://hdrhistogram.org>). A value is told as the middle of its bucket, so the error is at most
//! 1/256. The whole range of a `u64` fits, so there is no limit above which a sample would be dropped or cut.

/// Buckets per power of two.
const PARTS: u64 = 1 << PART_BITS;
const PART_BITS: u32 = 7;
/// Values below this have a bucket each.
const LINEAR: u64 = 2 * PARTS;
const BUCKETS: usize = (LINEAR + (64 - PART_BITS as u64 - 1) * PARTS) as usize;

/// Counts of values, in nanoseconds or anything else that is a whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    /// No values. Takes 58 KiB.
    fn default() -> Self {
        Histogram {
            counts: vec![0; BUCKETS],
        }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[index(value)] += 1;
    }

    /// How many values were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Adds values as [`Histogram::counted`] lists them; listing and adding again changes nothing.
    pub fn add_counted(&mut self, counted: &[(u64, u64)]) {
        for &(value, n) in counted {
            self.counts[index(value)] += n;
        }
    }

    /// The values with how often each occurred, ascending, only those that did.
    pub fn counted(&self) -> Vec<(u64, u64)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(i, n)| (middle(i), *n))
            .collect()
    }

    /// The value that a share `q` (0 to 1) of the values did not exceed; `None` when there are none.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        crate::quantile(&self.counted(), q)
    }
}

/// The bucket of a value.
#[inline]
fn index(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    // Shifted right until the highest bit is that of PARTS: the quotient is PARTS ..= 2 * PARTS - 1.
    let shift = 63 - value.leading_zeros() - PART_BITS;
    (u64::from(shift) * PARTS + (value >> shift)) as usize
}

/// The middle of a bucket.
fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let shift = index / PARTS - 1;
    let low = (index - shift * PARTS) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_bucket_follows_on_the_one_before() {
        assert_eq!(index(0), 0);
        assert_eq!(index(255), 255);
        assert_eq!(index(256), 256);
        assert_eq!(index(257), 256);
        assert_eq!(index(258), 257);
        assert_eq!(index(u64::MAX), BUCKETS - 1);
        for i in 0..BUCKETS {
            assert_eq!(index(middle(i)), i, "bucket {i}");
        }
    }

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut h = Histogram::default();
        (1..=100_000u64).for_each(|v| h.record(v * 10));
        for (q, exact) in [
            (0.5, 500_000.0),
            (0.9, 900_000.0),
            (0.99, 990_000.0),
            (1.0, 1_000_000.0),
        ] {
            let told = h.quantile(q).unwrap() as f64;
            assert!((told / exact - 1.0).abs() < 0.005, "{q}: {told}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_value_is_told_with_less_than_half_a_percent_of_error(value: u64) {
            let told = middle(index(value));
            prop_assert!(told.abs_diff(value) as f64 <= value as f64 / 256.0 + 0.5);
        }

        #[test]
        fn merging_keeps_every_sample_as_recording_together_does(a: Vec<u64>, b: Vec<u64>) {
            let of = |values: &[u64]| {
                let mut h = Histogram::default();
                values.iter().for_each(|&v| h.record(v));
                h
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together = of(&[a.clone(), b.clone()].concat());
            prop_assert_eq!(&merged, &together);
            prop_assert_eq!(merged.total(), (a.len() + b.len()) as u64);
            let mut listed = Histogram::default();
            listed.add_counted(&merged.counted());
            prop_assert_eq!(listed, together);
        }
    }
}
