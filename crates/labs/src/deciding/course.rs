//! The course of one experiment: pairs of stretches, as it was and with the change, in turns (A B B A …).

use fingerpost_diagnose::deciding::{Course, answer, effect};
use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_record::{Asked, Experiment, Pair};

/// Who changes things and asks requests. In the tests it is made of numbers.
pub trait Executor {
    /// Makes the change; it is to be undone by whoever guards it when `limit_s` is over.
    ///
    /// # Errors
    /// A sentence; then nothing is changed.
    fn change(&mut self, limit_s: f64) -> Result<(), String>;

    /// Undoes the change. Also called when nothing is changed.
    ///
    /// # Errors
    /// A sentence; then the experiment ends.
    fn restore(&mut self) -> Result<(), String>;

    /// Lets `settle_s` pass, and counts requests for `stretch_s` then; nothing for a stretch that cannot be relied on.
    ///
    /// # Errors
    /// The load is over or the user has had enough.
    fn ask(&mut self, settle_s: f64, stretch_s: f64) -> Result<Option<Asked>, Over>;
}

/// The load is over, or the user has had enough.
pub struct Over;

/// Time that a change may take beyond its stretch before it is undone by somebody else.
const GRACE_S: f64 = 0.1;

/// Carries an experiment out; `experiment` says what it is about, and is filled in.
pub fn carry_out(
    executor: &mut dyn Executor,
    course: &Course,
    mut experiment: Experiment,
) -> Experiment {
    let mut asked = Vec::new();
    let trouble = turns(executor, course, &mut asked).err();
    let trouble = executor.restore().err().or(trouble);
    experiment.pairs = asked.chunks_exact(2).filter_map(pair).collect();
    experiment.effect = effect(&experiment.pairs, experiment.by);
    experiment.answer = answer(experiment.effect.as_ref());
    if let (Some(trouble), true) = (trouble, experiment.effect.is_none()) {
        experiment.answer = fingerpost_record::Answer::NotDone;
        experiment.reason = Some(trouble);
    }
    experiment
}

/// The stretches in turns; `asked` gets whether each was with the change, and what was counted.
fn turns(
    executor: &mut dyn Executor,
    course: &Course,
    asked: &mut Vec<(bool, Option<Asked>)>,
) -> Result<(), String> {
    let mut order = Interleaved::pairs(Extent::rounds(course.pairs));
    let mut over = false;
    while let Some(turn) = order.next(over) {
        let changed = turn.step == 1;
        if changed {
            executor.change(course.settle_s + course.stretch_s + GRACE_S)?;
        }
        let counted = executor.ask(course.settle_s, course.stretch_s);
        if changed {
            executor.restore()?;
        }
        over = counted.is_err();
        asked.extend(counted.ok().map(|counted| (changed, counted)));
    }
    Ok(())
}

fn pair(two: &[(bool, Option<Asked>)]) -> Option<Pair> {
    let of = |changed| {
        two.iter()
            .find(|(c, _)| *c == changed)
            .and_then(|(_, asked)| *asked)
    };
    Some(Pair {
        base: of(false)?,
        changed: of(true)?,
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_diagnose::deciding::course;
    use fingerpost_record::{Answer, Change, Measure, Params};

    use super::*;

    /// A server with these many requests a second, and as many with the change.
    struct MadeUp {
        rates: [f64; 2],
        changed: bool,
        longest: f64,
        since: f64,
        stretches: usize,
        most: usize,
        refuses: bool,
    }

    impl MadeUp {
        fn new(base: f64, changed: f64) -> MadeUp {
            let rates = [base, changed];
            MadeUp {
                rates,
                changed: false,
                longest: 0.0,
                since: 0.0,
                stretches: 0,
                most: 1000,
                refuses: false,
            }
        }
    }

    impl Executor for MadeUp {
        fn change(&mut self, limit_s: f64) -> Result<(), String> {
            assert!(!self.changed, "it was undone within its stretch");
            if self.refuses {
                return Err("the kernel does not like it".into());
            }
            assert!(limit_s > 0.0);
            (self.changed, self.since) = (true, 0.0);
            Ok(())
        }
        fn restore(&mut self) -> Result<(), String> {
            if std::mem::take(&mut self.changed) {
                self.longest = self.longest.max(self.since);
            }
            Ok(())
        }
        fn ask(&mut self, settle_s: f64, stretch_s: f64) -> Result<Option<Asked>, Over> {
            self.since += settle_s + stretch_s;
            self.stretches += 1;
            // The machine becomes slower and slower: drift that pairs in turns cancel.
            let drift = 1.0 - 0.01 * self.stretches as f64;
            let requests = (self.rates[usize::from(self.changed)] * stretch_s * drift) as u64;
            let latency_ns = (requests > 0).then(|| 1e9 * stretch_s / requests as f64);
            let asked = Asked {
                requests,
                seconds: stretch_s,
                latency_ns,
            };
            if self.stretches <= self.most {
                Ok(Some(asked))
            } else {
                Err(Over)
            }
        }
    }

    fn experiment() -> Experiment {
        Experiment {
            workload: "database".into(),
            params: Params::new(),
            change: Change::Quota,
            what: "the CPU quota lifted".into(),
            tests: vec!["cpu.quota".into()],
            by: Measure::Rate,
            pairs: Vec::new(),
            effect: None,
            answer: Answer::Unresolved,
            reason: None,
        }
    }

    fn carried_out(executor: &mut MadeUp) -> Experiment {
        carry_out(
            executor,
            &course(Change::Weight, 2000.0, 1e-3),
            experiment(),
        )
    }

    #[test]
    fn a_server_that_is_faster_with_the_change_says_so_despite_drift() {
        let mut server = MadeUp::new(2000.0, 3000.0);
        let found = carried_out(&mut server);
        assert_eq!((found.answer, found.pairs.len()), (Answer::Faster, 10));
        let e = found.effect.unwrap();
        assert!(
            (e.value - 1.5).abs() < 0.02 && e.low > 1.4 && e.high < 1.6,
            "{e:?}"
        );
        let course = course(Change::Weight, 2000.0, 1e-3);
        let whole = course.settle_s + course.stretch_s;
        assert!(
            !server.changed && (server.longest - whole).abs() < 1e-9,
            "each change is undone with its stretch: {}",
            server.longest
        );
    }

    #[test]
    fn one_that_does_not_care_says_that() {
        assert_eq!(
            carried_out(&mut MadeUp::new(2000.0, 2000.0)).answer,
            Answer::Same
        );
    }

    #[test]
    fn what_cannot_be_changed_is_not_done_and_says_why() {
        let mut server = MadeUp {
            refuses: true,
            ..MadeUp::new(2000.0, 3000.0)
        };
        let found = carried_out(&mut server);
        assert_eq!(
            (found.answer, found.reason.as_deref()),
            (Answer::NotDone, Some("the kernel does not like it"))
        );
        assert!(found.effect.is_none());
    }

    #[test]
    fn a_load_that_ends_early_leaves_whole_pairs_and_nothing_changed() {
        let mut server = MadeUp {
            most: 5,
            ..MadeUp::new(2000.0, 3000.0)
        };
        let found = carried_out(&mut server);
        assert_eq!(
            (found.pairs.len(), found.effect, found.answer),
            (2, None, Answer::Unresolved)
        );
        assert!(!server.changed);
    }

    #[test]
    fn a_stretch_that_cannot_be_relied_on_takes_its_pair_along() {
        let mut server = MadeUp::new(2000.0, 3000.0);
        struct Torn<'a>(&'a mut MadeUp);
        impl Executor for Torn<'_> {
            fn change(&mut self, limit_s: f64) -> Result<(), String> {
                self.0.change(limit_s)
            }
            fn restore(&mut self) -> Result<(), String> {
                self.0.restore()
            }
            fn ask(&mut self, settle_s: f64, stretch_s: f64) -> Result<Option<Asked>, Over> {
                let asked = self.0.ask(settle_s, stretch_s)?;
                Ok(asked.filter(|_| self.0.stretches != 4))
            }
        }
        let found = carry_out(
            &mut Torn(&mut server),
            &course(Change::Weight, 2000.0, 1e-3),
            experiment(),
        );
        assert_eq!((found.pairs.len(), found.answer), (9, Answer::Faster));
    }
}
