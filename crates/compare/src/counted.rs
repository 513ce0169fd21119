//! Two looks at a service of which the kernel counted every request.
//!
//! Windows show a part of a look; where requests are slow for a moment, or rarely, they may show none of these. What was
//! counted is all that came, so that its mean, its rate and its quantiles are no estimates: what they say of the two
//! looks goes before what windows say of them.

use fingerpost_diagnose::outside::seconds_on_the_way;
use fingerpost_record::{Params, Paths, Readings, Unit, WholeLook};
use serde::Serialize;

use crate::service::WORKLOAD;
use crate::side::Side;

/// Fewer requests than these on a side tell nothing of its mean.
const LEAST: u64 = 20;
/// From this factor on two means are told as different. They are those of all requests, and so differ for certain; below
/// it what else ran on the machine during two looks makes as much.
const OTHERWISE: f64 = 1.25;

/// A service on two sides, by all of its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Which service.
    pub params: Params,
    /// Requests that were answered, base and new.
    pub requests: [u64; 2],
    /// Seconds of a request in the mean, base and new, with what its answer took on the way.
    pub mean: [f64; 2],
    /// Of these, seconds on the way; nothing where they were not looked at on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_the_way: Option<[f64; 2]>,
    /// Seconds that half of the requests took at most, without those on the way, base and new.
    pub median: [f64; 2],
    /// The same of 99 in 100.
    pub p99: [f64; 2],
    /// Requests a second that were answered, base and new.
    pub rate: [f64; 2],
}

impl Counted {
    /// How many times as long a request takes on the new side, where that is another time.
    pub fn factor(&self) -> Option<f64> {
        let [base, new] = self.mean;
        let enough = self.requests.iter().all(|n| *n >= LEAST) && base > 0.0;
        let other = |factor: &f64| *factor >= OTHERWISE || *factor <= 1.0 / OTHERWISE;
        Some(new / base).filter(|factor| enough && factor.is_finite() && other(factor))
    }

    /// What differs, in a sentence.
    pub fn sentence(&self, base: &str, new: &str) -> Option<String> {
        let factor = self.factor()?;
        let time = |seconds: f64| Unit::Nanoseconds.format(seconds * 1e9);
        let (times, slow, fast, order) = if factor >= 1.0 {
            (factor, new, base, [1, 0])
        } else {
            (1.0 / factor, base, new, [0, 1])
        };
        let both = |of: [f64; 2]| order.map(|side| time(of[side])).join(" and ");
        let on_the_way = self.on_the_way.filter(|seconds| *seconds != [0.0; 2]);
        let on_the_way = on_the_way.map_or_else(String::new, |seconds| {
            format!(
                ", of it {} on the way when the answer is written",
                both(seconds)
            )
        });
        let [slow_rate, fast_rate] = order.map(|side| Unit::PerSecond.format(self.rate[side]));
        Some(format!(
            "A request of service ({}) takes {times:.1} times as long on {slow} as on {fast}, by all that were counted: \
             {} in the mean{on_the_way}, 99 % within {}, {slow_rate} and {fast_rate} answered.",
            self.params,
            both(self.mean),
            both(self.p99)
        ))
    }
}

/// Every service of which both sides counted all requests.
pub fn counted(base: &Side, new: &Side) -> Vec<Counted> {
    let whole = |paths: &Paths| paths.whole.clone().filter(|_| paths.workload == WORKLOAD);
    let of = |paths: &Paths| {
        let other = new
            .steps
            .paths
            .iter()
            .find(|p| p.workload == paths.workload && p.params == paths.params)?;
        let looks: [WholeLook; 2] = [whole(paths)?, whole(other)?];
        let on_the_way = [(base, paths), (new, other)].map(|(side, paths)| {
            let of_step = side
                .steps
                .observations
                .iter()
                .filter(|o| o.workload == paths.workload && o.params == paths.params);
            seconds_on_the_way(&Readings::of(of_step), paths)
        });
        let on_the_way = on_the_way[0].zip(on_the_way[1]).map(<[f64; 2]>::from);
        let [more_base, more_new] = on_the_way.unwrap_or_default();
        let each = |of: fn(&WholeLook) -> f64| [of(&looks[0]), of(&looks[1])];
        let mean = each(|w| w.latency.mean);
        Some(Counted {
            params: paths.params.clone(),
            requests: [looks[0].latency.count, looks[1].latency.count],
            mean: [mean[0] + more_base, mean[1] + more_new],
            on_the_way,
            median: each(|w| w.latency.p50),
            p99: each(|w| w.latency.p99),
            rate: each(WholeLook::rate),
        })
    };
    // Of several looks one account is kept.
    let one = [base, new].iter().all(|side| side.info.ids.len() == 1);
    let paths = base.steps.paths.iter().filter(|_| one);
    paths.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use fingerpost_record::paths::Latency;
    use fingerpost_record::{Observation, Run};

    use super::*;

    fn side(count: u64, mean: f64, p99: f64, on_the_way: f64) -> Side {
        let params = Params::new().with("port", 80);
        let whole = WholeLook {
            seconds: 10.0,
            latency: Latency {
                count,
                mean,
                p50: mean / 2.0,
                p90: p99 / 2.0,
                p99,
            },
            ..WholeLook::default()
        };
        let rate = whole.rate();
        let paths = Paths {
            workload: WORKLOAD.into(),
            params: params.clone(),
            whole: Some(whole),
            whole_rate: Some(rate),
            ..Paths::default()
        };
        let totals = [("queue.network.mean".to_owned(), on_the_way)];
        let observation = Observation {
            workload: WORKLOAD.into(),
            params,
            observer: "sockets".into(),
            totals: totals.into(),
            ..Observation::default()
        };
        Side::of(&[Run {
            id: "one".into(),
            paths: vec![paths],
            observations: vec![observation],
            ..Run::default()
        }])
    }

    #[test]
    fn all_requests_tell_what_a_request_takes_and_few_or_alike_tell_nothing() {
        let found = |base, new| counted(&base, &new).remove(0);
        let slower = found(
            side(1800, 0.000_25, 0.0036, 0.0),
            side(3000, 0.016, 0.98, 0.0),
        );
        let text = slower.sentence("the base", "the new run").unwrap();
        assert!(
            text.contains("takes 64.0 times as long on the new run as on the base")
                && text.contains(
                    "16.00 ms and 250.0 µs in the mean, 99 % within 980.0 ms and 3.600 ms"
                )
                && text.contains("300.0 /s and 180.0 /s answered"),
            "{text}"
        );
        let faster = found(
            side(3000, 0.016, 0.98, 0.0),
            side(1800, 0.000_25, 0.0036, 0.0),
        );
        let text = faster.sentence("the base", "the new run").unwrap();
        assert!(text.contains("64.0 times as long on the base"), "{text}");
        let alike = found(side(1800, 0.01, 0.03, 0.0), side(1800, 0.012, 0.05, 0.0));
        assert_eq!(alike.sentence("a", "b"), None);
        let few = found(side(1800, 0.01, 0.03, 0.0), side(8, 3.0, 3.0, 0.0));
        assert_eq!(few.factor(), None);
    }

    #[test]
    fn what_answers_take_on_the_way_is_of_a_request() {
        let delayed =
            counted(&side(800, 0.001, 0.002, 0.0), &side(800, 0.001, 0.002, 3.5)).remove(0);
        let text = delayed.sentence("the base", "the new run").unwrap();
        assert!(
            text.contains("44.8 times") && text.contains("43.75 ms and 0 ns on the way"),
            "{text}"
        );
        assert!(counted(&Side::default(), &side(800, 0.1, 0.2, 0.0)).is_empty());
    }
}
