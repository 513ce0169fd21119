//! The intervals and verdicts held against systems whose truth is known, because they are simulated. Seeds are fixed: a
//! failure means that the arithmetic changed.

use fingerpost_compare::{Comparison, Options, Verdict, compare};
use fingerpost_record::{Better, Estimate, Measurement, Outcome, Params, Process, Run, Unit};
use proptest::prelude::*;

/// A system's true cost per row, and how it varies between runs and between processes.
struct System {
    factor: f64,
    between_runs: f64,
    between_processes: f64,
}

fn normal(rng: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

impl System {
    fn run(&self, rows: usize, processes: usize, rng: &mut fastrand::Rng) -> Run {
        let measurements = (0..rows).map(|i| self.row(i, processes, rng)).collect();
        Run {
            id: "simulated".into(),
            measurements,
            ..Run::default()
        }
    }

    /// Process values with one-sided noise, as batches on a shared machine have: now and then a process is slow
    /// throughout.
    fn row(&self, i: usize, processes: usize, rng: &mut fastrand::Rng) -> Measurement {
        let level =
            100.0 * (1.0 + i as f64) * self.factor * (self.between_runs * normal(rng)).exp();
        let mut process = || {
            let slow = if rng.f64() < 0.1 {
                1.0 + 3.0 * self.between_processes
            } else {
                1.0
            };
            let value = level * (self.between_processes * normal(rng)).exp() * slow;
            Process {
                value: Some(value),
                samples: vec![value],
                batch: 1,
                ..Process::default()
            }
        };
        let processes: Vec<Process> = (0..processes).map(|_| process()).collect();
        let mut values: Vec<f64> = processes.iter().filter_map(|p| p.value).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let value = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        Measurement {
            probe: format!("syscall.simulated{i}"),
            descriptor: None,
            version: 1,
            params: Params::new(),
            unit: Unit::Nanoseconds,
            better: Better::Lower,
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(Estimate {
                value,
                low: values[n / 4].min(value),
                high: values[n - 1 - n / 4].max(value),
                confidence: 0.95,
            }),
            percentiles: None,
            processes,
        }
    }
}

fn system(factor: f64) -> System {
    System {
        factor,
        between_runs: 0.003,
        between_processes: 0.01,
    }
}

#[test]
fn the_interval_covers_the_truth_as_often_as_it_says() {
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut covered, mut rows) = (0, 0);
    for _ in 0..100 {
        let c = compare(
            &[system(1.0).run(20, 12, &mut rng)],
            &[system(1.1).run(20, 12, &mut rng)],
            &Options::default(),
        );
        for r in c.rows.iter().filter_map(|r| r.ratio) {
            covered += usize::from(r.low <= 1.1 && 1.1 <= r.high);
            rows += 1;
        }
    }
    let share = covered as f64 / rows as f64;
    assert!((0.93..=1.0).contains(&share), "{share} of {rows}");
}

#[test]
fn several_runs_cover_too_when_runs_differ_more_than_expected() {
    let mut rng = fastrand::Rng::with_seed(2);
    let wild = |factor| System {
        factor,
        between_runs: 0.03,
        between_processes: 0.01,
    };
    let (mut covered, mut rows) = (0, 0);
    for _ in 0..40 {
        let mut side = |factor: f64| {
            (0..8)
                .map(|_| wild(factor).run(20, 12, &mut rng))
                .collect::<Vec<_>>()
        };
        let (base, new) = (side(1.0), side(1.05));
        for r in compare(&base, &new, &Options::default())
            .rows
            .iter()
            .filter_map(|r| r.ratio)
        {
            covered += usize::from(r.low <= 1.05 && 1.05 <= r.high);
            rows += 1;
        }
    }
    let share = covered as f64 / rows as f64;
    assert!(share > 0.85, "{share} of {rows}");
}

#[test]
fn two_runs_of_one_system_give_no_slower_row() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut accused, mut same, mut rows) = (0, 0, 0);
    for _ in 0..100 {
        let c = compare(
            &[system(1.0).run(100, 12, &mut rng)],
            &[system(1.0).run(100, 12, &mut rng)],
            &Options {
                threshold: 0.05,
                ..Options::default()
            },
        );
        accused += c
            .rows
            .iter()
            .filter(|r| matches!(r.verdict, Verdict::Slower | Verdict::Faster))
            .count();
        same += c.rows.iter().filter(|r| r.verdict == Verdict::Same).count();
        rows += c.rows.len();
        assert!(c.causes.is_empty());
    }
    assert_eq!(accused, 0);
    assert!(same as f64 > 0.9 * rows as f64, "{same} of {rows}");
}

#[test]
fn without_any_threshold_false_discoveries_stay_below_their_rate() {
    let mut rng = fastrand::Rng::with_seed(4);
    let with_any = (0..200)
        .filter(|_| {
            let c = compare(
                &[system(1.0).run(50, 12, &mut rng)],
                &[system(1.0).run(50, 12, &mut rng)],
                &Options {
                    threshold: 0.0,
                    ..Options::default()
                },
            );
            c.rows
                .iter()
                .any(|r| matches!(r.verdict, Verdict::Slower | Verdict::Faster))
        })
        .count();
    // All rows are null, so every discovery is false and the rate is that of having any.
    assert!(with_any <= 20, "{with_any} of 200");
}

#[test]
fn rows_taken_together_are_called_different_as_seldom_though_runs_hit_them_alike() {
    let mut rng = fastrand::Rng::with_seed(9);
    let quiet = System {
        factor: 1.0,
        between_runs: 0.0,
        between_processes: 0.01,
    };
    // What a run has for all its rows: another clock rate, another layout of memory.
    let run = |rng: &mut fastrand::Rng| {
        System {
            factor: (0.003 * normal(rng)).exp(),
            ..quiet
        }
        .run(15, 12, rng)
    };
    let with_any = (0..200)
        .filter(|_| {
            let (base, new) = (run(&mut rng), run(&mut rng));
            !compare(
                &[base],
                &[new],
                &Options {
                    threshold: 0.0,
                    ..Options::default()
                },
            )
            .pooled
            .is_empty()
        })
        .count();
    println!("{with_any} of 200");
    assert!(with_any <= 15, "{with_any} of 200");
}

#[test]
fn rows_that_are_all_a_little_slower_are_found_together_and_not_alone() {
    let mut rng = fastrand::Rng::with_seed(10);
    let loud = |factor| System {
        factor,
        between_runs: 0.003,
        between_processes: 0.05,
    };
    let found = (0..50)
        .filter(|_| {
            let c = compare(
                &[loud(1.0).run(12, 12, &mut rng)],
                &[loud(1.06).run(12, 12, &mut rng)],
                &Options::default(),
            );
            // Where chance makes one of them stand out it is told alone.
            let alone = c.rows.iter().any(|r| r.verdict == Verdict::Slower);
            assert!(c.pooled.iter().all(|p| p.verdict == Verdict::Slower));
            alone || !c.pooled.is_empty()
        })
        .count();
    assert!(found >= 45, "{found} of 50");
}

#[test]
fn a_planted_slowdown_is_found() {
    let mut rng = fastrand::Rng::with_seed(5);
    let quiet = |factor| System {
        factor,
        between_runs: 0.002,
        between_processes: 0.004,
    };
    let found = (0..50)
        .filter(|_| {
            let base = quiet(1.0).run(100, 12, &mut rng);
            let mut new = quiet(1.0).run(100, 12, &mut rng);
            new.measurements[7] = quiet(1.03).row(7, 12, &mut rng);
            let c = compare(
                &[base],
                &[new],
                &Options {
                    threshold: 0.01,
                    ..Options::default()
                },
            );
            c.rows
                .iter()
                .any(|r| r.probe == "syscall.simulated7" && r.verdict == Verdict::Slower)
        })
        .count();
    assert!(found >= 45, "{found} of 50");
}

#[test]
fn pairs_resolve_what_drift_hides() {
    let mut rng = fastrand::Rng::with_seed(8);
    let (mut a, mut b) = (
        system(1.0).run(1, 24, &mut rng),
        system(1.0).run(1, 24, &mut rng),
    );
    for (i, (p, q)) in a.measurements[0]
        .processes
        .iter_mut()
        .zip(&mut b.measurements[0].processes)
        .enumerate()
    {
        // Half as slow again by the end of the run, alike for both settings; the second is 1 % slower.
        let drift = 100.0 * (1.0 + 0.5 * i as f64 / 24.0);
        p.value = Some(drift * (0.002 * normal(&mut rng)).exp());
        q.value = Some(drift * 1.01 * (0.002 * normal(&mut rng)).exp());
    }
    for run in [&mut a, &mut b] {
        run.measurements[0].estimate = Some(Estimate {
            value: 125.0,
            low: 110.0,
            high: 140.0,
            confidence: 0.95,
        });
    }
    let row = |paired, starts| {
        compare(
            std::slice::from_ref(&a),
            std::slice::from_ref(&b),
            &Options {
                threshold: 0.005,
                paired,
                starts,
            },
        )
        .rows[0]
            .clone()
    };
    assert_eq!(
        (row(false, 0.0).verdict, row(true, 0.0).verdict),
        (Verdict::Unresolved, Verdict::Slower)
    );
    // Two starts that differ by 5 % each: √2 · 1.96 · 5 % either way, besides what the pairs say.
    let ratio = row(true, 0.05).ratio.unwrap();
    assert_eq!(row(true, 0.05).verdict, Verdict::Unresolved);
    assert!(
        ((ratio.high / ratio.low).ln() / 2.0 - 0.1386).abs() < 0.001,
        "{ratio:?}"
    );
}

#[test]
fn the_same_runs_always_give_the_same_answer() {
    let mut rng = fastrand::Rng::with_seed(6);
    let (a, b) = (
        system(1.0).run(10, 12, &mut rng),
        system(1.2).run(10, 12, &mut rng),
    );
    let text = || {
        serde_json::to_string(&compare(
            std::slice::from_ref(&a),
            std::slice::from_ref(&b),
            &Options::default(),
        ))
        .unwrap()
    };
    assert_eq!(text(), text());
}

proptest! {
    #[test]
    fn turning_the_sides_round_inverts_every_ratio(seed in 0_u64..1000, factor in 0.2_f64..5.0, higher: bool) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut a, mut b) = (system(1.0).run(5, 6, &mut rng), system(factor).run(5, 6, &mut rng));
        if higher {
            a.measurements.iter_mut().chain(&mut b.measurements).for_each(|m| m.better = Better::Higher);
        }
        let options = Options::default();
        let (one, two) = (compare(&[a.clone()], &[b.clone()], &options), compare(&[b], &[a], &options));
        for (x, y) in one.rows.iter().zip(&two.rows) {
            let (r, s) = (x.ratio.unwrap(), y.ratio.unwrap());
            prop_assert!((r.value * s.value - 1.0).abs() < 1e-9 && (r.low * s.high - 1.0).abs() < 1e-9);
            let inverse = match x.verdict {
                Verdict::Slower => Verdict::Faster,
                Verdict::Faster => Verdict::Slower,
                v => v,
            };
            prop_assert_eq!(inverse, y.verdict);
        }
        let causes = |of: &Comparison| of.causes.iter().map(|c| c.cause.clone()).collect::<Vec<_>>();
        prop_assert_eq!(causes(&one), causes(&two));
    }

    #[test]
    fn whatever_the_figures_are_nothing_breaks(
        values in proptest::collection::vec((-1e3_f64..1e12, 0.0_f64..1e12, 0.0_f64..1e12), 1..20)
    ) {
        let row = |i: usize, (value, below, above): (f64, f64, f64)| Measurement {
            estimate: Some(Estimate { value, low: value - below, high: value + above, confidence: 0.95 }),
            outcome: Outcome::Measured,
            reason: None,
            ..Measurement::without_figure(
                &format!("cpu.x{i}"),
                1,
                Params::new(),
                Unit::Nanoseconds,
                Better::Lower,
                Outcome::Skipped,
                String::new(),
            )
        };
        let rows = |turn: usize| (0..values.len()).map(|i| row(i, values[(i + turn) % values.len()])).collect();
        let run = |turn: usize| Run { id: "x".into(), measurements: rows(turn), ..Run::default() };
        let c = compare(&[run(0)], &[run(1)], &Options::default());
        for r in c.rows.iter().filter_map(|r| r.ratio) {
            prop_assert!(r.low <= r.value && r.value <= r.high && r.value.is_finite());
        }
        prop_assert!(c.causes.iter().all(|f| f.share.is_finite()) && (0.0..=1.0).contains(&c.unexplained));
        prop_assert!(!c.headline.is_empty());
    }
}
