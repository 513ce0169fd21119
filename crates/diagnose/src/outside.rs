//! What a request of a service takes when its answer is written: until the last bytes have left and arrived.
//!
//! A request is followed until the service has given its answer's last byte to the socket. Where that byte then lies and
//! waits, nothing of the service's own time tells it, and its clients wait all the same. By Little's law (J. D. C. Little,
//! *A Proof for the Queuing Formula L = λW*, 1961) the mean number of connections with bytes that were written and have
//! not arrived, divided by the requests a second, is the time of a request in that state.

use crate::thresholds::MANY_DELAYED;
use fingerpost_record::reading::name;
use fingerpost_record::{Paths, Readings};

/// With fewer connections on the way in the mean, the looks at sockets that found one are a handful.
const LEAST_MEAN: f64 = 0.25;
/// What comes after a request is told where it takes this much of what was followed of it, or more.
const WORTH_TELLING: f64 = 1.0;

/// The time of requests on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnTheWay {
    /// Seconds for a request.
    pub seconds: f64,
    /// Acknowledgements that the other end delayed, for a request, where they were counted.
    pub delayed_acks: Option<f64>,
}

impl OnTheWay {
    /// Whether bytes wait because each small segment needs the acknowledgement of the one before, which is delayed:
    /// Nagle's algorithm (RFC 896) at one end and delayed acknowledgements (RFC 1122, 4.2.3.2) at the other.
    pub fn waits_for_acknowledgements(&self) -> bool {
        self.delayed_acks
            .is_some_and(|each| each > MANY_DELAYED.value)
    }
}

/// Seconds of a request on the way, in the mean: 0 where hardly any was seen there, nothing where nobody looked.
pub fn seconds_on_the_way(readings: &Readings, paths: &Paths) -> Option<f64> {
    let mean = readings.known(name::QUEUE_NETWORK_MEAN)?;
    let mean = if mean >= LEAST_MEAN { mean } else { 0.0 };
    Some(mean / paths.rate()).filter(|seconds| seconds.is_finite())
}

/// What requests take on the way, where that is as much as what was followed of them, or more.
pub fn on_the_way(readings: &Readings, paths: &Paths) -> Option<OnTheWay> {
    let seconds = seconds_on_the_way(readings, paths).filter(|seconds| *seconds > 0.0)?;
    let rate = paths.rate();
    let elapsed = readings.known(name::ELAPSED_SECONDS).filter(|s| *s > 0.0);
    let acks = readings.known(name::TCP_DELAYED_ACKS).zip(elapsed);
    (seconds >= WORTH_TELLING * paths.mean()).then(|| OnTheWay {
        seconds,
        delayed_acks: acks.map(|(acks, elapsed)| acks / (rate * elapsed)),
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Observation;

    use super::*;

    fn readings(totals: &[(&str, f64)]) -> Readings {
        let totals = totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let observation = Observation {
            totals,
            ..Observation::default()
        };
        Readings::of([&observation])
    }

    #[test]
    fn answers_that_wait_for_acknowledgements_are_told_by_how_many_lie_there() {
        let mut paths = Paths {
            whole_rate: Some(80.0),
            ..Paths::default()
        };
        paths.latency.mean = 0.001;
        let of = |mean, acks| {
            let totals = [
                ("queue.network.mean", mean),
                ("tcp.delayed_acks", acks),
                ("elapsed.seconds", 6.0),
            ];
            on_the_way(&readings(&totals), &paths)
        };
        let found = of(3.6, 480.0).unwrap();
        assert!((found.seconds - 0.045).abs() < 1e-9 && found.waits_for_acknowledgements());
        assert!(!of(3.6, 20.0).unwrap().waits_for_acknowledgements());
        assert_eq!(of(0.1, 480.0), None, "seen once or twice");
        paths.latency.mean = 0.2;
        assert_eq!(
            on_the_way(&readings(&[("queue.network.mean", 3.6)]), &paths),
            None,
            "the service itself takes longer"
        );
        assert_eq!(on_the_way(&readings(&[]), &paths), None, "nobody looked");
    }
}
