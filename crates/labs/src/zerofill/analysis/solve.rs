//! Four timings taken apart: the article's arithmetic, field by field.

use serde::Serialize;
use thiserror::Error;

/// The four editable fields: times of one million (or of one) operation, all in the same unit, which is then that of
/// every result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timings<T = f64> {
    /// Allocate one page and free it.
    pub alloc_1: T,
    /// Allocate one page, touch it, free it.
    pub touch_1: T,
    /// Allocate two pages and free them.
    pub alloc_2: T,
    /// Allocate two pages, touch both, free them.
    pub touch_2: T,
}

impl<T> From<[T; 4]> for Timings<T> {
    fn from([alloc_1, touch_1, alloc_2, touch_2]: [T; 4]) -> Timings<T> {
        Timings {
            alloc_1,
            touch_1,
            alloc_2,
            touch_2,
        }
    }
}

impl<T: Copy> Timings<T> {
    /// The four in their order.
    pub fn all(&self) -> [T; 4] {
        [self.alloc_1, self.touch_1, self.alloc_2, self.touch_2]
    }
}

/// The derived fields. Each is the article's formula; [`FIELDS`] has them in words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// What a further page adds to an allocation and deallocation.
    pub page_extra: f64,
    /// One call to allocate, or one to deallocate, without any page.
    pub allocation: f64,
    /// What touching one page adds: fault, zero-filling, and the slower deallocation.
    pub page_fault_extra: f64,
    /// What having an object behind the pages costs once, whatever their number: shared between fault and deallocation.
    pub object: f64,
    /// One page fault with its zero-filling.
    pub fault_and_zerofill: f64,
    /// Deallocating one touched page.
    pub deallocation: f64,
    /// Zero-filling one page, if the fault proper costs a quarter of an allocation.
    pub zerofill: f64,
}

/// Each derived field: key, name, formula in words.
pub const FIELDS: [(&str, &str, &str); 7] = [
    ("page_extra", "page extra", "2p alloc − 1p alloc"),
    ("allocation", "allocation", "(1p alloc − page extra) / 2"),
    (
        "page_fault_extra",
        "page-fault extra",
        "1p touch − 1p alloc",
    ),
    (
        "object",
        "object",
        "2 × (1p touch − 1p alloc) − (2p touch − 2p alloc)",
    ),
    (
        "fault_and_zerofill",
        "fault + zero-fill",
        "(2p touch − 2p alloc) / 2 − object / 2",
    ),
    (
        "deallocation",
        "deallocation",
        "allocation + page extra / 2 + object / 2",
    ),
    (
        "zerofill",
        "zero-fill",
        "fault + zero-fill − allocation / 4 − object / 2",
    ),
];

impl Costs {
    /// The values in the order of [`FIELDS`].
    pub fn values(&self) -> [f64; 7] {
        let Costs {
            page_extra,
            allocation,
            page_fault_extra,
            object,
            ..
        } = *self;
        let Costs {
            fault_and_zerofill,
            deallocation,
            zerofill,
            ..
        } = *self;
        [
            page_extra,
            allocation,
            page_fault_extra,
            object,
            fault_and_zerofill,
            deallocation,
            zerofill,
        ]
    }

    /// Zero-filling's share, 0 to 1, of allocating, touching and freeing `pages` pages, as this model has it.
    pub fn zerofill_share(&self, pages: u32) -> f64 {
        self.zerofill * f64::from(pages) / self.total(pages)
    }

    /// Faulting and zero-filling's share, 0 to 1, of allocating, touching and freeing `pages` pages. Half of the
    /// object's cost is the faults', as the article divides it.
    pub fn fault_share(&self, pages: u32) -> f64 {
        self.faults(pages) / self.total(pages)
    }

    /// Zero-filling's share, 0 to 1, of allocating and touching `pages` pages, their freeing left out: the base of the
    /// article's “at least”.
    pub fn zerofill_share_before_freeing(&self, pages: u32) -> f64 {
        let allocating = self.allocation + self.page_extra / 2.0 * f64::from(pages);
        self.zerofill * f64::from(pages) / (allocating + self.faults(pages))
    }

    fn faults(&self, pages: u32) -> f64 {
        self.fault_and_zerofill * f64::from(pages) + self.object / 2.0
    }

    /// Allocating, touching and freeing `pages` pages: two calls, the pages' extra, the faults, the object once.
    fn total(&self, pages: u32) -> f64 {
        2.0 * self.allocation
            + (self.page_extra + self.fault_and_zerofill) * f64::from(pages)
            + self.object
    }
}

/// Part III's four timings, in its unit.
pub const PART_THREE: [f64; 4] = [11.2, 24.0, 11.5, 33.6];
/// What part III prints for them, in the order of [`FIELDS`]. Two of them do not follow from its formulas.
pub const PRINTED: [f64; 7] = [0.3, 5.45, 12.8, 3.5, 9.3, 7.5, 6.15];

/// What the article prints for a field of its own timings, in whatever unit they are given, where its formula gives
/// something else. In the order of [`FIELDS`]; nothing for other timings.
pub fn misprints(t: &Timings) -> [Option<f64>; 7] {
    let unit = t.alloc_1 / PART_THREE[0];
    let same = t
        .all()
        .iter()
        .zip(PART_THREE)
        .all(|(t, own)| (t / (own * unit) - 1.0).abs() < 1e-9);
    let Some(costs) = solve(t).ok().filter(|_| same) else {
        return [None; 7];
    };
    let mut found = PRINTED.map(|printed| Some(printed * unit));
    for (printed, value) in found.iter_mut().zip(costs.values()) {
        *printed = printed.filter(|p| (p / value - 1.0).abs() > 1e-6);
    }
    found
}

/// Why four numbers cannot be timings.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Impossible {
    /// There are not four of them, or one is not a number.
    #[error(
        "“{0}” is not four timings: write them as 1p alloc, 1p touch, 2p alloc, 2p touch, such as 11.2,24.0,11.5,33.6"
    )]
    NotFour(String),
    /// One is negative, zero, or not finite: which, and its value.
    #[error("{0} is {1}, and a time must be above zero")]
    NotATime(&'static str, f64),
    /// Touching cannot be cheaper than not touching: the name of the time with touching and that time, and those
    /// without.
    #[error(
        "{0} ({1}) is below {2} ({3}): touching pages cannot be cheaper than leaving them alone"
    )]
    TouchBelowAlloc(&'static str, f64, &'static str, f64),
}

/// Reads `T1,F1,T2,F2` as `--solve` takes them.
pub fn parse(text: &str) -> Result<Timings, Impossible> {
    let numbers: Option<Vec<f64>> = text
        .split(',')
        .map(|word| word.trim().parse().ok())
        .collect();
    match numbers.as_deref() {
        Some(&[a, b, c, d]) => Ok([a, b, c, d].into()),
        _ => Err(Impossible::NotFour(text.chars().take(80).collect())),
    }
}

/// Takes four timings apart.
pub fn solve(t: &Timings) -> Result<Costs, Impossible> {
    let fields = ["1p alloc", "1p touch", "2p alloc", "2p touch"];
    if let Some((field, value)) = fields
        .into_iter()
        .zip(t.all())
        .find(|(_, value)| !(value.is_finite() && *value > 0.0))
    {
        return Err(Impossible::NotATime(field, value));
    }
    for (pages, alloc, touch) in [(0, t.alloc_1, t.touch_1), (2, t.alloc_2, t.touch_2)] {
        if touch < alloc {
            return Err(Impossible::TouchBelowAlloc(
                fields[pages + 1],
                touch,
                fields[pages],
                alloc,
            ));
        }
    }
    let page_extra = t.alloc_2 - t.alloc_1;
    let allocation = (t.alloc_1 - page_extra) / 2.0;
    let page_fault_extra = t.touch_1 - t.alloc_1;
    let object = 2.0 * page_fault_extra - (t.touch_2 - t.alloc_2);
    let fault_and_zerofill = (t.touch_2 - t.alloc_2) / 2.0 - object / 2.0;
    let deallocation = allocation + page_extra / 2.0 + object / 2.0;
    let zerofill = fault_and_zerofill - allocation / 4.0 - object / 2.0;
    Ok(Costs {
        page_extra,
        allocation,
        page_fault_extra,
        object,
        fault_and_zerofill,
        deallocation,
        zerofill,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn solved(text: &str) -> [f64; 7] {
        solve(&parse(text).unwrap())
            .unwrap()
            .values()
            .map(|v| (v * 1e6).round() / 1e6)
    }

    #[test]
    fn part_three_of_the_article() {
        // The article prints 7.5 for the deallocation and 6.15 for the zero-filling; its own formulas give these.
        assert_eq!(
            solved("11.2,24.0,11.5,33.6"),
            [0.3, 5.45, 12.8, 3.5, 9.3, 7.35, 6.1875]
        );
    }

    #[test]
    fn part_four_with_mmap() {
        // 9.7, 41.0, 11.1, 65.9: the arithmetic by hand.
        assert_eq!(
            solved("9.7,41.0,11.1,65.9"),
            [1.4, 4.15, 31.3, 7.8, 23.5, 8.75, 18.5625]
        );
    }

    #[test]
    fn part_four_with_vm_allocate() {
        assert_eq!(
            solved("17.6,51.5,18.9,77.3"),
            [1.3, 8.15, 33.9, 9.4, 24.5, 13.5, 17.7625]
        );
    }

    #[test]
    fn the_articles_observations_hold_in_its_own_figures() {
        let costs = solve(&parse("11.2,24.0,11.5,33.6").unwrap()).unwrap();
        // The fault takes longest.
        assert!(
            costs.fault_and_zerofill > costs.allocation
                && costs.fault_and_zerofill > costs.deallocation
        );
        // Half of allocating and faulting in four pages, by hand: 24.75 of 5.45 + 0.6 + 37.2 + 1.75 = 45.
        assert!((costs.zerofill_share_before_freeing(4) - 24.75 / 45.0).abs() < 1e-9);
        // Faults with half of the object's cost, by hand: 38.95 of 10.9 + 1.2 + 37.2 + 3.5 = 52.8.
        assert!((costs.fault_share(4) - 38.95 / 52.8).abs() < 1e-9);
        // 50 to 80 % of the fault.
        let weight = costs.zerofill / costs.fault_and_zerofill;
        assert!((0.5..=0.8).contains(&weight), "{weight}");
    }

    #[test]
    fn what_part_three_prints_is_known_in_any_unit_and_of_no_other_timings() {
        let of = |text: &str| misprints(&parse(text).unwrap());
        assert_eq!(
            of("11.2,24.0,11.5,33.6"),
            [None, None, None, None, None, Some(7.5), Some(6.15)]
        );
        assert!((of("11200,24000,11500,33600")[6].unwrap() - 6150.0).abs() < 1e-6);
        assert_eq!(of("9.7,41.0,11.1,65.9"), [None; 7]);
        assert_eq!(of("0,0,0,0"), [None; 7]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let error = |text: &str| parse(text).and_then(|t| solve(&t)).unwrap_err().to_string();
        assert!(error("1,2,3").contains("four timings"));
        assert!(error("1,2,x,4").contains("four timings"));
        assert!(error("-1,2,3,4").contains("1p alloc is -1"));
        assert!(error("1,2,NaN,4").contains("2p alloc is NaN"));
        assert!(error("5,4,6,9").contains("1p touch (4) is below 1p alloc (5)"));
        assert!(error("5,6,7,6.5").contains("2p touch (6.5) is below 2p alloc (7)"));
    }

    proptest! {
        #[test]
        fn the_parts_add_up_to_the_timings(a in 1.0f64..1e3, f in 0.0f64..1e3, a2 in 1.0f64..1e3, f2 in 0.0f64..1e3) {
            let t = Timings { alloc_1: a, touch_1: a + f, alloc_2: a2, touch_2: a2 + f2 };
            let c = solve(&t).unwrap();
            // One page: allocation, fault, object's half in the fault, deallocation with the other half.
            let one = c.allocation + c.page_extra / 2.0 + c.fault_and_zerofill + c.object / 2.0 + c.deallocation;
            let two = 2.0 * c.allocation + 2.0 * c.page_extra + 2.0 * c.fault_and_zerofill + c.object;
            for (solved, given) in [(one, t.touch_1), (two, t.touch_2)] {
                prop_assert!((solved - given).abs() < 1e-6 * given.max(1.0));
            }
        }
    }
}
