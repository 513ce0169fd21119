//! Rows that stand for a machine at a glance: of large letters on the page, and of the sentence that a run of
//! primitives begins with.

use fingerpost_record::Outcome;

use crate::lab::{LabView, Labs};
use crate::view::{Group, Row};

/// The probe, a parameter that its row should have, and what it is called. They are chosen by name, eight of all, and
/// in this order: which few stand for a machine no property of a probe says, and a new one does not ask to be among
/// them.
const KEYS: [(&str, &str, &str); 8] = [
    ("syscall.null", "", "system call"),
    ("switch.ring", "placement=same tasks=2", "context switch"),
    ("ipc.pipe", "placement=cross", "pipe round trip"),
    ("process.fork", "", "fork"),
    ("process.exec", "", "exec"),
    ("vm.fault_anon", "", "page fault"),
    ("memory.copy", "", "memory copy"),
    ("fs.fsync", "", "fsync"),
];

/// A parameter of rows whose figure is the best case.
const BEST_CASE: &str = "query_cache=on";

/// Those of them that were measured, each with its name, and the peak of each server that a lab loads.
pub fn of<'a>(groups: &'a [Group], labs: Labs) -> Vec<(&'static str, &'a Row)> {
    let rows: Vec<&Row> = measured(groups).collect();
    let find = |(probe, params, name): &(&str, &str, &'static str)| {
        let of = || rows.iter().copied().filter(|r| r.probe == *probe);
        let row = of().find(|r| r.params.contains(params)).or(of().next())?;
        Some((*name, row))
    };
    let peak = |lab: &LabView| {
        let called = lab.server?.called;
        let value = |row: &Row| row.figure.map_or(0.0, |f| f.estimate.value);
        let of = rows
            .iter()
            .copied()
            .filter(|r| r.probe.strip_suffix(".throughput") == Some(lab.name));
        // Answers from a cache are the best case, and not what a database is known by.
        let of = of.filter(|row| !row.params.contains(BEST_CASE));
        Some((called, of.max_by(|a, b| value(a).total_cmp(&value(b)))?))
    };
    KEYS.iter()
        .filter_map(find)
        .chain(labs.iter().filter_map(peak))
        .collect()
}

/// Rows that are to be relied on.
pub fn measured(groups: &[Group]) -> impl Iterator<Item = &Row> {
    groups
        .iter()
        .flat_map(Group::shown)
        .filter(|r| r.outcome == Outcome::Measured && r.figure.is_some())
}
