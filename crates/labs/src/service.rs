//! A service that somebody else started: what followed requests of it come to as rows of a record.
//!
//! Its windows are put together to stretches, each of which is to a row what a repetition is to a lab's: their spread
//! is what a comparison of two records judges by.

pub use fingerpost_compare::service::{LATENCY, PERCENTILE, RATE, WORKLOAD};
use fingerpost_diagnose::StepFigures;
use fingerpost_measure::estimate::sorted;
use fingerpost_observe::follow::Stretch;
use fingerpost_record::descriptor::table;
use fingerpost_record::{Measurement, Outcome, Params, Percentiles, Process, WholeLook};

use crate::rows::Definition;

const OF_LATENCY: Definition = Definition {
    table: &table::SERVICE,
    place: Some(0),
    probe: LATENCY,
    ..Definition::LATENCY
};
pub(crate) const OF_RATE: Definition = Definition {
    table: &table::SERVICE,
    place: Some(1),
    probe: RATE,
    ..Definition::RATE
};

/// Stretches at most, and requests that one needs for a percentile: as many as make one request beyond it.
const MOST_STRETCHES: usize = 20;
const FOR_MEDIAN: usize = 20;
const FOR_P99: usize = 100;
/// Stretches that a trusted figure needs at least.
const LEAST_STRETCHES: usize = 3;

/// Requests a second at the service's sockets, over all windows; nothing where no window was open. Of the requests that
/// a window cut half belong to it: those that began before it and ended in it, or the other way round.
fn rate(stretches: &[Stretch]) -> Option<f64> {
    let seconds: f64 = stretches.iter().map(|s| s.seconds).sum();
    let requests: f64 = stretches.iter().map(requests).sum();
    (seconds > 0.0).then(|| requests / seconds)
}

fn requests(s: &Stretch) -> f64 {
    s.latencies.len() as f64 + s.cut as f64 / 2.0
}

/// The figures of a watched service, for the budget and the suspects: all its requests in these seconds. `whole_rate`
/// is how many came a second in all of the time, where that was counted ([`fingerpost_record::Paths::whole_rate`]).
pub fn figures(stretches: &[Stretch], elapsed_s: f64, whole_rate: Option<f64>) -> StepFigures {
    let rate = rate(stretches).unwrap_or(0.0);
    let followed: usize = stretches.iter().map(|s| s.latencies.len()).sum();
    let sum: u64 = stretches.iter().flat_map(|s| &s.latencies).sum();
    let mean = sum as f64 * 1e-9 / followed.max(1) as f64;
    StepFigures {
        transactions: (whole_rate.unwrap_or(rate) * elapsed_s).round() as u64,
        elapsed_s,
        clients: rate * mean,
        ..StepFigures::default()
    }
}

/// The figures of a program without requests, as one request of which windows of these seconds together show a part.
pub fn figures_of_programs(seen_s: f64, elapsed_s: f64) -> StepFigures {
    let turns_per_transaction = if seen_s > 0.0 {
        elapsed_s / seen_s
    } else {
        1.0
    };
    StepFigures {
        transactions: 1,
        elapsed_s,
        clients: 1.0,
        turns_per_transaction,
        ..StepFigures::default()
    }
}

/// The rows of a service's requests; `whole_rate` as of [`figures`]. Where every request was counted, that tells their
/// latency, and windows its spread.
pub fn rows(
    params: &Params,
    stretches: &[Stretch],
    whole_rate: Option<f64>,
    whole: Option<&WholeLook>,
) -> Vec<Measurement> {
    let percentile = |n: i64| params.clone().with(PERCENTILE, n);
    vec![
        latency(percentile(50), stretches, whole, 0.5, FOR_MEDIAN),
        latency(percentile(99), stretches, whole, 0.99, FOR_P99),
        row(&OF_RATE, params.clone(), rates(stretches, whole_rate), None),
    ]
}

/// Requests a second of stretches: their spread is that of windows, their level that of all of the time, where that is
/// known.
fn rates(stretches: &[Stretch], whole_rate: Option<f64>) -> Vec<Process> {
    let each = stretches.len().div_ceil(MOST_STRETCHES).max(1);
    let level = whole_rate
        .zip(rate(stretches).filter(|rate| *rate > 0.0))
        .map_or(1.0, |(whole, windows)| whole / windows);
    let of = |chunk: &[Stretch]| {
        Some((
            level * rate(chunk)?,
            chunk.iter().map(requests).sum::<f64>(),
        ))
    };
    let values = stretches.chunks(each).filter_map(of);
    values
        .map(|(value, requests)| Process::of_one(value, requests as u64))
        .collect()
}

fn latency(
    params: Params,
    stretches: &[Stretch],
    whole: Option<&WholeLook>,
    q: f64,
    least: usize,
) -> Measurement {
    let mut processes = Vec::new();
    let in_order: Vec<f64> = stretches
        .iter()
        .flat_map(|s| &s.latencies)
        .map(|&l| l as f64)
        .collect();
    let all = sorted(&in_order);
    let each = all.len().div_ceil(MOST_STRETCHES).max(least);
    for part in in_order.chunks(each).filter(|part| part.len() >= least) {
        processes.push(Process::of_one(at(&sorted(part), q), part.len() as u64));
    }
    let counted = whole
        .map(|whole| &whole.latency)
        .filter(|latency| latency.count >= least as u64);
    let percentiles = match counted {
        Some(all) => Some(Percentiles {
            p50: all.p50 * 1e9,
            p90: all.p90 * 1e9,
            p99: all.p99 * 1e9,
        }),
        None => (!all.is_empty()).then(|| Percentiles {
            p50: at(&all, 0.5),
            p90: at(&all, 0.9),
            p99: at(&all, 0.99),
        }),
    };
    let figure = percentiles.map(|p| if q == 0.5 { p.p50 } else { p.p99 });
    let mut row = row(&OF_LATENCY, params, processes, percentiles);
    // The figure is that of all requests; the stretches tell its spread.
    if let (Some(estimate), Some(figure)) = (&mut row.estimate, figure) {
        estimate.value = figure;
        (estimate.low, estimate.high) = (
            estimate.low.min(estimate.value),
            estimate.high.max(estimate.value),
        );
    }
    row
}

/// The value that a share `q` of sorted values does not exceed.
fn at(sorted: &[f64], q: f64) -> f64 {
    let rank = ((sorted.len() as f64 * q).ceil() as usize).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

fn row(
    of: &Definition,
    params: Params,
    processes: Vec<Process>,
    percentiles: Option<Percentiles>,
) -> Measurement {
    let few = (processes.len() < LEAST_STRETCHES).then(|| {
        format!(
            "made of {} stretches of requests; a figure needs {LEAST_STRETCHES}: watch for longer (--seconds)",
            processes.len()
        )
    });
    let none = || {
        (
            Outcome::Skipped,
            "too few requests were seen; watch for longer (--seconds)".to_owned(),
        )
    };
    of.row(params, processes, percentiles, few, none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(latencies: impl Iterator<Item = u64>, cut: u64) -> Stretch {
        Stretch {
            seconds: 0.1,
            latencies: latencies.collect(),
            cut,
        }
    }

    #[test]
    fn requests_become_rows_with_a_value_a_stretch() {
        let stretches: Vec<Stretch> = (0..40)
            .map(|i| stretch((1..=50).map(|l| (l + i) * 1000), 2))
            .collect();
        let rows = rows(&Params::new().with("name", "nginx"), &stretches, None, None);
        let keys: Vec<String> = rows
            .iter()
            .map(|r| format!("{} {}", r.probe, r.params))
            .collect();
        assert_eq!(
            keys,
            [
                "service.latency name=nginx percentile=50",
                "service.latency name=nginx percentile=99",
                "service.rate name=nginx"
            ]
        );
        assert!(
            rows.iter()
                .all(|r| r.outcome == Outcome::Measured && r.processes.len() >= 18),
            "{rows:#?}"
        );
        let p = rows[0].percentiles.unwrap();
        assert_eq!(
            (
                rows[0].estimate.unwrap().value,
                rows[1].estimate.unwrap().value
            ),
            (p.p50, p.p99)
        );
        assert!(
            (rows[2].estimate.unwrap().value - 510.0).abs() < 1e-9,
            "half of what was cut is counted"
        );
        let counted = super::rows(&Params::new(), &stretches, Some(540.0), None);
        assert!(
            (counted[2].estimate.unwrap().value - 540.0).abs() < 1e-9,
            "as many as came in all of the time"
        );
        assert_eq!(
            counted[0].estimate.unwrap().value,
            rows[0].estimate.unwrap().value
        );
        let whole = WholeLook {
            latency: fingerpost_record::Latency {
                count: 100_000,
                mean: 0.005,
                p50: 0.001,
                p90: 0.002,
                p99: 0.3,
            },
            ..WholeLook::default()
        };
        let all = super::rows(&Params::new(), &stretches, Some(540.0), Some(&whole));
        assert_eq!(
            [0, 1].map(|n| all[n].estimate.unwrap().value),
            [1e6, 3e8],
            "the latency is that of all requests, and not of those in windows"
        );
        assert!(
            all[1].estimate.unwrap().low < 3e8,
            "windows tell the spread"
        );
    }

    #[test]
    fn few_requests_are_not_trusted_and_none_is_no_figure() {
        let few = rows(
            &Params::new(),
            &[stretch(1..=60, 0), stretch(1..=60, 0)],
            None,
            None,
        );
        let outcomes: Vec<Outcome> = few.iter().map(|r| r.outcome).collect();
        assert_eq!(
            outcomes,
            [Outcome::Measured, Outcome::Untrusted, Outcome::Untrusted],
            "120 requests are enough for a median"
        );
        let none = rows(
            &Params::new(),
            &[stretch(std::iter::empty(), 0)],
            None,
            None,
        );
        assert_eq!(
            (none[0].outcome, none[1].outcome),
            (Outcome::Skipped, Outcome::Skipped)
        );
    }

    #[test]
    fn figures_are_those_of_all_requests_in_the_time() {
        let two = [
            stretch([2_000_000; 50].into_iter(), 0),
            stretch([4_000_000; 50].into_iter(), 0),
        ];
        let f = figures(&two, 10.0, None);
        assert_eq!((f.transactions, f.elapsed_s), (5000, 10.0));
        assert!(
            (f.clients - 500.0 * 3e-3).abs() < 1e-9,
            "by Little's law: {}",
            f.clients
        );
        let counted = figures(&two, 10.0, Some(520.0));
        assert_eq!(
            (counted.transactions, counted.clients),
            (5200, f.clients),
            "both factors of Little's law are of the same time"
        );
        assert!((figures_of_programs(0.5, 10.0).turns_per_transaction - 20.0).abs() < 1e-9);
    }
}
