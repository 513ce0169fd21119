//! Rows of this machine for the columns of a published table.

use fingerpost_record::params::named;
use fingerpost_record::{Estimate, Measurement, Outcome, Params, Run};

use crate::aliases;
use crate::conclusions::best;
use crate::references::Column;

/// A row of this machine that is a published one or stands for it.
pub(super) struct Ours {
    pub(super) row: Measurement,
    /// What stands for what, what the source leaves unsaid, and of which run it is.
    pub(super) note: Option<String>,
}

impl Ours {
    /// With a further note.
    pub(super) fn also(self, note: &str) -> Ours {
        let note = self.note.map_or_else(|| note.to_owned(), |first| format!("{first}; {note}"));
        Ours { note: Some(note), ..self }
    }
}

/// The row of a run for a column of a table; nothing where it has none.
pub(super) fn ours(run: &Run, column: &Column) -> Option<Ours> {
    if column.probe == "lmbench.null_io" && run.measurements.iter().all(|m| m.probe != column.probe) {
        return null_io(run);
    }
    if let Some(average) = average(run, column) {
        return Some(average);
    }
    let row = best(run, &column.probe, &column.params)?;
    let note = aliases::matches(&column.probe, &column.params, &row.params)?;
    let unsaid: Vec<String> = note.unstated.iter().filter_map(|key| Some(named(key, row.params.get(key)?))).collect();
    let aliased = note.aliased.iter().map(|(key, published, ours)| format!("{key} {ours} stands for {published}"));
    let parts: Vec<String> = aliased.chain((!unsaid.is_empty()).then(|| unsaid.join(" "))).collect();
    Some(Ours { row: row.clone(), note: (!parts.is_empty()).then(|| parts.join("; ")) })
}

/// The published average of the eight modules is their arithmetic mean; a run of this machine has the modules.
fn average(run: &Run, column: &Column) -> Option<Ours> {
    if column.probe != "cpu.flops" || column.params.text("module") != Some("average") {
        return None;
    }
    let published: Vec<Params> = (1..=8).map(|n| Params::new().with("module", n)).collect();
    let modules = published.iter().map(|one| best(run, &column.probe, one).and_then(|row| Some((row, row.estimate?))));
    let modules: Vec<(&Measurement, Estimate)> = modules.collect::<Option<_>>()?;
    let mean = |of: fn(&Estimate) -> f64| modules.iter().map(|(_, e)| of(e)).sum::<f64>() / modules.len() as f64;
    let estimate = Estimate { value: mean(|e| e.value), low: mean(|e| e.low), high: mean(|e| e.high), confidence: modules[0].1.confidence };
    let trusted = modules.iter().all(|(row, _)| row.outcome == Outcome::Measured);
    let outcome = if trusted { Outcome::Measured } else { Outcome::Untrusted };
    let row = Measurement { estimate: Some(estimate), outcome, processes: Vec::new(), ..modules[0].0.clone() };
    Some(Ours { row, note: Some("mean of the eight modules".into()) })
}

/// lmbench's figure is the mean of reading and writing one byte.
fn null_io(run: &Run) -> Option<Ours> {
    let none = Params::new();
    let (read, write) = (best(run, "syscall.read", &none)?, best(run, "syscall.write", &none)?);
    let (a, b) = (read.estimate?, write.estimate?);
    let mid = |a: f64, b: f64| (a + b) / 2.0;
    let estimate = Estimate { value: mid(a.value, b.value), low: mid(a.low, b.low), high: mid(a.high, b.high), confidence: a.confidence };
    let outcome = if write.outcome == Outcome::Measured { read.outcome } else { write.outcome };
    let row = Measurement { estimate: Some(estimate), outcome, processes: Vec::new(), ..read.clone() };
    Some(Ours { row, note: Some("mean of syscall.read and syscall.write".into()) })
}
