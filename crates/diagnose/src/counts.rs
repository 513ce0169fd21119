//! How sure a count is of events that come by chance.

/// Of the normal distribution, for 95 %.
pub(crate) const Z: f64 = 1.96;

/// The ends of the 95 % interval of a Poisson count: Wilson and Hilferty's approximation of the exact one (PNAS 17,
/// 1931), which is within 3 % of it from three on. Events that come in bursts are less sure than that.
pub(crate) fn interval(count: f64) -> [f64; 2] {
    let end = |n: f64, z: f64| {
        if n > 0.0 {
            n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt()))
                .max(0.0)
                .powi(3)
        } else {
            0.0
        }
    };
    [end(count, -Z), end(count + 1.0, Z)]
}

/// The ends of so many events a second over so many seconds. All of them were counted: none is none.
pub(crate) fn interval_of_rate(a_second: f64, seconds: f64) -> [f64; 2] {
    let events = a_second * seconds;
    if events > 0.0 {
        interval(events).map(|n| n / seconds)
    } else {
        [0.0, 0.0]
    }
}

/// The ends of a rate that so many events make: those of one transaction depend on each other, so that it is no surer
/// than the transactions that it is of. All events were counted: none is none.
pub(crate) fn rate(each: f64, transactions: f64) -> [f64; 2] {
    let events = (each * transactions).min(transactions);
    if events > 0.0 {
        interval(events).map(|n| n * each / events)
    } else {
        [0.0, 0.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_no_surer_than_its_transactions() {
        let [low, high] = rate(0.02, 500.0);
        assert!(
            (low * 500.0 - 4.795).abs() < 0.1 && (high * 500.0 - 18.39).abs() < 0.1,
            "ten events: {low} to {high}"
        );
        let [low, high] = rate(100.0, 10.0);
        assert!(
            low < 50.0 && high > 180.0,
            "a thousand in ten transactions: {low} to {high}"
        );
        assert_eq!(rate(0.0, 10.0), [0.0, 0.0]);
    }

    #[test]
    fn a_count_is_as_sure_as_the_exact_interval_says() {
        // Exact ends, by the chi-square distribution (Garwood 1936).
        for (count, exact) in [
            (0.0, [0.0, 3.689]),
            (3.0, [0.619, 8.767]),
            (10.0, [4.795, 18.390]),
            (100.0, [81.364, 121.627]),
        ] {
            let found = interval(count);
            for (found, exact) in found.into_iter().zip(exact) {
                assert!(
                    (found - exact).abs() <= 0.03 * exact.max(0.1),
                    "{count}: {found} and {exact}"
                );
            }
        }
    }
}
