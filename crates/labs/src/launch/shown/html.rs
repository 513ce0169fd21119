//! The launch laboratory: applications by placements, what paging there was, and the answer.

use crate::launch::analysis::{Cell, Launch, Line};
use fingerpost_record::Unit;
use fingerpost_record::text::clean;
use maud::{Markup, html};

use super::words;
use fingerpost_report::html::content::Section;
use fingerpost_report::html::term::term;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};

/// Placements of the picture, which has as many shapes.
const MOST: usize = 6;

pub fn section(launch: &Launch) -> Section {
    let body = html! {
        // With several placements this is what the page begins with.
        @if launch.placements.len() < 2 { p { strong { (clean(&launch.sentence)) } } }
        (chart(launch).draw())
        (table(launch))
        (paging(launch))
        @if let Some(mapped) = &launch.mapped { p { "Memory that was asked for: " (clean(mapped)) "." } }
    };
    Section {
        key: "launch-table".into(),
        title: "Launch times by placement of swap".into(),
        body,
    }
}

/// Each application's time by placement.
fn chart(launch: &Launch) -> Chart {
    let point = |placement: usize| {
        move |(step, line): (usize, &Line)| {
            let e = line.cells.get(placement)?.as_ref()?.time;
            Some(Point {
                step,
                value: e.value,
                low: e.low.max(0.0),
                high: e.high,
            })
        }
    };
    let series = |(i, name): (usize, &String)| Series {
        name: clean(name).into_owned(),
        points: launch
            .lines
            .iter()
            .enumerate()
            .filter_map(point(i))
            .collect(),
    };
    Chart {
        title: "Launch times by placement of swap".into(),
        across: "applications, in the order of their launch".into(),
        steps: launch
            .lines
            .iter()
            .map(|line| clean(&line.app).into_owned())
            .collect(),
        up: "from start to ready".into(),
        unit: Unit::Nanoseconds,
        from_zero: true,
        kind: Steps::Things,
        series: launch
            .placements
            .iter()
            .enumerate()
            .take(MOST)
            .map(series)
            .collect(),
    }
}

fn table(launch: &Launch) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Launch times, table" {
            table {
                caption {
                    "Seconds from start to ready, and the ratio to the first placement with its interval; above 1 is \
                     slower."
                }
                thead { tr {
                    th scope="col" { (term("Application")) }
                    @for placement in &launch.placements { th scope="col" class="number" { (clean(placement)) } }
                } }
                tbody {
                    @for line in &launch.lines { tr { th scope="row" { (clean(&line.app)) } (cells(&line.cells)) } }
                    tr { th scope="row" { strong { "sum" } } (cells(&launch.sum)) }
                }
            }
        }
    }
}

fn cells(row: &[Option<Cell>]) -> Markup {
    html! {
        @for cell in row {
            td class="number" {
                @match cell {
                    Some(cell) => {
                        (words::time(cell))
                        @if let Some(ratio) = words::ratio(cell) { br; span class="params" { (apart(&ratio)) } }
                    },
                    None => { "–" },
                }
            }
        }
    }
}

/// A ratio and its interval, which stays in one piece where a phone puts it below.
fn apart(ratio: &str) -> Markup {
    match ratio.split_once(' ') {
        Some((value, interval)) => html! { (value) " " span class="piece-of-text" { (interval) } },
        None => html! { (ratio) },
    }
}

fn paging(launch: &Launch) -> Markup {
    html! {
        @if !launch.paging.is_empty() {
            h3 { "Paging during a sequence" }
            div class="scroll" tabindex="0" role="region" aria-label="Paging, table" {
                table {
                    caption {
                        "The whole machine's counters over a sequence, and its memory before and after; the mean over \
                         the sequences."
                    }
                    thead { tr {
                        th scope="col" { (term("Counter")) }
                        @for paging in &launch.paging { th scope="col" class="number" { (clean(&paging.placement)) } }
                    } }
                    tbody {
                        @for (name, figures) in words::counters(&launch.paging) {
                            tr { th scope="row" { (name) } @for figure in figures { td class="number" { (figure) } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::launch::analysis::analyse;
    use fingerpost_record::Run;

    use super::*;

    #[test]
    fn the_section_holds_the_table_and_the_answer_that_no_page_begins_with_and_escapes_names() {
        let mut run = fingerpost_compare::references::load("launch-10.1").unwrap();
        for row in &mut run.measurements[..3] {
            row.params = row.params.clone().with("app", "<script>");
        }
        let body = section(&analyse(&run).unwrap()).body.into_string();
        assert!(
            body.contains("OmniWeb") && !body.contains("A dedicated swap place helps here"),
            "the page begins with that"
        );
        assert!(body.contains("&lt;script&gt;") && !body.contains("<script"));
        assert!(analyse(&Run::default()).is_none());
        let placement = run.measurements[0]
            .params
            .text("placement")
            .unwrap()
            .to_owned();
        run.measurements
            .retain(|m| m.params.text("placement") == Some(&placement));
        assert!(
            section(&analyse(&run).unwrap())
                .body
                .into_string()
                .contains("nothing to compare it with")
        );
    }

    #[test]
    fn what_paging_there_was_is_a_table() {
        let mut run = fingerpost_compare::references::load("launch-10.1").unwrap();
        let placement = run.measurements[0]
            .params
            .text("placement")
            .unwrap()
            .to_owned();
        run.observations = vec![fingerpost_record::Observation {
            workload: "launch".into(),
            params: fingerpost_record::Params::new().with("placement", placement.as_str()),
            observer: "paging".into(),
            source: String::new(),
            totals: std::collections::BTreeMap::from([("swap_in.pages".to_owned(), 4321.0)]),
            ..fingerpost_record::Observation::default()
        }];
        let body = section(&analyse(&run).unwrap()).body.into_string();
        assert!(body.contains("swap-ins") && body.contains("4321"), "{body}");
    }
}
