//! Two budgets of one workload step, and what takes one to the other.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fingerpost_record::{Budget, Component, Layer, Params, Unit};
use serde::Serialize;

use crate::steps::KnownSide;

use super::clues::Clues;
use super::older::wall;

/// What one operation of a probe costs on either side, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct UnitCost<'a> {
    /// The probe.
    pub probe: &'a str,
    /// The system calls that it stands for, whose counts times its cost are held against the budget.
    pub calls: &'a [Cow<'static, str>],
    /// On the base side.
    pub base: f64,
    /// On the new side.
    pub new: f64,
}

/// The change of one workload step's time per transaction, layer by layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waterfall {
    /// The workload.
    pub workload: String,
    /// The step's parameters.
    pub params: Params,
    /// Seconds per transaction on the base side.
    pub base_seconds: f64,
    /// Seconds per transaction on the new side.
    pub new_seconds: f64,
    /// What each part adds (or saves), largest first.
    pub steps: Vec<WaterfallStep>,
    /// Change of the rest that no part explains, in seconds.
    pub unexplained_seconds: f64,
    /// The share of the change that the unit costs of the primitives times their counts predict, where both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_share: Option<f64>,
    /// That prediction in words, a primitive each.
    pub predictions: Vec<String>,
}

/// One part's contribution to a [`Waterfall`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaterfallStep {
    /// The layer.
    pub layer: Layer,
    /// What the time went to.
    pub component: Component,
    /// Seconds per transaction on the base side.
    pub base_seconds: f64,
    /// Seconds per transaction on the new side.
    pub new_seconds: f64,
    /// Share of the whole change; negative for a part that goes the other way.
    pub share: f64,
}

/// The waterfall of every workload step that both sides have a budget of.
pub fn waterfalls<'a>(
    base: KnownSide<'a>,
    new: KnownSide<'a>,
    costs: &[UnitCost],
) -> Vec<Waterfall> {
    let fall = |b: &'a Budget| {
        let n = new
            .steps
            .budgets
            .iter()
            .find(|n| n.workload == b.workload && n.params == b.params)?;
        let mut fall = between(b, n);
        predict(&mut fall, &Clues::new(base, new, b, n), costs);
        Some(fall)
    };
    base.steps.budgets.iter().filter_map(fall).collect()
}

/// The steps from one budget to another.
pub fn between(base: &Budget, new: &Budget) -> Waterfall {
    let (base_seconds, new_seconds) = (wall(base), wall(new));
    let change = new_seconds - base_seconds;
    let names: BTreeSet<(Layer, &Component)> = base
        .parts
        .iter()
        .chain(&new.parts)
        .map(|p| (p.layer, &p.component))
        .collect();
    let of = |b: &Budget, layer: Layer, component: &Component| -> f64 {
        b.parts
            .iter()
            .filter(|p| p.layer == layer && p.component == *component)
            .map(|p| p.seconds_per_transaction)
            .sum()
    };
    let step = |(layer, component): (Layer, &Component)| {
        let (b, n) = (of(base, layer, component), of(new, layer, component));
        let share = if change == 0.0 { 0.0 } else { (n - b) / change };
        WaterfallStep {
            layer,
            component: component.clone(),
            base_seconds: b,
            new_seconds: n,
            share,
        }
    };
    let mut steps: Vec<WaterfallStep> = names.into_iter().map(step).collect();
    steps.sort_by(|a, b| {
        (b.new_seconds - b.base_seconds)
            .abs()
            .total_cmp(&(a.new_seconds - a.base_seconds).abs())
    });
    let unexplained_seconds = change
        - steps
            .iter()
            .map(|s| s.new_seconds - s.base_seconds)
            .sum::<f64>();
    Waterfall {
        workload: base.workload.clone(),
        params: base.params.clone(),
        base_seconds,
        new_seconds,
        steps,
        unexplained_seconds,
        predicted_share: None,
        predictions: Vec::new(),
    }
}

/// Seconds that a primitive adds to a transaction and that are told: a nanosecond is less than any probe tells apart.
const WORTH_TELLING: f64 = 1e-9;

/// Unit costs times counts: what the slower primitives alone would add to a transaction that makes as many calls as
/// before.
fn predict(fall: &mut Waterfall, clues: &Clues, costs: &[UnitCost]) {
    let change = fall.new_seconds - fall.base_seconds;
    let (mut seconds, mut needed, mut seen) = (0.0, Vec::new(), BTreeSet::new());
    for (call, cost) in costs
        .iter()
        .flat_map(|cost| cost.calls.iter().map(move |call| (call, cost)))
    {
        // Of several rows the first is taken.
        if !seen.insert(call) {
            continue;
        }
        let Some(each) = clues.per_transaction_as(&format!("server.call.{call}.count")) else {
            continue;
        };
        let [before, after] = clues.base_first(each);
        // Slower calls at the old count, and additional calls at the new cost.
        let added = ((cost.new - cost.base) * before + (after - before) * cost.new) * 1e-9;
        if added.abs() < WORTH_TELLING {
            continue;
        }
        needed.extend(would_need(call, cost, after, change));
        seconds += added;
        let ([base, new], micros) = (
            [cost.base, cost.new].map(|ns| Unit::Nanoseconds.format(ns)),
            added * 1e6,
        );
        let calls = format!("{call}: {before:.1} → {after:.1} calls a transaction");
        fall.predictions
            .push(format!("{calls} at {base} → {new}: {micros:+.1} µs"));
    }
    if !fall.predictions.is_empty() && change != 0.0 {
        fall.predicted_share = Some(seconds / change);
    }
    fall.predictions.extend(needed);
}

/// So many times as many calls as there are would be needed before it is said that a primitive cannot be what makes a
/// difference.
const FAR_TOO_MANY: f64 = 10.0;

/// What would have to be true for a primitive's cost to make the whole change, where that is far from what is.
fn would_need(call: &str, cost: &UnitCost, makes: f64, change: f64) -> Option<String> {
    let needed = change / ((cost.new - cost.base) * 1e-9);
    (needed.is_finite() && needed > FAR_TOO_MANY * makes.max(1.0)).then(|| {
        format!(
            "{call}: at {} more each the change would need {needed:.0} calls a transaction, which makes {makes:.1}: it \
             cannot be that",
            Unit::Nanoseconds.format(cost.new - cost.base)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::Part;

    pub(crate) fn budget(parts: &[(Layer, Component, f64)], wall: f64) -> Budget {
        let sum: f64 = parts.iter().map(|p| p.2).sum();
        Budget {
            workload: "database".into(),
            params: Params::new().with("clients", 10),
            transactions: 1000,
            seconds_per_transaction: wall,
            parts: parts
                .iter()
                .map(|(layer, component, s)| Part {
                    layer: *layer,
                    component: component.clone(),
                    seconds_per_transaction: *s,
                    share: s / wall,
                })
                .collect(),
            unexplained: 1.0 - sum / wall,
        }
    }

    #[test]
    fn the_steps_and_the_rest_add_up_to_the_change() {
        let base = budget(
            &[
                (Layer::Application, "user code".into(), 1e-3),
                (Layer::Scheduler, "waiting for a CPU".into(), 1e-4),
            ],
            1.2e-3,
        );
        let new = budget(
            &[
                (Layer::Application, "user code".into(), 1e-3),
                (Layer::Scheduler, "waiting for a CPU".into(), 2e-3),
                (Layer::Storage, "fsync".into(), 1e-4),
            ],
            3.3e-3,
        );
        let fall = between(&base, &new);
        let sum: f64 = fall
            .steps
            .iter()
            .map(|s| s.new_seconds - s.base_seconds)
            .sum::<f64>()
            + fall.unexplained_seconds;
        assert!((sum - 2.1e-3).abs() < 1e-12);
        assert_eq!(fall.steps[0].component, Component::Cpu);
        assert!((fall.steps[0].share - 1.9 / 2.1).abs() < 1e-9);
    }
}
