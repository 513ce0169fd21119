//! A loaded server's curve, figure by figure.

use fingerpost_compare::scaling::{Shape, Table};
use fingerpost_record::Run;

use crate::lab::derived::{COUNT, Derived, Of, RATIO, table_of, told};

/// Each throughput as a share of that with the fewest who ask, and where the curve turns. They stand in the table of
/// the rows.
pub fn derived(run: &Run, tables: &[Table]) -> Vec<Derived> {
    let mut all = Vec::new();
    for found in tables {
        let workload = &found.workload;
        let table = table_of(run, &format!("{workload}.throughput"));
        let of = Of(&table);
        for row in &found.scaling.rows {
            let params = told(&found.params, [(found.who.many, &row.clients)]);
            all.push(of.exact(format!("{workload}.scaling"), params, RATIO, row.scaling / 100.0));
        }
        let turns = match found.scaling.shape {
            Shape::Scales => None,
            Shape::Saturates { at } => Some(("saturates_at", at)),
            Shape::Declines { from } => Some(("declines_from", from)),
            Shape::Collapses { from } => Some(("collapses_from", from)),
        };
        let mark =
            |(what, at): (&str, u64)| of.exact(format!("{workload}.{what}"), told(&found.params, []), COUNT, at as f64);
        all.extend([("peaks_at", found.scaling.peak().clients)].into_iter().chain(turns).map(mark));
    }
    all
}
