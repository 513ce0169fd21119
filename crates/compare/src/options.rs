//! How two sides are compared.

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The relative difference that does not matter: 0.03 calls 3 % more or less the same.
    pub threshold: f64,
    /// Whether the n-th process of a row on one side was measured beside the n-th on the other, as the two settings of one
    /// interleaved run are. Rows of one run a side with as many processes are then compared pair by pair.
    pub paired: bool,
    /// By how much two starts of the same server are known to differ, as the standard deviation of a logarithm, where all of a side's processes
    /// are of one start: pairs do not show it. 0 where each process is a start of its own.
    pub starts: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options { threshold: 0.03, paired: false, starts: 0.0 }
    }
}
