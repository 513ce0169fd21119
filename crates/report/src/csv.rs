//! Comma-separated values as RFC 4180 has them: one line per measurement, values unrounded in the record's units, then
//! one per figure that a laboratory derives.

use fingerpost_record::{Better, Run};

use crate::csv_derived;
use crate::view::{Row, View, outcome_name};

pub use crate::csv_derived::{HEADER, line, word};

/// The whole run: its measurements, and behind them what laboratories derive from them.
pub fn render(run: &Run, view: &View) -> String {
    let mut text = line(HEADER.split(',').map(str::to_owned));
    let host = view.headline.iter().find(|f| f.name == "Host").map_or("", |f| f.text.as_str());
    for group in &view.groups {
        group.rows.iter().for_each(|row| text.push_str(&line(fields(view, host, &group.table.title, row))));
    }
    text + &csv_derived::render(run, view, host)
}

fn fields(view: &View, host: &str, title: &str, row: &Row) -> Vec<String> {
    let words = [&view.id, host, title, &row.probe].map(word);
    let params = row.param_list.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(";");
    let better = if row.better == Better::Lower { "lower" } else { "higher" };
    let mut fields = words.to_vec();
    fields.extend([
        row.version.to_string(),
        word(&params),
        row.unit.as_str().into(),
        better.into(),
        outcome_name(row.outcome).into(),
    ]);
    let estimate = row.figure.map(|f| f.estimate);
    fields.extend(
        estimate
            .map_or([const { String::new() }; 4], |e| [e.value, e.low, e.high, e.confidence].map(|v| v.to_string())),
    );
    fields
        .extend(row.percentiles.map_or([const { String::new() }; 3], |p| [p.p50, p.p90, p.p99].map(|v| v.to_string())));
    fields.extend(row.counts.map(|n| n.to_string()));
    fields.extend(row.counters.map(|c| c.map(|v| v.to_string()).unwrap_or_default()));
    fields.push(word(row.reason.as_deref().unwrap_or_default()));
    fields
}
