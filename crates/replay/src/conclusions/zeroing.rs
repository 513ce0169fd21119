//! Zero-filling, parts III and IV.

use fingerpost_diagnose::mapped::mapped;
use fingerpost_record::{Readings, Run, Status};

use super::conclusion::{About, Conclusion, Document, Here};
use super::judged::Judged;
use super::source::{between, load};
use fingerpost_compare::apart;
use fingerpost_labs::zerofill::analysis::guesses::{self, Verdict};
use fingerpost_labs::zerofill::analysis::solve::{self, Costs};
use fingerpost_labs::zerofill::analysis::{self, points, rank, zeroing};

const THREE: About = About::new(Document::ZerofillThree, &["zerofill-3"]);
const FOUR: About = About::new(Document::ZerofillFour, &["zerofill-4"]);
const DERIVING: &str = "Deriving the Other Fields";
const OBSERVATIONS: &str = "Some Observations";
const LAB: &str = "zerofill";

/// The conclusions about zero-filling.
pub static LIST: &[Conclusion] = &[
    THREE.at(DERIVING).conclusion(
        "freeing_costs_as_allocating",
        "Allocating and freeing untouched memory cost about the same.",
        || Judged::not("it is an assumption: the two were timed together"),
        Here::By(|run| guess(run, "same_time"), LAB),
    ),
    THREE.at(DERIVING).conclusion(
        "object_shared_evenly",
        "What touched memory costs once is borne half by the fault and half by the freeing.",
        || Judged::not("it is an assumption: the two were timed together"),
        Here::By(|run| guess(run, "shared_evenly"), LAB),
    ),
    THREE.at(DERIVING).conclusion(
        "fault_a_quarter_of_allocating",
        "A fault without its zeroing costs about a quarter of an allocation.",
        || Judged::not("it is an assumption: the zeroing was not timed"),
        Here::By(|run| guess(run, "quarter"), LAB),
    ),
    THREE.at(DERIVING).conclusion(
        "further_page_costs_little",
        "Each further page that is allocated at a time adds little to allocating and freeing.",
        || {
            let costs = part_three();
            Judged::by(costs.page_extra < LITTLE * 11.2, format!("{:.1} µs of 11.2", costs.page_extra))
        },
        Here::By(
            |run| {
                let found = analysis::analyse(run)?;
                let (given, costs) = (found.given?, found.derived?);
                let half = given.halves()?[0];
                let figure = format!(
                    "a second page adds {:.0} ns to {:.0} ns, give or take {half:.0} ns",
                    costs.page_extra, given.alloc_1.value
                );
                let least = LITTLE * given.alloc_1.value;
                Some(if (costs.page_extra - least).abs() < half {
                    Judged::open(figure)
                } else {
                    Judged::by(costs.page_extra < least, figure)
                })
            },
            LAB,
        ),
    ),
    THREE.at(DERIVING).conclusion(
        "touching_makes_freeing_slower",
        "Touching memory makes freeing it more expensive, and cannot make allocating it so.",
        || Judged::not("it is an assumption: the two were timed together"),
        Here::By(freeing_touched, LAB),
    ),
    THREE.at(DERIVING).conclusion(
        "zeroing_most_of_the_fault",
        "Zero-filling is 50 to 80 % of a fault.",
        || {
            let costs = part_three();
            let share = costs.zerofill / costs.fault_and_zerofill;
            Judged::by((0.5..=0.8).contains(&share), format!("{:.0} % by the document's own arithmetic", share * 100.0))
        },
        Here::By(|run| guess(run, "zero_share"), LAB),
    ),
    THREE.at(OBSERVATIONS).conclusion(
        "fault_the_largest",
        "Of allocating, faulting in and freeing a page, the fault takes longest.",
        || {
            let c = part_three();
            Judged::by(c.fault_and_zerofill > c.allocation.max(c.deallocation), largest(&c, 1.0))
        },
        Here::By(
            |run| {
                let found = analysis::analyse(run)?;
                let (c, halves) = (found.derived?, found.given?.halves()?);
                // The halves of allocating, the fault and freeing, by their places among the fields.
                let (other, of_other) =
                    if c.allocation > c.deallocation { (c.allocation, halves[1]) } else { (c.deallocation, halves[5]) };
                let figure = format!("{}, the fault give or take {:.2} µs", largest(&c, 1e-3), halves[4] * 1e-3);
                let apart = (c.fault_and_zerofill - other).abs() > halves[4].hypot(of_other);
                Some(if apart { Judged::by(c.fault_and_zerofill > other, figure) } else { Judged::open(figure) })
            },
            LAB,
        ),
    ),
    THREE.at(OBSERVATIONS).conclusion(
        "four_pages_eighty_percent",
        "With four pages at a time faults and zero-filling already take about 80 % of the whole.",
        || {
            let share = part_three().fault_share(4);
            // “About” as wide as the difference between the whole object's cost with the faults and half of it.
            Judged::by((0.7..=0.9).contains(&share), format!("{:.0} % with half of the object's cost", share * 100.0))
        },
        Here::By(|run| guess(run, "four_pages"), LAB),
    ),
    THREE.at(OBSERVATIONS).conclusion(
        "calls_matter_less_with_pages",
        "The more pages are allocated at a time, the less allocating and freeing matter.",
        || {
            let c = part_three();
            let rest = [1, 2, 4, 16, 256].map(|pages| 1.0 - c.fault_share(pages));
            let figure = format!(
                "{:.0} % with one page, {:.0} % with 4, {:.0} % with 256",
                rest[0] * 100.0,
                rest[2] * 100.0,
                rest[4] * 100.0
            );
            Judged::by(rest.windows(2).all(|w| w[1] < w[0]), figure)
        },
        Here::By(
            |run| {
                let shares = analysis::analyse(run)?.shares;
                let (first, last) = (shares.first()?, shares.last()?);
                let [few, many] = [first, last].map(|share| share.allocation * 100.0);
                let figure =
                    format!("{few:.1} % of the whole with {} at a time, {many:.1} % with {}", first.pages, last.pages);
                (shares.len() > 1).then(|| Judged::by(last.allocation < first.allocation, figure))
            },
            LAB,
        ),
    ),
    THREE.at(OBSERVATIONS).conclusion(
        "half_is_zero_filling",
        "Of allocating and faulting in four pages, freeing left out, at least half is zero-filling.",
        || {
            let share = part_three().zerofill_share_before_freeing(4);
            Judged::by(share >= 0.5, format!("{:.0} %", share * 100.0))
        },
        Here::By(|run| guess(run, "four_pages_zero"), LAB),
    ),
    THREE.at(OBSERVATIONS).conclusion(
        "ten_three_allocates_faster",
        "Version 10.3 allocates faster on a G4 of 500 MHz than 10.2.6 does on some faster processors.",
        || Judged::not("the document has no figures of that system"),
        Here::Never("it is about two versions of one system"),
    ),
    THREE.at(OBSERVATIONS).conclusion(
        "zeroing_the_bottleneck_later",
        "In the newer system, which allocates faster and is still slower on the whole, zero-filling is likely the \
         bottleneck.",
        || Judged::not("the document has no figures of that system"),
        Here::Never("it is about two versions of one system"),
    ),
    THREE.at("How to Optimize This").conclusion(
        "faulting_ahead_helps",
        "Faulting in several pages at a time would be cheaper than a fault for each.",
        || Judged::not("it is a proposal: nothing of it was measured"),
        Here::By(ahead, LAB),
    ),
    THREE.at("How to Optimize This").conclusion(
        "zeroing_weighs_more_then",
        "Where faults are made cheaper, zero-filling weighs more.",
        || {
            let c = part_three();
            let share = |faults: f64| c.zerofill / (c.zerofill + (c.fault_and_zerofill - c.zerofill) / faults);
            let [one, many] = [1.0, 16.0].map(|faults| share(faults) * 100.0);
            Judged::by(
                many > one,
                format!("it is {one:.0} % of a fault, and would be {many:.0} % with one fault for 16 pages"),
            )
        },
        Here::By(share_of_zeroing_ahead, LAB),
    ),
    THREE.at("How to Optimize This").conclusion(
        "not_zeroing_is_cheapest",
        "Zero-filling is best made faster by not zero-filling.",
        || Judged::not("nothing of it was measured"),
        Here::By(kept_memory, LAB),
    ),
    THREE.at("How to Optimize This").conclusion(
        "touched_at_once",
        "Nearly always memory is touched right after it was allocated, so that mapping its first pages at once would \
         save a fault.",
        || Judged::not("it is called a guess there: nothing was measured"),
        Here::By(touched_at_once, "launch --allow-system-changes"),
    ),
    FOUR.at("The table").conclusion(
        "mmap_twice_as_fast",
        "Allocating and freeing by mmap is almost twice as fast as by vm_allocate.",
        || {
            let found = apart();
            let times = found.iter().map(|a| a.call).collect::<Vec<_>>();
            let figure = times.iter().map(|t| format!("{:.2}", 1.0 / t)).collect::<Vec<_>>().join(" and ");
            Judged::by(
                times.len() == 2 && times.iter().all(|t| (1.6..2.0).contains(&(1.0 / t))),
                format!("{figure} times"),
            )
        },
        Here::Never(
            "there is no vm_allocate here; `compare 'RUN[api=mmap]' 'RUN[api=brk]'` does the same with two ways that \
             there are",
        ),
    ),
    FOUR.at("The table").conclusion(
        "fault_unaffected",
        "What a fault and its zero-filling cost does not depend on which of the two calls made the mapping.",
        || {
            let c = cube();
            let fault = c.causes.iter().find(|f| f.cause == apart::FIRST_TOUCH);
            let figure = apart().iter().map(|a| format!("{:.2}", a.fault)).collect::<Vec<_>>().join(" and ");
            Judged::by(
                fault.is_some_and(|f| f.status == Status::RuledOut),
                format!("{figure} times, which the figures do not resolve"),
            )
        },
        Here::Never("there is no vm_allocate here"),
    ),
    FOUR.at("Excerpt from a mail from Jim Magee").conclusion(
        "transport_not_work",
        "The older call is expensive because it is a message to the kernel, with ports to check on the way, not \
         because it maps differently.",
        || {
            let found = apart();
            let extra: Vec<f64> = found.iter().map(|a| a.call_difference / 1e3).collect();
            let alike = extra.len() == 2 && (extra[1] / extra[0] - 1.0).abs() < 0.1;
            let figure = extra.iter().map(|e| format!("{:.1}", e.abs())).collect::<Vec<_>>().join(" and ");
            Judged::by(
                alike,
                format!("{figure} µs more with one page and with two: the same for each call, whatever it maps"),
            )
        },
        Here::By(transport, "zerofill syscall.null"),
    ),
    FOUR.at("The text").conclusion(
        "part_three_stands",
        "That the call got cheaper changes nothing of what part III concludes.",
        || {
            let costs = ["mmap", "vm_allocate"].map(|api| {
                let found = analysis::analyse(&of_api(api)).and_then(|a| a.derived);
                found.map_or(f64::NAN, |c| c.zerofill / c.fault_and_zerofill)
            });
            let [mmap, vm_allocate] = costs.map(|share| share * 100.0);
            let figure = format!("zero-filling is {mmap:.0} % of a fault by mmap, {vm_allocate:.0} % by vm_allocate");
            Judged::by(costs.iter().all(|share| (0.5..=0.8).contains(share)), figure)
        },
        Here::Never("there is no vm_allocate here"),
    ),
];

/// The arithmetic of part III on its own four timings, in microseconds.
fn part_three() -> Costs {
    solve::solve(&solve::PART_THREE.into()).expect("the document's timings are timings")
}

/// The three costs in microseconds; `unit` is how many of them one unit of the costs is.
fn largest(c: &Costs, unit: f64) -> String {
    let [fault, allocating, freeing] =
        [c.fault_and_zerofill, c.allocation, c.deallocation].map(|v| v * unit);
    format!("fault {fault:.2}, allocating {allocating:.2}, freeing {freeing:.2} µs")
}

fn cube() -> fingerpost_compare::Comparison {
    between(
        "zerofill-cube-450[api=vm_allocate]",
        "zerofill-cube-450[api=mmap]",
    )
}

fn apart() -> Vec<apart::Apart> {
    apart::apart(&cube().rows)
}

/// The rows of one interface, with the parameter.
fn of_api(api: &str) -> Run {
    let mut run = load("zerofill-cube-450");
    run.measurements
        .retain(|m| m.params.text("api") == Some(api));
    run
}

/// A guess of the document against what was measured in phases here.
fn guess(run: &Run, key: &str) -> Option<Judged> {
    let guess = guesses::guesses(run).into_iter().find(|g| g.key == key)?;
    let m = guess.measured;
    let figure = format!(
        "{}: {:.2} ({:.2} to {:.2})",
        guess.quantity, m.value, m.low, m.high
    );
    Some(match guess.verdict {
        Verdict::Holds => Judged::by(true, figure),
        Verdict::Off => Judged::by(false, figure),
        Verdict::Unresolved => Judged::open(figure),
    })
}

/// What “the vast majority” is at the least.
const NEARLY_ALL: f64 = 0.8;

/// How soon real programs touched what they asked for, by the observers' account.
fn touched_at_once(run: &Run) -> Option<Judged> {
    let found = mapped(&Readings::of(
        run.observations.iter().filter(|o| o.observer == "mappings"),
    ))?;
    Some(Judged::by(found.at_once >= NEARLY_ALL, found.sentence))
}

fn ahead(run: &Run) -> Option<Judged> {
    let found = analysis::analyse(run)?.crossovers;
    let best = found
        .iter()
        .filter(|c| c.against == "touch")
        .max_by(|a, b| a.times_at_most.total_cmp(&b.times_at_most))?;
    let figure = format!(
        "{} is {:.2} times as fast as touching {} pages one by one",
        best.name, best.times_at_most, best.most_pages
    );
    Some(Judged::by(best.from_pages.is_some(), figure))
}

/// A part of the whole that is little.
const LITTLE: f64 = 0.1;

/// Freeing one page that was touched beside freeing one that was not.
fn freeing_touched(run: &Run) -> Option<Judged> {
    let freed = |phase: &str| points::at(&points::curve(run, "zerofill.phase", "phase", phase), 1);
    let (untouched, touched) = (freed("free_untouched")?, freed("free_touched")?);
    let figure = format!(
        "freeing a page takes {:.0} ns untouched, {:.0} ns touched",
        untouched.value, touched.value
    );
    Some(Judged::larger(&touched, &untouched, figure))
}

/// What zero-filling is of touching pages one by one and of the cheapest way to have as many faulted in, both in base
/// pages.
fn share_of_zeroing_ahead(run: &Run) -> Option<Judged> {
    let found = analysis::analyse(run)?;
    let route =
        |pages: i64| Some(zeroing::best(&found.zeroing, pages)?.per_page.value * pages as f64);
    // Huge pages are zeroed in another way, so that the same zeroing cannot be assumed of them.
    let same = |name: &str| !name.contains("thp");
    let ranking = found
        .prefault
        .iter()
        .rev()
        .find(|r| r.places.iter().any(|p| p.name == "touch") && route(r.pages).is_some())?;
    let (zero, cost) = (route(ranking.pages)?, |p: &rank::Place| p.cost.value);
    let (touch, best) = (
        ranking.places.iter().find(|p| p.name == "touch")?,
        ranking.places.iter().find(|p| same(&p.name))?,
    );
    let [one, ahead] = [touch, best].map(|p| zero / cost(p) * 100.0);
    let touched = format!(
        "with {} pages it is {one:.0} % of the whole when they are touched one by one",
        ranking.pages
    );
    let figure = format!("{touched}, {ahead:.0} % with {}", best.name);
    // Both shares are of the same zeroing, so that the times of the two decide.
    let apart = best.cost.high < touch.cost.low || best.cost.low > touch.cost.high;
    (best.name != "touch").then(|| {
        if apart {
            Judged::by(ahead > one, figure)
        } else {
            Judged::open(format!("{figure}, of times with intervals that overlap"))
        }
    })
}

/// Memory that the program keeps, so that the kernel need not fill it again, beside memory that is new each time.
fn kept_memory(run: &Run) -> Option<Judged> {
    let of = |api: &str| points::at(&points::curve(run, "zerofill.touch", "api", api), 1);
    let (kept, new) = (of("malloc_small")?, of(analysis::MAIN_API)?);
    let figure = format!(
        "one page that malloc has kept takes {:.0} ns with its touch, one that is mapped anew {:.0} ns",
        kept.value, new.value
    );
    Some(Judged::by(kept.high < new.low, figure))
}

/// The null call beside the cost of the mapping call: how much of it is the way into the kernel.
fn transport(run: &Run) -> Option<Judged> {
    let found = analysis::analyse(run)?;
    let (call, half) = (found.call?, found.given?.halves()?[1]);
    let (null, allocation) = (call.null.value, call.allocation);
    let share = format!(
        "{:.0} % of it is the way into the kernel and back",
        call.transport * 100.0
    );
    let figure = format!(
        "a call that does nothing takes {null:.0} ns, allocating takes {allocation:.0} ns: {share}"
    );
    // Half of the allocation, where what the timings leave open of that does not reach.
    let apart = (call.allocation / 2.0 - call.null.value).abs() > half / 2.0;
    Some(if apart {
        Judged::by(call.transport > 0.5, figure)
    } else {
        Judged::open(format!("{figure}, give or take {half:.0} ns"))
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Measurement, Params, Unit};

    use super::super::Answer;
    use super::*;

    /// Part III's four timings but for what the second page adds, each known to this many microseconds.
    fn answer(key: &str, page_extra: f64, half: f64) -> Answer {
        let row = |probe: &str, pages: i64, us: f64| {
            let params = Params::new().with("api", "mmap").with("pages", pages);
            let none =
                fingerpost_record::fixture::row(probe, params, Unit::Nanoseconds, Better::Lower);
            let [value, low, high] = [us, us - half, us + half].map(|v| v * 1e3);
            Measurement {
                estimate: Some(Estimate {
                    value,
                    low,
                    high,
                    confidence: 0.95,
                }),
                ..none
            }
        };
        let (alloc, touch) = ("zerofill.alloc", "zerofill.touch");
        let timings = [
            (alloc, 1, 11.2),
            (touch, 1, 24.0),
            (alloc, 2, 11.2 + page_extra),
            (touch, 2, 33.3 + page_extra),
        ];
        let run = Run {
            measurements: timings
                .map(|(probe, pages, us)| row(probe, pages, us))
                .to_vec(),
            ..Run::default()
        };
        LIST.iter()
            .find(|c| c.key == key)
            .unwrap()
            .by_run(&run)
            .answer
    }

    #[test]
    fn what_follows_from_timings_is_as_sure_as_they_are() {
        let further = |page_extra, half| answer("further_page_costs_little", page_extra, half);
        assert_eq!(
            (further(0.3, 0.05), further(2.0, 0.05)),
            (Answer::True, Answer::False)
        );
        assert_eq!(
            (further(0.3, 2.0), further(2.0, 2.0)),
            (Answer::NotResolved, Answer::NotResolved)
        );
        assert_eq!(
            further(-1.1, 2.0),
            Answer::NotResolved,
            "a page that costs less than none is no figure"
        );
        let largest = |half| answer("fault_the_largest", 0.3, half);
        assert_eq!(
            (largest(0.05), largest(2.0)),
            (Answer::True, Answer::NotResolved)
        );
    }
}
