//! Workload steps: which of them changed, and who is to blame.

use fingerpost_diagnose::sides::candidates;
use fingerpost_diagnose::sides::clues::{Changed, Clues};
use fingerpost_diagnose::sides::limits::Trust;
use fingerpost_diagnose::sides::waterfall::{self, UnitCost, Waterfall};
use fingerpost_record::{Finding, Outcome, Params, Unit};

use crate::changes::{Change, Kind};
use crate::row::Row;
use crate::service::{LATENCY, PERCENTILE, RATE, WORKLOAD};
use crate::side::Side;
use crate::verdict::Verdict;

/// Without a row that says whether the workload got slower, a change below this is not looked into.
const WITHOUT_ROW: f64 = 0.10;

/// The waterfall of every workload step that both sides have a budget of.
pub(crate) fn waterfalls(base: &Side, new: &Side, rows: &[Row]) -> Vec<Waterfall> {
    let timed = rows.iter().filter(|r| r.unit == Unit::Nanoseconds);
    let costs: Vec<UnitCost> = timed
        .map(|r| UnitCost {
            probe: &r.probe,
            calls: &r.descriptor.calls,
            base: r.base.value,
            new: r.new.value,
        })
        .collect();
    waterfall::waterfalls(base.evidence(), new.evidence(), &costs)
}

/// The step that speaks for the difference: of the tables of steps that differ in the number of clients alone the one
/// with the largest change, and of its steps that really changed the one with the most clients, which is the one that a
/// run's own findings are of. With one client nobody waits for anybody, so that it tells of no lock.
pub(crate) fn most_changed<'a>(
    falls: &'a [Waterfall],
    rows: &[Row],
    threshold: f64,
) -> Option<&'a Waterfall> {
    let factor = |f: &Waterfall| (f.new_seconds / f.base_seconds).ln().abs();
    let changed: Vec<&Waterfall> = falls
        .iter()
        .filter(|f| changed(f, rows, threshold))
        .collect();
    let largest = changed
        .iter()
        .max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
    let of_table = changed.iter().filter(|f| {
        f.workload == largest.workload && f.params.whoever_asks() == largest.params.whoever_asks()
    });
    of_table
        .max_by_key(|f| f.params.asking().map_or(0, |(n, _)| n))
        .copied()
}

/// The causes of a step's change, and the share of it that none explains.
pub(crate) fn judge(
    fall: &Waterfall,
    sides: [&Side; 2],
    rows: &[Row],
    changes: &[Change],
) -> (Vec<Finding>, f64) {
    let [base, new] = sides;
    let of_step = |c: &&Change| {
        c.of.as_deref()
            .is_none_or(|of| of.split('.').next() == Some(fall.workload.as_str()))
    };
    let changed = |c: &Change| Changed {
        base: c.base.clone(),
        new: c.new.clone(),
        is_build: c.kind == Kind::Build,
        what: c.what.clone(),
    };
    let changed = changes.iter().filter(of_step).map(changed).collect();
    let budgets = sides.map(|side| {
        side.steps
            .budgets
            .iter()
            .find(|b| b.workload == fall.workload && b.params == fall.params)
    });
    let [Some(b), Some(n)] = budgets else {
        return (Vec::new(), 0.0);
    };
    candidates::judge(
        Clues::new(base.evidence(), new.evidence(), b, n).with_changes(changed),
        &trust(fall, sides, rows),
    )
}

/// How far the rows of a step can be relied on.
fn trust(fall: &Waterfall, sides: [&Side; 2], rows: &[Row]) -> Trust {
    let throughput = format!("{}.throughput", fall.workload);
    let row = rows
        .iter()
        .find(|r| r.probe == throughput && covers(fall, &r.params));
    // Seen from the slower side.
    let ratio = row
        .and_then(|r| r.ratio)
        .map(|r| match fall.new_seconds >= fall.base_seconds {
            true => [r.value, r.low, r.high],
            false => [1.0 / r.value, 1.0 / r.high, 1.0 / r.low],
        });
    // Of a running service none is its requests' mean time; few stretches of its rate or its median say that it was
    // watched too shortly.
    let speaks = |probe: &str, params: &Params| match probe {
        RATE => fall.workload == WORKLOAD,
        LATENCY => fall.workload == WORKLOAD && params.int(PERCENTILE) == Some(50),
        other => other == throughput,
    };
    let of_step = |side: &Side| {
        let mut all = side.rows.iter();
        let row = all.find(|((probe, _, params), row)| {
            speaks(probe, params) && covers(fall, params) && row.outcome != Outcome::Measured
        });
        row.map(|(_, row)| {
            format!(
                "{}: {}",
                side.info.name,
                row.reason.as_deref().unwrap_or("no reason given")
            )
        })
    };
    Trust {
        untrusted: sides.into_iter().find_map(of_step),
        ratio,
        resolved: row.is_none_or(|r| r.verdict != Verdict::Unresolved),
    }
}

/// Whether a row has the step's parameters.
fn covers(fall: &Waterfall, params: &Params) -> bool {
    fall.params
        .iter()
        .all(|(k, v)| params.get(k).is_none_or(|w| w == v))
}

/// The chance at which a difference that may be too small to matter is looked into: one comparison of two hundred that
/// are alike. At the one in twenty of an interval, 3 of 39 pairs of servers without a difference had a likely cause
/// (`bench/RESULTS.md`, 24 November).
const CHANCE: f64 = 0.005;

/// Whether a row surely differs, by more than the threshold in its middle, and its interval reaches below it: there is
/// something to explain, and perhaps not so much that anybody is to blame.
fn perhaps_small(row: &Row, threshold: f64) -> bool {
    let beyond = row
        .ratio
        .is_some_and(|r| r.value > 1.0 + threshold || r.value < 1.0 / (1.0 + threshold));
    let surely = row.ratio.is_some_and(|r| r.p_of_no_difference() <= CHANCE);
    row.real && surely && beyond && row.verdict == Verdict::Unresolved
}

/// Whether the step's time really changed: its rows' verdicts decide; without rows a large change does.
fn changed(fall: &Waterfall, rows: &[Row], threshold: f64) -> bool {
    let prefix = format!("{}.", fall.workload);
    let mut of_step = rows
        .iter()
        .filter(|r| {
            (r.probe.starts_with(&prefix) || r.probe == fall.workload) && covers(fall, &r.params)
        })
        .peekable();
    if of_step.peek().is_some() {
        return of_step.any(|r| {
            matches!(r.verdict, Verdict::Slower | Verdict::Faster) || perhaps_small(r, threshold)
        });
    }
    (fall.new_seconds / fall.base_seconds - 1.0).abs() > threshold.max(WITHOUT_ROW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rows_only_a_large_change_is_one() {
        let fall = |new_seconds: f64| Waterfall {
            workload: "database".into(),
            params: Params::new(),
            base_seconds: 1e-3,
            new_seconds,
            steps: Vec::new(),
            unexplained_seconds: 0.0,
            predicted_share: None,
            predictions: Vec::new(),
        };
        assert!(changed(&fall(2e-3), &[], 0.03));
        assert!(!changed(&fall(1e-3), &[], 0.03));
        assert!(!changed(&fall(1.05e-3), &[], 0.03));
    }
}
