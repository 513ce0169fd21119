//! Which probe runs next, until when.
//!
//! A run is rounds. In a base round every job runs once, in a fresh process, in random order, so that drift and noise
//! hit all alike. What time the base rounds leave goes where the uncertainty is: to rounds of those jobs only whose
//! interval is wider than its target. The base rounds are spread over the budget with the others between them, so that
//! every figure is of the whole run and not of the minute that it began with. When all intervals are narrow enough,
//! what is left of the base rounds follows at once.

use std::time::Duration;

use fingerpost_record::{Estimate, Process, kept_values};

use crate::estimate::{self, Center};
use crate::pace::Paces;
use crate::slice::Slice;

/// One probe with one set of parameters, as the scheduler sees it.
#[derive(Clone, Debug)]
pub struct Job {
    /// How its samples become a value.
    pub center: Center,
    /// Relative half width of the interval at which it rests.
    pub target: f64,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// When to stop.
    pub budget: Duration,
    /// Rounds that every job takes part in whatever its interval.
    pub base_rounds: usize,
    /// A job with so many processes gets no more than the base rounds give it, whatever its interval. Of pairs: the
    /// most rounds.
    pub max_processes: usize,
}

/// Base rounds that follow each other at the beginning: fewer processes say little about how wide an interval will
/// stay.
const FIRST_ROUNDS: usize = 4;

impl Effort {
    /// When no further slice is begun. The base rounds are the least that makes a figure; they are finished unless the
    /// budget is overdrawn by half.
    pub(crate) fn limit(&self, base: bool) -> Duration {
        if base {
            self.budget + self.budget / 2
        } else {
            self.budget
        }
    }

    /// When the next base round is to begin, after so many of them; nothing after the last. The last one ends with the
    /// budget when it takes as long as the one before.
    fn base_round_due(&self, done: usize, round: Duration) -> Option<Duration> {
        let last = self.base_rounds.checked_sub(1)?;
        match done {
            _ if done > last => None,
            _ if done < FIRST_ROUNDS.min(last) => Some(Duration::ZERO),
            _ => Some(
                self.budget
                    .saturating_sub(round)
                    .mul_f64(done as f64 / last.max(1) as f64),
            ),
        }
    }
}

/// Runs one slice, and knows the time. The scheduler's only way to the world.
pub trait Executor {
    /// Runs the job once in a fresh process. Must return by a deadline of its own.
    fn slice(&mut self, job: usize) -> Slice;
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
    /// Whether the user asked to stop.
    fn interrupted(&self) -> bool;
}

/// Hears about progress.
pub trait Listener {
    /// A slice is about to run. `done` is the share of the work that is done, 0 to 1.
    fn starting(&mut self, job: usize, round: usize, done: f64);
    /// A slice has ended, and this is what is known of the job now.
    fn finished(&mut self, job: usize, state: &JobState);
}

/// What is known of a job.
#[derive(Clone, Debug, Default)]
pub struct JobState {
    /// One entry per process that gave samples.
    pub processes: Vec<Process>,
    /// The estimate over them.
    pub estimate: Option<Estimate>,
    /// The reason of a skip.
    pub skipped: Option<String>,
    /// The reasons of failures, one per failed process.
    pub failures: Vec<String>,
    /// Whether it is not to be tried again.
    pub given_up: bool,
    /// Whether it once did not end by its deadline.
    pub hung: bool,
}

/// A job that failed this often is not tried again.
const MAX_FAILURES: usize = 2;

impl JobState {
    pub(crate) fn take(&mut self, slice: Slice, center: Center) {
        match slice {
            Slice::Samples(samples) => self.processes.push(samples.into_process(center)),
            Slice::Skipped(reason) => {
                self.skipped = Some(reason);
                self.given_up = true;
            }
            Slice::Failed(reason) => {
                self.failures.push(reason);
                self.given_up = self.failures.len() >= MAX_FAILURES;
            }
            Slice::Hung(reason) => {
                self.hung = true;
                self.failures.push(reason);
                self.given_up = true;
            }
        }
    }

    /// Makes the estimate anew, where the pace matters from the processes that kept the best one known by now.
    fn settle(&mut self, paces: &Paces, center: Center) {
        let Some(across_slowed) = center.across_slowed else {
            return self.estimate_again(center.across, 0.0);
        };
        let slowing = paces.exclude(&mut self.processes);
        self.estimate_again(
            if slowing.any {
                across_slowed
            } else {
                center.across
            },
            slowing.by,
        );
    }

    /// Makes the estimate anew from the processes that are not excluded: this quantile of them, which may be off by so
    /// much.
    pub(crate) fn estimate_again(&mut self, quantile: f64, slowed: f64) {
        self.estimate = estimate::quantile_across(&kept_values(&self.processes), quantile, slowed);
    }

    /// How far the interval is from its target: above 1 is too wide.
    fn need(&self, target: f64) -> f64 {
        self.estimate
            .map_or(f64::INFINITY, |e| e.relative_half_width() / target)
    }
}

/// Runs the jobs in rounds and returns what is known of each.
pub fn run(
    jobs: &[Job],
    effort: Effort,
    seed: u64,
    executor: &mut impl Executor,
    listener: &mut impl Listener,
) -> Vec<JobState> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut states = vec![JobState::default(); jobs.len()];
    let mut paces = Paces::default();
    let mut costs = vec![Duration::ZERO; jobs.len()];
    let mut base_done = 0;
    let start = executor.now();
    'rounds: for round in 0.. {
        let elapsed = executor.now() - start;
        let round_cost = (0..jobs.len())
            .filter(|&j| !states[j].given_up)
            .map(|j| costs[j])
            .sum();
        let due = effort.base_round_due(base_done, round_cost);
        let left = due.unwrap_or(effort.budget).saturating_sub(elapsed);
        let mut chosen = match due {
            Some(due) if due <= elapsed => Vec::new(),
            _ => most_in_need(jobs, effort.max_processes, &states, &costs, left),
        };
        let base = chosen.is_empty() && due.is_some();
        if base {
            base_done += 1;
            chosen = (0..jobs.len()).filter(|&j| !states[j].given_up).collect();
        }
        if chosen.is_empty() {
            break;
        }
        rng.shuffle(&mut chosen);
        for job in chosen {
            let begun = executor.now();
            if executor.interrupted() || begun - start >= effort.limit(base) {
                break 'rounds;
            }
            let share = (begun - start).as_secs_f64() / effort.budget.as_secs_f64().max(1e-9);
            listener.starting(job, round, share.min(1.0));
            let slice = executor.slice(job);
            let before = states[job].processes.len();
            states[job].take(slice, jobs[job].center);
            states[job].processes[before..]
                .iter()
                .for_each(|new| paces.add(new));
            states[job].settle(&paces, jobs[job].center);
            costs[job] = executor.now() - begun;
            listener.finished(job, &states[job]);
        }
    }
    settle_all(jobs, &mut states, &paces, listener);
    states
}

/// Makes every estimate anew at the end: the best pace is known only then.
fn settle_all(jobs: &[Job], states: &mut [JobState], paces: &Paces, listener: &mut impl Listener) {
    for (job, state) in states
        .iter_mut()
        .enumerate()
        .filter(|(_, s)| !s.processes.is_empty())
    {
        state.settle(paces, jobs[job].center);
        listener.finished(job, state);
    }
}

/// The jobs whose interval is too wide, the widest ones first, as far as the time that is left goes. One that takes too
/// long for it is passed over.
fn most_in_need(
    jobs: &[Job],
    max_processes: usize,
    states: &[JobState],
    costs: &[Duration],
    left: Duration,
) -> Vec<usize> {
    let need = |j: usize| states[j].need(jobs[j].target);
    let mut open: Vec<usize> = (0..jobs.len())
        .filter(|&j| {
            !states[j].given_up && states[j].processes.len() < max_processes && need(j) > 1.0
        })
        .collect();
    open.sort_by(|&a, &b| need(b).total_cmp(&need(a)));
    let mut spent = Duration::ZERO;
    open.into_iter()
        .filter(|&j| {
            let fits = spent + costs[j] <= left;
            spent += if fits { costs[j] } else { Duration::ZERO };
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::Samples;

    /// A machine made of numbers: every job has a cost and a generator of values; time passes only while a slice runs.
    struct Mock<F> {
        now: Duration,
        cost: Duration,
        cost_of_first: Duration,
        slice: F,
        calls: Vec<usize>,
        stop_after: usize,
    }

    impl<F: FnMut(usize, usize) -> Slice> Executor for Mock<F> {
        fn slice(&mut self, job: usize) -> Slice {
            self.now += if job == 0 {
                self.cost_of_first
            } else {
                self.cost
            };
            self.calls.push(job);
            (self.slice)(job, self.calls.len())
        }
        fn now(&self) -> Duration {
            self.now
        }
        fn interrupted(&self) -> bool {
            self.calls.len() >= self.stop_after
        }
    }

    fn mock<F: FnMut(usize, usize) -> Slice>(slice: F) -> Mock<F> {
        let cost = Duration::from_millis(40);
        Mock {
            now: Duration::from_secs(5),
            cost,
            cost_of_first: cost,
            slice,
            calls: Vec::new(),
            stop_after: usize::MAX,
        }
    }

    #[derive(Default)]
    struct Shares {
        shares: Vec<f64>,
    }

    impl Listener for Shares {
        fn starting(&mut self, _job: usize, _round: usize, done: f64) {
            self.shares.push(done);
        }
        fn finished(&mut self, _job: usize, _state: &JobState) {}
    }

    fn samples(value: f64) -> Slice {
        let process = Process {
            samples: vec![value; 10],
            batch: 1,
            ..Process::default()
        };
        Slice::Samples(Samples {
            process,
            resident: 0,
        })
    }

    fn jobs(n: usize) -> Vec<Job> {
        vec![
            Job {
                center: Center::good_tenth(fingerpost_record::Better::Lower),
                target: 0.01
            };
            n
        ]
    }

    const EFFORT: Effort = Effort {
        budget: Duration::from_secs(8),
        base_rounds: 5,
        max_processes: 200,
    };

    /// A state of processes whose values are their paces, with its estimate made.
    fn settled(paces: &[f64], center: Center) -> JobState {
        let processes: Vec<Process> = paces
            .iter()
            .map(|&ns| Process {
                value: Some(ns),
                pace: vec![ns],
                ..Process::default()
            })
            .collect();
        let mut run = Paces::default();
        processes.iter().for_each(|p| run.add(p));
        let mut state = JobState {
            processes,
            ..JobState::default()
        };
        state.settle(&run, center);
        state
    }

    #[test]
    fn figures_are_of_processes_that_kept_pace_where_it_matters() {
        let mut paces = vec![4000.0; 8];
        paces.extend((0..32).map(|i| 6000.0 + 10.0 * f64::from(i)));
        let quarter = Center::MEDIAN.across_good_quarter(fingerpost_record::Better::Lower);
        let paced = settled(&paces, quarter);
        assert_eq!(
            (
                kept_values(&paced.processes).len(),
                paced.estimate.unwrap().value
            ),
            (8, 4000.0)
        );
        let of_all = settled(&paces, Center::MEDIAN.of_all());
        assert_eq!(
            (
                kept_values(&of_all.processes).len(),
                of_all.estimate.unwrap().value
            ),
            (40, 6115.0)
        );
        let tenth = settled(
            &paces,
            Center::MEDIAN.across_good_tenth_of_all(fingerpost_record::Better::Lower),
        );
        assert_eq!(
            (
                kept_values(&tenth.processes).len(),
                tenth.estimate.unwrap().value
            ),
            (40, 4000.0)
        );
    }

    #[test]
    fn of_slowed_processes_the_figure_is_nearer_to_the_least_slowed() {
        let paces: Vec<f64> = [4000.0, 4400.0, 4800.0, 5200.0, 5600.0]
            .into_iter()
            .chain([8000.0; 20])
            .collect();
        let of = |center: Center| settled(&paces, center).estimate.unwrap().value;
        let quarter = |better| Center::MEDIAN.across_good_quarter(better);
        assert_eq!(
            kept_values(&settled(&paces, Center::MEDIAN).processes).len(),
            5
        );
        // Their quarter is 4400.
        assert_eq!(of(quarter(fingerpost_record::Better::Lower)), 4160.0);
        assert_eq!(of(quarter(fingerpost_record::Better::Higher)), 5440.0);
        assert_eq!(
            of(Center::MEDIAN),
            4800.0,
            "a point of a curve is the median"
        );
    }

    #[test]
    fn a_round_holds_every_job_once_in_an_order_that_changes() {
        let mut m = mock(|_, _| samples(100.0));
        run(&jobs(6), EFFORT, 7, &mut m, &mut Shares::default());
        let rounds: Vec<Vec<usize>> = m.calls.chunks(6).take(5).map(<[usize]>::to_vec).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
        assert!(rounds.windows(2).any(|w| w[0] != w[1]));
    }

    #[test]
    fn time_goes_to_the_job_with_the_widest_interval() {
        let mut rng = fastrand::Rng::with_seed(9);
        let mut m = mock(move |job, _| {
            samples(if job == 3 {
                100.0 * (1.0 + 0.2 * rng.f64())
            } else {
                100.0
            })
        });
        let states = run(&jobs(6), EFFORT, 7, &mut m, &mut Shares::default());
        assert_eq!(states[0].processes.len(), 5);
        assert!(
            states[3].processes.len() > 20,
            "{}",
            states[3].processes.len()
        );
    }

    #[test]
    fn every_job_is_measured_from_the_runs_beginning_to_its_end() {
        let mut rng = fastrand::Rng::with_seed(9);
        let mut m = mock(move |job, _| {
            samples(if job == 3 {
                100.0 * (1.0 + 0.2 * rng.f64())
            } else {
                100.0
            })
        });
        let effort = Effort {
            base_rounds: 9,
            ..EFFORT
        };
        run(&jobs(6), effort, 7, &mut m, &mut Shares::default());
        let certain: Vec<f64> = m
            .calls
            .iter()
            .enumerate()
            .filter(|(_, job)| **job == 0)
            .map(|(call, _)| call as f64 / m.calls.len() as f64)
            .collect();
        assert_eq!(certain.len(), 9);
        assert!(
            certain[3] < 0.15,
            "the first rounds are base rounds: {certain:?}"
        );
        assert!(certain[8] > 0.9, "{certain:?}");
        assert!(
            certain[4..]
                .windows(2)
                .all(|w| (0.05..0.2).contains(&(w[1] - w[0]))),
            "{certain:?}"
        );
        assert!(
            m.calls.len() > 150,
            "the rest of the time goes to the uncertain job: {}",
            m.calls.len()
        );
    }

    #[test]
    fn a_hung_job_is_not_waited_for_in_planning_base_rounds() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut m = mock(move |job, _| match job {
            0 => Slice::Hung("did not end within 4 s".into()),
            1 => samples(100.0 * (1.0 + 0.2 * rng.f64())),
            _ => samples(100.0),
        });
        m.cost_of_first = Duration::from_secs(4);
        run(
            &jobs(3),
            Effort {
                base_rounds: 9,
                ..EFFORT
            },
            7,
            &mut m,
            &mut Shares::default(),
        );
        let last = m.calls.iter().rposition(|job| *job == 2).unwrap();
        assert!(
            last as f64 > 0.9 * m.calls.len() as f64,
            "{last} of {}",
            m.calls.len()
        );
    }

    #[test]
    fn a_job_too_long_for_the_time_left_keeps_no_other_out() {
        let states = [10.0, 1.0, 1.0].map(|spread| JobState {
            estimate: Some(Estimate {
                value: 100.0,
                low: 100.0 - 5.0 * spread,
                high: 100.0 + 5.0 * spread,
                confidence: 0.95,
            }),
            ..JobState::default()
        });
        let costs = [900, 40, 40].map(Duration::from_millis);
        assert_eq!(
            most_in_need(&jobs(3), 100, &states, &costs, Duration::from_millis(100)),
            [1, 2]
        );
        assert_eq!(
            most_in_need(&jobs(3), 100, &states, &costs, Duration::from_millis(950)),
            [0, 1]
        );
    }

    #[test]
    fn base_rounds_that_take_all_the_time_are_all_there_is() {
        let mut rng = fastrand::Rng::with_seed(4);
        let mut m = mock(move |_, _| samples(100.0 + 50.0 * rng.f64()));
        // Five rounds of forty jobs of 40 ms: all of the 8 s.
        let states = run(&jobs(40), EFFORT, 7, &mut m, &mut Shares::default());
        assert!(states.iter().all(|s| s.processes.len() == 5));
    }

    #[test]
    fn it_ends_when_all_are_certain_and_never_much_after_the_budget() {
        let mut sure = mock(|_, _| samples(100.0));
        run(&jobs(6), EFFORT, 7, &mut sure, &mut Shares::default());
        assert_eq!(sure.calls.len(), 30);
        let mut rng = fastrand::Rng::with_seed(1);
        let mut unsure = mock(move |_, _| samples(100.0 + 50.0 * rng.f64()));
        let begun = unsure.now;
        run(&jobs(6), EFFORT, 7, &mut unsure, &mut Shares::default());
        assert!(unsure.now - begun <= EFFORT.budget + unsure.cost);
    }

    #[test]
    fn a_stuck_probe_costs_one_deadline_and_the_rest_goes_on() {
        let mut m = mock(|job, _| {
            if job == 2 {
                Slice::Hung("did not end within 2 s".into())
            } else {
                samples(100.0)
            }
        });
        let states = run(&jobs(4), EFFORT, 7, &mut m, &mut Shares::default());
        assert_eq!(m.calls.iter().filter(|&&j| j == 2).count(), 1);
        assert!(states[2].given_up && states[2].estimate.is_none());
        assert!([0, 1, 3].iter().all(|&j| states[j].processes.len() == 5));
    }

    #[test]
    fn a_crash_is_tried_once_more_and_a_skip_never() {
        let mut m = mock(|job, _| match job {
            0 => Slice::Failed("killed by signal 11".into()),
            1 => Slice::Skipped("needs two CPUs".into()),
            _ => samples(100.0),
        });
        let states = run(&jobs(3), EFFORT, 7, &mut m, &mut Shares::default());
        assert_eq!(states[0].failures.len(), 2);
        assert_eq!(m.calls.iter().filter(|&&j| j == 1).count(), 1);
        assert_eq!(states[1].skipped.as_deref(), Some("needs two CPUs"));
    }

    #[test]
    fn an_interruption_keeps_what_was_measured() {
        let mut m = mock(|_, _| samples(100.0));
        m.stop_after = 8;
        let states = run(&jobs(6), EFFORT, 7, &mut m, &mut Shares::default());
        assert_eq!(states.iter().map(|s| s.processes.len()).sum::<usize>(), 8);
        assert!(states.iter().all(|s| s.estimate.is_some()));
    }

    #[test]
    fn drift_hits_all_jobs_alike() {
        // The machine grows slower by a tenth per second: every job's figure must grow by the same factor, within a
        // round's length.
        let mut m = mock(|_, call| samples(100.0 * (1.0 + 0.004 * call as f64)));
        let effort = Effort {
            base_rounds: 10,
            max_processes: 10,
            ..EFFORT
        };
        let states = run(&jobs(10), effort, 7, &mut m, &mut Shares::default());
        let values: Vec<f64> = states.iter().map(|s| s.estimate.unwrap().value).collect();
        let (min, max) = values
            .iter()
            .fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        assert!(max / min < 1.04, "{values:?}");
    }

    #[test]
    fn progress_never_goes_back_and_never_passes_the_end() {
        let mut seen = Shares::default();
        run(
            &jobs(6),
            EFFORT,
            7,
            &mut mock(|_, n| samples(100.0 + (n % 7) as f64)),
            &mut seen,
        );
        assert!(seen.shares.windows(2).all(|w| w[0] <= w[1]));
        assert!(seen.shares.iter().all(|s| (0.0..=1.0).contains(s)));
    }
}
