//! The memory hierarchy: the staircase as a chart, what was read off it, and bandwidth by number of CPUs.

use crate::memory::analysis::{Cache, Curve, Memory};
use fingerpost_record::{Estimate, Unit};
use maud::{Markup, html};

use super::words::{bandwidth_table, between, name_of, sentences, size};
use fingerpost_report::html::content::Section;
use fingerpost_report::html::parts::{scrolling, terms};
use fingerpost_report::html::term::term;
use fingerpost_report::svg::{Axis, anchor, percent, tick_label};
use fingerpost_report::words::clean;

/// Height of the plot, of the text below, and the room for the scale at its left in per cent.
const PLOT: f64 = 260.0;
const BELOW: f64 = 40.0;
/// Height of a line of text: each level's end has its own, since levels may end close to each other.
const LINE: f64 = 14.0;

pub fn section(memory: &Memory) -> Section {
    let body = html! {
        @if !memory.curves.is_empty() { (chart(memory)) }
        (terms(sentences(memory)))
        @if !memory.bandwidths.is_empty() { (bandwidths(memory)) }
    };
    Section {
        key: "memory-hierarchy".into(),
        title: "Memory hierarchy".into(),
        body,
    }
}

fn chart(memory: &Memory) -> Markup {
    let points = || memory.curves.iter().flat_map(|c| &c.points);
    let x = Axis::over(points().map(|(bytes, _)| *bytes as f64));
    let y = Axis::over(points().map(|(_, e)| e.value).chain([1.0, 100.0]));
    let down = |value: f64| PLOT - y.place(value) / 100.0 * PLOT;
    let across = |bytes: u64| format!("{:.2}%", x.place(bytes as f64));
    let spoken: Vec<String> = memory.curves.iter().map(spoken).collect();
    let ends: Vec<(usize, &Cache, u64)> = memory
        .levels
        .iter()
        .enumerate()
        .filter_map(|(i, c)| Some((i, c, c.level.passed?)))
        .collect();
    html! {
        figure {
            figcaption {
                "Nanoseconds of a load by the size of the range, both logarithmic: solid in "
                (clean(&memory.curves[0].pages))
                " pages, dashed in small ones."
            }
            svg class="chart" width="100%" height=(PLOT + BELOW + LINE * ends.len() as f64) role="img"
                xmlns="http://www.w3.org/2000/svg" {
                title { "Load latency by size" }
                desc { (spoken.join(". ")) }
                @for tick in y.ticks() {
                    line class="rule" x1="0" x2="100%" y1=(down(tick)) y2=(down(tick)) {}
                    text class="tick" x="0" y=(down(tick) - 3.0) { (tick_label(Unit::Nanoseconds, tick)) }
                }
                @let named = |bytes: u64| bytes.is_power_of_two() && bytes.trailing_zeros().is_multiple_of(4);
                @for (bytes, _) in memory.curves[0].points.iter().filter(|(bytes, _)| named(*bytes)) {
                    text class="tick" x=(across(*bytes)) y=(PLOT + 14.0) text-anchor="middle" { (size(*bytes)) }
                }
                @for (line, (i, cache, passed)) in ends.iter().enumerate() {
                    @let (from, to) = (x.place(cache.level.fits as f64), x.place(*passed as f64));
                    rect class="band" x=(percent(from)) width=(percent((to - from).max(0.2))) y="0" height=(PLOT) {}
                    text class="knee" x=(percent(from)) y="12" text-anchor="end" { (name_of(*i, cache)) }
                    text class="tick" x=(percent(from)) y=(PLOT + BELOW - 10.0 + LINE * line as f64)
                        text-anchor=(anchor(from)) {
                        (name_of(*i, cache)) " ends at " (between(cache.level.fits, *passed))
                    }
                }
                @for (i, curve) in memory.curves.iter().enumerate() {
                    @for pair in curve.points.windows(2) {
                        line class=(if i == 0 { "curve" } else { "curve second" }) x1=(across(pair[0].0))
                            y1=(down(pair[0].1.value)) x2=(across(pair[1].0)) y2=(down(pair[1].1.value)) {}
                    }
                }
            }
        }
    }
}

fn spoken(curve: &Curve) -> String {
    let point = |(bytes, e): &(u64, Estimate)| format!("{}: {:.2} ns", size(*bytes), e.value);
    format!(
        "In {} pages {}",
        clean(&curve.pages),
        curve
            .points
            .iter()
            .map(point)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn bandwidths(memory: &Memory) -> Markup {
    let (heads, rows) = bandwidth_table(memory);
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { (term("What")) }
                    th scope="col" class="number" { (term("Size")) }
                    @for head in &heads[1..] { th scope="col" class="number" { (head) } }
                }
            }
            tbody {
                @for (op, cells) in &rows {
                    tr { td { (op) } @for cell in cells { td class="number" { (cell) } } }
                }
            }
        }
    };
    html! {
        p { "Bandwidth in GB/s of all CPUs together, by the size that each walks." }
        (scrolling("Memory bandwidth, table", table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_a_line_between_each_two_points_and_every_sentence_is_there() {
        let memory = super::super::words::tests::example();
        let page = section(&memory).body.into_string();
        assert_eq!(
            page.matches("class=\"curve\"").count(),
            memory.curves[0].points.len() - 1
        );
        assert_eq!(
            page.matches("class=\"curve second\"").count(),
            memory.curves[1].points.len() - 1
        );
        for (name, text, _) in sentences(&memory) {
            assert!(
                page.contains(&name) && page.contains(text.split(';').next().unwrap()),
                "{name}"
            );
        }
        assert!(!page.contains("NaN") && !page.contains('\u{1b}'));
    }
}
