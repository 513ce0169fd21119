//! What the launch laboratory derives, figure by figure.

use crate::launch::analysis::{Cell, Launch};
use fingerpost_compare::ratio::CONFIDENCE;
use fingerpost_record::Run;
use fingerpost_record::descriptor::table;

use fingerpost_report::lab::derived::{BYTES, COUNT, Derived, NS, Of, RATIO};

/// Ratios to the first placement, the sums where no row has them, and what the system did meanwhile.
pub fn derived(run: &Run, launch: &Launch) -> Vec<Derived> {
    let summed = run.measurements.iter().any(|m| m.probe == "launch.sum");
    let of = Of(&table::LAUNCH);
    let mut all = Vec::new();
    let ratio =
        |name: &'static str, app: Option<&str>, (placement, cell): (&String, &Option<Cell>)| {
            let ratio = cell.as_ref()?.ratio?;
            let app = app.map(|app| ("app", app.to_owned()));
            let params = app.into_iter().chain([("placement", placement.clone())]);
            let (interval, confidence) = (Some([ratio.low, ratio.high]), Some(CONFIDENCE));
            Some(Derived {
                interval,
                confidence,
                ..of.exact(name, params, RATIO, ratio.value)
            })
        };
    for line in &launch.lines {
        let cells = launch.placements.iter().zip(&line.cells);
        all.extend(cells.filter_map(|cell| ratio("launch.ratio", Some(&line.app), cell)));
    }
    for (placement, cell) in launch.placements.iter().zip(&launch.sum) {
        let sum = cell.iter().filter(|_| !summed);
        all.extend(sum.map(|cell| {
            of.estimated(
                "launch.sum",
                [("placement", placement.clone())],
                NS,
                cell.time,
            )
        }));
        all.extend(ratio("launch.sum_ratio", None, (placement, cell)));
    }
    for paging in &launch.paging {
        for (what, total) in &paging.totals {
            let (what, unit, value) = in_unit(what, *total);
            let params = [
                ("placement", paging.placement.clone()),
                ("what", what.to_owned()),
            ];
            all.push(of.exact("launch.paging", params, unit, value));
        }
    }
    all
}

/// A total in a unit of figures. Its name ends with the unit that it was counted in.
fn in_unit(what: &str, total: f64) -> (&str, &'static str, f64) {
    match what.rsplit_once('.') {
        Some((what, "kib")) => (what, BYTES, total * 1024.0),
        Some((what, "bytes")) => (what, BYTES, total),
        Some((what, "seconds")) => (what, NS, total * 1e9),
        _ => (what, COUNT, total),
    }
}
