//! Floating point by compiler: the published table, made here.

use crate::flops::analysis::{Column, Flops, MIX};
use fingerpost_record::{Estimate, Unit};
use maud::{Markup, html};

use super::words::{heading, mflops, sentences, share, shares, title};
use fingerpost_report::html::content::Section;
use fingerpost_report::html::parts::terms;
use fingerpost_report::html::term::term;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};

/// Compilers of the picture, which has as many shapes.
const MOST: usize = 6;

pub fn section(flops: &Flops) -> Section {
    let body = html! {
        @if !flops.columns.is_empty() { (chart(flops).draw()) (table(flops)) }
        (terms(sentences(flops)))
    };
    Section {
        key: "flops-compilers".into(),
        title: "Floating point by compiler".into(),
        body,
    }
}

/// Each module's rate by compiler.
fn chart(flops: &Flops) -> Chart {
    let point = |(step, rate): (usize, &Option<Estimate>)| {
        rate.map(|e| Point {
            step,
            value: e.value,
            low: e.low,
            high: e.high,
        })
    };
    let series = |c: &Column| Series {
        name: heading(c),
        points: c.modules.iter().enumerate().filter_map(point).collect(),
    };
    Chart {
        title: "Floating point by compiler".into(),
        across: "module".into(),
        steps: (1..=MIX.len()).map(|n| n.to_string()).collect(),
        up: "operations a second".into(),
        unit: Unit::FlopPerSecond,
        from_zero: true,
        kind: Steps::Things,
        series: flops.columns.iter().take(MOST).map(series).collect(),
    }
}

fn table(flops: &Flops) -> Markup {
    html! {
        p { (title(flops)) "." }
        div class="scroll" tabindex="0" role="region" aria-label="Floating point by compiler, table" {
            table {
                thead { tr {
                    th scope="col" class="number" { (term("Module")) }
                    // A phone has room for the rates alone.
                    @for title in ["FADD", "FSUB", "FMUL", "FDIV"] {
                        th scope="col" class="number extra" { (term(title)) }
                    }
                    @for column in &flops.columns {
                        th scope="col" class="number" { (heading(column)) }
                        @if shares(flops) { th scope="col" class="number extra" { (term("share")) } }
                    }
                } }
                tbody {
                    @for (i, mix) in MIX.iter().enumerate() {
                        tr {
                            th scope="row" class="number" { (i + 1) }
                            @for percent in mix { td class="number extra" { (percent) " %" } }
                            (rates(flops, |c| c.modules[i].map(|e| e.value)))
                        }
                    }
                    tr {
                        th scope="row" { "Average" }
                        @for _ in 0..4 { td class="extra" {} }
                        (rates(flops, Column::average))
                    }
                }
            }
        }
    }
}

fn rates(flops: &Flops, pick: impl Fn(&Column) -> Option<f64>) -> Markup {
    html! {
        @for column in &flops.columns {
            td class="number" { (mflops(pick(column))) }
            @if shares(flops) { td class="number extra" { (share(flops, pick(column))) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_every_rate_and_hostile_text_stays_text() {
        let page = section(&super::super::words::tests::example())
            .body
            .into_string();
        assert_eq!(page.matches("1234").count(), 9);
        assert!(page.contains("error: &lt;no&gt;") && !page.contains('\u{1b}'));
    }
}
