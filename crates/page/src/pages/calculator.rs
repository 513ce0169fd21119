//! The zero-fill calculator: four editable fields, and what follows from them.

use fingerpost_labs::zerofill::analysis::solve::{self, Costs, FIELDS, Timings};
use fingerpost_labs::zerofill::shown::{shares::legend, words::without_zeros};
use fingerpost_record::unit::significant;
use fingerpost_report::html::parts::{graphic_head, heads, scrolling};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Body, Wrong, bad, body, measure};
use crate::site::Site;

/// The fields as the form has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Fields {
    alloc_1: String,
    touch_1: String,
    alloc_2: String,
    touch_2: String,
    measured: String,
}

impl Fields {
    /// The texts of the four times.
    fn given(&self) -> [String; 4] {
        let times = [&self.alloc_1, &self.touch_1, &self.alloc_2, &self.touch_2];
        times.map(|text| text.trim().replace(',', "."))
    }
}

/// How to measure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Timing {
    api: String,
    repeat: String,
}

/// Name of the field, label, and what is timed.
const GIVEN: [(&str, &str, &str); 4] = [
    ("alloc_1", "1p alloc", "allocate and free one page"),
    (
        "touch_1",
        "1p alloc + fault",
        "the same with the page touched",
    ),
    ("alloc_2", "2p alloc", "allocate and free two pages"),
    (
        "touch_2",
        "2p alloc + fault",
        "the same with both pages touched",
    ),
];

/// The articles' timings.
const PRESETS: [(&str, [f64; 4]); 3] = [
    (
        "Zerofilling III: 1 GHz, vm_allocate",
        [11.2, 24.0, 11.5, 33.6],
    ),
    ("Zerofilling IV: Cube 450, mmap", [9.7, 41.0, 11.1, 65.9]),
    (
        "Zerofilling IV: Cube 450, vm_allocate",
        [17.6, 51.5, 18.9, 77.3],
    ),
];

/// Numbers of pages whose shares are shown.
const PAGES: [u32; 5] = [1, 2, 4, 16, 256];

/// Begins to take the four timings; gives the number of the measurement.
///
/// # Errors
/// What the reader is told.
pub fn start(site: &Site, wanted: &Timing) -> Result<u64, Wrong> {
    let Some(api) = site.options.apis.iter().find(|api| **api == wanted.api) else {
        return Err(bad("There is no such way to get memory here."));
    };
    let mut words = ["zerofill", "--progress", "json", "--api", api]
        .map(str::to_owned)
        .to_vec();
    let mut what = format!("the four timings of {api}");
    let repeat = !wanted.repeat.is_empty();
    if repeat {
        words.push("--loop".into());
        what.push_str(", again and again: until it is stopped, or the calculator's tab is left");
    }
    site.jobs
        .start(&what, &words, repeat)
        .map_err(measure::refused)
}

/// The fields' texts: those given, else those measured, else the first preset.
fn texts(site: &Site, fields: &Fields) -> [String; 4] {
    let given = fields.given();
    if given.iter().any(|text| !text.is_empty()) {
        return given;
    }
    let measured = site
        .jobs
        .state()
        .filter(|_| !fields.measured.is_empty())
        .map(|s| s.figures);
    measured
        .and_then(|figures| figures.try_into().ok())
        .unwrap_or_else(|| PRESETS[0].1.map(|v| v.to_string()))
}

/// The page.
pub fn page(site: &Site, fields: &Fields) -> Body {
    let texts = texts(site, fields);
    let main = html! {
        h1 { "Zero-fill calculator" }
        p { "Four timings, taken apart into allocation, fault, zero-fill and object costs. "
            a href={ (site.base) "/zerofill" } target="_blank" rel="noopener" {
                "Another window"
            } " is independent of this one." }
        div class="calculator" data-calculator="" {
            div { (given(site, &texts)) (here(site)) }
            div id="solved" { (solved(&texts)) }
        }
    };
    let going = !fields.measured.is_empty()
        && site
            .jobs
            .state()
            .is_some_and(|s| s.phase != crate::jobs::Phase::Ended);
    Body {
        goes_on: going,
        ..body("Zero-fill calculator", "/zerofill", main)
    }
}

/// What follows from the fields, for the script, which shows it in the place of what followed from the fields before.
pub fn part(fields: &Fields) -> Markup {
    solved(&fields.given())
}

/// The times that the fields say; the first field that says none.
fn timings(texts: &[String; 4]) -> Result<Timings, String> {
    let mut times = [0.0; 4];
    for ((time, text), (_, label, _)) in times.iter_mut().zip(texts).zip(GIVEN) {
        *time = text
            .parse()
            .map_err(|_| format!("{label} must be a time above zero"))?;
    }
    Ok(times.into())
}

fn solved(texts: &[String; 4]) -> Markup {
    let timings = timings(texts);
    let misprints = timings.as_ref().map_or([None; 7], solve::misprints);
    let costs = timings.and_then(|timings| solve::solve(&timings).map_err(|e| e.to_string()));
    html! { (derived(&costs, misprints)) (shares(&costs)) }
}

fn given(site: &Site, texts: &[String; 4]) -> Markup {
    html! {
        form class="card given" method="get" action={ (site.base) "/zerofill" } aria-labelledby="given-title" {
            h2 id="given-title" { "Given" }
            @for ((name, label, help), text) in GIVEN.iter().zip(texts) {
                p {
                    label for=(name) { (label) }
                    input id=(name) name=(name) value=(text) type="text" inputmode="decimal" autocomplete="off"
                        aria-describedby={ (name) "-help" };
                    span class="note" id={ (name) "-help" } { (help) }
                }
            }
            p class="note" { "In any one unit of time; what is measured here is in nanoseconds." }
            p class="buttons" { button { "Calculate" } }
            fieldset { legend { "From the articles" }
                @for (name, values) in PRESETS {
                    @let pairs = GIVEN.iter().zip(values).map(|(g, v)| format!("{}={v}", g.0));
                    @let query = pairs.collect::<Vec<_>>().join("&");
                    p {
                        a href={ (site.base) "/zerofill?" (query) }
                            data-preset=(values.map(|v| v.to_string()).join(",")) {
                            (name)
                        }
                    }
                }
            }
        }
    }
}

fn derived(solved: &Result<Costs, String>, misprints: [Option<f64>; 7]) -> Markup {
    let values = solved.as_ref().ok().map(Costs::values);
    html! {
        section class="card derived" aria-labelledby="derived-title" {
            h2 id="derived-title" { "Derived" }
            p class="error" role="alert" id="impossible" hidden[solved.is_ok()] {
                (solved.as_ref().err().map_or("", String::as_str))
            }
            table {
                thead class="unseen" { tr { (heads(&[("cost", ""), ("value", ""), ("formula", "")])) } }
                tbody { @for (i, (key, name, formula)) in FIELDS.iter().enumerate() {
                    tr {
                        th scope="row" { (name) }
                        td class="number value" {
                            output id=(key) { (values.map_or("–".into(), |v| significant(v[i]))) }
                        }
                        td class="note" {
                            "= " (formula) " "
                            @if let Some(printed) = misprints[i] {
                                "(the article prints " (without_zeros(&significant(printed))) ")"
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// Shares of the time of allocating, touching and freeing.
fn shares(solved: &Result<Costs, String>) -> Markup {
    let share = |of: fn(&Costs, u32) -> f64, pages: u32| {
        solved
            .as_ref()
            .ok()
            .map(|c| of(c, pages) * 100.0)
            .filter(|s| s.is_finite())
    };
    let told = |share: Option<f64>| share.map_or("–".into(), |s| format!("{s:.1} %"));
    let wide = |share: Option<f64>| format!("{:.2}%", share.unwrap_or(0.0).clamp(0.0, 100.0));
    html! {
        section class="card shares" aria-labelledby="shares-title" {
            h2 id="shares-title" { "Where the time goes" }
            p class="note" {
                "Shares of allocating, touching and freeing so many pages at once. Half of the object's cost is the \
                 faults', as the article divides it. "
                "The other half is with allocating and freeing. Its “at least half” is of allocating and faulting \
                 alone: that is the last column."
            }
            (legend())
            (scrolling("Shares of the time, table", html! { table {
                thead { tr {
                    (heads(&[("pages", "")]))
                    (graphic_head("share of the time, 0 to 100 %", html! {}))
                    (heads(&[
                        ("faults", "number"), ("zero-filling", "number"), ("zero-filling without freeing", "number"),
                    ]))
                } }
                tbody { @for pages in PAGES {
                    @let (zero, fault) = (share(Costs::zerofill_share, pages), share(Costs::fault_share, pages));
                    tr {
                        th scope="row" { (pages) }
                        td class="graphic" {
                            svg class="cell" width="100%" height="26" aria-hidden="true"
                                xmlns="http://www.w3.org/2000/svg" {
                                rect class="z-rest" width="100%" height="18" y="4" {}
                                rect class="z-fault" width=(wide(fault)) height="18" y="4" {}
                                rect class="z-zero" width=(wide(zero)) height="18" y="4" {}
                            }
                        }
                        td class="number" { output { (told(fault)) } }
                        td class="number" { output { (told(zero)) } }
                        td class="number" {
                            output { (told(share(Costs::zerofill_share_before_freeing, pages))) }
                        }
                    }
                } }
            } }))
        }
    }
}

/// Taking the timings on this machine.
fn here(site: &Site) -> Markup {
    html! {
        @if !site.options.apis.is_empty() {
            form class="card here" method="post" action={ (site.base) "/zerofill/measure" } aria-labelledby="here-title"
                data-timing="" {
                h2 id="here-title" { "Measure here" }
                p {
                    label for="api" { "Memory from" }
                    select id="api" name="api" { @for api in &site.options.apis { option value=(api) { (api) } } }
                }
                p class="check" {
                    input id="repeat" name="repeat" type="checkbox" value="on";
                    label for="repeat" {
                        "Repeat until stopped, or until this tab is left: each round makes the values more certain"
                    }
                }
                p class="buttons" {
                    button id="take" { "Take the timings" }
                    button id="take-stop" formaction={ (site.base) "/measure/stop" } { "Stop" }
                }
                p role="status" id="timing-status" class="note" {}
            }
        }
    }
}
