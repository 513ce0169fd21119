//! Two runs side by side: rows, verdicts, and the cause of the difference; and the reference systems to compare with.
//!
//! [`compare`] is all that most callers need. It is computed from the runs alone, has no clock and no randomness: the
//! same runs give the same answer everywhere.

pub mod aliases;
pub mod align;
pub mod apart;
mod causes;
pub mod changes;
pub mod comparison;
pub mod counted;
pub mod counterparts;
pub mod curves;
pub mod export;
pub mod figure;
pub mod gains;
mod headline;
pub mod import;
pub mod pooled;
pub mod ratio;
pub mod references;
mod row;
pub mod scaling;
pub mod select;
pub mod service;
pub mod settle;
mod settled;
pub mod side;
pub mod spread;
pub mod verdict;

use fingerpost_diagnose::sides::own_findings;
use fingerpost_diagnose::{first_touch, hosts};
use fingerpost_measure::special;
use fingerpost_record::Run;

pub use comparison::{Comparison, Options, Row};
pub use headline::{operating_system, unexplained};
pub use ratio::Ratio;
pub use side::Side;
pub use verdict::Verdict;

use causes::workloads;
use changes::{Change, Kind};

/// Compares runs: one or several on each side.
pub fn compare(base: &[Run], new: &[Run], options: &Options) -> Comparison {
    compare_sides(&Side::of(base), &Side::of(new), options)
}

/// Compares two sides that were put together run by run.
pub fn compare_sides(base: &Side, new: &Side, options: &Options) -> Comparison {
    let parts = changes::both_as_parts(base, new);
    let (base, new) = parts
        .as_ref()
        .map_or((base, new), |(base, new)| (base, new));
    match changes::side_by_side(base, new) {
        Some((base, new, changed)) => compare_aligned(&base, &new, changed, options),
        None => compare_aligned(base, new, Vec::new(), options),
    }
}

/// The same of sides whose rows have partners; `changed` is what they had to be rid of for that.
fn compare_aligned(
    base: &Side,
    new: &Side,
    mut changed: Vec<Change>,
    options: &Options,
) -> Comparison {
    let told = changes::between(base, new, &changed);
    changed.splice(0..0, told);
    let (mut rows, pooled, not_compared) = align::rows(base, new, options);
    let loads = service::loads(&mut rows, base, new);
    let curves = curves::curves(&rows);
    let waterfalls = workloads::waterfalls(base, new, &rows);
    let most = workloads::most_changed(&waterfalls, &rows, options.threshold);
    // Another client machine is told with the others; it is no change of what is compared.
    let of_the_server: Vec<Change> = changed
        .iter()
        .filter(|c| c.kind != Kind::Client)
        .cloned()
        .collect();
    let (mut causes, mut unexplained) = match most {
        Some(fall) => workloads::judge(fall, [base, new], &rows, &of_the_server),
        None => causes::probes::judge(
            &rows,
            &pooled,
            &of_the_server,
            &curves,
            [base, new],
            options.threshold,
        ),
    };
    if most.is_none() {
        first_touch::judge(
            &apart::of_alone(&rows),
            &mut causes,
            &mut unexplained,
            options.threshold,
        );
    }
    let compared: Vec<&str> = rows.iter().map(|r| r.probe.as_str()).collect();
    let sides = [base, new].map(Side::evidence);
    own_findings::clear(&mut causes, sides, &compared);
    own_findings::never_clear_the_convicted(&mut causes, sides, most);
    let mut comparison = Comparison {
        base: base.info.clone(),
        new: new.info.clone(),
        threshold: options.threshold,
        headline: String::new(),
        changes: changed,
        settled: Vec::new(),
        hosts: hosts::differences(&base.facts, &new.facts),
        rows,
        pooled,
        not_compared,
        waterfalls: waterfalls.clone(),
        gains: gains::gains(base, new, options.threshold),
        loads,
        counted: counted::counted(base, new),
        curves,
        causes,
        unexplained,
    };
    comparison.headline = headline::first_said(&comparison, most);
    comparison
}
