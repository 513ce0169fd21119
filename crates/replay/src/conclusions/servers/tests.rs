use fingerpost_record::{Better, Estimate, Measurement, Process, Unit};

use super::*;

/// A server's throughput by clients, which is up to so many times as high or as low in its rounds.
fn served(points: &[(i64, f64)], apart: f64) -> Run {
    let row = |(clients, value): &(i64, f64)| {
        let params = Params::new()
            .with("engine", "mariadb")
            .with("mix", "read")
            .with("query_cache", "off")
            .with("clients", *clients);
        let none = fingerpost_record::fixture::row(
            own::THROUGHPUT,
            params,
            Unit::PerSecond,
            Better::Higher,
        );
        let rounds = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|of| value * apart.powf(of));
        let estimate = Some(Estimate {
            value: *value,
            low: value / apart,
            high: value * apart,
            confidence: 0.95,
        });
        Measurement {
            estimate,
            processes: rounds.map(|v| Process::of_one(v, 1)).to_vec(),
            ..none
        }
    };
    Run {
        measurements: points.iter().map(row).collect(),
        ..Run::default()
    }
}

fn answer(key: &str, run: &Run) -> Answer {
    super::super::all()
        .find(|c| c.key == key)
        .unwrap()
        .by_run(run)
        .answer
}

#[test]
fn what_the_intervals_of_a_scaling_leave_open_is_not_decided() {
    // It grows and holds that; it collapses.
    let grows = [(1, 100.0), (2, 190.0), (5, 240.0), (50, 235.0)];
    let falls = [(1, 100.0), (2, 150.0), (5, 60.0), (50, 25.0)];
    let keys = [
        "mysql_collapses",
        "linux_does_not_collapse",
        "second_client_helps",
        "two_clients_leave_room",
    ];
    let of =
        |points: &[(i64, f64)], apart: f64| keys.map(|key| answer(key, &served(points, apart)));
    assert_eq!(
        of(&grows, 1.02),
        [Answer::False, Answer::True, Answer::True, Answer::True]
    );
    assert_eq!(
        of(&falls, 1.02),
        [Answer::True, Answer::False, Answer::True, Answer::False]
    );
    // Figures of which each might be a third, or three times as much.
    assert_eq!(of(&grows, 3.0), [Answer::NotResolved; 4]);
    // A fall to a quarter is one for all that moves a little.
    assert_eq!(of(&falls, 1.2)[..2], [Answer::True, Answer::False]);
    // Twice what one gets, at four fifths of the peak, and at what may be far less of it.
    assert_eq!(
        of(&[(1, 100.0), (2, 190.0), (5, 260.0), (50, 215.0)], 1.02)[1],
        Answer::True
    );
    assert_eq!(
        of(&[(1, 100.0), (2, 190.0), (5, 298.0), (50, 215.0)], 1.02)[1],
        Answer::NotResolved
    );
    let told = super::super::all()
        .find(|c| c.key == "second_client_helps")
        .unwrap()
        .by_run(&served(&grows, 3.0));
    assert!(
        told.figure.starts_with("two clients get 190 % (") && told.figure.contains(" to "),
        "{}",
        told.figure
    );
}

#[test]
fn the_caches_gain_is_as_sure_as_the_two_figures() {
    let both = |gain: f64, apart: f64| {
        let (mut run, mut cached) = (
            served(&[(1, 100.0)], apart),
            served(&[(1, gain * 100.0)], apart),
        );
        cached
            .measurements
            .iter_mut()
            .for_each(|m| m.params = m.params.clone().with("query_cache", "on"));
        run.measurements.extend(cached.measurements);
        answer("query_cache_widens_the_gap", &run)
    };
    // Of another setting besides nothing is said.
    let mut other = served(&[(1, 500.0)], 1.04);
    other.measurements[0].params = other.measurements[0]
        .params
        .clone()
        .with("query_cache", "on");
    let mut locking = served(&[(1, 100.0)], 1.04);
    locking.measurements[0].params = locking.measurements[0]
        .params
        .clone()
        .with("server.external_locking", 1);
    other.measurements.extend(locking.measurements);
    assert_eq!(
        answer("query_cache_widens_the_gap", &other),
        Answer::NotMeasured
    );
    assert_eq!(
        [both(5.0, 1.04), both(1.2, 1.04)],
        [Answer::True, Answer::False]
    );
    assert_eq!([both(2.1, 1.6), both(1.9, 1.6)], [Answer::NotResolved; 2]);
    assert_eq!(
        answer("query_cache_widens_the_gap", &served(&[(1, 100.0)], 1.04)),
        Answer::NotMeasured
    );
}
