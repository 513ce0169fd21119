//! Two runs side by side: rows, verdicts, and the cause of the difference; and the reference systems to compare with.
//!
//! [`compare`] is all that most callers need. It is computed from the runs alone, has no clock and no randomness: the same runs
//! give the same answer everywhere.

pub mod align;
pub mod causes;
pub mod comparison;
pub mod curves;
pub mod explain;
pub mod export;
pub mod flops;
pub mod followed;
mod headline;
pub mod hosts;
pub mod import;
pub mod launch;
pub mod memory;
pub mod ratio;
pub mod references;
pub mod select;
pub mod side;
pub mod site;
pub mod special;
pub mod verdict;
pub mod zerofill;

use fingerpost_record::{Finding, Run, Status};

pub use comparison::{Comparison, Options, Row};
pub use ratio::Ratio;
pub use side::Side;
pub use verdict::Verdict;

use causes::clues::Clues;
use comparison::Waterfall;

/// Compares runs: one or several on each side.
pub fn compare(base: &[Run], new: &[Run], options: &Options) -> Comparison {
    compare_sides(&Side::of(base), &Side::of(new), options)
}

/// Compares two sides that were put together run by run.
pub fn compare_sides(base: &Side, new: &Side, options: &Options) -> Comparison {
    let (rows, not_compared) = align::rows(base, new, options);
    let curves = curves::curves(&rows);
    let waterfalls = causes::waterfall::waterfalls(base, new, &rows);
    let changed = most_changed(&waterfalls, &rows, options.threshold);
    let (mut causes, unexplained) = match changed {
        Some(fall) => workload_causes(fall, base, new),
        None => causes::probes::judge(&rows, &curves, base, new, options.threshold),
    };
    clear_by_findings(&mut causes, base, new);
    let mut comparison = Comparison {
        base: base.info.clone(),
        new: new.info.clone(),
        threshold: options.threshold,
        headline: String::new(),
        hosts: hosts::differences(&base.facts, &new.facts),
        rows,
        not_compared,
        waterfalls: waterfalls.clone(),
        curves,
        causes,
        unexplained,
    };
    comparison.headline = headline::headline(&comparison, changed);
    comparison
}

/// The step whose time per transaction changed most, of those that really changed.
fn most_changed<'a>(falls: &'a [Waterfall], rows: &[Row], threshold: f64) -> Option<&'a Waterfall> {
    let factor = |f: &Waterfall| (f.new_seconds / f.base_seconds).ln().abs();
    falls.iter().filter(|f| causes::waterfall::changed(f, rows, threshold)).max_by(|a, b| factor(a).total_cmp(&factor(b)))
}

fn workload_causes(fall: &Waterfall, base: &Side, new: &Side) -> (Vec<Finding>, f64) {
    let of = |side: &Side| side.budgets.iter().position(|b| b.workload == fall.workload && b.params == fall.params);
    match (of(base), of(new)) {
        (Some(b), Some(n)) => causes::candidates::judge(&Clues::new(base, new, &base.budgets[b], &new.budgets[n])),
        _ => (Vec::new(), 0.0),
    }
}

/// Suspects that both runs' own findings cleared stay cleared, with the figure that clears them.
fn clear_by_findings(causes: &mut Vec<Finding>, base: &Side, new: &Side) {
    if causes.is_empty() {
        return;
    }
    for finding in base.findings.iter().chain(&new.findings).filter(|f| f.status == Status::Cleared) {
        let accused = base.findings.iter().chain(&new.findings).any(|f| f.cause == finding.cause && f.status != Status::Cleared);
        if !accused && causes.iter().all(|c| c.cause != finding.cause) {
            causes.push(Finding { share: 0.0, ..finding.clone() });
        }
    }
}
pub mod scaling;
