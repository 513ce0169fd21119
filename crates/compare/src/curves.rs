//! Throughput over the number of clients, side by side, and where it collapses.

use std::collections::BTreeMap;

use fingerpost_record::{Better, Params};
use serde::Serialize;

use crate::row::Row;
use crate::scaling::{Scaling, Shape};

/// Throughput over the number of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The probe.
    pub probe: String,
    /// Its parameters but `clients`.
    pub params: Params,
    /// Clients, base and new, by clients.
    pub points: Vec<(i64, f64, f64)>,
    /// From how many clients on the base side collapses ([`crate::scaling::COLLAPSED`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_collapses_from: Option<i64>,
    /// From how many clients on the new side collapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_collapses_from: Option<i64>,
}

/// Clients, base and new.
type Points = Vec<(i64, f64, f64)>;

/// The curves of every throughput that both sides have with one client and with more.
pub fn curves(rows: &[Row]) -> Vec<Curve> {
    let mut families: BTreeMap<(&str, Params), Points> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.better == Better::Higher) {
        let Some(clients) = row.params.int("clients") else {
            continue;
        };
        families
            .entry((&row.probe, row.params.without(&["clients"])))
            .or_default()
            .push((clients, row.base.value, row.new.value));
    }
    families
        .into_iter()
        .filter_map(|((probe, params), points)| curve(probe, params, points))
        .collect()
}

fn curve(probe: &str, params: Params, mut points: Points) -> Option<Curve> {
    points.sort_by_key(|p| p.0);
    if points.len() < 3
        || points.first()?.0 != 1
        || is_one_figure(&points, |p| p.1)
        || is_one_figure(&points, |p| p.2)
    {
        return None;
    }
    let from = |of: fn(&(i64, f64, f64)) -> f64| {
        collapse(&points.iter().map(|p| (p.0, of(p))).collect::<Vec<_>>())
    };
    Some(Curve {
        base_collapses_from: from(|p| p.1),
        new_collapses_from: from(|p| p.2),
        probe: probe.to_owned(),
        params,
        points,
    })
}

/// Whether a side has the same figure for every number of clients: a published one that does not state its own is put
/// beside each, and is no curve.
fn is_one_figure(points: &[(i64, f64, f64)], of: fn(&(i64, f64, f64)) -> f64) -> bool {
    points.windows(2).all(|two| of(&two[0]) == of(&two[1]))
}

/// From how many clients on the throughput collapses ([`crate::scaling::COLLAPSED`]), if it does.
pub fn collapse(points: &[(i64, f64)]) -> Option<i64> {
    let points: Vec<(u64, f64)> = points
        .iter()
        .filter_map(|p| Some((u64::try_from(p.0).ok()?, p.1)))
        .collect();
    match Scaling::of(&points)?.shape {
        Shape::Collapses { from } => i64::try_from(from).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_is_found_where_it_begins_and_a_plateau_is_none() {
        let tiger = [
            (1, 192.0),
            (2, 274.0),
            (5, 113.0),
            (10, 62.0),
            (20, 50.0),
            (35, 50.0),
            (50, 47.0),
        ];
        let linux = [
            (1, 228.0),
            (2, 349.0),
            (5, 411.0),
            (10, 443.0),
            (20, 439.0),
            (35, 422.0),
            (50, 414.0),
        ];
        assert_eq!(collapse(&tiger), Some(5));
        assert_eq!(collapse(&linux), None);
        assert_eq!(collapse(&[(1, 100.0), (2, 50.0), (4, 120.0)]), None);
        assert_eq!(collapse(&[]), None);
        // What the scaling table of a run calls a collapse is one here: below what one client gave is not asked for,
        // far below the peak is.
        let halved = [(1, 100.0), (2, 300.0), (5, 150.0), (10, 140.0)];
        let declining = [(1, 100.0), (2, 110.0), (5, 88.0), (10, 85.0)];
        assert_eq!((collapse(&halved), collapse(&declining)), (Some(5), None));
    }
}
