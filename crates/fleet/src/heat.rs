//! Hosts beside what they were measured in: a table by family for text, and a picture by row.

use std::collections::BTreeSet;

use fingerpost_diagnose::fleet::{Grid, Unit};
use serde::Serialize;

use crate::table::Table;

/// Hosts that are not accused, for the eye to compare with.
const OTHERS: usize = 24;
/// Hosts of the table at most.
const MOST: usize = 400;

/// Hosts × families.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// The families.
    pub families: Vec<String>,
    /// Hosts with a ratio each; nothing where it was not observed.
    pub hosts: Vec<(String, Vec<Option<f64>>)>,
}

/// The letter that stands for a family where its name has no room.
pub fn letter(n: usize) -> char {
    char::from(b'A' + (n % 26) as u8)
}

impl Heat {
    /// A ratio as per cent slower, in at most three digits; a dash where there is none.
    pub fn percent(ratio: Option<f64>) -> String {
        // A little faster is as fast: without adding nothing, it would be -0.
        ratio.map_or_else(
            || "–".to_owned(),
            |r| {
                format!(
                    "{:.0}",
                    ((r - 1.0) * 100.0).clamp(-99.0, 999.0).round() + 0.0
                )
            },
        )
    }

    /// Adds a group of peers: those that are accused, and some others.
    pub(crate) fn add(
        &mut self,
        grid: &Grid,
        families: &BTreeSet<u8>,
        names: &[&str],
        accused: &BTreeSet<usize>,
    ) {
        let hosts = chosen(
            names.len(),
            accused,
            OTHERS,
            MOST.saturating_sub(self.hosts.len()),
        );
        let columns: Vec<_> = families
            .iter()
            .map(|f| grid.together_of(Some(*f), &hosts))
            .collect();
        for (at, host) in hosts.into_iter().enumerate() {
            let ratios = columns
                .iter()
                .map(|column| column[at].map(|(log, _)| log.exp()))
                .collect();
            self.hosts.push((names[host].to_owned(), ratios));
        }
    }
}

/// The accused, and as many of the others, all of them evenly over the group.
fn chosen(hosts: usize, accused: &BTreeSet<usize>, others: usize, most: usize) -> Vec<usize> {
    let rest: Vec<usize> = (0..hosts).filter(|host| !accused.contains(host)).collect();
    let step = rest.len().div_ceil(others.max(1)).max(1);
    accused
        .iter()
        .copied()
        .chain(rest.into_iter().step_by(step))
        .take(most)
        .collect()
}

/// Hosts of the picture at most: a screen has no more lines.
const MOST_LINES: usize = 1500;
/// Rows of the picture at most; a wider one would not be looked through.
const MOST_COLUMNS: usize = 4000;
/// The steps of the picture, as ratios: below the first is faster by so much.
pub const STEPS: [f64; 6] = [0.80, 0.95, 1.05, 1.10, 1.25, 2.00];
/// What stands where nothing was observed.
pub const NOTHING: u8 = STEPS.len() as u8 + 1;

/// Hosts × rows: for each cell the number of [`STEPS`] that its ratio has reached, or [`NOTHING`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// The hosts, from above; of each group the accused first.
    pub hosts: Vec<String>,
    /// Which of them are accused, by their line.
    pub accused: Vec<usize>,
    /// The columns' rows, by family.
    pub rows: Vec<String>,
    /// Where each family begins, with its probe's family name.
    pub families: Vec<(usize, String)>,
    /// The cells, host by host.
    pub cells: Vec<u8>,
    columns: Vec<u32>,
}

impl Picture {
    /// An empty one of this table's rows.
    pub(crate) fn of(table: &Table) -> Picture {
        let mut columns: Vec<u32> = (0..table.rows.len() as u32).collect();
        let row = |n: u32| &table.rows[n as usize];
        columns.sort_by_key(|n| (row(*n).group.number(), row(*n).name()));
        columns.truncate(MOST_COLUMNS);
        let mut families: Vec<(usize, String)> = Vec::new();
        for (at, n) in columns.iter().enumerate() {
            if at == 0 || row(*n).group != row(columns[at - 1]).group {
                families.push((at, table.family_name(row(*n).group.number())));
            }
        }
        Picture {
            rows: columns.iter().map(|n| row(*n).name()).collect(),
            families,
            columns,
            ..Picture::default()
        }
    }

    /// Adds a group of peers.
    pub(crate) fn add(&mut self, grid: &Grid, names: &[&str], accused: &BTreeSet<usize>) {
        let most = MOST_LINES.saturating_sub(self.hosts.len());
        let hosts = chosen(
            names.len(),
            accused,
            most.saturating_sub(accused.len()),
            most,
        );
        let from = self.cells.len();
        let width = self.columns.len();
        self.cells.resize(from + hosts.len() * width, NOTHING);
        for (column, row) in self.columns.iter().enumerate() {
            let values = grid.unit(Unit::Row(*row));
            for (line, host) in hosts.iter().enumerate() {
                if let Some((log, _)) = values[*host] {
                    self.cells[from + line * width + column] =
                        STEPS.iter().filter(|step| log.exp() >= **step).count() as u8;
                }
            }
        }
        let first = self.hosts.len();
        self.accused
            .extend((0..accused.len().min(hosts.len())).map(|n| first + n));
        self.hosts
            .extend(hosts.iter().map(|host| names[*host].to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accused_are_shown_and_others_evenly() {
        let accused = BTreeSet::from([5, 90]);
        assert_eq!(chosen(100, &accused, 4, 10), [5, 90, 0, 26, 51, 76]);
        assert_eq!(chosen(100, &accused, 4, 3), [5, 90, 0]);
        assert_eq!(chosen(3, &BTreeSet::new(), 0, 10), [0]);
    }

    #[test]
    fn a_little_faster_is_nothing_and_far_is_three_digits() {
        let said = [
            Some(0.999),
            Some(1.004),
            Some(0.97),
            Some(1.35),
            Some(700.0),
            None,
        ]
        .map(Heat::percent);
        assert_eq!(said, ["0", "0", "-3", "35", "999", "–"]);
        assert_eq!([letter(0), letter(25), letter(26)], ['A', 'Z', 'A']);
    }
}
