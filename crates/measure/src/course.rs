//! Which step is measured next, of several that are measured in rounds.
//!
//! A round has every step once, so that drift and noise hit all of them alike, and the rounds of a step are its
//! repetitions. The caller measures and knows the time; what a step is (a number of clients, a store, a side of a
//! comparison) does not matter here. The rounds of probes ([`crate::rounds`]) are no such course: beyond the first ones
//! they have those probes only whose intervals are still too wide, in the order of need.

use std::collections::VecDeque;
use std::time::Duration;

/// How many rounds there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// So many whatever the time: a figure needs them.
    pub least: usize,
    /// No more than these.
    pub most: usize,
    /// Another round beyond the least is begun only when one as long as those so far, on average, ends within this
    /// time.
    pub budget: Duration,
}

impl Extent {
    /// So many rounds, whatever the time.
    pub const fn rounds(rounds: usize) -> Extent {
        Extent {
            least: rounds,
            most: rounds,
            budget: Duration::MAX,
        }
    }

    /// Whether another round is begun after so many, which took so long.
    pub fn goes_on(&self, rounds: usize, spent: Duration) -> bool {
        let with_another =
            spent.saturating_add(spent / u32::try_from(rounds.max(1)).unwrap_or(u32::MAX));
        rounds < self.most && (rounds < self.least || with_another <= self.budget)
    }
}

/// A step that is to be measured now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Its number.
    pub step: usize,
    /// Of which round it is, from 0.
    pub round: usize,
    /// Whether it is the first of its round.
    pub first: bool,
    /// Whether it is the last of its round.
    pub last: bool,
    /// Rounds that are done, with the part of this one: 2.5 in the middle of the third.
    pub done: f64,
}

/// The course of steps that are measured in rounds.
#[derive(Clone, Debug)]
pub struct Interleaved {
    /// Shuffles each round anew; without it every other round goes backwards.
    random: Option<fastrand::Rng>,
    extent: Extent,
    /// Steps that still take part.
    able: Vec<usize>,
    /// Rounds begun; of this one, how many steps are over, and those that are to come.
    begun: usize,
    over: usize,
    to_come: VecDeque<usize>,
    stopped: bool,
}

impl Interleaved {
    fn new(steps: usize, random: Option<fastrand::Rng>, extent: Extent) -> Interleaved {
        let able = (0..steps).collect();
        Interleaved {
            random,
            extent,
            able,
            begun: 0,
            over: 0,
            to_come: VecDeque::new(),
            stopped: false,
        }
    }

    /// A course of so many steps, each round in a random order of its own: the same for the same seed.
    pub fn shuffled(steps: usize, seed: u64, extent: Extent) -> Interleaved {
        Interleaved::new(steps, Some(fastrand::Rng::with_seed(seed)), extent)
    }

    /// A course of two steps, whose every other round is backwards (A B B A …): steady drift hits both alike.
    pub fn pairs(extent: Extent) -> Interleaved {
        Interleaved::new(2, None, extent)
    }

    /// One step, again and again.
    pub fn repeated(extent: Extent) -> Interleaved {
        Interleaved::new(1, None, extent)
    }

    /// The next step to measure; nothing when the course is over, as it is at once and for good where it is to `stop`.
    pub fn next(&mut self, stop: bool) -> Option<Turn> {
        self.next_within(Duration::ZERO, stop)
    }

    /// The same of a course whose extent is a time, of which so much is spent.
    pub fn next_within(&mut self, spent: Duration, stop: bool) -> Option<Turn> {
        self.stopped |=
            stop || (self.to_come.is_empty() && !self.extent.goes_on(self.begun, spent));
        if self.stopped {
            return None;
        }
        if self.to_come.is_empty() {
            self.to_come = self.able.clone().into();
            match &mut self.random {
                Some(random) => random.shuffle(self.to_come.make_contiguous()),
                None if self.begun % 2 == 1 => self.to_come.make_contiguous().reverse(),
                None => {}
            }
            (self.begun, self.over) = (self.begun + 1, 0);
        }
        let step = self.to_come.pop_front()?;
        let (round, before, left) = (self.begun - 1, self.over, self.to_come.len());
        self.over += 1;
        let done = round as f64 + before as f64 / (before + 1 + left) as f64;
        Some(Turn {
            step,
            round,
            first: before == 0,
            last: left == 0,
            done,
        })
    }

    /// Has a step take part no more.
    pub fn leave_out(&mut self, step: usize) {
        self.able.retain(|s| *s != step);
        self.to_come.retain(|s| *s != step);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The turns of a course in which those steps are left out after their turn of that number.
    fn turns(mut course: Interleaved, left_out_after: &[usize]) -> Vec<Turn> {
        let mut turns = Vec::new();
        while let Some(turn) = course.next(false) {
            turns.push(turn);
            if left_out_after.contains(&turns.len()) {
                course.leave_out(turn.step);
            }
        }
        turns
    }

    fn random(alternating: bool, seed: u64) -> Option<fastrand::Rng> {
        (!alternating).then(|| fastrand::Rng::with_seed(seed))
    }

    fn shuffled(steps: usize, seed: u64, rounds: usize) -> Interleaved {
        Interleaved::shuffled(steps, seed, Extent::rounds(rounds))
    }

    fn steps(turns: &[Turn]) -> Vec<usize> {
        turns.iter().map(|turn| turn.step).collect()
    }

    proptest! {
        #[test]
        fn every_step_is_measured_once_a_round_until_it_is_left_out(
            count in 0usize..8,
            rounds in 0usize..8,
            seed: u64,
            alternating: bool,
            left_out_after in prop::collection::vec(1usize..40, 0..4),
        ) {
            let course = Interleaved::new(count, random(alternating, seed), Extent::rounds(rounds));
            let turns = turns(course, &left_out_after);
            let mut able: Vec<usize> = (0..count).collect();
            let mut seen = 0;
            for round in 0..rounds {
                let of_round: Vec<Turn> = turns.iter().copied().filter(|turn| turn.round == round).collect();
                let mut sorted = steps(&of_round);
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &able, "round {}", round);
                let of = of_round.len();
                for (i, turn) in of_round.iter().enumerate() {
                    seen += 1;
                    prop_assert_eq!((turn.first, turn.last), (i == 0, i + 1 == of));
                    prop_assert!((turn.done - round as f64 - i as f64 / of as f64).abs() < 1e-9);
                    if left_out_after.contains(&seen) {
                        able.retain(|step| *step != turn.step);
                    }
                }
            }
            prop_assert_eq!(seen, turns.len(), "rounds follow each other, and there are no more than asked for");
            prop_assert!(turns.windows(2).all(|w| w[0].done < w[1].done));
        }

        #[test]
        fn a_step_follows_itself_only_where_rounds_meet(count in 2usize..8, seed: u64, alternating: bool) {
            let turns = turns(Interleaved::new(count, random(alternating, seed), Extent::rounds(9)), &[]);
            prop_assert_eq!(turns.len(), 9 * count);
            prop_assert!(turns.windows(2).all(|w| w[0].step != w[1].step || (w[0].last && w[1].first)));
        }

        #[test]
        fn a_stop_ends_it_before_the_next_step_and_for_good(count in 1usize..8, seed: u64, after in 0usize..30) {
            let mut course = shuffled(count, seed, 50);
            for _ in 0..after {
                prop_assert!(course.next(false).is_some());
            }
            prop_assert_eq!(course.next(true), None);
            prop_assert_eq!(course.next(false), None);
        }

        #[test]
        fn the_same_seed_gives_the_order_of_a_fresh_shuffle_each_round(count in 1usize..8, seed: u64) {
            let course = shuffled(count, seed, 6);
            let all = steps(&turns(course.clone(), &[]));
            prop_assert_eq!(&all, &steps(&turns(course, &[])));
            let mut rng = fastrand::Rng::with_seed(seed);
            for round in all.chunks(count) {
                let mut fresh: Vec<usize> = (0..count).collect();
                rng.shuffle(&mut fresh);
                prop_assert_eq!(round, &fresh);
            }
        }

        #[test]
        fn rounds_beyond_the_least_end_within_the_budget(
            least in 0usize..5,
            more in 0usize..20,
            each_ms in 1u64..1000,
            budget_ms in 0u64..5000,
        ) {
            let (budget, each) = (Duration::from_millis(budget_ms), Duration::from_millis(each_ms));
            let extent = Extent { least, most: least + more, budget };
            let mut course = Interleaved::repeated(extent);
            let mut spent = Duration::ZERO;
            let mut rounds = 0;
            while course.next_within(spent, false).is_some() {
                rounds += 1;
                spent += each;
            }
            prop_assert!((least..=least + more).contains(&rounds));
            // The first one's length is not known before it.
            prop_assert!(rounds <= least.max(1) || spent <= budget);
            let fits = (budget_ms / each_ms) as usize;
            prop_assert!(rounds >= fits.min(least + more), "{rounds} of {fits} that fit");
        }
    }

    #[test]
    fn two_in_turns_are_each_first_in_every_other_round() {
        let turns = turns(Interleaved::pairs(Extent::rounds(4)), &[]);
        assert_eq!(steps(&turns), [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn a_course_without_steps_or_with_all_left_out_is_over() {
        assert_eq!(
            Interleaved::new(0, None, Extent::rounds(3)).next(false),
            None
        );
        let mut course = shuffled(3, 1, 3);
        assert!(course.next(false).is_some());
        (0..3).for_each(|step| course.leave_out(step));
        assert_eq!(course.next(false), None);
    }

    #[test]
    fn a_random_order_changes_from_round_to_round() {
        let all = steps(&turns(shuffled(4, 1, 8), &[]));
        let rounds: Vec<&[usize]> = all.chunks(4).collect();
        assert!(rounds.iter().any(|round| round != &rounds[0]));
    }
}
