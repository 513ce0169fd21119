//! A comparison's rows as a forest plot: sorted by effect, before the band of what does not matter.

use fingerpost_compare::Verdict;
use fingerpost_compare::comparison::{Comparison, Row};
use maud::{Markup, html};

use super::content::Define;
use super::parts::{graphic_head, heads, scrolling};
use super::term::defined;
use crate::compare_words::{cells as words, interval, number};
use crate::svg::cells::RatioAxis;
use crate::words::clean;

/// Largest effects first; rows that cannot be told apart come after those that can.
pub fn sorted(c: &Comparison) -> Vec<&Row> {
    let mut rows: Vec<&Row> = c.rows.iter().filter(|r| r.ratio.is_some()).collect();
    let class = |r: &Row| match r.verdict {
        Verdict::Slower | Verdict::Faster => 0,
        Verdict::Unresolved => 1,
        Verdict::Same => 2,
    };
    let effect = |r: &Row| r.log().unwrap_or_default();
    rows.sort_by(|a, b| {
        class(a)
            .cmp(&class(b))
            .then(effect(b).total_cmp(&effect(a)))
    });
    rows
}

/// The plot: a table with a mark in each row.
pub fn draw(c: &Comparison, define: Option<Define>) -> Markup {
    let rows = sorted(c);
    let axis = RatioAxis::over(
        rows.iter()
            .filter_map(|r| r.ratio)
            .flat_map(|r| [r.value, r.low.max(r.value / 3.0), r.high.min(r.value * 3.0)]),
        c.threshold,
    );
    scrolling(
        "All rows by effect, table",
        html! {
            table class="forest" {
                thead { tr {
                    (heads(&[("Probe", "of-name")]))
                    (graphic_head("faster ← new against base → slower", axis.head()))
                    (heads(&[
                        ("× slower", "number"), ("verdict", ""), ("95 % interval", ""), ("base", "number below"),
                        ("new", "number below"),
                    ]))
                } }
                tbody { @for row in rows { @if let Some(r) = row.ratio {
                    @let w = words(row);
                    tr class=(row.verdict.to_string()) {
                        th scope="row" class="name" {
                            (defined(&w[0], define, false))
                            @if !w[1].is_empty() { " " span class="params" { (w[1]) } }
                            @if let Some(note) = &row.note { span class="reason" { (clean(note)) } }
                        }
                        td class="graphic" { (axis.mark(r.value, r.low, r.high, row.verdict)) }
                        td class="number value" { (number(r.value)) }
                        td class="verdict" { (row.verdict.to_string()) }
                        td class="interval" { (interval(&r)) }
                        td class="number" data-of="base" { (w[2]) }
                        td class="number" data-of="new" { (w[3]) }
                    }
                } } }
            }
        },
    )
}
