//! Four timings taken apart: the article's arithmetic, field by field.

use serde::Serialize;
use thiserror::Error;

/// The four editable fields: times of one million (or of one) operation, all in the same unit, which is then that of every result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timings {
    /// Allocate one page and free it.
    pub alloc_1: f64,
    /// Allocate one page, touch it, free it.
    pub touch_1: f64,
    /// Allocate two pages and free them.
    pub alloc_2: f64,
    /// Allocate two pages, touch both, free them.
    pub touch_2: f64,
}

/// The derived fields. Each is the article's formula; [`FIELDS`] has them in words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// What a further page adds to an allocation and deallocation.
    pub page_extra: f64,
    /// One call to allocate, or one to deallocate, without any page.
    pub allocation: f64,
    /// What touching one page adds: fault, zero-filling, and the dearer deallocation.
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
    ("page_fault_extra", "page-fault extra", "1p touch − 1p alloc"),
    ("object", "object", "2 × (1p touch − 1p alloc) − (2p touch − 2p alloc)"),
    ("fault_and_zerofill", "fault + zero-fill", "(2p touch − 2p alloc) / 2 − object / 2"),
    ("deallocation", "deallocation", "allocation + page extra / 2 + object / 2"),
    ("zerofill", "zero-fill", "fault + zero-fill − allocation / 4 − object / 2"),
];

impl Costs {
    /// The values in the order of [`FIELDS`].
    pub fn values(&self) -> [f64; 7] {
        [self.page_extra, self.allocation, self.page_fault_extra, self.object, self.fault_and_zerofill, self.deallocation, self.zerofill]
    }

    /// Zero-filling's share, 0 to 1, of allocating, touching and freeing `pages` pages, as this model has it: the article's
    /// “already with only 4 pages …”.
    pub fn zerofill_share(&self, pages: u32) -> f64 {
        self.zerofill * f64::from(pages) / self.total(pages)
    }

    /// Faulting and zero-filling's share, 0 to 1, of allocating, touching and freeing `pages` pages.
    pub fn fault_share(&self, pages: u32) -> f64 {
        self.fault_and_zerofill * f64::from(pages) / self.total(pages)
    }

    /// Allocating, touching and freeing `pages` pages: two calls, the pages' extra, the faults, the object once.
    fn total(&self, pages: u32) -> f64 {
        2.0 * self.allocation + (self.page_extra + self.fault_and_zerofill) * f64::from(pages) + self.object
    }
}

/// Why four numbers cannot be timings.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Impossible {
    /// There are not four of them, or one is not a number.
    #[error("“{0}” is not four timings: write them as 1p alloc, 1p touch, 2p alloc, 2p touch, such as 11.2,24.0,11.5,33.6")]
    NotFour(String),
    /// One is negative, zero, or not finite.
    #[error("{field} is {value}, and a time must be above zero")]
    NotATime {
        /// Which.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// Touching cannot be cheaper than not touching.
    #[error("{touch_field} ({touch}) is below {alloc_field} ({alloc}): touching pages cannot be cheaper than leaving them alone")]
    TouchBelowAlloc {
        /// Name of the time with touching.
        touch_field: &'static str,
        /// The time with touching.
        touch: f64,
        /// Name of the time without.
        alloc_field: &'static str,
        /// The time without.
        alloc: f64,
    },
}

/// Reads `T1,F1,T2,F2` as `--solve` takes them.
pub fn parse(text: &str) -> Result<Timings, Impossible> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|word| word.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[alloc_1, touch_1, alloc_2, touch_2]) => Ok(Timings { alloc_1, touch_1, alloc_2, touch_2 }),
        _ => Err(Impossible::NotFour(text.chars().take(80).collect())),
    }
}

/// Takes four timings apart.
pub fn solve(t: &Timings) -> Result<Costs, Impossible> {
    for (field, value) in [("1p alloc", t.alloc_1), ("1p touch", t.touch_1), ("2p alloc", t.alloc_2), ("2p touch", t.touch_2)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Impossible::NotATime { field, value });
        }
    }
    for (touch_field, touch, alloc_field, alloc) in
        [("1p touch", t.touch_1, "1p alloc", t.alloc_1), ("2p touch", t.touch_2, "2p alloc", t.alloc_2)]
    {
        if touch < alloc {
            return Err(Impossible::TouchBelowAlloc { touch_field, touch, alloc_field, alloc });
        }
    }
    let page_extra = t.alloc_2 - t.alloc_1;
    let allocation = (t.alloc_1 - page_extra) / 2.0;
    let page_fault_extra = t.touch_1 - t.alloc_1;
    let object = 2.0 * page_fault_extra - (t.touch_2 - t.alloc_2);
    let fault_and_zerofill = (t.touch_2 - t.alloc_2) / 2.0 - object / 2.0;
    let deallocation = allocation + page_extra / 2.0 + object / 2.0;
    let zerofill = fault_and_zerofill - allocation / 4.0 - object / 2.0;
    Ok(Costs { page_extra, allocation, page_fault_extra, object, fault_and_zerofill, deallocation, zerofill })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn solved(text: &str) -> [f64; 7] {
        solve(&parse(text).unwrap()).unwrap().values().map(|v| (v * 1e6).round() / 1e6)
    }

    #[test]
    fn part_three_of_the_article() {
        // The article prints 7.5 for the deallocation and 6.15 for the zero-filling; its own formulas give these.
        assert_eq!(solved("11.2,24.0,11.5,33.6"), [0.3, 5.45, 12.8, 3.5, 9.3, 7.35, 6.1875]);
    }

    #[test]
    fn part_four_with_mmap() {
        // 9.7, 41.0, 11.1, 65.9: the arithmetic by hand.
        assert_eq!(solved("9.7,41.0,11.1,65.9"), [1.4, 4.15, 31.3, 7.8, 23.5, 8.75, 18.5625]);
    }

    #[test]
    fn part_four_with_vm_allocate() {
        assert_eq!(solved("17.6,51.5,18.9,77.3"), [1.3, 8.15, 33.9, 9.4, 24.5, 13.5, 17.7625]);
    }

    #[test]
    fn the_articles_observations_hold_in_its_own_figures() {
        let costs = solve(&parse("11.2,24.0,11.5,33.6").unwrap()).unwrap();
        // “the page fault time is the largest of the three”
        assert!(costs.fault_and_zerofill > costs.allocation && costs.fault_and_zerofill > costs.deallocation);
        // “at least 50% will be spent zero filling” of allocating and faulting in 4 pages
        let allocating_and_faulting = costs.allocation + costs.page_extra / 2.0 * 4.0 + costs.fault_and_zerofill * 4.0 + costs.object / 2.0;
        assert!(costs.zerofill * 4.0 / allocating_and_faulting >= 0.5);
        // “weighs zerofilling in at around 50% to 80%” of fault and zero-fill
        let weight = costs.zerofill / costs.fault_and_zerofill;
        assert!((0.5..=0.8).contains(&weight), "{weight}");
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
            prop_assert!((one - t.touch_1).abs() < 1e-6 * t.touch_1.max(1.0) && (two - t.touch_2).abs() < 1e-6 * t.touch_2.max(1.0));
        }
    }
}
