//! One probe over the runs, with its intervals.

use std::collections::BTreeMap;
use std::sync::Arc;

use fingerpost_record::Unit;
use fingerpost_record::archive::Head;
use fingerpost_report::figure::Figure;
use fingerpost_report::html::parts::{heads, scrolling};
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Answer, TO_THE_SECOND, body, items, moment, moments};
use crate::index::{Item, RowFigure};
use crate::site::Site;

/// The most runs that are looked at, the newest first: each must be read once.
const MOST: usize = 400;
/// Runs, the newest, by which it is decided what is shown first.
const LATEST: usize = 30;
/// Hosts that get a line of their own; the picture has as many shapes.
const HOSTS: usize = 6;

/// Which row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    probe: String,
    params: String,
}

/// A run's figure of the row.
struct Figured {
    head: Head,
    row: RowFigure,
}

/// The page.
pub fn page(site: &Site, wanted: &Wanted) -> Answer {
    let items = items(site)?;
    let readable: Vec<&Arc<Item>> = items.iter().filter(|i| i.head.is_ok()).take(MOST).collect();
    // The newest run's rows, to choose from.
    let offered = readable.first().map(|i| i.figures()).unwrap_or_default();
    let wanted = &if wanted.probe.is_empty() {
        usual(&readable)
    } else {
        wanted.clone()
    };
    let found: Vec<Figured> = if wanted.probe.is_empty() {
        vec![]
    } else {
        readable
            .iter()
            .rev()
            .filter_map(|i| figured(i, wanted))
            .collect()
    };
    let main = html! {
        h1 { "History" }
        (form(wanted, &offered))
        @if found.is_empty() {
            @if wanted.probe.is_empty() {
                p { "No run has a figure yet. Measure one, or import it; then its rows are drawn here over all runs." }
            }
            @else { p class="error" role="alert" { (none(wanted, &offered)) } }
        } @else { (shown(site, wanted, &found)) }
        @if items.len() > MOST { p class="note" { "The newest " (MOST) " runs were looked at." } }
    };
    Ok(body("History", "/history", main))
}

/// What is shown where nothing was asked for: of the newest run's rows the first that most of the latest runs have,
/// too.
fn usual(readable: &[&Arc<Item>]) -> Wanted {
    let latest: Vec<_> = readable
        .iter()
        .take(LATEST)
        .map(|item| item.figures())
        .collect();
    let Some(rows) = latest.first() else {
        return Wanted::default();
    };
    let mut had: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in latest.iter().flat_map(|figures| figures.iter()) {
        *had.entry((&row.probe, &row.params)).or_default() += 1;
    }
    let times = |r: &RowFigure| had.get(&(r.probe.as_str(), r.params.as_str())).copied();
    let most = rows.iter().filter_map(times).max();
    let first = rows.iter().find(|r| times(r) == most);
    first.map_or_else(Wanted::default, |r| Wanted {
        probe: r.probe.clone(),
        params: r.params.clone(),
    })
}

fn figured(item: &Arc<Item>, wanted: &Wanted) -> Option<Figured> {
    let figures = item.figures();
    let row = figures
        .iter()
        .find(|r| r.probe == wanted.probe && r.params == wanted.params)?;
    Some(Figured {
        head: item.head.as_ref().ok()?.clone(),
        row: row.clone(),
    })
}

fn form(wanted: &Wanted, offered: &[RowFigure]) -> Markup {
    let probes: std::collections::BTreeSet<&str> =
        offered.iter().map(|r| r.probe.as_str()).collect();
    let params: std::collections::BTreeSet<&str> = offered
        .iter()
        .filter(|r| r.probe == wanted.probe && !r.params.is_empty())
        .map(|r| r.params.as_str())
        .collect();
    html! {
        form class="filter card" method="get" {
            p {
                label for="probe" { "Probe" }
                input id="probe" name="probe" value=(wanted.probe) list="probes" required autocomplete="off";
            }
            p {
                label for="params" { "Parameters" }
                input id="params" name="params" value=(wanted.params) list="params-known" autocomplete="off";
            }
            datalist id="probes" { @for p in probes { option value=(p) {} } }
            datalist id="params-known" { @for p in params { option value=(p) {} } }
            p class="buttons" { button { "Show" } }
        }
    }
}

/// What is said where no run has the row: with which parameters the newest run has the probe, where it has it with
/// others.
fn none(wanted: &Wanted, offered: &[RowFigure]) -> String {
    let with: Vec<&str> = offered
        .iter()
        .filter(|r| r.probe == wanted.probe)
        .map(|r| r.params.as_str())
        .filter(|p| !p.is_empty())
        .collect();
    let named = [wanted.probe.as_str(), wanted.params.as_str()].join(" ");
    match with.as_slice() {
        [] => format!("No run has a figure of {}.", named.trim()),
        [first, ..] => format!(
            "No run has a figure of {}: the latest has it with other parameters, such as “{first}”.",
            named.trim()
        ),
    }
}

fn shown(site: &Site, wanted: &Wanted, found: &[Figured]) -> Markup {
    let name = format!("{} {}", wanted.probe, wanted.params)
        .trim()
        .to_owned();
    let versions: std::collections::BTreeSet<u32> = found.iter().map(|f| f.row.version).collect();
    html! {
        section class="card" aria-label=(name) {
            (chart(&name, found))
            @if versions.len() > 1 {
                p class="doubts" {
                    "The probe’s definition changed between these runs; figures of different versions are not to be \
                     compared."
                }
            }
            (scrolling("Figures by run, table", html! { table {
                thead { tr { (heads(&[
                    ("Run", ""), ("Host", ""), ("Kernel", "extra"), ("Value", "number"), ("95 % interval", ""),
                ])) } }
                @let started = moments(found.iter().map(|f| f.head.started.as_str()));
                tbody { @for (f, started) in found.iter().zip(started).rev() {
                    @let figure = Figure::new(f.row.estimate, f.row.unit);
                    tr class=(if f.row.trusted { "measured" } else { "untrusted" }) {
                        th scope="row" {
                            a href={ (site.base) "/run/" (f.head.id) } { (started) }
                            @if !f.row.trusted { " " span class="tag doubt" { "untrusted" } }
                        }
                        td { (f.head.hostname) }
                        td class="extra" { (f.head.kernel) }
                        td class="number value" { (figure.value()) " " (figure.symbol()) }
                        td class="interval" { (figure.interval()) }
                    }
                } }
            } }))
        }
    }
}

fn chart(name: &str, found: &[Figured]) -> Markup {
    let unit = found.first().map_or(Unit::Count, |f| f.row.unit);
    let mut hosts: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for (step, f) in found.iter().enumerate().filter(|(_, f)| f.row.unit == unit) {
        let e = f.row.estimate;
        hosts.entry(&f.head.hostname).or_default().push(Point {
            step,
            value: e.value,
            low: e.low,
            high: e.high,
        });
    }
    let chart = Chart {
        title: format!("{name} over {} runs", found.len()),
        across: "runs, by when they started (UTC)".into(),
        steps: found
            .iter()
            .map(|f| moment(&f.head.started, TO_THE_SECOND))
            .collect(),
        up: "value with its 95 % interval".into(),
        unit,
        from_zero: false,
        kind: Steps::Moments,
        series: hosts
            .into_iter()
            .take(HOSTS)
            .map(|(host, points)| Series {
                name: host.to_owned(),
                points,
            })
            .collect(),
    };
    chart.draw()
}
