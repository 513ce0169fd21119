//! A quantity on the two sides.

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
        Pair { fast: a.fast + b.fast, slow: a.slow + b.slow }
    }

    /// What came on top.
    pub fn more(self) -> f64 {
        self.slow - self.fast
    }
}
