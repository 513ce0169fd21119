//! A difference between two ways to get memory, taken apart by the article's arithmetic: what the call costs more, and what the faults do.
//!
//! The rows cannot be judged as they stand: the one with touching holds the call as well, so a cheaper call makes both cheaper, and a
//! common factor would blame the faults for it.

use fingerpost_record::{Finding, Layer, Status, Unit};

use crate::row::Row;
use crate::special::z_two_sided;

/// What a comparison says of the call that maps.
pub const MAPPING: &str = "memory.mapping";
/// What it says of faults with their zero-filling.
pub const FIRST_TOUCH: &str = "memory.first_touch";
/// The cause of both together, which a common factor of the rows names.
const FAULT: &str = "memory.fault";
/// Causes that a common factor of the rows would name instead.
const BY_FACTOR: [&str; 2] = [FAULT, "memory.page_size"];

/// One number of pages, taken apart. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// Pages at a time.
    pub pages: i64,
    /// How many times the base's cost allocating and freeing is.
    pub call: f64,
    /// What it costs more; below zero is less.
    pub call_difference: f64,
    /// What touching adds on the base side, and on the new one.
    pub touching: [f64; 2],
    /// How many times the base's cost that is, with its interval.
    pub fault: f64,
    /// The interval's lower end.
    pub fault_low: f64,
    /// The interval's upper end.
    pub fault_high: f64,
}

/// Every number of pages that has both rows, ascending; rows of one interface, or of two that were taken out as parts.
pub fn apart(rows: &[Row]) -> Vec<Apart> {
    let of = |probe: &'static str| rows.iter().filter(move |r| r.probe == probe && r.ratio.is_some());
    let mut found: Vec<Apart> = of("zerofill.touch")
        .filter_map(|touch| {
            let alloc = of("zerofill.alloc").find(|alloc| alloc.params == touch.params)?;
            one(touch.params.int("pages")?, alloc, touch)
        })
        .collect();
    found.sort_by_key(|a| a.pages);
    found
}

fn one(pages: i64, alloc: &Row, touch: &Row) -> Option<Apart> {
    let touching = [touch.base.value - alloc.base.value, touch.new.value - alloc.new.value];
    if touching.iter().any(|t| !(t.is_finite() && *t > 0.0)) {
        return None;
    }
    // One standard deviation of a row's ratio on the logarithmic scale, and how much of it a difference inherits.
    let spread = |row: &Row| row.ratio.map(|r| (r.high / r.low).ln() / (2.0 * z_two_sided(0.95)));
    let weight = |row: &Row| ((row.base.value / touching[0]).powi(2) + (row.new.value / touching[1]).powi(2)) / 2.0;
    let deviation = (weight(touch) * spread(touch)?.powi(2) + weight(alloc) * spread(alloc)?.powi(2)).sqrt();
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

/// Puts what the arithmetic says in place of what a common factor of the same rows said. Nothing changes where other rows speak of faults,
/// or where there is nothing to take apart.
pub fn judge(rows: &[Row], causes: &mut Vec<Finding>, unexplained: &mut f64, threshold: f64) {
    let found = apart(rows);
    let others = rows.iter().any(|r| r.probe.starts_with("vm.") || r.probe == "signal.fault");
    let named = causes.iter().any(|f| f.status != Status::Cleared);
    if found.is_empty() || others || !named {
        return;
    }
    let share = share_of_call(&found);
    let lines = found.iter().map(line).collect::<Vec<_>>();
    let beyond = |a: &Apart| a.fault_low > 1.0 + threshold || a.fault_high < 1.0 / (1.0 + threshold);
    let faults = found.iter().filter(|a| beyond(a)).count() * 2 > found.len();
    let by_factor = causes.iter().position(|f| BY_FACTOR.contains(&f.cause.as_str()) && f.status != Status::Cleared);
    let finding = |cause: &str, status, share, evidence| Finding {
        cause: cause.into(),
        layer: Layer::Memory,
        status,
        share,
        evidence,
        relation: None,
    };
    match by_factor {
        Some(at) => {
            let whole = causes.remove(at);
            causes.insert(at, finding(MAPPING, whole.status, whole.share * share, lines.clone()));
            if !faults {
                *unexplained = (*unexplained + whole.share * (1.0 - share)).min(1.0);
            } else {
                let cause = if whole.cause == FAULT { FIRST_TOUCH.to_owned() } else { whole.cause.clone() };
                causes.insert(at + 1, Finding { cause, share: whole.share * (1.0 - share), evidence: lines.clone(), ..whole });
            }
        }
        // What was changed is named already: the arithmetic says what it moves.
        None => causes.iter_mut().filter(|f| f.status != Status::Cleared).take(1).for_each(|f| f.evidence.extend(lines.clone())),
    }
    if !faults && causes.iter().all(|f| f.cause != FAULT) {
        causes.push(finding(FIRST_TOUCH, Status::Cleared, 0.0, lines));
    }
    crate::causes::order(causes);
}

/// The share of the difference that the call makes: all of it in the rows without touching, its part in those with.
fn share_of_call(found: &[Apart]) -> f64 {
    let of_touched = |a: &Apart| {
        let whole = a.call_difference + a.touching[1] - a.touching[0];
        if whole == 0.0 { 1.0 } else { (a.call_difference / whole).clamp(0.0, 1.0) }
    };
    let mean = found.iter().map(of_touched).sum::<f64>() / found.len() as f64;
    (1.0 + mean) / 2.0
}

fn line(a: &Apart) -> String {
    let time = |ns: f64| Unit::Nanoseconds.format(ns);
    let more = if a.call_difference < 0.0 { "less" } else { "more" };
    let pages = if a.pages == 1 { "1 page".to_owned() } else { format!("{} pages", a.pages) };
    format!(
        "{pages}: allocating and freeing costs {} {more} ({:.2} times), touching adds {} → {} ({:.2} times, {:.2} to {:.2})",
        time(a.call_difference.abs()),
        a.call,
        time(a.touching[0]),
        time(a.touching[1]),
        a.fault,
        a.fault_low,
        a.fault_high
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comparison, Options, compare, references, select};
    use fingerpost_record::Run;

    fn part(mut run: Run, api: &str) -> Run {
        run.measurements.retain(|m| m.probe.starts_with("zerofill."));
        select::part(run, &fingerpost_record::Params::new().with("api", api)).unwrap()
    }

    fn between(base: Run, new: Run) -> Comparison {
        compare(&[base], &[new], &Options::default())
    }

    fn cube(api: &str) -> Run {
        part(references::load("zerofill-cube-450").unwrap(), api)
    }

    #[test]
    fn a_cheaper_call_leaves_the_faults_innocent() {
        let c = between(cube("vm_allocate"), cube("mmap"));
        let found = apart(&c.rows);
        assert_eq!(found.iter().map(|a| a.pages).collect::<Vec<_>>(), [1, 2]);
        // By hand: 41.0 − 9.7 = 31.3 against 51.5 − 17.6 = 33.9.
        assert!((found[0].fault - 31.3 / 33.9).abs() < 1e-9 && (found[0].call_difference + 7900.0).abs() < 1e-6);
        let fault = c.causes.iter().find(|f| f.cause == FIRST_TOUCH).unwrap();
        assert_eq!(fault.status, Status::Cleared, "{:?}", c.causes);
        assert!(!c.headline.contains("page faults"), "{}", c.headline);
        assert!(c.causes.iter().all(|f| f.cause != FAULT), "the call that maps is not cleared with them: {:?}", c.causes);
        assert!(c.causes[0].evidence.iter().any(|e| e.contains("touching adds 33.90 µs → 31.30 µs")), "{:?}", c.causes);
    }

    #[test]
    fn slower_faults_are_still_found() {
        let mut slow = cube("mmap");
        for m in slow.measurements.iter_mut().filter(|m| m.probe == "zerofill.touch") {
            let e = m.estimate.as_mut().unwrap();
            (e.value, e.low, e.high) = (e.value * 2.0, e.low * 2.0, e.high * 2.0);
        }
        let c = between(cube("mmap"), slow);
        let accused: Vec<&str> = c.causes.iter().filter(|f| f.status != Status::Cleared).map(|f| f.cause.as_str()).collect();
        assert!(accused.contains(&FIRST_TOUCH), "{:?}", c.causes);
    }
}
