//! Workload steps: which of them changed, and who is to blame.

use fingerpost_diagnose::sides::candidates;
use fingerpost_diagnose::sides::clues::Clues;
use fingerpost_diagnose::sides::waterfall::{self, UnitCost};
use fingerpost_record::{Budget, Finding, Unit};

use crate::comparison::{Row, Waterfall};
use crate::side::Side;
use crate::verdict::Verdict;

/// Without a row that says whether the workload got slower, a change below this is not looked into.
const WITHOUT_ROW: f64 = 0.10;

/// The waterfall of every workload step that both sides have a budget of.
pub(crate) fn waterfalls(base: &Side, new: &Side, rows: &[Row]) -> Vec<Waterfall> {
    let timed = rows.iter().filter(|r| r.unit == Unit::Nanoseconds);
    let costs: Vec<UnitCost> = timed.map(|r| UnitCost { probe: &r.probe, base: r.base.value, new: r.new.value }).collect();
    waterfall::waterfalls(base.evidence(), new.evidence(), &costs)
}

/// The step whose time per transaction changed most, of those that really changed.
pub(crate) fn most_changed<'a>(falls: &'a [Waterfall], rows: &[Row], threshold: f64) -> Option<&'a Waterfall> {
    let factor = |f: &Waterfall| (f.new_seconds / f.base_seconds).ln().abs();
    falls.iter().filter(|f| changed(f, rows, threshold)).max_by(|a, b| factor(a).total_cmp(&factor(b)))
}

/// The causes of a step's change, and the share of it that none explains.
pub(crate) fn judge(fall: &Waterfall, base: &Side, new: &Side) -> (Vec<Finding>, f64) {
    fn of<'a>(side: &'a Side, fall: &Waterfall) -> Option<&'a Budget> {
        side.steps.budgets.iter().find(|b| b.workload == fall.workload && b.params == fall.params)
    }
    match (of(base, fall), of(new, fall)) {
        (Some(b), Some(n)) => candidates::judge(&Clues::new(base.evidence(), new.evidence(), b, n)),
        _ => (Vec::new(), 0.0),
    }
}

/// Whether the step's time really changed: its rows' verdicts decide; without rows a large change does.
fn changed(fall: &Waterfall, rows: &[Row], threshold: f64) -> bool {
    let prefix = format!("{}.", fall.workload);
    let covers = |row: &Row| fall.params.iter().all(|(k, v)| row.params.get(k).is_none_or(|w| w == v));
    let mut of_step = rows.iter().filter(|r| (r.probe.starts_with(&prefix) || r.probe == fall.workload) && covers(r)).peekable();
    if of_step.peek().is_some() {
        return of_step.any(|r| matches!(r.verdict, Verdict::Slower | Verdict::Faster));
    }
    (fall.new_seconds / fall.base_seconds - 1.0).abs() > threshold.max(WITHOUT_ROW)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Params;

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
