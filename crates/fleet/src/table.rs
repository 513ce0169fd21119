//! The figures of a sweep, host by host, as the statistics take them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fingerpost_diagnose::cause::Cause;
use fingerpost_diagnose::fleet::{self, Grid, peer_group};
use fingerpost_diagnose::probes::groups::Group;
use fingerpost_record::{
    Better, Exercises, Measurement, Outcome, Params, Run, Unit, few_processes,
};
use serde::{Deserialize, Serialize};

use crate::description::{self, Description};
use crate::sweep::Stamp;

/// What makes half of a 95 % interval one standard deviation.
const HALF_95: f64 = 1.959_96;

/// A row of the sweep, as the index has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The probe.
    pub probe: String,
    /// Version of its definition.
    pub version: u32,
    /// Its parameters.
    pub params: Params,
    /// Its unit.
    pub unit: Unit,
    /// The part of the system that it exercises.
    pub exercises: Option<Exercises>,
    /// The rows that one cause moves with it: follows from its probe.
    #[serde(skip, default = "not_known_yet")]
    pub group: Group,
}

fn not_known_yet() -> Group {
    Group::Workload
}

impl Row {
    /// A row of this probe.
    pub fn new(
        probe: String,
        version: u32,
        params: Params,
        unit: Unit,
        exercises: Option<Exercises>,
    ) -> Row {
        let group = Group::of(&probe, exercises);
        Row {
            probe,
            version,
            params,
            unit,
            exercises,
            group,
        }
    }

    fn is_of(&self, m: &Measurement) -> bool {
        self.version == m.version && self.probe == m.probe && self.params == m.params
    }

    /// The row as a person reads it.
    pub fn name(&self) -> String {
        if self.params.is_empty() {
            self.probe.clone()
        } else {
            format!("{} {}", self.probe, self.params)
        }
    }
}

/// A figure: the row's number, the logarithm of a cost, and one standard deviation of it.
pub type Cell = (u32, f32, f32);

/// One host's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRow {
    /// The node.
    pub node: String,
    /// Its peers.
    pub group: String,
    /// When its run started.
    pub started: String,
    /// Rows that were skipped, failed or are not to be relied on.
    pub without: usize,
    /// What tells that its record has not changed since.
    pub stamp: Stamp,
    /// The figures.
    pub cells: Vec<Cell>,
    /// Rows that were tried and have no figure, with the reason.
    pub failed: Vec<(u32, String)>,
    /// What of its description is held against its peers'.
    pub description: Arc<Description>,
}

/// All figures of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows, by number.
    pub rows: Vec<Row>,
    /// The hosts with a record, by name.
    pub hosts: Vec<HostRow>,
    /// Hosts whose record could not be read, with the reason.
    pub unreadable: BTreeMap<String, String>,
    numbers: HashMap<(String, u32, Params), u32>,
}

/// Hosts, and rows of them, whose figures are put into the grid together: 64 × 64 of them are in a processor's nearest
/// caches.
const TOGETHER: usize = 64;

impl Table {
    /// A table of these rows and hosts.
    pub(crate) fn made_of(rows: Vec<Row>, hosts: Vec<HostRow>) -> Table {
        let number = |(n, row): (usize, &Row)| {
            (
                (row.probe.clone(), row.version, row.params.clone()),
                n as u32,
            )
        };
        Table {
            numbers: rows.iter().enumerate().map(number).collect(),
            rows,
            hosts,
            unreadable: BTreeMap::new(),
        }
    }

    /// Adds a host, whose record has this stamp.
    pub fn add(&mut self, node: &str, run: &Run, stamp: Stamp) {
        let host = self.host(node, run, stamp);
        self.hosts.push(host);
    }

    /// A host's figures by this table's rows; rows that it lacks are added, the host is not.
    pub fn host(&mut self, node: &str, run: &Run, stamp: Stamp) -> HostRow {
        let cells = self.cells(run);
        let mut next = 0;
        let failed = run
            .measurements
            .iter()
            .filter_map(|m| {
                description::failure(m).map(|reason| (self.number(m, &mut next), reason))
            })
            .collect();
        let without = run
            .measurements
            .iter()
            .filter(|m| m.outcome != Outcome::Measured)
            .count();
        let (group, started, description) = (
            peer_group(&run.host),
            run.started.clone(),
            Arc::new(Description::of(&run.host)),
        );
        HostRow {
            node: node.into(),
            group,
            started,
            without,
            stamp,
            cells,
            failed,
            description,
        }
    }

    /// The figures of a run by this table's rows; rows that it lacks are added.
    pub fn cells(&mut self, run: &Run) -> Vec<Cell> {
        let mut next = 0;
        run.measurements
            .iter()
            .filter_map(|m| figure(m).map(|(log, own)| (self.number(m, &mut next), log, own)))
            .collect()
    }

    /// The number of a measurement's row. Runs of a sweep mostly have their rows in one order: the row after the last
    /// one, `next`, is looked at first, which needs no key to be made.
    fn number(&mut self, m: &Measurement, next: &mut usize) -> u32 {
        let number = match self.rows.get(*next) {
            Some(row) if row.is_of(m) => *next as u32,
            _ => self.found(&m.probe, m.version, &m.params, m.unit, || {
                m.descriptor().exercises
            }),
        };
        *next = number as usize + 1;
        number
    }

    /// The number here of a row of another table; one that is not here yet is added.
    pub fn number_of(&mut self, row: &Row) -> u32 {
        self.found(&row.probe, row.version, &row.params, row.unit, || {
            row.exercises
        })
    }

    fn found(
        &mut self,
        probe: &str,
        version: u32,
        params: &Params,
        unit: Unit,
        exercises: impl FnOnce() -> Option<Exercises>,
    ) -> u32 {
        let next = self.rows.len() as u32;
        *self
            .numbers
            .entry((probe.to_owned(), version, params.clone()))
            .or_insert_with(|| {
                self.rows.push(Row::new(
                    probe.to_owned(),
                    version,
                    params.clone(),
                    unit,
                    exercises(),
                ));
                next
            })
    }

    /// Whether the row of this number is one of a unit's.
    pub(crate) fn is_within(&self, row: u32, unit: fleet::Unit) -> bool {
        match unit {
            fleet::Unit::All => true,
            fleet::Unit::Family(family) => self.rows[row as usize].group.number() == family,
            fleet::Unit::Row(only) => row == only,
        }
    }

    fn group_of(&self, family: u8) -> Option<Group> {
        self.rows
            .iter()
            .map(|row| row.group)
            .find(|group| group.number() == family)
    }

    /// A family as a person calls it.
    pub(crate) fn family_name(&self, family: u8) -> String {
        let words = |group: Group| match group {
            Group::CPU => "arithmetic in user mode",
            Group::Workload => "servers and programs under load",
            other => other.words().unwrap_or("other rows"),
        };
        self.group_of(family)
            .map_or_else(String::new, |group| words(group).to_owned())
    }

    /// The cause that a unit points at by itself.
    pub(crate) fn cause_of(&self, unit: fleet::Unit) -> Option<&'static Cause> {
        match unit {
            fleet::Unit::All => None,
            fleet::Unit::Family(family) => self.group_of(family)?.cause(),
            fleet::Unit::Row(row) => self.rows[row as usize].group.cause(),
        }
    }

    /// A unit as a person calls it.
    pub(crate) fn unit_name(&self, unit: fleet::Unit) -> String {
        match unit {
            fleet::Unit::All => "all rows".to_owned(),
            fleet::Unit::Family(family) => self.family_name(family),
            fleet::Unit::Row(row) => self.rows[row as usize].name(),
        }
    }

    /// The hosts by peer group, by their numbers.
    pub fn groups(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, host) in self.hosts.iter().enumerate() {
            groups.entry(&host.group).or_default().push(at);
        }
        groups
    }

    /// The figures of these hosts. They lie host by host here and row by row there: some hosts' next rows are taken in
    /// turns, so that what is written lies together.
    pub fn grid(&self, hosts: &[usize]) -> Grid {
        let mut grid = Grid::new(
            hosts.len(),
            self.rows.iter().map(|row| row.group.number()).collect(),
        );
        let cells: Vec<&[Cell]> = hosts
            .iter()
            .map(|host| &self.hosts[*host].cells[..])
            .collect();
        for (block, cells) in cells.chunks(TOGETHER).enumerate() {
            let longest = cells.iter().map(|cells| cells.len()).max().unwrap_or(0);
            for from in (0..longest).step_by(TOGETHER) {
                for (at, cells) in cells.iter().enumerate() {
                    let part = from.min(cells.len())..(from + TOGETHER).min(cells.len());
                    for (row, log, own) in &cells[part] {
                        grid.set(
                            block * TOGETHER + at,
                            *row as usize,
                            f64::from(*log),
                            f64::from(*own),
                        );
                    }
                }
            }
        }
        grid
    }
}

/// The logarithm of a row's cost with one standard deviation of it: a run's intervals are meant to hold the figure of
/// the host's next run (docs/measuring.md), so nothing is added to them. How much further hosts of one kind lie apart,
/// the peers say. Counts, sizes and shares are no cost, and what is not to be relied on is not observed. Two processes
/// are few, and have an interval that says so: a host on which one row takes so long that there is time for no third is
/// the one that is looked for.
fn figure(m: &Measurement) -> Option<(f32, f32)> {
    let relied_on =
        m.outcome == Outcome::Measured || few_processes(m).is_some_and(|processes| processes > 1);
    let e = m
        .estimate
        .filter(|e| relied_on && e.low > 0.0 && e.value > 0.0 && e.high >= e.low)?;
    if matches!(m.unit, Unit::Count | Unit::Bytes | Unit::Percent) {
        return None;
    }
    let own = (e.high / e.low).ln() / 2.0 / HALF_95;
    let log = if m.better == Better::Lower {
        e.value.ln()
    } else {
        -e.value.ln()
    };
    Some((log as f32, own as f32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::{fixture, too_few_processes};

    #[test]
    fn costs_are_logarithms_and_what_is_not_relied_on_is_not_there() {
        let mut run = fixture::run();
        let mut table = Table::default();
        let whole = table.cells(&run).len();
        assert!(whole > 0);
        let at = run
            .measurements
            .iter()
            .position(|m| figure(m).is_some())
            .unwrap();
        let m = &mut run.measurements[at];
        m.better = Better::Higher;
        let faster = figure(m).unwrap().0;
        m.better = Better::Lower;
        assert_eq!(figure(m).unwrap().0, -faster);
        m.outcome = Outcome::Untrusted;
        let mut with = |reason: String| {
            run.measurements[at].reason = Some(reason);
            table.cells(&run).len()
        };
        assert_eq!(with("the machine was busy".into()), whole - 1);
        assert_eq!(
            with(too_few_processes(2, 3)),
            whole,
            "their interval says how little is known"
        );
        assert_eq!(with(too_few_processes(1, 3)), whole - 1, "one has none");
        assert_eq!(table.rows.len(), table.numbers.len());
    }

    #[test]
    fn rows_have_their_numbers_in_whatever_order_a_run_has_them() {
        let mut run = fixture::run();
        let mut table = Table::default();
        let of = |table: &mut Table, run: &Run| -> BTreeMap<String, Cell> {
            table
                .cells(run)
                .into_iter()
                .map(|cell| (table.rows[cell.0 as usize].name(), cell))
                .collect()
        };
        let first = of(&mut table, &run);
        let rows = table.rows.len();
        run.measurements.reverse();
        assert_eq!(of(&mut table, &run), first);
        run.measurements.swap(0, 1);
        run.measurements.remove(2);
        assert!(
            of(&mut table, &run)
                .iter()
                .all(|(name, cell)| first[name] == *cell)
        );
        run.measurements
            .iter_mut()
            .find(|m| figure(m).is_some())
            .unwrap()
            .version += 1;
        of(&mut table, &run);
        assert_eq!(
            (table.rows.len() - rows, table.numbers.len()),
            (1, table.rows.len()),
            "another version is another row"
        );
    }

    #[test]
    fn the_grid_has_each_hosts_figures_in_its_column() {
        let mut table = Table {
            rows: vec![
                Row::new(
                    "syscall.null".into(),
                    1,
                    Params::new(),
                    Unit::Nanoseconds,
                    Some(Exercises::Syscall)
                );
                150
            ],
            ..Table::default()
        };
        // Hosts with all rows, with some in another order, and with none.
        let cells = |host: usize| {
            (0..150_u32)
                .rev()
                .filter(move |row| host.is_multiple_of(3) || *row as usize % (host + 1) == 1)
        };
        let of_host = |host: usize| {
            cells(host)
                .map(|row| (row, host as f32, row as f32))
                .collect()
        };
        table.hosts = (0..130)
            .map(|host| HostRow {
                cells: of_host(host),
                ..HostRow::default()
            })
            .collect();
        let hosts: Vec<usize> = (0..130).rev().collect();
        let grid = table.grid(&hosts);
        for row in 0..150_u32 {
            let expected = |host: &usize| {
                cells(*host)
                    .any(|r| r == row)
                    .then(|| (*host as f64, f64::from(row)))
            };
            assert_eq!(
                grid.row(row as usize),
                hosts.iter().map(expected).collect::<Vec<_>>()
            );
        }
    }
}
