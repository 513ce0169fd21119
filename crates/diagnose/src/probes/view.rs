//! The rows of a comparison as they look from the side that is slower on the whole.

use std::collections::HashMap;

use fingerpost_record::{Better, Evidence, Metric, Unit};

use super::groups::Group;
use super::machines::Machines;
use super::seen::{Changed, Compared, Seen, Verdict};
use crate::steps::KnownSide;

/// A row seen from the slower side.
pub(super) struct Item<'a> {
    pub(super) row: &'a Seen<'a>,
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
    pub(super) slow: KnownSide<'a>,
    pub(super) fast: KnownSide<'a>,
    /// Whether both sides were measured by this tool.
    pub(super) measured_here: bool,
    pub(super) threshold: f64,
    /// What was changed between the sides.
    pub(super) changes: &'a [Changed],
    pub(super) machines: Machines,
}

impl<'a> View<'a> {
    pub(super) fn of(compared: &Compared<'a>) -> View<'a> {
        let Compared {
            rows,
            changes,
            sides: [base, new],
            measured_here,
            threshold,
            ..
        } = *compared;
        let mut of_probe: HashMap<&str, usize> = HashMap::new();
        rows.iter()
            .for_each(|row| *of_probe.entry(row.probe).or_default() += 1);
        let weight = |row: &Seen| 1.0 / of_probe[row.probe] as f64;
        let resolved = |v: Verdict| matches!(v, Verdict::Slower | Verdict::Faster);
        let net: f64 = rows
            .iter()
            .filter(|r| resolved(r.together))
            .filter_map(|r| Some(r.log()? * weight(r)))
            .sum();
        let new_is_slow = net >= 0.0;
        let sign = if new_is_slow { 1.0 } else { -1.0 };
        let wanted = if new_is_slow {
            Verdict::Slower
        } else {
            Verdict::Faster
        };
        let item = |row: &'a Seen<'a>| {
            let log = row.log()? * sign;
            let cost = |v: f64| {
                if row.better == Better::Higher {
                    1.0 / v
                } else {
                    v
                }
            };
            let (base, new) = (cost(row.base), cost(row.new));
            let (fast, slow) = if new_is_slow {
                (base, new)
            } else {
                (new, base)
            };
            let slower = row.together == wanted;
            let left = if slower && is_cost(row.unit) {
                log
            } else {
                0.0
            };
            Some(Item {
                row,
                group: Group::of(row.probe, row.descriptor.exercises),
                fast,
                slow,
                log,
                slower,
                weight: weight(row),
                left,
            })
        };
        let items = rows.iter().filter(|r| r.judged).filter_map(item).collect();
        let machines = Machines::of(&base, &new);
        let (slow, fast) = if new_is_slow {
            (new, base)
        } else {
            (base, new)
        };
        View {
            items,
            new_is_slow,
            slow,
            fast,
            measured_here,
            threshold,
            changes,
            machines,
        }
    }

    /// What either side has, that of the slower one first.
    pub(super) fn slow_first<T>(&self, base: T, new: T) -> [T; 2] {
        if self.new_is_slow {
            [new, base]
        } else {
            [base, new]
        }
    }

    /// The differences of the hosts in these facts, the cheaper side first.
    pub(super) fn host_clues(&self, what: &[&str]) -> Vec<Evidence> {
        self.fast.host_clues(&self.slow, what)
    }

    /// A number of rows that are slower on the new side, or faster where that is what it is on the whole.
    pub(super) fn figure(&self, metric: Metric, rows: usize) -> Evidence {
        Evidence {
            faster: !self.new_is_slow,
            ..Evidence::figure(metric, rows as f64)
        }
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
}

/// Whether a row tells a cost (a time, a rate, a share of one): only then has its change a share in the slow-down. A
/// count or a size has none of its own.
pub fn is_cost(unit: Unit) -> bool {
    !matches!(unit, Unit::Count | Unit::Bytes)
}
