//! The zero-fill laboratory's arithmetic, apart from any measuring: [`analyse`] takes a run's rows, and everything else
//! serves it.

pub mod fit;
pub mod guesses;
pub mod points;
pub mod rank;
pub mod solve;
pub mod zeroing;

#[cfg(test)]
mod synthetic;

use fingerpost_record::descriptor::NULL_CALL;
use fingerpost_record::{Estimate, Measurement, Process, Run, Unit};
use serde::Serialize;

use fit::Fit;
use guesses::Guess;
use points::{add, at, scale, subtract};
use rank::{Crossover, Ranking};
use solve::{Costs, Timings};
use zeroing::Route;

/// The way to get memory that the figures are about, where nothing else is named.
pub const MAIN_API: &str = "mmap";

/// The way that a run's figures are about: [`MAIN_API`], or the first that has rows, as for a system that has no mmap.
fn main_api(run: &Run) -> String {
    let have = points::words(run, "zerofill.touch", "api");
    let chosen = have.iter().find(|api| **api == MAIN_API).or(have.first());
    chosen.map_or(MAIN_API.to_owned(), |api| (*api).to_owned())
}

/// What a run says about zero-filling. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// The way to get memory that `given`, `derived`, `fit` and `shares` are about.
    pub api: String,
    /// The four timings as measured.
    pub given: Option<Given>,
    /// What the article's arithmetic makes of them.
    pub derived: Option<Costs>,
    /// Why it makes nothing of them.
    pub underivable: Option<String>,
    /// The call that maps beside one that does nothing, where the run has both.
    pub call: Option<Call>,
    /// The costs from all page counts together.
    pub fit: Option<Fit>,
    /// What zeroing costs, by independent routes.
    pub zeroing: Vec<Route>,
    /// Where the time goes, per page count.
    pub shares: Vec<Share>,
    /// How far the article's guesses are off.
    pub guesses: Vec<Guess>,
    /// The regression and the zeroing beside the kernel's own profile.
    pub agreement: Vec<Agreement>,
    /// The ways to have anonymous memory faulted in, per page count.
    pub prefault: Vec<Ranking>,
    /// From how many pages on each beats plain touching.
    pub crossovers: Vec<Crossover>,
    /// The ways to get memory, touched, per page count.
    pub apis: Vec<Ranking>,
    /// The same untouched.
    pub apis_untouched: Vec<Ranking>,
}

/// The four editable fields, measured.
pub type Given = Timings<Estimate>;

impl Given {
    /// The values alone.
    pub fn timings(&self) -> Timings {
        self.all().map(|e| e.value).into()
    }

    /// Half of the interval of each derived field, in the order of [`solve::FIELDS`]: what each timing's own half makes
    /// of it, which the formulas take over as it is, added in squares. Nothing where the timings cannot be taken apart.
    pub fn halves(&self) -> Option<[f64; 7]> {
        let center = solve::solve(&self.timings()).ok()?.values();
        let mut squares = [0.0; 7];
        for (field, e) in self.all().into_iter().enumerate() {
            // A small step, as timings that cannot be are refused; the formulas have straight lines only.
            let (half, step) = ((e.high - e.low) / 2.0, 1e-6 * e.value);
            let mut moved = self.timings().all();
            moved[field] += step;
            let moved = solve::solve(&moved.into()).ok()?.values();
            for (sum, (new, old)) in squares.iter_mut().zip(moved.iter().zip(center)) {
                *sum += ((new - old) / step * half).powi(2);
            }
        }
        Some(squares.map(f64::sqrt))
    }

    fn of(run: &Run, api: &str) -> Option<Given> {
        let (alloc, touch) = (
            points::curve(run, "zerofill.alloc", "api", api),
            points::curve(run, "zerofill.touch", "api", api),
        );
        Some(
            [
                at(&alloc, 1)?,
                at(&touch, 1)?,
                at(&alloc, 2)?,
                at(&touch, 2)?,
            ]
            .into(),
        )
    }
}

/// How much of allocating is the way into the kernel and back: transport or work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Call {
    /// A system call that does nothing, in nanoseconds.
    pub null: Estimate,
    /// Allocating without any page, in nanoseconds, by the article's arithmetic.
    pub allocation: f64,
    /// The first divided by the second.
    pub transport: f64,
}

fn call(run: &Run, derived: Option<&Costs>) -> Option<Call> {
    let null = run
        .measurements
        .iter()
        .find(|m| m.probe == NULL_CALL && m.params.is_empty())?
        .estimate?;
    let allocation = derived?.allocation;
    (allocation > 0.0 && null.value > 0.0).then(|| Call {
        null,
        allocation,
        transport: null.value / allocation,
    })
}

/// Where the time of allocating, touching and freeing goes. The parts are shares, 0 to 1, and add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Number of base pages.
    pub pages: i64,
    /// The whole, in nanoseconds.
    pub total: f64,
    /// Allocating and freeing, as if nothing were touched.
    pub allocation: f64,
    /// Faults, mapping in and out, without zeroing.
    pub fault: f64,
    /// Zero-filling.
    pub zero: f64,
}

/// Two figures for one thing, found in different ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// What is compared.
    pub what: &'static str,
    /// Ours, in nanoseconds per page.
    pub ours: Estimate,
    /// The kernel's profile.
    pub kernel: Estimate,
    /// Ours divided by the profile's.
    pub ratio: f64,
    /// Whether ours holds more than what it is compared with, so that it can only be the larger.
    pub upper_bound: bool,
}

/// Analyses a run; nothing where it has no row of the laboratory with a figure.
pub fn analyse(run: &Run) -> Option<Analysis> {
    run.measurements
        .iter()
        .find(|m| m.probe.starts_with("zerofill.") && m.estimate.is_some())?;
    let api = main_api(run);
    let given = Given::of(run, &api);
    let (derived, underivable) = match given.map(|g| solve::solve(&g.timings())) {
        Some(Ok(costs)) => (Some(costs), None),
        Some(Err(why)) => (None, Some(why.to_string())),
        None => (None, None),
    };
    let fit = fit::fit(run, &api);
    let zeroing = zeroing::routes(run);
    let mut crossovers =
        rank::crossovers(run, "zerofill.prefault", "how", "touch", rank::anonymous);
    crossovers.extend(rank::crossovers(
        run,
        "zerofill.prefault",
        "how",
        "file_touch",
        |name| name.starts_with("file"),
    ));
    Some(Analysis {
        given,
        call: call(run, derived.as_ref()),
        derived,
        underivable,
        shares: shares(run, &api, &zeroing),
        agreement: agreement(run, fit.as_ref(), &zeroing),
        guesses: guesses::guesses(run),
        fit,
        zeroing,
        prefault: rank::rankings(run, "zerofill.prefault", "how", rank::anonymous),
        crossovers,
        apis: rank::rankings(run, "zerofill.touch", "api", |_| true),
        apis_untouched: rank::rankings(run, "zerofill.alloc", "api", |_| true),
        api,
    })
}

fn shares(run: &Run, api: &str, routes: &[Route]) -> Vec<Share> {
    let (alloc, touch) = (
        points::curve(run, "zerofill.alloc", "api", api),
        points::curve(run, "zerofill.touch", "api", api),
    );
    touch
        .iter()
        .filter_map(|p| {
            let (total, allocation) = (
                p.figure.value,
                at(&alloc, p.pages)?.value.min(p.figure.value),
            );
            // Zeroing found by another route cannot be more than what touching added.
            let zero = (zeroing::best(routes, p.pages)?.per_page.value.max(0.0) * p.pages as f64)
                .min(total - allocation);
            let share = |part: f64| part / total;
            Some(Share {
                pages: p.pages,
                total,
                allocation: share(allocation),
                fault: share(total - allocation - zero),
                zero: share(zero),
            })
        })
        .collect()
}

/// So many base pages, 256 KiB, stay in a second-level cache beside all that faulting and allocating touch. More are
/// colder to the kernel than to a loop that does nothing but clear them.
const FEW_PAGES: i64 = 64;

/// Like beside like: the regression beside what the samples put into faults and the slower unmapping; the zeroing of
/// huge pages beside the samples taken while huge pages are touched; zeroing by the clock beside the samples of the
/// same turns, and the figure of its own row beside that clock; and warm clearing from user space beside the samples in
/// the clearing and in the wait for it.
fn agreement(run: &Run, fit: Option<&Fit>, routes: &[Route]) -> Vec<Agreement> {
    let compared = |what, ours: Estimate, kernel: Estimate| Agreement {
        what,
        ours,
        kernel,
        ratio: ours.value / kernel.value,
        upper_bound: false,
    };
    let mut list = Vec::new();
    if let (Some(fit), Some(kernel)) = (fit, sampled_fault(run)) {
        list.push(compared(
            "a page faulted in, zeroed and freed: the regression beside the kernel's samples",
            fit.fault_page,
            kernel,
        ));
    }
    let huge = routes.iter().find(|r| r.key == "huge_pages");
    let sampled_huge = points::curve(run, "zerofill.kernel_profile", "how", "thp");
    if let (Some(huge), Some(kernel)) = (huge, huge.and_then(|h| at(&sampled_huge, h.pages))) {
        let what = "zeroing in huge pages, finding and freeing them included: timed, beside the kernel's samples of \
            the zeroing alone";
        list.push(Agreement {
            upper_bound: true,
            ..compared(what, huge.per_page, kernel)
        });
    }
    let is_few = |row: &Measurement| {
        row.params
            .int("pages")
            .is_some_and(|pages| pages <= FEW_PAGES)
    };
    for row in profiles(run, "memfd") {
        let [what, row_alone] = if is_few(row) {
            [
                "zeroing a base page of few in a fault: timed, beside the kernel's samples of the same turns (all \
                 processes)",
                "zeroing a base page of few in a fault: timed in its own row, beside the clock of the sampled turns",
            ]
        } else {
            [
                "zeroing a base page of many in a fault: timed, beside the kernel's samples of the same turns (all \
                 processes)",
                "zeroing a base page of many in a fault: timed in its own row, beside the clock of the sampled turns",
            ]
        };
        // What slows a process slows both, so that those that did not keep the pace say as much as the others.
        let timed = estimate_of(row, |p| part(p, "clock_ns"));
        list.extend(
            timed
                .zip(estimate_of(row, |p| p.value))
                .map(|(timed, kernel)| compared(what, timed, kernel)),
        );
        let own = routes
            .iter()
            .find(|r| r.key == "fault_difference" && row.params.int("pages") == Some(r.pages));
        let clock = kept(row, |p| part(p, "clock_ns"));
        list.extend(
            own.zip(clock)
                .map(|(own, clock)| compared(row_alone, own.per_page, clock)),
        );
    }
    let few = profiles(run, "memfd").find(|row| is_few(row));
    let clearing = few.and_then(|row| {
        kept(row, |p| {
            Some(part(p, "clear_ns")? + part(p, "store_wait_ns")?)
        })
    });
    let user = routes.iter().find(|r| {
        r.key == "user_warm" && few.is_some_and(|row| row.params.int("pages") == Some(r.pages))
    });
    let what = "zeroing a base page of few: warm from user space, beside the kernel's samples in its clearing and the \
        wait for it";
    list.extend(
        user.zip(clearing)
            .map(|(user, kernel)| compared(what, user.per_page, kernel)),
    );
    list
}

/// The rows of the kernel's samples of one kind.
fn profiles<'a>(run: &'a Run, how: &'static str) -> impl Iterator<Item = &'a Measurement> {
    run.measurements
        .iter()
        .filter(move |m| m.probe == "zerofill.kernel_profile" && m.params.text("how") == Some(how))
}

fn part(process: &Process, counter: &str) -> Option<f64> {
    process.counters.get(counter).copied()
}

/// What all processes of a row say; nothing where that is not a cost.
fn estimate_of(row: &Measurement, of: impl Fn(&Process) -> Option<f64>) -> Option<Estimate> {
    cost(row.processes.iter().filter_map(of).collect())
}

/// The same of those that its figure is made of.
fn kept(row: &Measurement, of: impl Fn(&Process) -> Option<f64>) -> Option<Estimate> {
    cost(
        row.processes
            .iter()
            .filter(|p| !p.excluded)
            .filter_map(of)
            .collect(),
    )
}

fn cost(values: Vec<f64>) -> Option<Estimate> {
    fingerpost_measure::estimate::across_processes(&values).filter(|e| e.value > 0.0)
}

/// What the samples put into one page: faults, the entry and exit that user code pays, and what unmapping a touched
/// page adds.
fn sampled_fault(run: &Run) -> Option<Estimate> {
    let row = profiles(run, "touch").max_by_key(|m| m.params.int("pages"))?;
    estimate_of(row, |p| {
        Some(
            part(p, "fault_ns")? + part(p, "user_ns")? + part(p, "unmap_ns")?
                - part(p, "unmap_untouched_ns")?,
        )
    })
}

/// What zeroing and the rest of a fault cost per page, from the fit and the best route: for the headline.
pub fn headline(analysis: &Analysis) -> Option<String> {
    let Some(fit) = analysis.fit.as_ref() else {
        return by_arithmetic(analysis);
    };
    let route = zeroing::best(&analysis.zeroing, fit.up_to.min(256))?;
    let rest = subtract(fit.fault_page, route.per_page);
    let whole = add(rest, scale(route.per_page, 1.0));
    let share = route.per_page.value / whole.value * 100.0;
    let [fault, zero] = [fit.fault_page, route.per_page].map(|e| Unit::Nanoseconds.format(e.value));
    Some(match route.per_page.low <= 0.0 {
        true => format!(
            "A first touch costs {fault} a page; how much of that is zero-filling is not resolved."
        ),
        false => format!(
            "A first touch costs {fault} a page, of which zero-filling is {zero} ({share:.0} %)."
        ),
    })
}

/// The same where there are the four timings alone.
fn by_arithmetic(analysis: &Analysis) -> Option<String> {
    let c = analysis
        .derived
        .as_ref()
        .filter(|c| c.fault_and_zerofill > 0.0)?;
    let [fault, allocating, freeing] =
        [c.fault_and_zerofill, c.allocation, c.deallocation].map(|ns| Unit::Nanoseconds.format(ns));
    let share = c.zerofill / c.fault_and_zerofill * 100.0;
    let rest = format!(
        "{share:.0} % of it zero-filling, allocating it by {} {allocating}, and freeing it {freeing}",
        analysis.api
    );
    Some(format!(
        "By the article's arithmetic faulting in and zero-filling a page takes {fault}, {rest}."
    ))
}

#[cfg(test)]
mod tests {
    use super::synthetic::{Machine, run_of};
    use super::*;

    #[test]
    fn a_whole_run_is_analysed_and_its_parts_agree() {
        let machine = Machine::default();
        let a = analyse(&run_of(&machine, 0.003)).unwrap();
        let derived = a.derived.unwrap();
        // Two points on the same lines: page-fault extra is object + fault.
        assert!(
            (derived.page_fault_extra / 1000.0 - 1.0).abs() < 0.05,
            "{derived:?}"
        );
        for s in &a.shares {
            assert!(
                (s.allocation + s.fault + s.zero - 1.0).abs() < 1e-9,
                "{s:?}"
            );
        }
        assert!(
            a.shares
                .windows(2)
                .all(|w| w[0].allocation > w[1].allocation)
        );
        assert_eq!(a.agreement.len(), 7);
        // User space is made twice as fast here, and the clearing and its wait four fifths of the zeroing.
        assert!((a.agreement[6].ratio - 0.5 / 0.8).abs() < 0.05);
        for g in &a.agreement[..6] {
            assert!((g.ratio - 1.0).abs() < 0.05, "{g:?}");
        }
        assert!(
            headline(&a).unwrap().contains("(25 %)"),
            "{:?}",
            headline(&a)
        );
    }

    #[test]
    fn zeroing_that_may_be_nothing_is_not_told_as_a_share() {
        let mut a = analyse(&run_of(&Machine::default(), 0.003)).unwrap();
        for route in &mut a.zeroing {
            route.per_page.low = -10.0;
        }
        let told = headline(&a).unwrap();
        assert!(
            told.ends_with("how much of that is zero-filling is not resolved.")
                && !told.contains('%'),
            "{told}"
        );
    }

    #[test]
    fn a_run_of_other_probes_has_no_analysis_and_a_partial_one_what_it_can() {
        assert_eq!(analyse(&Run::default()), None);
        let mut run = run_of(&Machine::default(), 0.003);
        run.measurements.retain(|m| m.probe == "zerofill.alloc");
        let a = analyse(&run).unwrap();
        assert!(
            a.given.is_none()
                && a.fit.is_none()
                && a.shares.is_empty()
                && a.guesses.is_empty()
                && !a.apis_untouched.is_empty()
        );
    }

    #[test]
    fn timings_that_cannot_be_are_named_not_hidden() {
        let mut run = run_of(&Machine::default(), 0.003);
        for m in run
            .measurements
            .iter_mut()
            .filter(|m| m.probe == "zerofill.touch" && m.params.int("pages") == Some(1))
        {
            m.estimate = Some(Estimate {
                value: 1.0,
                low: 0.9,
                high: 1.1,
                confidence: 0.95,
            });
        }
        let a = analyse(&run).unwrap();
        assert!(a.derived.is_none() && a.underivable.unwrap().contains("1p touch"));
    }

    #[test]
    fn hostile_figures_make_no_panic() {
        let mut run = run_of(&Machine::default(), 0.003);
        for (i, m) in run.measurements.iter_mut().enumerate() {
            let value = [f64::NAN, f64::INFINITY, 0.0, -5.0, 1e308, 5e-324][i % 6];
            m.estimate = Some(Estimate {
                value,
                low: value,
                high: value,
                confidence: 0.95,
            });
            m.processes.iter_mut().for_each(|p| p.value = Some(value));
        }
        let a = analyse(&run).unwrap();
        assert!(serde_json::to_string(&a).is_ok());
    }
}
