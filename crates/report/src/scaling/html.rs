//! Throughput over the number of clients: the curves, and the articles' table against one client.

use std::collections::BTreeMap;

use fingerpost_compare::comparison::Curve;
use fingerpost_compare::scaling::Scaling;
use fingerpost_record::{Better, Estimate, Measurement, Params, Unit, Who};
use maud::{Markup, html};

use crate::figure::Figure;
use crate::html::content::Section;
use crate::html::parts;
use crate::lab::{LabView, Labs};
use crate::svg::lines::{Chart, Point, Series, Steps};
use crate::words::clean;

/// The most curves of one picture.
const MOST: usize = 6;

/// The points of one curve, by number of clients.
type Points = BTreeMap<u64, Estimate>;

/// The words of a section.
struct Words {
    /// The title.
    title: &'static str,
    /// What is counted in a second.
    up: &'static str,
    /// What the column of intervals is called.
    interval: &'static str,
}

/// A section for each lab whose server was measured with several numbers of clients. `interval` is what their column
/// is called.
pub fn sections(rows: &[Measurement], labs: Labs, interval: &'static str) -> Vec<Section> {
    let of = |lab: &LabView| {
        let server = lab.server?;
        section(
            rows,
            lab.name,
            &Words {
                title: server.curves,
                up: server.counted,
                interval,
            },
        )
    };
    labs.iter().filter_map(of).collect()
}

fn section(rows: &[Measurement], lab: &str, words: &Words) -> Option<Section> {
    let probe = format!("{lab}.throughput");
    let rows: Vec<&Measurement> = rows
        .iter()
        .filter(|m| m.probe == probe && m.better == Better::Higher)
        .collect();
    let (_, who) = rows.iter().find_map(|m| m.params.asking())?;
    let curves = families(&rows);
    (!curves.is_empty()).then(|| Section {
        key: format!("{lab}-scaling").into(),
        title: words.title.to_owned(),
        body: body(&curves, who, words),
    })
}

/// The rows that differ in the number of clients only, for every set of other parameters that has two of them.
fn families(rows: &[&Measurement]) -> Vec<(String, Points)> {
    let mut families: BTreeMap<Params, Points> = BTreeMap::new();
    for m in rows {
        let (Some((n, _)), Some(estimate)) = (m.params.asking(), m.estimate) else {
            continue;
        };
        families
            .entry(m.params.whoever_asks())
            .or_default()
            .insert(n, estimate);
    }
    let name = |params: &Params| {
        if params.is_empty() {
            "throughput".to_owned()
        } else {
            clean(&params.to_string())
        }
    };
    families
        .into_iter()
        .filter(|(_, points)| points.len() > 1)
        .map(|(params, points)| (name(&params), points))
        .collect()
}

fn body(curves: &[(String, Points)], who: Who, words: &Words) -> Markup {
    let steps: Vec<u64> = curves
        .iter()
        .flat_map(|c| c.1.keys().copied())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let series = |(name, points): &(String, Points)| Series {
        name: name.clone(),
        points: points
            .iter()
            .filter_map(|(n, e)| {
                Some(Point {
                    step: steps.binary_search(n).ok()?,
                    value: e.value,
                    low: e.low,
                    high: e.high,
                })
            })
            .collect(),
    };
    html! { div class="pair" {
        div { @for part in curves.chunks(MOST) {
            (Chart {
                title: words.title.to_owned(),
                across: who.many.to_owned(),
                steps: steps.iter().map(u64::to_string).collect(),
                up: words.up.to_owned(),
                unit: Unit::PerSecond,
                from_zero: true,
                kind: Steps::Numbers,
                series: part.iter().map(series).collect(),
            }.draw())
        } }
        div { @for (name, points) in curves { (table(words, name, points, who)) } }
    } }
}

/// The articles' table: throughput, and in per cent of the first line.
fn table(words: &Words, name: &str, points: &Points, who: Who) -> Markup {
    let plain: Vec<(u64, f64)> = points.iter().map(|(n, e)| (*n, e.value)).collect();
    let scaling = Scaling::of(&plain);
    let row = |(n, e): (&u64, &Estimate)| {
        let f = Figure::new(*e, Unit::PerSecond);
        let row = scaling
            .as_ref()
            .and_then(|s| s.rows.iter().find(|r| r.clients == *n));
        let percent = row.map_or_else(String::new, |row| format!("{:.0} %", row.scaling));
        [
            n.to_string(),
            format!("{} {}", f.value(), f.symbol()),
            f.interval(),
            percent,
        ]
    };
    html! {
        h3 { (name) }
        @if let Some(s) = &scaling { p class="verdict" { "It " (s.sentence(who.one)) "." } }
        (parts::table(
            &format!("{}, {name}, table", words.title),
            "narrow",
            [(who.many, "number"), ("throughput", "number"), (words.interval, ""), ("scaling", "number")],
            points.iter().map(row),
        ))
    }
}

/// Two sides of a comparison in one picture, with both scalings.
pub fn curve(curve: &Curve, base: &str, new: &str) -> Markup {
    let side = |name: &str, value: fn(&(i64, f64, f64)) -> f64| Series {
        name: name.to_owned(),
        points: curve
            .points
            .iter()
            .map(value)
            .enumerate()
            .map(|(step, v)| Point {
                step,
                value: v,
                low: v,
                high: v,
            })
            .collect(),
    };
    let percent = |v: f64, one: Option<f64>| {
        one.filter(|o| *o > 0.0)
            .map_or_else(String::new, |o| format!("{:.0} %", v / o * 100.0))
    };
    let first = curve.points.first().copied();
    let (one_base, one_new) = (first.map(|p| p.1), first.map(|p| p.2));
    let row = |(n, b, v): &(i64, f64, f64)| {
        let [base, new] = [b, v].map(|v| Unit::PerSecond.format(*v));
        [
            n.to_string(),
            base,
            percent(*b, one_base),
            new,
            percent(*v, one_new),
        ]
    };
    // One name on both sides would not tell them apart.
    let [base_name, new_name] = if base == new {
        ["The base side", "The new side"]
    } else {
        [base, new]
    };
    let fallen = [
        (base_name, curve.base_collapses_from),
        (new_name, curve.new_collapses_from),
    ];
    html! { div class="pair" {
        div { (Chart {
            title: crate::compare_words::curve_title(curve),
            across: "clients".into(),
            steps: curve.points.iter().map(|p| p.0.to_string()).collect(),
            up: "throughput a second".into(),
            unit: Unit::PerSecond,
            from_zero: true,
            kind: Steps::Numbers,
            series: vec![side(&format!("base: {base}"), |p| p.1), side(&format!("new: {new}"), |p| p.2)],
        }.draw()) }
        div { @for (name, from) in fallen {
            @if let Some(n) = from { p class="verdict" { strong { (name) } " collapses from " (n) " clients on." } }
        }
        (parts::table(
            &format!("{}, table", crate::compare_words::curve_title(curve)),
            "narrow",
            ["clients", "base", "scaling", "new", "scaling"].map(|title| (title, "number")),
            curve.points.iter().map(row),
        )) }
    } }
}
