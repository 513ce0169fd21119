//! The order in which rows are shown: that of the groups and their probes, then of the parameters.

use std::collections::HashMap;

use fingerpost_record::Measurement;

use crate::groups;

/// The rows in the order shown. Rows are measured in a random order, which decides only where neither group, probe nor parameters do.
pub fn of(measurements: &[Measurement]) -> Vec<&Measurement> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut rows: Vec<_> = measurements
        .iter()
        .map(|m| {
            let (place, group) = groups::group_of(&m.probe);
            let next = first.len();
            ((place, groups::place_in(group, &m.probe), *first.entry(m.probe.as_str()).or_insert(next), &m.params), m)
        })
        .collect();
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, m)| m).collect()
}
