//! Throughput by the number of those who ask, of whichever lab's server.

pub mod html;
pub mod words;

use fingerpost_compare::scaling::{Shape, Table, tables};
use fingerpost_record::Run;

use crate::grid::apart;
use crate::lab::derived::{COUNT, Derived, Of, RATIO, table_of, told};
use crate::lab::{Analysis, Labs, Shown};
use crate::view::interval_title;

/// The analysis: of every row of throughput, whichever lab's it is.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: true,
    rank: 0,
    of,
};

/// More answers of one kind than these are none.
const MOST: usize = 3;

fn of(run: &Run, labs: Labs) -> Option<Shown> {
    let tables = tables(run);
    let sections = html::sections(&run.measurements, labs, interval_title(run));
    (!tables.is_empty() || !sections.is_empty()).then(|| Shown {
        answers: tables
            .iter()
            .take(MOST)
            .map(|table| words::answer(table, tables.len() > 1))
            .collect(),
        alone: None,
        otherwise: None,
        grids: apart(tables.iter().map(words::grid)),
        markdown: Some(words::markdown(&tables)),
        derived: derived(run, &tables),
        sections,
    })
}

/// Each throughput as a share of that with the fewest who ask, and where the curve turns. They stand in the table of
/// the rows.
fn derived(run: &Run, tables: &[Table]) -> Vec<Derived> {
    let mut all = Vec::new();
    for found in tables {
        let workload = &found.workload;
        let table = table_of(run, &format!("{workload}.throughput"));
        let of = Of(&table);
        for row in &found.scaling.rows {
            let params = told(&found.params, [(found.who.many, &row.clients)]);
            all.push(of.exact(
                format!("{workload}.scaling"),
                params,
                RATIO,
                row.scaling / 100.0,
            ));
        }
        let turns = match found.scaling.shape {
            Shape::Scales => None,
            Shape::Saturates { at } => Some(("saturates_at", at)),
            Shape::Declines { from } => Some(("declines_from", from)),
            Shape::Collapses { from } => Some(("collapses_from", from)),
        };
        let mark = |(what, at): (&str, u64)| {
            of.exact(
                format!("{workload}.{what}"),
                told(&found.params, []),
                COUNT,
                at as f64,
            )
        };
        all.extend(
            [("peaks_at", found.scaling.peak().clients)]
                .into_iter()
                .chain(turns)
                .map(mark),
        );
    }
    all
}
