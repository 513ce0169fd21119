//! The rows of a comparison as they look from the side that is slower on the whole.

use std::collections::HashMap;

use fingerpost_record::{Better, Finding, Layer, Status, Unit};

use super::groups::{Group, group};
use super::machines::Machines;
use crate::changes::Change;
use crate::pooled::Pooled;
use crate::row::Row;
use crate::side::Side;
use crate::verdict::Verdict;

/// A row seen from the slower side.
pub(super) struct Item<'a> {
    pub(super) row: &'a Row,
    pub(super) group: Group,
    /// Cost on the side that is cheaper on the whole, in the unit or its inverse.
    pub(super) fast: f64,
    pub(super) slow: f64,
    pub(super) log: f64,
    /// Whether the verdict says that it is slower.
    pub(super) slower: bool,
    pub(super) weight: f64,
    /// What no model has accounted for yet, on the logarithmic scale.
    pub(super) left: f64,
}

/// Which side is slower on the whole, and every row seen from there.
pub(super) struct View<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// Whether the new side is the slower one.
    pub(super) new_is_slow: bool,
    pub(super) slow: &'a Side,
    pub(super) fast: &'a Side,
    pub(super) threshold: f64,
    /// What was changed between the sides.
    pub(super) changes: &'a [Change],
    pub(super) machines: Machines,
}

impl<'a> View<'a> {
    pub(super) fn of(rows: &'a [Row], pooled: &[Pooled], changes: &'a [Change], sides: [&'a Side; 2], threshold: f64) -> View<'a> {
        let [base, new] = sides;
        let mut of_probe: HashMap<&str, usize> = HashMap::new();
        rows.iter().for_each(|row| *of_probe.entry(&row.probe).or_default() += 1);
        let weight = |row: &Row| 1.0 / of_probe[row.probe.as_str()] as f64;
        // A row's own verdict, or that of the rows that it moves with.
        let mut verdicts: Vec<Verdict> = rows.iter().map(|r| r.verdict).collect();
        for together in pooled {
            let along = |place: &&usize| rows[**place].log().is_some_and(|log| (log > 0.0) == (together.verdict == Verdict::Slower));
            together.places.iter().filter(along).for_each(|place| verdicts[*place] = together.verdict);
        }
        let resolved = |v: Verdict| matches!(v, Verdict::Slower | Verdict::Faster);
        let net: f64 = rows.iter().zip(&verdicts).filter(|(_, v)| resolved(**v)).filter_map(|(r, _)| Some(r.log()? * weight(r))).sum();
        let new_is_slow = net >= 0.0;
        let sign = if new_is_slow { 1.0 } else { -1.0 };
        let wanted = if new_is_slow { Verdict::Slower } else { Verdict::Faster };
        let items = rows
            .iter()
            .zip(&verdicts)
            .filter(|(r, v)| **v != Verdict::Unresolved || r.note.is_none())
            .filter_map(|(row, verdict)| {
                let log = row.log()? * sign;
                let cost = |v: f64| if row.better == Better::Higher { 1.0 / v } else { v };
                let (base, new) = (cost(row.base.value), cost(row.new.value));
                let (fast, slow) = if new_is_slow { (base, new) } else { (new, base) };
                let slower = *verdict == wanted;
                let left = if slower && is_cost(row.unit) { log } else { 0.0 };
                Some(Item { row, group: group(&row.probe), fast, slow, log, slower, weight: weight(row), left })
            })
            .collect();
        let (slow, fast) = if new_is_slow { (new, base) } else { (base, new) };
        View { items, new_is_slow, slow, fast, threshold, changes, machines: Machines::of(base, new) }
    }

    /// The word for what the new side's costs are.
    pub(super) fn word(&self) -> &'static str {
        if self.new_is_slow { "slower" } else { "faster" }
    }

    pub(super) fn total(&self) -> f64 {
        self.items.iter().map(|i| i.left * i.weight).sum()
    }

    /// Accounts for a part of every slower row, and returns the weighted sum.
    pub(super) fn claim(&mut self, part: impl Fn(&Item) -> f64) -> f64 {
        let mut sum = 0.0;
        for item in self.items.iter_mut().filter(|i| i.slower) {
            let claimed = part(item).clamp(0.0, item.left.max(0.0));
            item.left -= claimed;
            sum += claimed * item.weight;
        }
        sum
    }

    pub(super) fn describe(&self, item: &Item) -> String {
        let row = item.row;
        let params = if row.params.is_empty() { String::new() } else { format!(" ({})", row.params) };
        let interval = row.ratio.map_or(String::new(), |r| format!(", ratio {:.2} ({:.2} to {:.2})", r.value, r.low, r.high));
        format!("{}{params}: {} → {}{interval}", row.probe, row.unit.format(row.base.value), row.unit.format(row.new.value))
    }
}

/// Whether a row tells a cost (a time, a rate, a share of one): only then has its change a share in the slow-down. A count or a size
/// has none of its own.
pub(crate) fn is_cost(unit: Unit) -> bool {
    !matches!(unit, Unit::Count | Unit::Bytes)
}

/// A suspect that this speaks for.
pub(super) fn cleared(cause: &str, layer: Layer, evidence: String) -> Finding {
    Finding { cause: cause.into(), layer, status: Status::Cleared, share: 0.0, evidence: vec![evidence], relation: None }
}
