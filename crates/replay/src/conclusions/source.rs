//! The documents' own figures, compared as any two runs are.

use fingerpost_record::{Metric, Run, Status};
use fingerpost_report::evidence::{Whose, words};

use fingerpost_compare::Row;
use fingerpost_compare::comparison::{Comparison, Options};
use fingerpost_compare::verdict::Verdict;
use fingerpost_compare::{compare, references, select};

/// A reference system, or the rows of it with these parameters. The names are committed, and a test asks for every one.
pub fn load(text: &str) -> Run {
    let (name, wanted) = select::parse(text).expect("committed names are well-formed");
    let run = references::load(name).expect("committed names are those of reference systems");
    select::part(run, &wanted).expect("committed parts have rows")
}

/// Two reference systems side by side.
pub fn between(base: &str, new: &str) -> Comparison {
    compare(&[load(base)], &[load(new)], &Options::default())
}

/// The G5 under Linux, and the G5 under Mac OS X beside it.
pub fn g5() -> Comparison {
    between("g5-2.5-linux", "g5-2.7-darwin")
}

/// The first row of a probe.
pub fn row<'a>(c: &'a Comparison, probe: &str) -> &'a Row {
    c.rows
        .iter()
        .find(|r| r.probe == probe)
        .expect("committed tables have the row")
}

/// How many times slower the new side is in a probe.
pub fn ratio(c: &Comparison, probe: &str) -> f64 {
    value(row(c, probe))
}

/// How many times slower the new side of a row is.
pub fn value(row: &Row) -> f64 {
    row.ratio.map_or(f64::NAN, |r| r.value)
}

/// Whether all these rows have this verdict.
pub fn all(c: &Comparison, probes: &[&str], verdict: Verdict) -> bool {
    probes.iter().all(|p| row(c, p).verdict == verdict)
}

/// The row of a throughput with this many clients.
pub fn at_clients(c: &Comparison, clients: i64) -> &Row {
    c.rows
        .iter()
        .find(|r| r.params.int("clients") == Some(clients))
        .expect("committed tables have the row")
}

/// What became of a cause.
pub fn status(c: &Comparison, cause: &str) -> Option<Status> {
    c.causes.iter().find(|f| f.cause == cause).map(|f| f.status)
}

/// What became of a cause, with the first two facts; nothing where the comparison says nothing of it, or not
/// why.
pub fn said(c: &Comparison, cause: &str) -> Option<(Status, String)> {
    c.causes.iter().find(|f| f.cause == cause).and_then(|f| {
        let told: Vec<String> = f
            .evidence
            .iter()
            .take(2)
            .map(|fact| words(fact, Whose::default()))
            .collect();
        (!told.is_empty()).then(|| (f.status, told.join("; ")))
    })
}

/// The figures of the first fact of this kind about a cause, base and new.
pub fn figures(c: &Comparison, cause: &str, metric: Metric) -> Option<[f64; 2]> {
    let finding = c.causes.iter().find(|f| f.cause == cause)?;
    let fact = finding.evidence.iter().find(|fact| fact.metric == metric)?;
    Some([fact.base?, fact.value?])
}

/// The geometric mean of the ratios of a probe's rows.
pub fn mean(c: &Comparison, probe: &str) -> f64 {
    mean_of(c.rows.iter().filter(|r| r.probe == probe))
}

/// The geometric mean of these rows' ratios.
pub fn mean_of<'a>(rows: impl Iterator<Item = &'a Row>) -> f64 {
    let logs: Vec<f64> = rows.filter_map(Row::log).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// How many rows of a probe have this verdict.
pub fn count(c: &Comparison, probe: &str, verdict: Verdict) -> usize {
    c.rows
        .iter()
        .filter(|r| r.probe == probe && r.verdict == verdict)
        .count()
}

/// A total that somebody watched on a reference system.
pub fn total(system: &str, name: &str) -> f64 {
    load(system)
        .observations
        .iter()
        .find_map(|o| o.totals.get(name).copied())
        .expect("committed observations have the total")
}

/// What a reference system served with the query cache on, in queries a second.
pub fn cached(system: &str) -> f64 {
    let published = load(&format!("{system}[query_cache=on]"));
    published
        .measurements
        .iter()
        .find(|m| m.probe == "database.throughput")
        .and_then(|m| m.estimate)
        .map_or(f64::NAN, |e| e.value)
}
