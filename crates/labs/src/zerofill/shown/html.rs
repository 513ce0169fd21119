//! The zero-fill laboratory: the four timings apart from what is derived, the shares as a picture, guesses, rankings.

use std::collections::{BTreeMap, BTreeSet};

use crate::zerofill::analysis::Analysis;
use crate::zerofill::analysis::guesses::Verdict;
use crate::zerofill::analysis::rank::Ranking;
use fingerpost_record::text::{clean, counted};
use fingerpost_record::{Estimate, Run, Unit};
use maud::{Markup, html};

use super::words;
use fingerpost_report::html::content::Section;
use fingerpost_report::html::term::term;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};

pub fn section(run: &Run, a: &Analysis) -> Section {
    let body = html! {
        @let curve = curve(run, a);
        @if curve.series.iter().any(|s| s.points.len() > 1) { (curve.draw()) }
        (shares(a)) (article(a)) (costs(a)) (guesses(a)) (prefault(a))
        (ranking("Ways to get memory, every page touched", &a.apis))
        (ranking("Ways to get memory, untouched", &a.apis_untouched))
    };
    Section {
        key: "zerofill-analysis".into(),
        title: "Zero-filling, taken apart".into(),
        body,
    }
}

/// The cost of a region by its number of pages: left alone, and touched.
fn curve(run: &Run, a: &Analysis) -> Chart {
    let of = |probe: &str| -> BTreeMap<i64, Estimate> {
        let ours = run
            .measurements
            .iter()
            .filter(|m| m.probe == probe && m.params.text("api") == Some(&a.api));
        ours.filter_map(|m| Some((m.params.int("pages")?, m.estimate?)))
            .collect()
    };
    let all = [
        ("allocated and freed", of("zerofill.alloc")),
        (
            "allocated, every page touched, and freed",
            of("zerofill.touch"),
        ),
    ];
    let steps: Vec<i64> = all
        .iter()
        .flat_map(|(_, rows)| rows.keys().copied())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let series = |(name, rows): &(&str, BTreeMap<i64, Estimate>)| Series {
        name: (*name).to_owned(),
        points: rows
            .iter()
            .filter_map(|(pages, e)| {
                Some(Point {
                    step: steps.binary_search(pages).ok()?,
                    value: e.value,
                    low: e.low,
                    high: e.high,
                })
            })
            .collect(),
    };
    Chart {
        title: format!("The cost of memory from {} by its pages", clean(&a.api)),
        across: "pages".into(),
        steps: steps.iter().map(i64::to_string).collect(),
        up: "time of a region".into(),
        unit: Unit::Nanoseconds,
        from_zero: true,
        kind: Steps::Numbers,
        series: all.iter().map(series).collect(),
    }
}

fn article(a: &Analysis) -> Markup {
    html! {
        @if let Some(given) = &a.given {
            h3 { (words::given_title(a)) }
            (figures(words::given_fields(given).map(|(name, e)| (format!("{name}{}", in_formulas(name)), e))))
            h3 { "Derived: the article's arithmetic" }
            @if let Some(costs) = &a.derived {
                table { tbody { @for ((name, value), formula) in words::derived_fields(a, costs) {
                    tr { th scope="row" { (name) } td class="number" { (value) } td { (formula) } }
                } } }
            }
            @if let Some(sentence) = words::call(a) { p { (sentence) } }
            @if let Some(why) = &a.underivable { p class="doubts" { (why) } }
        }
    }
}

fn figures(list: impl IntoIterator<Item = (String, Estimate)>) -> Markup {
    html! { table { tbody { @for (name, e) in list {
        tr { th scope="row" { (name) } td class="number" { (words::time(e)) } }
    } } } }
}

/// What the formulas below call a timing, where that is another name.
fn in_formulas(name: &str) -> String {
    name.strip_suffix(" alloc + fault")
        .map_or(String::new(), |pages| format!(" ({pages} touch)"))
}

fn costs(a: &Analysis) -> Markup {
    html! {
        @if a.fit.is_some() {
            h3 { "Measured: all page counts together" }
            (figures(words::fit_fields(a).into_iter().map(|(name, e)| (name.to_owned(), e))))
            @if let Some(note) = words::fit_note(a) { p class="skipped" { (note) } }
        }
        @if !a.zeroing.is_empty() {
            h3 { "Zeroing one page, by independent routes" }
            div class="scroll" tabindex="0" role="region"
                aria-label="Zeroing, table" { table { tbody { @for r in &a.zeroing {
                tr {
                    th scope="row" { (r.name) }
                    td { (counted(r.pages.unsigned_abs(), "page")) " at a time" }
                    td class="number" { (words::time(r.per_page)) }
                }
            } } } }
        }
        @for g in &a.agreement { p { (words::agreement(g)) } }
    }
}

/// Heights in pixels: a bar, and the distance of two.
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;
/// Where the bars begin and how wide they are, in per cent of the width: on a phone there is room for the words on both
/// sides.
const FROM: f64 = 14.0;
const WIDE: f64 = 44.0;

/// One stacked bar per page count: zeroing, faults, allocation.
fn shares(a: &Analysis) -> Markup {
    let height = STEP * a.shares.len() as f64;
    let of_bar = |share: f64| format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0);
    html! {
        @if !a.shares.is_empty() {
            h3 { "Where the time goes" }
            figure {
                figcaption {
                    "Shares of allocating, touching and freeing, by the number of pages (on the left); behind each bar \
                     how much of the whole time is zero-filling."
                }
                (legend())
                svg class="chart" width="100%" height=(height) role="img" xmlns="http://www.w3.org/2000/svg" {
                    title { "Share of zero-filling per page count" }
                    desc {
                        @for s in &a.shares {
                            (s.pages)
                            " pages: "
                            (format!("{:.0} % zero-filling, {:.0} % faults. ", s.zero * 100.0, s.fault * 100.0))
                        }
                    }
                    @for (i, s) in a.shares.iter().enumerate() {
                        @let y = STEP * i as f64;
                        text x="0" y=(y + 14.0) { (s.pages) }
                        svg class="bar" x=(format!("{FROM}%")) y=(y) width=(format!("{WIDE}%")) height=(BAR) {
                            rect width="100%" height=(BAR) class="z-rest" {}
                            rect width=(of_bar(s.zero)) height=(BAR) class="z-zero" {}
                            rect x=(of_bar(s.zero)) width=(of_bar(s.fault)) height=(BAR) class="z-fault" {}
                        }
                        text x=(format!("{}%", FROM + WIDE)) dx="6" y=(y + 14.0) {
                            (format!("{:.0} %", s.zero * 100.0))
                            " of "
                            (Unit::Nanoseconds.format(s.total))
                        }
                    }
                }
            }
        }
    }
}

/// The colours of shares of the time, the same wherever they are drawn.
pub fn legend() -> Markup {
    let parts = [
        ("z-zero", "zero-filling"),
        ("z-fault", "the rest of the fault"),
        ("z-rest", "allocating and freeing"),
    ];
    html! {
        ul class="legend" { @for (class, name) in parts {
            li {
                svg class="key" width="14" height="14" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
                    rect class=(class) width="14" height="14" {}
                }
                (name)
            }
        } }
    }
}

fn guesses(a: &Analysis) -> Markup {
    html! {
        @if !a.guesses.is_empty() {
            h3 { "The article's guesses on this machine" }
            div class="scroll" tabindex="0" role="region" aria-label="Guesses, table" { table class="stacked" {
                thead { tr { @for title in ["It says", "Measured here", "Guess", "Figure", "Verdict"] {
                    th scope="col" { (term(title)) }
                } } }
                tbody { @for g in &a.guesses {
                    tr class=(if g.verdict == Verdict::Holds { "measured" } else { "untrusted" }) {
                        th scope="row" { (g.says) }
                        td class="wide" data-of="measured here" { (g.quantity) }
                        td data-of="guess" { (words::guessed(g)) }
                        td data-of="figure" { (words::measured(g)) }
                        td data-of="verdict" { (words::verdict(g)) }
                    }
                } }
            } }
        }
    }
}

fn prefault(a: &Analysis) -> Markup {
    html! {
        @if !a.prefault.is_empty() {
            h3 { "Faulting in ahead, against plain touching" }
            table {
                tbody {
                    @for (range, who) in words::leads(&a.prefault) { tr { th scope="row" { (range) } td { (who) } } }
                }
            }
            ul { @for c in &a.crossovers { li { (words::crossover(c)) } } }
        }
    }
}

fn ranking(title: &str, list: &[Ranking]) -> Markup {
    html! {
        @if !list.is_empty() {
            h3 { (title) }
            div class="scroll" tabindex="0" role="region" aria-label=(title) { table { tbody { @for r in list {
                tr {
                    th scope="row" { (r.pages) @if r.pages == 1 { " page" } @else { " pages" } }
                    td { (words::places(r).replace(" ×", "\u{a0}×")) }
                }
            } } } }
        }
    }
}
