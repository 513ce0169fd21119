//! A comparison as lines: one for each row, values unrounded in the record's units. Rows that were not compared have no
//! ratio, and the reason as note.

use fingerpost_compare::comparison::{Comparison, NotCompared, Row};
use fingerpost_record::{Better, Estimate, Params};

use crate::compare_words::{in_order, text};
use crate::document::records::{Field, Records};

const COLUMNS: [&str; 15] = [
    "probe",
    "params",
    "unit",
    "better",
    "base",
    "base_low",
    "base_high",
    "new",
    "new_low",
    "new_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "note",
];

/// The whole comparison.
pub fn of(c: &Comparison) -> Records {
    let compared = in_order(c).into_iter().map(fields);
    let others = c.not_compared.iter().map(other_fields);
    Records {
        columns: COLUMNS.to_vec(),
        lines: compared.chain(others).collect(),
    }
}

fn fields(row: &Row) -> Vec<Field> {
    let better = match row.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    let interval = |e: &Estimate| [e.value, e.low, e.high].map(Field::number);
    let ratio = row.ratio.map(|r| [r.value, r.low, r.high]);
    let mut fields = vec![
        Field::text(text(&row.probe)),
        params(&row.params),
        Field::text(row.unit.as_str()),
        Field::text(better),
    ];
    fields.extend(interval(&row.base));
    fields.extend(interval(&row.new));
    fields.extend([0, 1, 2].map(|i| Field::maybe(ratio.map(|r| r[i]))));
    fields.push(Field::text(row.verdict.to_string()));
    fields.push(Field::text(text(row.note.as_deref().unwrap_or_default())));
    fields
}

fn other_fields(row: &NotCompared) -> Vec<Field> {
    let none = Field::none;
    let mut fields = vec![
        Field::text(text(&row.probe)),
        params(&row.params),
        Field::text(row.unit.as_str()),
        none(),
    ];
    fields.extend([Field::maybe(row.base), none(), none()]);
    fields.extend([Field::maybe(row.new), none(), none()]);
    fields.extend(std::iter::repeat_n(none(), 4));
    fields.push(Field::text(text(&row.why)));
    fields
}

fn params(params: &Params) -> Field {
    let words: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    Field::text(text(&words.join(";")))
}
