//! The probes: per group a table with an interval bar in each row, and the raw samples below.

use std::borrow::Cow;

use fingerpost_record::descriptor::table::{self, Table};
use fingerpost_record::params::named;
use fingerpost_record::{Better, Measurement, Outcome, Param, Run, Unit};
use maud::{Markup, html};

use super::content::{Around, Section};
use super::parts::{graphic_head, heads, scrolling};
use super::samples::Samples;
use super::term::{breakable, defined, words_whole};
use crate::figure::Figure;
use crate::key_figures;
use crate::svg::{Axis, cells};
use crate::view::{Group, Row, Shared, View, in_order, interval_title, outcome_name};
use crate::words::clean;

/// A few figures in large letters.
pub fn tiles(view: &View) -> Markup {
    let found = key_figures::of(&view.groups, &view.labs);
    html! {
        @if found.len() > 1 {
            ul class="tiles" aria-label="Key figures" {
                @for (name, row) in found.iter().take(MOST_TILES) {
                    @if let Some(f) = &row.figure {
                        li {
                            span class="tile-name" { (name) }
                            span class="tile-value" { (f.value()) " " small { (f.symbol()) } }
                            span class="tile-note" { (f.interval()) }
                            span class="tile-note" { (words_whole(&row.name())) }
                        }
                    }
                }
            }
        }
    }
}

/// The most figures in large letters.
const MOST_TILES: usize = 6;

/// How many rows there are of each outcome, and how to read them.
pub fn summary(view: &View) -> Markup {
    html! {
        p class="count" { (crate::run::summary(view)) "." }
        details class="how" {
            summary { "How to read the tables" }
            @if view.published() { p {
                "A value is the figure as it was published; its interval is what the figure was rounded from, and \
                 where the source repeated a measurement, "
                "the 95 % interval of the median. In the bars, dot and line are the value and its interval."
            } } @else { p {
                "A value is the run’s estimate with its 95 % interval. p50, p90 and p99 are percentiles of all \
                 samples, disturbed ones included, in the value’s unit. "
                "In the bars, dot and line are the value and its interval, and the faint band reaches from p50 to p99."
            } }
        }
    }
}

/// One section per group.
pub fn sections(view: &View, run: &Run, around: Around) -> Vec<Section> {
    let samples = Samples::of(run);
    let reasons = view.shared_reasons();
    view.groups
        .iter()
        .map(|g| Section {
            key: anchor(&g.table),
            title: g.table.title.to_string(),
            body: body(g, interval_title(run), &samples, &reasons, around),
        })
        .collect()
}

/// The anchor of a table. What a run names as it likes does not get that of a section of the report.
fn anchor(table: &Table) -> Cow<'static, str> {
    let known = table.place() < table::ORDER.len() || table.key == table::OTHER.key;
    if known {
        table.key.clone()
    } else {
        format!("table-{}", table.key).into()
    }
}

fn body(
    group: &Group,
    interval: &'static str,
    samples: &Samples,
    reasons: &[Shared],
    around: Around,
) -> Markup {
    let shared = group.shared_params();
    html! {
        @if !shared.is_empty() { p class="params" { "All rows: " (shared.join(" ")) } }
        @for reason in reasons.iter().filter(|reason| group.shown().any(|row| reason.has(row))) {
            p class="doubts" { (reason.sentence()) }
        }
        @for (unit, better) in kinds(group) {
            (table(group, unit, better, &Above { interval, shared: &shared, reasons }, around))
        }
        @let none: Vec<&Row> = group.shown().filter(|r| r.figure.is_none()).collect();
        @if !none.is_empty() {
            ul class="without" { @for row in none {
                li class=(outcome_name(row.outcome)) {
                    strong { (row.name()) } " " (outcome_name(row.outcome))
                    @if let Some(reason) = &row.reason { ": " (reason) }
                }
            } }
        }
        (samples.details(group))
        @for s in group.skipped() { p class="skipped" { "Skipped: " (s.names.join(", ")) " – " (s.reason) "." } }
    }
}

/// What shares an axis must be comparable by eye: one table per unit and direction.
fn kinds(group: &Group) -> Vec<(Unit, Better)> {
    let mut kinds: Vec<(Unit, Better)> = Vec::new();
    for row in group.shown().filter(|r| r.figure.is_some()) {
        if !kinds.contains(&(row.unit, row.better)) {
            kinds.push((row.unit, row.better));
        }
    }
    kinds
}

/// Rows with their figures, in the order of a run's page, whatever was measured last.
pub fn so_far(rows: &[Measurement]) -> Markup {
    let rows = in_order(rows);
    let shared = |key: &str, value: &Param| {
        rows.len() > 1 && rows.iter().all(|row| row.params.get(key) == Some(value))
    };
    let words = |row: &Measurement, common: bool| {
        let own = row
            .params
            .iter()
            .filter(|(key, value)| shared(key, value) == common);
        clean(
            &own.map(|(key, value)| named(key, value))
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    let common = rows
        .first()
        .map(|row| words(row, true))
        .filter(|words| !words.is_empty());
    html! { @if let Some(common) = common { p class="params" { "All rows: " (common) } } (scrolling("Rows measured so \
        far", html! {
        table class="narrow" {
            thead { tr {
                (heads(&[("Probe", ""), ("Value", "number"), ("95 % interval", ""), ("Parameters", "")]))
            } }
            tbody { @for row in &rows { @if let Some(estimate) = row.estimate {
                @let f = Figure::new(estimate, row.unit);
                tr {
                    th scope="row" class="name" { (clean(&row.probe)) }
                    td class="number value" { (f.value()) " " (f.symbol()) }
                    td class="interval" { (f.interval()) }
                    td class="params" { (words(row, false)) }
                }
            } } }
        }
    })) }
}

/// What stands above a table, for all of its rows.
struct Above<'a> {
    /// What the column of intervals is called.
    interval: &'static str,
    /// Parameters.
    shared: &'a [String],
    /// Reasons.
    reasons: &'a [Shared],
}

/// The columns that a table needs: empty ones would cost a phone its width.
struct Columns<'a> {
    above: &'a Above<'a>,
    params: bool,
    percentiles: bool,
    lmbench: bool,
}

fn table(group: &Group, unit: Unit, better: Better, above: &Above<'_>, around: Around) -> Markup {
    let rows: Vec<&Row> = group
        .shown()
        .filter(|r| r.figure.is_some() && r.unit == unit && r.better == better)
        .collect();
    let columns = Columns {
        above,
        params: rows
            .iter()
            .any(|r| !r.params_without(above.shared).is_empty()),
        percentiles: rows.iter().any(|r| r.percentiles.is_some()),
        lmbench: rows.iter().any(|r| r.lmbench.is_some()),
    };
    let axis = Axis::over(rows.iter().flat_map(|r| ends(r))).in_unit(unit);
    let direction = if better == Better::Lower {
        "less is better"
    } else {
        "more is better"
    };
    let scale = if axis.is_log() {
        "logarithmic"
    } else {
        "linear"
    };
    scrolling(
        &format!("{}, {}", group.table.title, unit.as_str()),
        html! {
            table class="probes" {
                thead { tr {
                    (heads(&[("Probe", "of-name")]))
                    @if columns.params { (heads(&[("Parameters", "of-name")])) }
                    (heads(&[("Value", "number"), (above.interval, "")]))
                    (graphic_head(&format!("{scale}, {direction}"), cells::interval_head(&axis, unit)))
                    @if columns.percentiles { (heads(&["p50", "p90", "p99"].map(|title| (title, "number extra")))) }
                    @if columns.lmbench { (heads(&[("lmbench", "extra")])) }
                } }
                tbody {
                    @for (i, row) in rows.iter().enumerate() {
                        (line(row, i > 0 && rows[i - 1].probe == row.probe, &axis, &columns, around))
                    }
                }
            }
        },
    )
}

fn ends(row: &Row) -> Vec<f64> {
    let mut all: Vec<f64> = row
        .figure
        .iter()
        .flat_map(|f| [f.estimate.low, f.estimate.value, f.estimate.high])
        .collect();
    all.extend(row.percentiles.iter().flat_map(|p| [p.p50, p.p99]));
    all
}

/// A row. The keyboard comes to the meaning of a name once, not in each of its rows.
fn line(row: &Row, again: bool, axis: &Axis, columns: &Columns<'_>, around: Around) -> Markup {
    let Some(f) = row.figure else { return html! {} };
    let e = f.estimate;
    let meaning = around.define.and_then(|define| define(&row.probe));
    html! {
        tr class=(outcome_name(row.outcome)) {
            th scope="row" class="name" {
                @match around.link {
                    Some(link) => a class=[meaning.is_some().then_some("term")] href=(link(row)) title=[&meaning] {
                        (breakable(&row.probe))
                    },
                    None => (defined(&row.probe, around.define, !again)),
                }
                @let told = columns.above.reasons.iter().any(|told| told.has(row));
                @if let Some(reason) = row.reason.as_ref().filter(|_| !told) {
                    span class="reason" { (outcome_name(row.outcome)) ": " (reason) }
                }
            }
            @if columns.params { td class="params" { (breakable(&row.params_without(columns.above.shared))) } }
            td class="number value" { (f.value()) " " (f.symbol()) }
            td class="interval" { (f.interval()) }
            td class="graphic" {
                @let middle_and_tail = row.percentiles.map(|p| (p.p50, p.p99));
                (cells::interval(axis, e.value, (e.low, e.high), middle_and_tail, row.outcome == Outcome::Untrusted))
            }
            @if columns.percentiles {
                @match &row.percentiles {
                    Some(p) => { @for v in [p.p50, p.p90, p.p99] { td class="number extra" { (f.number(v)) } } }
                    None => { td class="extra" {} td class="extra" {} td class="extra" {} }
                }
            }
            @if columns.lmbench { td class="name extra" { (row.lmbench.as_deref().unwrap_or_default()) } }
        }
    }
}
