//! The probes: a table and interval charts per group.

use fingerpost_record::{Better, Outcome, Unit};
use maud::{Markup, html};

use super::Section;
use crate::figure::Figure;
use crate::svg::{self, Mark};
use crate::view::{Group, Row, View, outcome_name};

/// How many rows there are of each outcome.
pub fn summary(view: &View) -> Markup {
    html! {
        p { (crate::table::summary(view)) "." }
        p class="skipped" {
            "A value is the run's estimate with its interval. p50, p90 and p99 are percentiles of all samples, disturbed ones included, in the value's unit. "
            "In the charts, dot and line are the value and its interval, and the faint band reaches from p50 to p99."
        }
    }
}

/// One section per group.
pub fn sections(view: &View) -> Vec<Section> {
    view.groups.iter().map(|g| Section { key: g.key, title: g.title.into(), body: body(g) }).collect()
}

fn body(group: &Group) -> Markup {
    html! {
        @if group.shown().next().is_some() { (table(group)) }
        @for s in group.skipped() { p class="skipped" { "Skipped: " (s.names.join(", ")) " – " (s.reason) "." } }
        @for chart in charts(group) { (chart) }
    }
}

fn table(group: &Group) -> Markup {
    // Columns that this group has nothing for would cost a phone its width.
    let params = group.shown().any(|r| !r.params.is_empty());
    let lmbench = group.shown().any(|r| r.lmbench.is_some());
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ (group.title) ", table" } {
            table {
                thead { tr {
                    th scope="col" { "Probe" }
                    @if params { th scope="col" { "Parameters" } }
                    th scope="col" class="number" { "Value" }
                    th scope="col" { "Interval" }
                    @for title in ["p50", "p90", "p99"] { th scope="col" class="number" { (title) } }
                    @if lmbench { th scope="col" { "lmbench" } }
                } }
                tbody { @for row in group.shown() { (line(row, params, lmbench)) } }
            }
        }
    }
}

fn line(row: &Row, params: bool, lmbench: bool) -> Markup {
    html! {
        tr class=(outcome_name(row.outcome)) {
            td class="name" {
                (row.probe)
                @if let Some(reason) = &row.reason { span class="reason" { (outcome_name(row.outcome)) ": " (reason) } }
            }
            @if params { td { (row.params) } }
            (figures(row))
            @if lmbench { td class="name" { (row.lmbench.as_deref().unwrap_or_default()) } }
        }
    }
}

fn figures(row: &Row) -> Markup {
    html! {
        @if let Some(f) = &row.figure {
            td class="number" { (f.value()) " " (f.symbol()) }
            td class="interval" { (f.interval()) }
        } @else {
            td class="number" { "–" } td {}
        }
        @match (&row.figure, &row.percentiles) {
            (Some(f), Some(p)) => { @for v in [p.p50, p.p90, p.p99] { td class="number" { (f.number(v)) } } }
            _ => { td {} td {} td {} }
        }
    }
}

/// One chart per unit and direction: what shares an axis must be comparable by eye.
fn charts(group: &Group) -> Vec<Markup> {
    let mut kinds: Vec<(Unit, Better)> = Vec::new();
    for row in group.shown().filter(|r| r.figure.is_some()) {
        if !kinds.contains(&(row.unit, row.better)) {
            kinds.push((row.unit, row.better));
        }
    }
    kinds.into_iter().map(|(unit, better)| chart(group, unit, better)).collect()
}

fn chart(group: &Group, unit: Unit, better: Better) -> Markup {
    let marks: Vec<Mark> = group.shown().filter(|r| r.unit == unit && r.better == better).filter_map(mark).collect();
    html! {
            figure {
    figcaption { (group.title) " (" (unit.as_str()) ")" }
                (svg::interval_chart(group.title, unit, better == Better::Lower, &marks))
            }
        }
}

fn mark(row: &Row) -> Option<Mark> {
    let f = row.figure?;
    let e = f.estimate;
    Some(Mark {
        label: row.name(),
        text: chart_text(&f),
        value: e.value,
        low: e.low,
        high: e.high,
        spread: row.percentiles.map(|p| (p.p50, p.p99)),
        doubtful: row.outcome == Outcome::Untrusted,
    })
}

/// The value, and half the interval as a share of it: on a common axis most intervals are narrower than their dot.
fn chart_text(f: &Figure) -> String {
    let share = f.estimate.relative_half_width() * 100.0;
    let value = format!("{} {}", f.value(), f.symbol()).trim_end().to_owned();
    if share > 0.0 && share < 1000.0 { format!("{value} ± {share:.1} %") } else { value }
}
