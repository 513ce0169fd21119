//! How far the article's guesses are off on this machine.
//!
//! Its two-point arithmetic could not see inside one timing, so it assumed how each divides. The phases, timed alone,
//! and the routes to the zeroing cost measure the same quantities.

use fingerpost_record::{Estimate, Run};
use serde::Serialize;

use super::fit::Line;
use super::points::{self, Point, add, at, ratio, scale, subtract};
use super::zeroing;

/// How a guess fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The interval lies within a tenth of what was guessed.
    Holds,
    /// The whole interval lies further away.
    Off,
    /// The interval reaches across.
    Unresolved,
}

/// A guess beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guess {
    /// A word for programs.
    pub key: &'static str,
    /// The guess in words of our own.
    pub says: &'static str,
    /// What was measured, in words.
    pub quantity: &'static str,
    /// The guess: a range, or twice the same number. `None` at the upper end means “at least”.
    pub guessed: (f64, Option<f64>),
    /// The measured figure, as a share or a ratio.
    pub measured: Estimate,
    /// How many times the guess the measured figure is (the nearer end of a range); 1 within it.
    pub factor: f64,
    /// How it fares.
    pub verdict: Verdict,
}

/// A measured figure may be this share away from a guess that is said to hold.
const TOLERANCE: f64 = 0.1;

fn judge((key, says, quantity, guessed): Guessed, measured: Estimate) -> Guess {
    let (low, high) = (guessed.0, guessed.1.unwrap_or(f64::INFINITY));
    let (least, most) = (low * (1.0 - TOLERANCE), high * (1.0 + TOLERANCE));
    let verdict = match (measured.low, measured.high) {
        (a, b) if a >= least && b <= most => Verdict::Holds,
        (a, b) if b < least || a > most => Verdict::Off,
        _ => Verdict::Unresolved,
    };
    let factor = measured.value / measured.value.min(high).max(low);
    Guess {
        key,
        says,
        quantity,
        guessed,
        measured,
        factor,
        verdict,
    }
}

/// The four phases by page count.
struct Phases {
    allocate: Vec<Point>,
    touch: Vec<Point>,
    free_untouched: Vec<Point>,
    free_touched: Vec<Point>,
}

impl Phases {
    fn of(run: &Run) -> Phases {
        let words = ["allocate", "touch", "free_untouched", "free_touched"];
        let [allocate, touch, free_untouched, free_touched] =
            words.map(|word| points::curve(run, "zerofill.phase", "phase", word));
        Phases {
            allocate,
            touch,
            free_untouched,
            free_touched,
        }
    }

    /// All of getting, touching and giving back so many pages.
    fn whole(&self, pages: i64) -> Option<Estimate> {
        Some(add(
            add(at(&self.allocate, pages)?, at(&self.touch, pages)?),
            at(&self.free_touched, pages)?,
        ))
    }

    /// One fault with its zeroing, without what the first touch of a region pays once: the slope from 2 pages to 16.
    fn fault(&self) -> Option<Estimate> {
        let slope = scale(
            subtract(at(&self.touch, 16)?, at(&self.touch, 2)?),
            1.0 / 14.0,
        );
        (slope.value > 0.0).then_some(slope)
    }
}

/// A guess of the article: key, in words of our own, what was measured, and what was guessed.
type Guessed = (&'static str, &'static str, &'static str, (f64, Option<f64>));

const GUESSES: [Guessed; 6] = [
    (
        "same_time",
        "Allocating and freeing cost about the same",
        "deallocating one untouched page, in allocations",
        (1.0, Some(1.0)),
    ),
    (
        "quarter",
        "A fault without its zeroing costs about a quarter of an allocation",
        "one fault without its zeroing, in allocations",
        (0.25, Some(0.25)),
    ),
    (
        "shared_evenly",
        "What touched memory costs once is borne half by the fault and half by the freeing",
        "the page faults' share of what touching costs once per region",
        (0.5, Some(0.5)),
    ),
    (
        "zero_share",
        "Zero-filling is 50 to 80 % of a fault",
        "zeroing's share of one fault with its zeroing",
        (0.5, Some(0.8)),
    ),
    (
        "four_pages",
        "With four pages at a time faults and zero-filling take about 80 % of the whole",
        "share of the touching in allocating, touching and freeing 4 pages",
        (0.8, Some(0.8)),
    ),
    (
        "four_pages_zero",
        "Of allocating and faulting in four pages at least half is zero-filling",
        "share of the zeroing in allocating and faulting in 4 pages",
        (0.5, None),
    ),
];

/// Every guess that the run has rows for.
pub fn guesses(run: &Run) -> Vec<Guess> {
    let (p, routes) = (Phases::of(run), zeroing::routes(run));
    let zeroing = |pages: i64| Some(zeroing::best(&routes, pages)?.per_page);
    let measured: [&dyn Fn() -> Option<Estimate>; 6] = [
        &|| ratio(at(&p.free_untouched, 1)?, at(&p.allocate, 1)?),
        &|| ratio(subtract(p.fault()?, zeroing(16)?), at(&p.allocate, 1)?),
        &|| shared_evenly(&p, run.seed),
        &|| ratio(zeroing(16)?, p.fault()?),
        &|| ratio(at(&p.touch, 4)?, p.whole(4)?),
        &|| {
            ratio(
                scale(zeroing(4)?, 4.0),
                add(at(&p.allocate, 4)?, at(&p.touch, 4)?),
            )
        },
    ];
    GUESSES
        .into_iter()
        .zip(measured)
        .filter_map(|(guess, measured)| Some(judge(guess, measured()?)))
        .collect()
}

/// The share of the object cost that the faults bear: intercepts of the touching, and of what touching adds to freeing.
fn shared_evenly(p: &Phases, seed: u64) -> Option<Estimate> {
    let share = |value: &mut dyn FnMut(&Point) -> f64| {
        let few = |points: &[Point], value: &mut dyn FnMut(&Point) -> f64| -> Vec<(f64, f64)> {
            points
                .iter()
                .filter(|p| p.pages <= 16)
                .map(|p| (p.pages as f64, value(p)))
                .collect()
        };
        let (touch, free, bare) = (
            few(&p.touch, value),
            few(&p.free_touched, value),
            few(&p.free_untouched, value),
        );
        let slower: Vec<(f64, f64)> = free
            .iter()
            .filter_map(|(n, v)| Some((*n, v - bare.iter().find(|b| b.0 == *n)?.1)))
            .collect();
        let (fault, free) = (Line::through(&touch)?.base, Line::through(&slower)?.base);
        (fault > 0.0 && free > 0.0).then(|| fault / (fault + free))
    };
    let value = share(&mut |p| p.figure.value)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let draws: Vec<f64> = (0..400)
        .filter_map(|_| share(&mut |p| points::redraw(p, &mut rng)))
        .collect();
    Some(points::interval(value, &draws))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Machine, run_of};
    use super::*;

    fn found<'a>(list: &'a [Guess], key: &str) -> &'a Guess {
        list.iter().find(|g| g.key == key).unwrap()
    }

    #[test]
    fn known_costs_give_known_answers() {
        let list = guesses(&run_of(&Machine::default(), 0.002));
        assert_eq!(list.len(), 6);
        let close = |key: &str, truth: f64| {
            let g = found(&list, key);
            assert!(
                (g.measured.value / truth - 1.0).abs() < 0.05,
                "{key}: {} instead of {truth}",
                g.measured.value
            );
        };
        // By hand from the machine's costs: allocating 540, freeing untouched 360, a fault 320 of which 100 zeroing.
        close("same_time", 360.0 / 540.0);
        close("quarter", 220.0 / 540.0);
        close("shared_evenly", 0.25);
        close("zero_share", 100.0 / 320.0);
        // 4 pages: allocate 540, touch 150 + 1280, free 360 + 450 + 320.
        close("four_pages", 1430.0 / (540.0 + 1430.0 + 1130.0));
        close("four_pages_zero", 400.0 / (540.0 + 1430.0));
        assert!(list.iter().all(|g| g.verdict == Verdict::Off), "{list:?}");
    }

    #[test]
    fn a_machine_as_the_article_guessed_makes_them_hold() {
        // A fault of 540 of which 405 (three quarters) are zeroing: the fault proper is a quarter of the allocation
        // of 540.
        let machine = Machine {
            fault_page: 675.0,
            zero_page: 405.0,
            ..Machine::default()
        };
        let list = guesses(&run_of(&machine, 0.001));
        for key in ["quarter", "zero_share", "four_pages_zero"] {
            assert_eq!(
                found(&list, key).verdict,
                Verdict::Holds,
                "{:?}",
                found(&list, key)
            );
        }
        assert_eq!(found(&list, "zero_share").factor, 1.0);
    }

    #[test]
    fn what_is_uncertain_is_not_judged_and_what_is_missing_is_left_out() {
        let noisy = guesses(&run_of(
            &Machine {
                zero_page: 160.0,
                ..Machine::default()
            },
            0.5,
        ));
        assert!(noisy.iter().any(|g| g.verdict == Verdict::Unresolved));
        assert!(guesses(&Run::default()).is_empty());
        let mut run = run_of(&Machine::default(), 0.01);
        run.measurements.retain(|m| m.probe == "zerofill.phase");
        assert_eq!(
            guesses(&run).iter().map(|g| g.key).collect::<Vec<_>>(),
            ["same_time", "shared_evenly", "four_pages"]
        );
    }
}
