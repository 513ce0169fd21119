//! Two sweeps of the same hosts: what a roll-out changed.

use std::collections::{BTreeSet, HashMap};

use fingerpost_compare::verdict::{FALSE_DISCOVERIES, adjust};
use fingerpost_diagnose::fleet::{self, Unit};
use serde::Serialize;

use crate::standing::Slower;
use crate::sweep::{Sweep, SweepError};
use crate::table::{Cell, HostRow, Table};

/// What two sweeps say of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rollout {
    /// Hosts that got it and are in both sweeps.
    pub treated: usize,
    /// Hosts that did not and are in both. With none, what happened to everybody meanwhile is in the figures.
    pub controls: usize,
    /// Whether there are hosts enough to say anything.
    pub resolved: bool,
    /// What changed, in rows, families and all rows: the largest change first.
    pub changed: Vec<Slower>,
    /// How many rows, families and totals were looked at.
    pub looked_at: usize,
}

/// A host in both sweeps.
struct Pair {
    treated: bool,
    /// After less before, by row.
    change: Vec<Cell>,
}

/// Compares two sweeps. The roll-out's hosts are `treated`, or else those whose kind (kernel, microcode, memory …)
/// differs between the sweeps.
///
/// # Errors
/// The system's. A record that cannot be read takes no part.
pub fn rollout(
    before: &Sweep,
    after: &Sweep,
    treated: Option<&BTreeSet<String>>,
) -> Result<Rollout, SweepError> {
    let (mut table, after) = (Table::of(before)?, Table::of(after)?);
    let numbers: Vec<u32> = after.rows.iter().map(|row| table.number_of(row)).collect();
    let later: HashMap<&str, &HostRow> = after
        .hosts
        .iter()
        .map(|host| (host.node.as_str(), host))
        .collect();
    let pair = |host: &HostRow| {
        let now = later.get(host.node.as_str())?;
        let got = treated.map_or_else(|| host.group != now.group, |list| list.contains(&host.node));
        let old: HashMap<u32, (f32, f32)> = host
            .cells
            .iter()
            .map(|(row, log, own)| (*row, (*log, *own)))
            .collect();
        let change = |(row, log, own): &Cell| {
            let row = numbers[*row as usize];
            old.get(&row)
                .map(|(before, own_before)| (row, log - before, own.hypot(*own_before)))
        };
        Some(Pair {
            treated: got,
            change: now.cells.iter().filter_map(change).collect(),
        })
    };
    let pairs: Vec<Pair> = table.hosts.iter().filter_map(pair).collect();
    Ok(judged(&table, &pairs))
}

fn judged(table: &Table, pairs: &[Pair]) -> Rollout {
    let families: BTreeSet<u8> = table.rows.iter().map(|row| row.group.number()).collect();
    let rows = (0..table.rows.len() as u32).map(Unit::Row);
    let units: Vec<Unit> = std::iter::once(Unit::All)
        .chain(families.into_iter().map(Unit::Family))
        .chain(rows)
        .collect();
    let effect = |unit: &Unit| {
        let of = |treated: bool| -> Vec<(f64, f64)> {
            pairs
                .iter()
                .filter(|pair| pair.treated == treated)
                .filter_map(|pair| change_in(table, pair, *unit))
                .collect()
        };
        Some((*unit, fleet::rollout(&of(true), &of(false))?))
    };
    let effects: Vec<(Unit, fleet::Effect)> = fleet::by_every_cpu(&units, effect)
        .into_iter()
        .flatten()
        .collect();
    let stands = adjust(&effects.iter().map(|(_, e)| e.p).collect::<Vec<_>>());
    let stand = effects
        .iter()
        .zip(stands)
        .filter(|(_, q)| *q <= FALSE_DISCOVERIES);
    let mut changed: Vec<Slower> = stand
        .map(|((unit, e), _)| Slower::by(table.unit_name(*unit), [e.log, e.low, e.high]))
        .collect();
    changed.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let treated = pairs.iter().filter(|pair| pair.treated).count();
    Rollout {
        treated,
        controls: pairs.len() - treated,
        resolved: !effects.is_empty(),
        changed,
        looked_at: effects.len(),
    }
}

fn change_in(table: &Table, pair: &Pair, unit: Unit) -> Option<(f64, f64)> {
    let of_unit = pair
        .change
        .iter()
        .filter(|cell| table.is_within(cell.0, unit))
        .map(|(_, log, own)| (f64::from(*log), f64::from(*own)));
    fleet::middle(&of_unit.collect::<Vec<_>>())
}
