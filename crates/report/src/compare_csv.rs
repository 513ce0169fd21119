//! A comparison as comma-separated values: one line per row, values unrounded in the record's units.

use fingerpost_compare::comparison::{Comparison, NotCompared, Row};

use crate::compare_words::{in_order, text};
use crate::csv::{line, word};

const HEADER: &str = "probe,params,unit,better,base,base_low,base_high,new,new_low,new_high,ratio,ratio_low,ratio_high,verdict,note";

/// The whole comparison; rows that were not compared have no ratio and the reason as note.
pub fn render(c: &Comparison) -> String {
    let mut out = line(HEADER.split(',').map(str::to_owned));
    in_order(c)
        .into_iter()
        .for_each(|row| out.push_str(&line(fields(row))));
    c.not_compared
        .iter()
        .for_each(|row| out.push_str(&line(other_fields(row))));
    out
}

fn fields(row: &Row) -> Vec<String> {
    let better = if row.better == fingerpost_record::Better::Lower {
        "lower"
    } else {
        "higher"
    };
    let mut fields = vec![
        word(&text(&row.probe)),
        params(&row.params),
        row.unit.as_str().into(),
        better.into(),
    ];
    for e in [&row.base, &row.new] {
        fields.extend([e.value, e.low, e.high].map(|v| v.to_string()));
    }
    fields.extend(row.ratio.map_or([const { String::new() }; 3], |r| {
        [r.value, r.low, r.high].map(|v| v.to_string())
    }));
    fields.push(row.verdict.to_string());
    fields.push(word(&text(row.note.as_deref().unwrap_or_default())));
    fields
}

fn other_fields(row: &NotCompared) -> Vec<String> {
    let figure = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    let mut fields = vec![
        word(&text(&row.probe)),
        params(&row.params),
        row.unit.as_str().into(),
        String::new(),
    ];
    fields.extend([
        figure(row.base),
        String::new(),
        String::new(),
        figure(row.new),
    ]);
    fields.extend([const { String::new() }; 6]);
    fields.push(word(&text(&row.why)));
    fields
}

fn params(params: &fingerpost_record::Params) -> String {
    word(&text(
        &params
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>()
            .join(";"),
    ))
}
