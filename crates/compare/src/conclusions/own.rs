//! A run of today's machine, asked for what the documents speak of.

use fingerpost_record::{Better, Measurement, Outcome, Params, Run};

use super::judged::Judged;
use super::source;
use crate::aliases;
use crate::scaling::{Scaling, tables};

/// The rows of a run that are a published row, or stand for it, and have a figure.
pub fn rows<'a>(run: &'a Run, probe: &'a str, published: &'a Params) -> impl Iterator<Item = &'a Measurement> {
    let measured = |m: &&Measurement| matches!(m.outcome, Outcome::Measured | Outcome::Untrusted) && m.estimate.is_some();
    run.measurements.iter().filter(move |m| m.probe == probe && aliases::matches(probe, published, &m.params).is_some()).filter(measured)
}

/// The best of those rows: what the published figure leaves unsaid (placement, state) is then in our favour, and is named beside it.
pub fn best<'a>(run: &'a Run, probe: &'a str, published: &'a Params) -> Option<&'a Measurement> {
    let cost = |m: &&Measurement| {
        let value = m.estimate.map_or(f64::INFINITY, |e| e.value);
        // A row to be trusted comes before one that is not.
        (m.outcome != Outcome::Measured, if m.better == Better::Higher { -value } else { value })
    };
    rows(run, probe, published).min_by(|a, b| cost(a).partial_cmp(&cost(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// The value of the best row.
pub fn value(run: &Run, probe: &str, published: &Params) -> Option<f64> {
    best(run, probe, published)?.estimate.map(|e| e.value).filter(|v| v.is_finite() && *v > 0.0)
}

/// How many times as long Mac OS X needed as this machine needs, for these probes without parameters, as a sentence; true where each takes at
/// least as many times as long there as is given for it. What is given must be true of the Linux systems of the document that the conclusion
/// is about (a test asks them).
pub fn against_mac(run: &Run, probes: &[(&str, &str, f64)]) -> Option<Judged> {
    let mac = source::load("g5-2.7-darwin");
    let mut parts = Vec::new();
    let mut holds = true;
    for (probe, words, least) in probes {
        let published = mac.measurements.iter().find(|m| m.probe == *probe)?;
        let (theirs, ours) = (published.estimate?.value, value(run, probe, &published.params)?);
        let enough = theirs >= least * ours;
        holds &= enough;
        parts.push(format!(
            "{words} {} here, {} there, {:.1} times{}",
            published.unit.format(ours),
            published.unit.format(theirs),
            theirs / ours,
            if enough { String::new() } else { format!(", which is less than {least}") }
        ));
    }
    Some(Judged::by(holds, parts.join("; ")))
}

/// The throughput of a database over its clients: the one most like the published one.
pub fn clients(run: &Run) -> Option<Scaling> {
    let like = |params: &Params| {
        let is = |key: &str, value: &str| usize::from(params.text(key) == Some(value));
        4 * (is("engine", "mariadb") + is("engine", "mysql")) + 2 * is("mix", "read") + is("query_cache", "off")
    };
    let mut found: Vec<_> = tables(run).into_iter().filter(|t| t.workload == "database").collect();
    found.sort_by_key(|t| std::cmp::Reverse(like(&t.params)));
    found.into_iter().map(|t| t.scaling).find(|s| s.rows[0].clients == 1 && s.rows.len() > 2)
}
