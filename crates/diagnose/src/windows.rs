//! System calls of a transaction, of the windows in which both were counted.
//!
//! Calls are counted in windows and scaled up by time, transactions are counted over all of the time. A server is
//! slower in a window, by what recording costs, or faster, by chance: one divided by the other was off by a factor of
//! 0.6 to 1.2 in recorded trials of nginx. The load generator's own account of the windows, or the requests that were
//! followed in them, has the same bias, and takes it out.

use fingerpost_record::reading::name;
use fingerpost_record::{Paths, Readings};

/// How the totals of the server's system calls begin.
pub const CALLS: &str = "server.call.";

/// The sum of a total (`.count`, `.cpu_seconds`) over system calls of all kinds; nothing where none was counted.
pub fn all_calls(t: &Readings, what: &str) -> Option<f64> {
    t.between(CALLS, what)
        .map(|(_, value)| value)
        .reduce(|sum, value| sum + value)
}

/// System calls of the server of all kinds per transaction of so many round trips; nothing where either was not counted
/// in windows.
pub fn calls_per_transaction(t: &Readings, paths: &Paths, turns: f64) -> Option<f64> {
    let calls = t.known(name::SERVER_CALLS_IN_WINDOWS)?
        / t.known(name::TRACE_WINDOW_SECONDS).filter(|s| *s > 0.0)?;
    let requests = paths
        .generator
        .map_or_else(|| paths.requests(), |g| g.count as f64);
    let known = requests > 0.0 && paths.seconds > 0.0;
    known.then(|| calls / (requests / paths.seconds) * turns)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::paths::Latency;

    use super::*;

    #[test]
    fn what_a_window_slows_down_is_slower_for_calls_and_requests_alike() {
        let t = |calls: f64| {
            Readings::by(
                "all",
                "made up",
                [
                    ("server.calls.in_windows".to_owned(), calls),
                    ("trace.window.seconds".to_owned(), 0.04),
                ],
            )
        };
        // Means of one window each over ten passes, whose windows add up where requests are followed.
        let generator = Some(Latency {
            count: 4000,
            ..Latency::default()
        });
        let paths = Paths {
            seconds: 0.4,
            generator,
            followed: 9,
            ..Paths::default()
        };
        assert_eq!(calls_per_transaction(&t(3600.0), &paths, 1.0), Some(9.0));
        assert_eq!(calls_per_transaction(&t(3600.0), &paths, 3.0), Some(27.0));
        let followed = Paths {
            generator: None,
            followed: 1990,
            cut: 20,
            ..paths.clone()
        };
        assert_eq!(
            calls_per_transaction(&t(3600.0), &followed, 1.0),
            Some(18.0)
        );
        assert_eq!(
            calls_per_transaction(&t(3600.0), &Paths::default(), 1.0),
            None
        );
        assert_eq!(
            calls_per_transaction(&Readings::default(), &paths, 1.0),
            None
        );
    }
}
