//! When a figure of a loaded server is not to be relied on: one rule each, for all labs and what is concluded of them.

/// Errors that are only counted, as a share of all that was asked for; with more of them the figure is not trusted.
///
/// One that failed took another time than one that was answered, less where it was refused and more where it was waited
/// for. A server under load gives some (a deadlock, a connection that was reset), and one in many thousands spoils no
/// figure: up to this share the throughput is off by no more than the share, the median's rank likewise, and of the
/// slowest 1 % of requests a tenth at most are of that kind. The bound is our own choice; two starts of MariaDB or
/// Apache differ by some 5 % (`bench/RESULTS.md`).
const TOLERABLE_ERRORS: f64 = 0.001;

/// Whether so many errors beside so many that were completed are too many.
pub fn too_many_errors(errors: u64, completed: u64) -> bool {
    errors as f64 > TOLERABLE_ERRORS * (errors as f64 + completed as f64)
}

/// Whether so many rounds that are not the server's (the load generator was the limit, or stood still itself) spoil the
/// figure of all of them: at least half.
///
/// The figure is the median of the rounds: as long as those are fewer than half, it lies among the others.
pub fn spoil(rounds: u64, of: u64) -> bool {
    rounds > 0 && rounds >= of.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_in_a_thousand_is_counted_and_two_are_too_many() {
        assert!(
            !too_many_errors(0, 0)
                && !too_many_errors(1, 999)
                && too_many_errors(2, 998)
                && too_many_errors(1, 0)
        );
    }

    #[test]
    fn half_of_the_rounds_spoil_a_median_and_fewer_do_not() {
        assert!(
            spoil(1, 1) && spoil(1, 2) && !spoil(1, 3) && spoil(2, 3) && spoil(2, 4) && spoil(3, 3)
        );
        assert!(!spoil(0, 0) && !spoil(0, 1), "none spoils none");
    }
}
