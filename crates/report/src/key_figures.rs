//! Rows that stand for a machine at a glance: of large letters on the page, and of the sentence that a run of
//! primitives begins with.

use fingerpost_record::Outcome;

use crate::view::{Group, Row};

/// The probe, a parameter that its row should have, and what it is called. They are chosen by name, ten of all, and in
/// this order: which few stand for a machine no property of a probe says, and a new one does not ask to be among them.
const KEYS: [(&str, &str, &str); 10] = [
    ("syscall.null", "", "system call"),
    ("switch.ring", "placement=same tasks=2", "context switch"),
    ("ipc.pipe", "placement=cross", "pipe round trip"),
    ("process.fork", "", "fork"),
    ("process.exec", "", "exec"),
    ("vm.fault_anon", "", "page fault"),
    ("memory.copy", "", "memory copy"),
    ("fs.fsync", "", "fsync"),
    ("database.throughput", "", "database"),
    ("web.throughput", "", "web server"),
];

/// A parameter of rows whose figure is the best case.
const BEST_CASE: &str = "query_cache=on";

/// Those of them that were measured, each with its name.
pub fn of(groups: &[Group]) -> Vec<(&'static str, &Row)> {
    let rows: Vec<&Row> = measured(groups).collect();
    let value = |row: &Row| row.figure.map_or(0.0, |f| f.estimate.value);
    let find = |(probe, params, name): &(&str, &str, &'static str)| {
        let of: Vec<&Row> = rows.iter().copied().filter(|r| r.probe == *probe).collect();
        let row = of.iter().find(|r| r.params.contains(params)).or(of.first()).copied();
        let row = if probe.ends_with("throughput") {
            // Of several rows the peak. Answers from a cache are the best case, and not what a database is known by.
            let of = of.into_iter().filter(|row| !row.params.contains(BEST_CASE));
            of.max_by(|a, b| value(a).total_cmp(&value(b)))
        } else {
            row
        };
        row.map(|r| (*name, r))
    };
    KEYS.iter().filter_map(find).collect()
}

/// Rows that are to be relied on.
pub fn measured(groups: &[Group]) -> impl Iterator<Item = &Row> {
    groups.iter().flat_map(Group::shown).filter(|r| r.outcome == Outcome::Measured && r.figure.is_some())
}
