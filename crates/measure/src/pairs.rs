//! Two settings side by side: in a round each row is measured with both, back to back, in random order.
//!
//! A drift of the machine that is slower than two slices hits both of a pair, and cancels in their ratio. A pair counts
//! only when both of its halves came back, so that the n-th process of one side always belongs to the n-th of the
//! other.

use crate::course::{Extent, Interleaved, Turn};
use crate::estimate::Center;
use crate::pace::{self, Paces};
use crate::rounds::{Effort, Executor, JobState, Listener};
use crate::slice::Slice;

/// The two sides, in the order in which everything lists them.
pub const SIDES: [usize; 2] = [0, 1];

/// A failed pair is tried again this often before its row is given up.
const MAX_FAILURES: usize = 3;

/// What is known of a row on both sides.
pub type PairState = [JobState; 2];

/// Whether enough is known of a row. Asked after 10, 20, 40 … pairs only: an interval that is looked at after every
/// pair is outside by chance sooner or later.
pub type Decided<'a> = &'a dyn Fn(usize, &PairState) -> bool;

/// Measures rows in pairs until each is decided or the budget is spent, and returns what is known of each.
///
/// `centers` says for each row how samples become a value. The executor and the listener are told of job
/// `2 × row + side`.
pub fn run(
    centers: &[Center],
    effort: Effort,
    seed: u64,
    executor: &mut impl Executor,
    listener: &mut impl Listener,
    decided: Decided,
) -> Vec<PairState> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut states: Vec<PairState> = vec![PairState::default(); centers.len()];
    let mut paces = [Paces::default(), Paces::default()];
    let start = executor.now();
    let mut course = Interleaved::shuffled(
        centers.len(),
        rng.u64(..),
        Extent::rounds(effort.max_processes),
    );
    while let Some(Turn {
        step: row, round, ..
    }) = course.next(executor.interrupted())
    {
        if executor.now() - start >= effort.limit(round < effort.base_rounds) {
            break;
        }
        let order = if rng.bool() { [0, 1] } else { [1, 0] };
        let mut slices = [None, None];
        for side in order {
            let share =
                (executor.now() - start).as_secs_f64() / effort.budget.as_secs_f64().max(1e-9);
            listener.starting(2 * row + side, round, share.min(1.0));
            slices[side] = Some(executor.slice(2 * row + side));
        }
        let [Some(a), Some(b)] = slices else { continue };
        take_pair(&mut states[row], [a, b], centers[row], &mut paces);
        SIDES
            .iter()
            .for_each(|&side| listener.finished(2 * row + side, &states[row][side]));
        let pairs = states[row][0].processes.len();
        let rests = is_a_look(pairs, effort.base_rounds) && decided(row, &states[row]);
        if rests || states[row].iter().any(|side| side.given_up) {
            course.leave_out(row);
        }
    }
    // The best paces are known only now.
    states
        .iter_mut()
        .zip(centers)
        .for_each(|(state, center)| settle(state, &paces, *center));
    states
}

/// Both halves, or neither; what kept one from coming is kept on its own side. Pairs that the CPU's pace speaks against
/// are excluded where it matters.
fn take_pair(state: &mut PairState, slices: [Slice; 2], center: Center, paces: &mut [Paces; 2]) {
    let before = state[0].processes.len();
    let whole = slices.iter().all(|s| matches!(s, Slice::Samples(_)));
    for (side, slice) in slices.into_iter().enumerate() {
        if whole || !matches!(slice, Slice::Samples(_)) {
            state[side].take(slice, center);
        }
        // A pair fails twice as easily as a process, so that it is tried once more than a single process is.
        let lasting = state[side].skipped.is_some() || state[side].failures.len() >= MAX_FAILURES;
        state[side].given_up &= lasting || state[side].hung;
    }
    for (side, paces) in state.iter().zip(paces.iter_mut()) {
        side.processes[before..]
            .iter()
            .for_each(|new| paces.add(new));
    }
    settle(state, paces, center);
}

/// Excludes the pairs that the CPU's pace speaks against, as it is known by now and where it matters, and makes the
/// estimates of both sides anew.
fn settle(state: &mut PairState, paces: &[Paces; 2], center: Center) {
    let [a, b] = state;
    if center.across_slowed.is_some() {
        pace::exclude_pairs(paces, [&mut a.processes, &mut b.processes]);
    }
    state
        .iter_mut()
        .for_each(|side| side.estimate_again(center.across, 0.0));
}

/// Doubling numbers of pairs, from the base rounds on.
fn is_a_look(pairs: usize, base: usize) -> bool {
    let base = base.max(1);
    pairs >= base && pairs.is_multiple_of(base) && (pairs / base).is_power_of_two()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fingerpost_record::Process;

    use super::*;
    use crate::slice::Samples;

    /// A machine that drifts by ten times the difference between the sides, on which a slice may fail.
    struct Drifting {
        now: Duration,
        calls: Vec<(usize, usize)>,
        fails: fn(usize) -> bool,
    }

    impl Executor for Drifting {
        fn slice(&mut self, job: usize) -> Slice {
            let (row, side) = (job / 2, job % 2);
            self.now += Duration::from_millis(50);
            self.calls.push((row, side));
            if (self.fails)(self.calls.len()) {
                return Slice::Failed("crashed".into());
            }
            let drift = 1.0 + 0.1 * (self.now.as_secs_f64() * 0.3).sin();
            let value = 100.0 * drift * if side == 1 { 1.01 } else { 1.0 };
            // Every third slice has a neighbour.
            let pace = if self.calls.len().is_multiple_of(3) {
                8000.0
            } else {
                4000.0
            };
            let process = Process {
                samples: vec![value; 5],
                pace: vec![pace],
                batch: 1,
                ..Process::default()
            };
            Slice::Samples(Samples {
                process,
                resident: 0,
            })
        }
        fn now(&self) -> Duration {
            self.now
        }
        fn interrupted(&self) -> bool {
            false
        }
    }

    struct NoListener;
    impl Listener for NoListener {
        fn starting(&mut self, _: usize, _: usize, _: f64) {}
        fn finished(&mut self, _: usize, _: &JobState) {}
    }

    const EFFORT: Effort = Effort {
        budget: Duration::from_secs(30),
        base_rounds: 10,
        max_processes: 1000,
    };

    fn values(state: &JobState) -> Vec<f64> {
        state.processes.iter().filter_map(|p| p.value).collect()
    }

    #[test]
    fn drift_cancels_within_the_pairs() {
        let mut machine = Drifting {
            now: Duration::ZERO,
            calls: Vec::new(),
            fails: |_| false,
        };
        let states = run(
            &[Center::MEDIAN],
            EFFORT,
            3,
            &mut machine,
            &mut NoListener,
            &|_, _| false,
        );
        let (a, b) = (values(&states[0][0]), values(&states[0][1]));
        assert_eq!(a.len(), b.len());
        assert!(a.len() > 250, "{}", a.len());
        let spread = |v: &[f64]| {
            v.iter().fold(0.0_f64, |m, x| m.max(*x)) / v.iter().fold(f64::MAX, |m, x| m.min(*x))
        };
        let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b / a).collect();
        assert!(
            spread(&a) > 1.15 && spread(&ratios) < 1.01,
            "{} {}",
            spread(&a),
            spread(&ratios)
        );
        assert!(
            machine.calls.chunks(2).any(|c| c[0].1 == 0)
                && machine.calls.chunks(2).any(|c| c[0].1 == 1)
        );
    }

    #[test]
    fn pairs_beside_a_slowed_cpu_are_excluded_where_pace_matters() {
        let excluded = |center: Center| {
            let mut machine = Drifting {
                now: Duration::ZERO,
                calls: Vec::new(),
                fails: |_| false,
            };
            let effort = Effort {
                max_processes: 30,
                ..EFFORT
            };
            let states = run(
                &[center],
                effort,
                3,
                &mut machine,
                &mut NoListener,
                &|_, _| false,
            );
            states[0]
                .each_ref()
                .map(|side| side.processes.iter().filter(|p| p.excluded).count())
        };
        // Of three pairs two hold a third slice.
        assert_eq!(excluded(Center::MEDIAN), [20, 20]);
        assert_eq!(excluded(Center::MEDIAN.of_all()), [0, 0]);
    }

    #[test]
    fn a_failed_half_takes_its_partner_with_it() {
        let mut machine = Drifting {
            now: Duration::ZERO,
            calls: Vec::new(),
            fails: |call| call == 7,
        };
        let effort = Effort {
            max_processes: 12,
            ..EFFORT
        };
        let states = run(
            &[Center::MEDIAN],
            effort,
            3,
            &mut machine,
            &mut NoListener,
            &|_, _| false,
        );
        assert_eq!(
            (states[0][0].processes.len(), states[0][1].processes.len()),
            (11, 11)
        );
        assert_eq!(states[0][0].failures.len() + states[0][1].failures.len(), 1);
        let mut broken = Drifting {
            now: Duration::ZERO,
            calls: Vec::new(),
            fails: |_| true,
        };
        let states = run(
            &[Center::MEDIAN],
            effort,
            3,
            &mut broken,
            &mut NoListener,
            &|_, _| false,
        );
        assert!(states[0][0].given_up && broken.calls.len() == 2 * MAX_FAILURES);
    }

    #[test]
    fn a_decided_row_rests_at_a_look_and_not_between() {
        let mut machine = Drifting {
            now: Duration::ZERO,
            calls: Vec::new(),
            fails: |_| false,
        };
        let decided = |row: usize, state: &PairState| row == 0 && state[0].processes.len() > 10;
        let states = run(
            &[Center::MEDIAN; 2],
            EFFORT,
            3,
            &mut machine,
            &mut NoListener,
            &decided,
        );
        assert_eq!(states[0][0].processes.len(), 20);
        assert!(states[1][0].processes.len() > 200);
        assert!(is_a_look(40, 10) && !is_a_look(30, 10) && !is_a_look(0, 10));
    }
}
