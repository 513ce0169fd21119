//! How sure it is that a count grew from one side to the other.
//!
//! What the kernel counts of a run is whole, and came by chance all the same: another run would have had another
//! number. Events that do not depend on each other vary as Poisson's do. Those of one transaction do depend on each
//! other (a query makes all of its calls), so that a count is taken for no surer than the transactions that it is of:
//! as if each made all of its events or none, which is as much as counts of one spread where their deviation is no more
//! than their mean.

use super::sign::Sign::{self, Against, Fits, NotGrown, Perhaps};
use super::sign::Told;
use crate::counts::{self, Z};

/// A total on both sides, per transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The side with the shorter transactions.
    pub fast: f64,
    /// The side with the longer ones.
    pub slow: f64,
}

impl Pair {
    /// How many times as much; from nothing to something counts as a thousandfold.
    pub fn ratio(self) -> f64 {
        if self.fast > 0.0 {
            self.slow / self.fast
        } else if self.slow > 0.0 {
            1e3
        } else {
            1.0
        }
    }

    /// From the faster side's and the slower one's.
    pub fn of([fast, slow]: [f64; 2]) -> Pair {
        Pair { fast, slow }
    }

    /// Both together.
    pub fn sum(a: Pair, b: Pair) -> Pair {
        Pair {
            fast: a.fast + b.fast,
            slow: a.slow + b.slow,
        }
    }

    /// What came on top.
    pub fn more(self) -> f64 {
        self.slow - self.fast
    }
}

/// A quantity of both sides, and how many independent events it is the sum of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The quantity, per transaction or per second.
    pub pair: Pair,
    /// Independent events on either side.
    pub events: Pair,
    /// How much of it one event would make on either side: what is known of a side that has none.
    pub one: Pair,
    /// Whether all events of the slower side were counted, so that none is none.
    pub whole: bool,
}

impl Growth {
    /// The ends of the 95 % interval of how many times as much it is: given the sum of both counts, one of them is
    /// binomial (Przyborowski and Wilenski, Biometrika 31, 1940), with Wilson's interval (1927).
    pub fn ratio(&self) -> [f64; 2] {
        let (fast, slow) = (self.events.fast, self.events.slow);
        if slow <= 0.0 && self.whole {
            return [0.0, 0.0];
        }
        let all = fast + slow;
        if all <= 0.0 {
            return [0.0, f64::INFINITY];
        }
        let (share, z2) = (slow / all, Z * Z);
        let middle = (share + z2 / (2.0 * all)) / (1.0 + z2 / all);
        let half =
            Z / (1.0 + z2 / all) * (share * (1.0 - share) / all + z2 / (4.0 * all * all)).sqrt();
        let odds = |p: f64| {
            if p >= 1.0 - 1e-12 {
                f64::INFINITY
            } else {
                p.max(0.0) / (1.0 - p)
            }
        };
        // From events to the quantity: by what one of them makes on either side.
        let of_one = |quantity: f64, events: f64, one: f64| {
            if events > 0.0 { quantity / events } else { one }
        };
        let scale = of_one(self.pair.slow, slow, self.one.slow)
            / of_one(self.pair.fast, fast, self.one.fast).max(1e-300);
        [
            odds((middle - half).max(0.0)) * scale,
            odds((middle + half).min(1.0)) * scale,
        ]
    }

    /// The ends of the 95 % interval of one side's quantity.
    fn ends(quantity: f64, events: f64, one: f64, whole: bool) -> [f64; 2] {
        match events > 0.0 {
            true => counts::interval(events).map(|n| n * quantity / events),
            false if whole => [0.0, 0.0],
            false => counts::interval(0.0).map(|n| n * one),
        }
    }

    /// The ends of the slower side's quantity.
    pub fn slow(&self) -> [f64; 2] {
        Growth::ends(self.pair.slow, self.events.slow, self.one.slow, self.whole)
    }

    /// The ends of the faster side's quantity.
    pub fn fast(&self) -> [f64; 2] {
        Growth::ends(self.pair.fast, self.events.fast, self.one.fast, false)
    }

    /// By how much it grew at most.
    pub fn more_at_most(&self) -> f64 {
        (self.slow()[1] - self.fast()[0]).max(0.0)
    }
}

/// What a quantity says of a cause that needs it to be more than `by` times as much: it fits, or speaks against the
/// cause, where that holds with the whole interval; by its middle alone it is a suspicion, or clears nobody. Of a
/// quantity that no events are known of (seconds that threads stood still for) the middle is all there is: what then
/// accuses is the interval of the cause's part of a request, and nothing clears but that there is none of it.
pub(crate) fn grown(pair: Pair, growth: Option<Growth>, by: f64, told: Told) -> Sign {
    let more = pair.ratio() > by && pair.slow > 0.0;
    match growth.map(|g| g.ratio()) {
        Some([low, _]) if more && low <= by => Perhaps(told),
        _ if more => Fits(told),
        Some([_, high]) if high <= by => Against(told),
        None if pair.slow <= 0.0 => Against(told),
        _ => NotGrown(told, None),
    }
}

/// What holds with its whole interval, or by its middle value alone.
pub(crate) fn fits(told: Told, surely: bool) -> Sign {
    if surely { Fits(told) } else { Perhaps(told) }
}

/// What speaks against a cause: surely where it holds with whole intervals, else, and where these are not known, as
/// little as a middle value says.
pub(crate) fn against(told: Told, surely: impl Into<Option<bool>>) -> Sign {
    if surely.into() == Some(true) {
        Against(told)
    } else {
        NotGrown(told, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many events of a thousand transactions on either side.
    fn of(fast: f64, slow: f64) -> Growth {
        let each = |n: f64| n / 1000.0;
        Growth {
            pair: Pair {
                fast: each(fast),
                slow: each(slow),
            },
            events: Pair { fast, slow },
            one: Pair {
                fast: each(1.0),
                slow: each(1.0),
            },
            whole: false,
        }
    }

    fn sign(growth: Growth, by: f64) -> Sign {
        grown(growth.pair, Some(growth), by, Told::new())
    }

    #[test]
    fn a_ratio_of_counts_is_as_sure_as_the_exact_interval_says() {
        // Clopper and Pearson's exact ends of the share are 0.0252 and 0.556 for 2 of 10, 0.692 and 1 for 10 of 10,
        // 0.398 and 0.602 for 50 of 100; Wilson's are narrower by what the exact ones have too much.
        for (fast, slow, [low, high]) in [
            (8.0, 2.0, [0.06, 1.04]),
            (0.0, 10.0, [2.60, f64::INFINITY]),
            (50.0, 50.0, [0.678, 1.475]),
            (1000.0, 1000.0, [0.916, 1.092]),
        ] {
            let [found_low, found_high] = of(fast, slow).ratio();
            assert!(
                (found_low - low).abs() < 0.01 * low.max(0.5),
                "{fast} and {slow}: {found_low}"
            );
            assert!(
                (found_high - high).abs() < 0.01 * high || found_high == high,
                "{fast} and {slow}: {found_high}"
            );
        }
        assert_eq!(
            of(0.0, 0.0).ratio(),
            [0.0, f64::INFINITY],
            "nothing was seen"
        );
        assert_eq!(
            Growth {
                whole: true,
                ..of(3.0, 0.0)
            }
            .ratio(),
            [0.0, 0.0],
            "none is none where all were counted"
        );
    }

    #[test]
    fn the_middle_of_few_events_neither_accuses_nor_clears() {
        use Sign::{Against, Fits, NotGrown, Perhaps};
        let kind = |fast, slow| match sign(of(fast, slow), 1.5) {
            Fits(_) => "fits",
            Perhaps(_) => "perhaps",
            NotGrown(..) => "not grown",
            Against(_) => "against",
            Sign::Unknown => "unknown",
        };
        assert_eq!(
            [
                kind(100.0, 400.0),
                kind(4.0, 8.0),
                kind(4.0, 5.0),
                kind(400.0, 410.0)
            ],
            ["fits", "perhaps", "not grown", "against"]
        );
        assert_eq!([kind(0.0, 3.0), kind(0.0, 30.0)], ["perhaps", "fits"]);
    }

    #[test]
    fn seconds_that_no_events_are_known_of_clear_only_where_there_are_none() {
        let of = |fast, slow| grown(Pair { fast, slow }, None, 2.0, Told::new());
        assert!(
            matches!(of(1.0, 1.5), Sign::NotGrown(..)) && matches!(of(1.0, 0.0), Sign::Against(_))
        );
        assert!(matches!(of(0.0, 1.0), Sign::Fits(_)));
    }

    #[test]
    fn what_comes_in_clusters_is_no_surer_than_they_are() {
        // 36,000 calls, of 36 requests on either side.
        let calls = Growth {
            pair: Pair {
                fast: 1000.0,
                slow: 1300.0,
            },
            events: Pair {
                fast: 36.0,
                slow: 36.0,
            },
            one: Pair {
                fast: 1.0 / 36.0,
                slow: 1.0 / 36.0,
            },
            whole: false,
        };
        let [low, high] = calls.ratio();
        assert!(low < 0.9 && high > 1.9, "{low} to {high}");
        assert!(calls.more_at_most() > 800.0, "{}", calls.more_at_most());
    }
}
