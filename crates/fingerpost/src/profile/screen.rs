//! The rows of `--profile screen`: those that tell most per second, by recorded power (`bench/fleet_power`).

use std::collections::BTreeSet;

use crate::plan::Row;

/// Seconds for all of them: starting, describing the host and ending take some three more, and a node check may take
/// twenty.
pub const SECONDS: u64 = 15;

/// The table as the script wrote it.
const TABLE: &str = include_str!("screen.txt");

/// Probe and parameters of each row.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut columns = line.split('\t');
            Some((columns.next()?, columns.next()?))
        })
}

/// The probes that the rows are of, each once.
pub fn probes() -> Vec<String> {
    let mut known = BTreeSet::new();
    rows()
        .filter(|(probe, _)| known.insert(*probe))
        .map(|(probe, _)| probe.to_owned())
        .collect()
}

/// Whether the row is one of them.
pub fn has(row: &Row) -> bool {
    // Sizes as plain numbers, as a record has them.
    let params: Vec<String> = row
        .params
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let params = params.join(" ");
    rows().any(|(probe, of)| probe == row.probe.name && of == params)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan;

    #[test]
    fn every_row_of_the_table_is_one_that_there_is() {
        let all = plan::resolve(&probes(), &BTreeMap::new()).unwrap().rows;
        let chosen = all.iter().filter(|row| has(row)).count();
        assert_eq!(
            chosen,
            rows().count(),
            "a probe or its parameters have changed: run bench/fleet_power again"
        );
        assert!(
            (20..=60).contains(&chosen)
                && all
                    .iter()
                    .any(|row| row.probe.name == "syscall.null" && has(row))
        );
    }
}
