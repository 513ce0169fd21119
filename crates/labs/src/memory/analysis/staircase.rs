//! Steps in a curve that only rises: where each level ends and how high it is.

/// How a staircase is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// A level may rise by this factor over its length.
    pub flat: f64,
    /// Two levels whose heights differ by less than this factor are one.
    pub distinct: f64,
}

/// Load latencies: some ten per cent within a level, and a next cache nearly twice as slow as the one before. What
/// rises by less is translation, which grows slowly with the range.
pub const LATENCIES: Reading = Reading {
    flat: 1.12,
    distinct: 1.8,
};

/// A level must reach over this factor in size. A slope is steep enough not to.
const SPAN: f64 = 2.0;

/// A level is left when the curve has gone this share of the way to the next one,
const LEFT: f64 = 0.1;

/// and the next one's size is certainly passed at this share.
const PASSED: f64 = 0.5;

/// A level of the staircase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Its height: the median of its points.
    pub height: f64,
    /// The largest size that still belongs to it.
    pub fits: u64,
    /// The smallest size that certainly no longer does; nothing for the last level.
    pub passed: Option<u64>,
}

/// Makes a curve rise: what is above the height of any larger size is noise, which only ever adds time.
pub fn rising(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut points: Vec<(u64, f64)> = points
        .iter()
        .copied()
        .filter(|(_, y)| y.is_finite() && *y > 0.0)
        .collect();
    points.sort_by_key(|(size, _)| *size);
    points.dedup_by_key(|(size, _)| *size);
    let mut least = f64::INFINITY;
    for (_, y) in points.iter_mut().rev() {
        least = least.min(*y);
        *y = least;
    }
    points
}

/// A stretch of points, first and last, and its height.
#[derive(Clone, Copy, Debug)]
struct Flat {
    from: usize,
    to: usize,
    height: f64,
}

/// The levels of a curve given as sizes and heights, in any order.
pub fn levels(points: &[(u64, f64)], reading: Reading) -> Vec<Level> {
    let points = rising(points);
    let Some(&(largest, highest)) = points.last() else {
        return Vec::new();
    };
    let flats = merge(flats(&points, reading), &points, reading);
    let mut levels = Vec::new();
    for (i, flat) in flats.iter().enumerate() {
        // A curve that still rises at its end goes on to a level that was not reached.
        let next = flats.get(i + 1).map_or(highest, |next| next.height);
        if next < flat.height * reading.distinct {
            levels.push(Level {
                height: flat.height,
                fits: largest,
                passed: None,
            });
            break;
        }
        let beyond = |share: f64| {
            points
                .iter()
                .position(|(_, y)| *y > flat.height + share * (next - flat.height))
        };
        let left = beyond(LEFT).unwrap_or(points.len());
        levels.push(Level {
            height: flat.height,
            fits: points[left.max(1) - 1].0,
            passed: beyond(PASSED).map(|i| points[i].0),
        });
    }
    levels
}

/// Where the curve is flat, from the left.
fn flats(points: &[(u64, f64)], reading: Reading) -> Vec<Flat> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < points.len() {
        let high = points[from].1 * reading.flat;
        let to = from
            + points[from..]
                .iter()
                .take_while(|(_, y)| *y <= high)
                .count()
            - 1;
        if points[to].0 as f64 >= points[from].0 as f64 * SPAN {
            found.push(Flat {
                from,
                to,
                height: points[(from + to) / 2].1,
            });
            from = to + 1;
        } else {
            from += 1;
        }
    }
    found
}

/// Flat stretches of like heights as one.
fn merge(flats: Vec<Flat>, points: &[(u64, f64)], reading: Reading) -> Vec<Flat> {
    let mut merged: Vec<Flat> = Vec::new();
    for flat in flats {
        match merged.last_mut() {
            Some(last) if flat.height < last.height * reading.distinct => {
                last.to = flat.to;
                last.height = points[(last.from + last.to) / 2].1;
            }
            _ => merged.push(flat),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    /// Sizes as the laboratory takes them: two to an octave, and four between 16 KiB and 4 MiB.
    fn sizes(last: u32) -> Vec<u64> {
        let parts = |k: u32| {
            if (14..22).contains(&k) {
                vec![4, 5, 6, 7]
            } else {
                vec![4, 6]
            }
        };
        (12..=last)
            .flat_map(|k| parts(k).into_iter().map(move |p: u64| p << (k - 2)))
            .collect()
    }

    /// A cache that keeps a random part of what does not fit: the larger the range, the smaller the share of hits.
    fn mixture(size: u64, caches: &[(u64, f64)], memory: f64) -> f64 {
        let mut latency = memory;
        for (capacity, hit) in caches.iter().rev() {
            let share = (*capacity as f64 / size as f64).min(1.0);
            latency = share * hit + (1.0 - share) * latency;
        }
        latency
    }

    fn noise(i: usize) -> f64 {
        // Up to four per cent, always slower.
        1.0 + 0.04 * ((i * 7919) % 97) as f64 / 97.0
    }

    fn holds(level: &Level, capacity: u64) -> bool {
        level.fits <= capacity && level.passed.is_some_and(|passed| capacity < passed)
    }

    #[test]
    fn sharp_steps_are_found_at_their_sizes() {
        let height = |size: u64| match size {
            s if s <= 48 * K => 1.3,
            s if s <= 2048 * K => 4.1,
            s if s <= 32768 * K => 22.0,
            _ => 95.0,
        };
        let points: Vec<_> = sizes(28)
            .into_iter()
            .enumerate()
            .map(|(i, s)| (s, height(s) * noise(i)))
            .collect();
        let found = levels(&points, LATENCIES);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(
            found.iter().map(|l| l.fits).collect::<Vec<_>>(),
            [48 * K, 2048 * K, 32768 * K, points.last().unwrap().0]
        );
        assert_eq!(found[0].passed, Some(56 * K));
        assert_eq!(found[3].passed, None);
        for (level, height) in found.iter().zip([1.3, 4.1, 22.0, 95.0]) {
            assert!((level.height / height - 1.0).abs() < 0.05);
        }
    }

    #[test]
    fn caches_that_fade_out_are_found_between_their_bounds() {
        let caches = [(32 * K, 1.2), (1024 * K, 4.0), (16384 * K, 18.0)];
        let points: Vec<_> = sizes(30)
            .into_iter()
            .enumerate()
            .map(|(i, s)| (s, mixture(s, &caches, 90.0) * noise(i)))
            .collect();
        let found = levels(&points, LATENCIES);
        for (capacity, _) in caches {
            assert!(
                found.iter().any(|l| holds(l, capacity)),
                "{capacity}: {found:?}"
            );
        }
    }

    #[test]
    fn a_flat_curve_is_one_level_and_nothing_is_none() {
        let points: Vec<_> = sizes(20).into_iter().map(|s| (s, 5.0)).collect();
        assert_eq!(
            levels(&points, LATENCIES),
            [Level {
                height: 5.0,
                fits: points.last().unwrap().0,
                passed: None
            }]
        );
        assert!(levels(&[], LATENCIES).is_empty());
        assert!(levels(&[(4096, f64::NAN), (8192, -1.0)], LATENCIES).is_empty());
        assert!(levels(&[(4096, 1.0)], LATENCIES).is_empty());
    }

    #[test]
    fn an_outlier_is_no_step() {
        let mut points: Vec<_> = sizes(20).into_iter().map(|s| (s, 5.0)).collect();
        points[7].1 = 50.0;
        assert_eq!(levels(&points, LATENCIES).len(), 1);
    }

    #[test]
    fn a_curve_that_ends_on_the_rise_tells_the_level_before() {
        let points: Vec<_> = sizes(20)
            .into_iter()
            .map(|s| (s, mixture(s, &[(256 * K, 4.0)], 90.0)))
            .collect();
        let found = levels(&points, LATENCIES);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(holds(&found[0], 256 * K), "{found:?}");
    }
}
