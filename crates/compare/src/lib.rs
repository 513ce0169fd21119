//! Two runs side by side: rows, verdicts, and the cause of the difference; and the reference systems to compare with.
//!
//! [`compare`] is all that most callers need. It is computed from the runs alone, has no clock and no randomness: the same runs
//! give the same answer everywhere.

pub mod aliases;
pub mod align;
pub mod causes;
pub mod changes;
pub mod comparison;
pub mod conclusions;
pub mod counterparts;
pub mod curves;
pub mod desktop;
pub mod export;
pub mod figure;
pub mod flops;
pub mod gains;
mod headline;
pub mod import;
pub mod launch;
pub mod memory;
mod options;
pub mod pooled;
pub mod ratio;
pub mod references;
pub mod replay;
mod row;
pub mod scaling;
pub mod select;
pub mod service;
pub mod settle;
mod settled;
pub mod side;
pub mod site;
pub mod spread;
pub mod verdict;
pub mod zerofill;

use fingerpost_diagnose::{first_touch, hosts};
use fingerpost_measure::special;
use fingerpost_record::{Finding, Run, Status};

pub use comparison::{Comparison, Options, Row};
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
    let (base, new) = parts.as_ref().map_or((base, new), |(base, new)| (base, new));
    match changes::side_by_side(base, new) {
        Some((base, new, changed)) => compare_aligned(&base, &new, changed, options),
        None => compare_aligned(base, new, Vec::new(), options),
    }
}

/// The same of sides whose rows have partners; `changed` is what they had to be rid of for that.
fn compare_aligned(base: &Side, new: &Side, mut changed: Vec<Change>, options: &Options) -> Comparison {
    let told = changes::between(base, new, &changed);
    changed.splice(0..0, told);
    let (mut rows, pooled, not_compared) = align::rows(base, new, options);
    let loads = service::loads(&mut rows, base, new);
    let curves = curves::curves(&rows);
    let waterfalls = workloads::waterfalls(base, new, &rows);
    let most = workloads::most_changed(&waterfalls, &rows, options.threshold);
    // Another client machine is told with the others; it is no change of what is compared.
    let of_the_server: Vec<Change> = changed.iter().filter(|c| c.kind != Kind::Client).cloned().collect();
    let (mut causes, mut unexplained) = match most {
        Some(fall) => workloads::judge(fall, [base, new], &rows, &of_the_server),
        None => {
            let compared = causes::probes::Compared { rows: &rows, pooled: &pooled, changes: &of_the_server, curves: &curves };
            causes::probes::judge(&compared, [base, new], options.threshold)
        }
    };
    if most.is_none() {
        first_touch::judge(&zerofill::apart::of_alone(&rows), &mut causes, &mut unexplained, options.threshold);
    }
    clear_by_findings(&mut causes, base, new, &rows);
    never_clear_the_convicted(&mut causes, [base, new], most);
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
        curves,
        causes,
        unexplained,
    };
    comparison.headline = headline::first_said(&comparison, most);
    comparison
}

/// Suspects that a run's own findings cleared, and none accuses, stay cleared, with the figure that clears them: those of workloads that
/// both sides have rows of, for the others have no part in the difference.
fn clear_by_findings(causes: &mut Vec<Finding>, base: &Side, new: &Side, rows: &[Row]) {
    if causes.is_empty() {
        return;
    }
    let of_a_row = |f: &&Finding| {
        let workload = f.evidence.first().and_then(|e| e.split_once(' ')).map_or("", |(first, _)| first);
        rows.iter().any(|r| r.probe.strip_prefix(workload).is_some_and(|rest| rest.starts_with('.')))
    };
    let own = || base.steps.findings.iter().chain(&new.steps.findings);
    for finding in own().filter(|f| f.status == Status::Cleared).filter(of_a_row) {
        let accused = own().any(|f| f.cause == finding.cause && f.status.accuses());
        if !accused && causes.iter().all(|c| c.cause != finding.cause) {
            causes.push(Finding { share: 0.0, ..finding.clone() });
        }
    }
}

/// What a run's own findings convict is not cleared by other rows than theirs: probes of the disk that cost what they did say nothing of a server
/// that waits for it. The step that speaks for the difference was judged anew, with what each side alone says of it.
fn never_clear_the_convicted(causes: &mut Vec<Finding>, sides: [&Side; 2], judged: Option<&comparison::Waterfall>) {
    let judged = judged.map(|fall| format!("{} {}: ", fall.workload, fall.params));
    let of_another =
        |side: &Side, figure: &str| judged.as_ref().is_none_or(|own| side.evidence().names_a_step(figure) && !figure.starts_with(own));
    let shown = |cause: &str, side: &Side| {
        let convicts = |own: &&Finding| own.cause == cause && own.status == Status::Guilty;
        let figure = |own: &Finding| own.evidence.first().filter(|figure| of_another(side, figure)).cloned();
        let figure = side.steps.findings.iter().filter(convicts).find_map(figure)?;
        Some(format!("{} alone shows it: {figure}", side.info.name))
    };
    let (mut shown_alone, rest): (Vec<Finding>, Vec<Finding>) = std::mem::take(causes)
        .into_iter()
        .partition(|f| f.status == Status::Cleared && sides.iter().any(|side| shown(&f.cause, side).is_some()));
    for f in &mut shown_alone {
        f.status = Status::NotJudged;
        f.evidence.extend(sides.into_iter().filter_map(|side| shown(&f.cause, side)));
    }
    // What nothing tells of comes last.
    *causes = rest;
    causes.extend(shown_alone);
}
