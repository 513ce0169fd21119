//! A loop of fixed work, again and again, as benchmarks of an operating system's noise do. On a quiet machine every
//! piece takes the same time; what it takes longer was taken from it by another process, an interrupt, the hypervisor,
//! or a CPU that changes its clock.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fingerpost_sys::{affinity, system};
use serde::Serialize;

/// How long a piece should take: well below a scheduler's tick, well above the clock's resolution.
const PIECE: Duration = Duration::from_millis(1);
/// How long finding the piece's work may take.
const CALIBRATION: Duration = Duration::from_millis(200);
/// A piece counts as slow when it takes so much longer than the CPU's undisturbed piece.
const SLOW: f64 = 1.05;
/// The quantile that stands for an undisturbed piece: low, as noise only lengthens; not the least, which one misread
/// clock can make.
const UNDISTURBED: f64 = 0.1;

/// One piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Nanoseconds after the start of the first piece.
    pub start_ns: u64,
    /// How long it took.
    pub ns: u64,
}

/// The pieces of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The CPU.
    pub cpu: usize,
    /// Its pieces in order.
    pub pieces: Vec<Piece>,
    /// Involuntary context switches meanwhile.
    pub involuntary: u64,
}

/// What the pieces of one CPU, or of all, say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steadiness {
    /// The CPU; `None` for all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
    /// Pieces timed.
    pub pieces: usize,
    /// Nanoseconds of an undisturbed piece: their 10th percentile.
    pub undisturbed_ns: f64,
    /// Standard deviation over mean.
    pub variation: f64,
    /// Share of the pieces, 0 to 1, that took over 5 % longer than an undisturbed one of the same CPU.
    pub slow_share: f64,
    /// The longest that a piece took beyond an undisturbed one, in nanoseconds.
    pub longest_stall_ns: f64,
    /// Share of the time, 0 to 1, that the pieces took beyond undisturbed ones: what was taken from us.
    pub lost_share: f64,
    /// Involuntary context switches.
    pub involuntary: u64,
}

/// What fixed work on every CPU says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FixedWork {
    /// Each CPU that had time for at least one piece.
    pub cpus: Vec<Steadiness>,
    /// All together, each CPU against its own undisturbed piece; `None` when there was no piece at all.
    pub all: Option<Steadiness>,
    /// How much slower the slowest CPU's undisturbed piece is than the fastest's: 0.1 is 10 %.
    pub spread_between_cpus: f64,
}

/// Repeats it on each of these CPUs, `at_once` of them at a time, for `duration` in all.
///
/// A CPU quota would stop the work on more CPUs than it allows, and the noise that is found would then be its own: pass
/// what the quota allows.
pub fn run(cpus: &[usize], at_once: usize, duration: Duration) -> Vec<Samples> {
    let steps = calibrate();
    let at_once = at_once.clamp(1, cpus.len().max(1));
    let share = duration / cpus.len().div_ceil(at_once).max(1) as u32;
    let start = Instant::now();
    cpus.chunks(at_once)
        .flat_map(|group| run_together(group, steps, start, share))
        .collect()
}

fn run_together(cpus: &[usize], steps: u64, start: Instant, share: Duration) -> Vec<Samples> {
    std::thread::scope(|scope| {
        let start_one = |&cpu: &usize| {
            std::thread::Builder::new()
                .spawn_scoped(scope, move || repeat(cpu, steps, start, share))
        };
        let threads: Vec<_> = cpus.iter().map(start_one).collect();
        // A CPU for which no thread can be had (RLIMIT_NPROC) is left out.
        threads
            .into_iter()
            .filter_map(|thread| thread.ok()?.join().ok())
            .collect()
    })
}

/// A thread of its own, so that nothing else is confined to the CPU. A CPU that we may not use, or no longer, has no
/// pieces.
fn repeat(cpu: usize, steps: u64, start: Instant, share: Duration) -> Samples {
    let mut samples = Samples {
        cpu,
        ..Default::default()
    };
    if affinity::pin(&[cpu]).is_err() {
        return samples;
    }
    samples
        .pieces
        .reserve((share.as_millis() as usize).saturating_mul(2).min(1 << 20));
    let switches = || system::thread_switches().map_or(0, |switches| switches.involuntary);
    let before = switches();
    let end = Instant::now() + share;
    loop {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        work(steps);
        let ns = begun.elapsed().as_nanos() as u64;
        samples.pieces.push(Piece {
            start_ns: begun.duration_since(start).as_nanos() as u64,
            ns,
        });
    }
    samples.involuntary = switches().saturating_sub(before);
    samples
}

/// Fixed work in registers: each step needs the last one's result, so it takes the same cycles every time.
fn work(steps: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// How many steps fill a piece. Of several trials the shortest counts; a machine too busy for any answer ends it at the
/// deadline.
fn calibrate() -> u64 {
    let deadline = Instant::now() + CALIBRATION;
    let mut steps = 1_000;
    while Instant::now() < deadline {
        let trial = || {
            let begun = Instant::now();
            work(steps);
            begun.elapsed()
        };
        let shortest = (0..3).map(|_| trial()).min().unwrap_or(PIECE);
        if shortest >= PIECE {
            break;
        }
        // At least double, at most 16 times: a first trial of a cold CPU says little.
        let wanted = PIECE.as_nanos() / shortest.as_nanos().max(1) + 1;
        steps *= (wanted as u64).clamp(2, 16);
    }
    steps
}

/// What the samples say. No clock, no I/O.
pub fn evaluate(samples: &[Samples]) -> FixedWork {
    let measured: Vec<&Samples> = samples
        .iter()
        .filter(|samples| !samples.pieces.is_empty())
        .collect();
    let cpus: Vec<Steadiness> = measured.iter().map(|samples| steadiness(samples)).collect();
    let floors = cpus.iter().map(|cpu| cpu.undisturbed_ns);
    let (fastest, slowest) = (
        floors.clone().fold(f64::INFINITY, f64::min),
        floors.fold(0.0, f64::max),
    );
    // Every piece in units of its CPU's undisturbed one, so that CPUs of different speed are no noise.
    let pieces = measured
        .iter()
        .zip(&cpus)
        .flat_map(|(samples, cpu)| samples.pieces.iter().map(move |p| (p, cpu)));
    let relative: Vec<f64> = pieces
        .map(|(p, cpu)| (p.ns as f64).max(1.0) / cpu.undisturbed_ns)
        .collect();
    let all = (!relative.is_empty()).then(|| Steadiness {
        cpu: None,
        undisturbed_ns: fastest,
        longest_stall_ns: cpus
            .iter()
            .map(|cpu| cpu.longest_stall_ns)
            .fold(0.0, f64::max),
        involuntary: cpus.iter().map(|cpu| cpu.involuntary).sum(),
        ..summary(&relative, 1.0)
    });
    let spread_between_cpus = if cpus.is_empty() {
        0.0
    } else {
        slowest / fastest - 1.0
    };
    FixedWork {
        cpus,
        all,
        spread_between_cpus,
    }
}

fn steadiness(samples: &Samples) -> Steadiness {
    let mut times: Vec<f64> = samples
        .pieces
        .iter()
        .map(|piece| (piece.ns as f64).max(1.0))
        .collect();
    times.sort_by(f64::total_cmp);
    let floor = times[((times.len() - 1) as f64 * UNDISTURBED) as usize];
    Steadiness {
        cpu: Some(samples.cpu),
        involuntary: samples.involuntary,
        ..summary(&times, floor)
    }
}

fn summary(times: &[f64], floor: f64) -> Steadiness {
    let count = times.len() as f64;
    let sum: f64 = times.iter().sum();
    let mean = sum / count;
    let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / count;
    Steadiness {
        cpu: None,
        pieces: times.len(),
        undisturbed_ns: floor,
        variation: variance.sqrt() / mean,
        slow_share: times.iter().filter(|t| **t > floor * SLOW).count() as f64 / count,
        longest_stall_ns: times.iter().fold(0.0, |most: f64, t| most.max(t - floor)),
        lost_share: times.iter().map(|t| (t - floor).max(0.0)).sum::<f64>() / sum,
        involuntary: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(cpu: usize, times: impl IntoIterator<Item = u64>) -> Samples {
        let pieces = times
            .into_iter()
            .enumerate()
            .map(|(i, ns)| Piece {
                start_ns: i as u64,
                ns,
            })
            .collect();
        Samples {
            cpu,
            pieces,
            involuntary: 2,
        }
    }

    #[test]
    fn a_steady_machine() {
        let found = evaluate(&[samples(0, [1_000_000; 100]), samples(1, [1_000_000; 100])]);
        let all = found.all.unwrap();
        assert_eq!(
            (
                all.pieces,
                all.variation,
                all.slow_share,
                all.longest_stall_ns,
                all.lost_share
            ),
            (200, 0.0, 0.0, 0.0, 0.0)
        );
        assert_eq!((all.involuntary, found.spread_between_cpus), (4, 0.0));
    }

    #[test]
    fn one_long_stall_is_seen_as_one() {
        let times = (0..100).map(|i| if i == 50 { 21_000_000 } else { 1_000_000 });
        let cpu = &evaluate(&[samples(3, times)]).cpus[0];
        assert_eq!(
            (
                cpu.cpu,
                cpu.slow_share,
                cpu.longest_stall_ns,
                cpu.undisturbed_ns
            ),
            (Some(3), 0.01, 20e6, 1e6)
        );
        assert!(
            (cpu.lost_share - 20.0 / 120.0).abs() < 1e-12 && cpu.variation > 1.0,
            "{cpu:?}"
        );
    }

    #[test]
    fn slow_means_over_five_percent_even_where_most_pieces_are() {
        let times = (0..100).map(|i| if i < 30 { 1_000_000 } else { 1_100_000 });
        assert_eq!(evaluate(&[samples(0, times)]).cpus[0].slow_share, 0.7);
        let times = (0..100).map(|i| if i < 30 { 1_000_000 } else { 1_040_000 });
        assert_eq!(evaluate(&[samples(0, times)]).cpus[0].slow_share, 0.0);
    }

    #[test]
    fn cpus_of_different_speed_are_a_spread_and_no_noise() {
        let found = evaluate(&[samples(0, [1_000_000; 50]), samples(1, [1_500_000; 50])]);
        assert_eq!(found.spread_between_cpus, 0.5);
        let all = found.all.unwrap();
        assert_eq!((all.variation, all.slow_share), (0.0, 0.0));
    }

    #[test]
    fn no_pieces_no_answer() {
        assert_eq!(
            evaluate(&[]),
            FixedWork {
                cpus: vec![],
                all: None,
                spread_between_cpus: 0.0
            }
        );
        assert_eq!(evaluate(&[samples(0, [])]).all, None);
        assert!(
            evaluate(&[samples(0, [0, 0])])
                .all
                .is_some_and(|all| all.variation == 0.0)
        );
    }

    #[test]
    fn it_runs_on_every_cpu_and_stays_within_its_time() {
        let cpus = affinity::allowed_cpus().unwrap();
        let measured = run(&cpus, 1, Duration::from_millis(60) * cpus.len() as u32);
        assert_eq!(
            measured
                .iter()
                .map(|samples| samples.cpu)
                .collect::<Vec<_>>(),
            cpus
        );
        assert!(
            measured.iter().all(|samples| !samples.pieces.is_empty()
                && samples.pieces.iter().all(|piece| piece.ns > 0))
        );
    }

    #[test]
    fn a_cpu_that_is_not_there_has_no_pieces() {
        assert_eq!(run(&[100_000], 1, Duration::from_millis(5))[0].pieces, []);
    }
}
