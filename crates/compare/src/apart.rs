//! A difference between two ways to get memory, taken apart by the article's arithmetic: what the call costs more, and
//! what the faults do.
//!
//! The rows cannot be judged as they stand: the one with touching holds the call as well, so a cheaper call makes both
//! cheaper, and a common factor would blame the faults for it.

use crate::row::Row;
use crate::special::z_two_sided;

pub use fingerpost_diagnose::first_touch::{Apart, FIRST_TOUCH, MAPPING};

/// Every number of pages that has both rows, ascending; rows of one interface, or of two that were taken out as parts.
pub fn apart(rows: &[Row]) -> Vec<Apart> {
    let of = |probe: &'static str| {
        rows.iter()
            .filter(move |r| r.probe == probe && r.ratio.is_some())
    };
    let without = |touch: &Row| of("zerofill.alloc").find(|alloc| alloc.params == touch.params);
    let mut found: Vec<Apart> = of("zerofill.touch")
        .filter_map(|touch| one(touch.params.int("pages")?, without(touch)?, touch))
        .collect();
    found.sort_by_key(|a| a.pages);
    found
}

fn one(pages: i64, alloc: &Row, touch: &Row) -> Option<Apart> {
    let touching = [
        touch.base.value - alloc.base.value,
        touch.new.value - alloc.new.value,
    ];
    if touching.iter().any(|t| !(t.is_finite() && *t > 0.0)) {
        return None;
    }
    // One standard deviation of a row's ratio on the logarithmic scale, and how much of it a difference inherits.
    let spread = |row: &Row| {
        row.ratio
            .map(|r| (r.high / r.low).ln() / (2.0 * z_two_sided(0.95)))
    };
    let weight = |row: &Row| {
        ((row.base.value / touching[0]).powi(2) + (row.new.value / touching[1]).powi(2)) / 2.0
    };
    let deviation =
        (weight(touch) * spread(touch)?.powi(2) + weight(alloc) * spread(alloc)?.powi(2)).sqrt();
    let fault = touching[1] / touching[0];
    let factor = (z_two_sided(0.95) * deviation).exp();
    Some(Apart {
        pages,
        call: alloc.new.value / alloc.base.value,
        call_difference: alloc.new.value - alloc.base.value,
        touching,
        fault,
        fault_low: fault / factor,
        fault_high: fault * factor,
    })
}

/// What can be taken apart where no other rows speak of faults: else they tell more.
pub fn of_alone(rows: &[Row]) -> Vec<Apart> {
    let others = rows
        .iter()
        .any(|r| r.probe.starts_with("vm.") || r.probe == "signal.fault");
    if others { Vec::new() } else { apart(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comparison, Options, compare, references, select};
    use fingerpost_diagnose::first_touch::FAULT;
    use fingerpost_record::{Run, Status};

    fn part(mut run: Run, api: &str) -> Run {
        run.measurements
            .retain(|m| m.probe.starts_with("zerofill."));
        select::part(run, &fingerpost_record::Params::new().with("api", api)).unwrap()
    }

    fn between(base: Run, new: Run) -> Comparison {
        compare(&[base], &[new], &Options::default())
    }

    fn cube(api: &str) -> Run {
        part(references::load("zerofill-cube-450").unwrap(), api)
    }

    #[test]
    fn a_cheaper_call_clears_the_faults() {
        let c = between(cube("vm_allocate"), cube("mmap"));
        let found = apart(&c.rows);
        assert_eq!(found.iter().map(|a| a.pages).collect::<Vec<_>>(), [1, 2]);
        // By hand: 41.0 − 9.7 = 31.3 against 51.5 − 17.6 = 33.9.
        assert!(
            (found[0].fault - 31.3 / 33.9).abs() < 1e-9
                && (found[0].call_difference + 7900.0).abs() < 1e-6
        );
        let fault = c.causes.iter().find(|f| f.cause == FIRST_TOUCH).unwrap();
        assert_eq!(fault.status, Status::RuledOut, "{:?}", c.causes);
        assert!(!c.headline.contains("page faults"), "{}", c.headline);
        assert!(
            c.causes.iter().all(|f| f.cause != FAULT),
            "the call that maps is not ruled out with them: {:?}",
            c.causes
        );
        assert!(
            c.causes[0]
                .evidence
                .iter()
                .any(|e| e.metric == fingerpost_record::Metric::TouchingCost
                    && e.base.is_some_and(|ns| (ns - 33_900.0).abs() < 1e-6)
                    && e.value.is_some_and(|ns| (ns - 31_300.0).abs() < 1e-6)),
            "{:?}",
            c.causes
        );
    }

    #[test]
    fn slower_faults_are_still_found() {
        let mut slow = cube("mmap");
        for m in slow
            .measurements
            .iter_mut()
            .filter(|m| m.probe == "zerofill.touch")
        {
            let e = m.estimate.as_mut().unwrap();
            (e.value, e.low, e.high) = (e.value * 2.0, e.low * 2.0, e.high * 2.0);
        }
        let c = between(cube("mmap"), slow);
        let accused: Vec<&str> = c
            .causes
            .iter()
            .filter(|f| f.status != Status::RuledOut)
            .map(|f| f.cause.as_str())
            .collect();
        assert!(accused.contains(&FIRST_TOUCH), "{:?}", c.causes);
    }
}
