//! The site laboratory: the source's table, the ratios, and the sizes at which the faster one changes.

use maud::{Markup, html};

use super::words::{COLUMNS, RoundTable, SiteView};
use fingerpost_report::html::content::Section;
use fingerpost_report::html::parts::scrolling;
use fingerpost_report::html::term::term;

/// The section, where the run has rounds or sizes.
pub fn section(site: &SiteView) -> Option<Section> {
    if site.is_empty() {
        return None;
    }
    let body = html! {
        @for t in &site.tables { (rounds(t)) }
        @if !site.ratios.is_empty() {
            h3 { "All rounds" }
            (scrolling("All rounds, table", html! { table class="stacked" {
                thead {
                    tr {
                        th scope="col" { (term("Files / object database")) }
                        th scope="col" class="number" { (term("fs/odb")) }
                        th scope="col" class="number" { (term("Rounds")) }
                    }
                }
                tbody {
                    @for r in &site.ratios {
                        tr {
                            th scope="row" { (r.name) }
                            td class="number wide" data-of="fs/odb" { (r.ratio) }
                            td class="number" data-of="rounds" { (r.rounds) }
                        }
                    }
                }
            } }))
            p class="skipped" {
                "How many times longer files take, paired round by round, with a 95 % interval. "
                (site.source())
            }
        }
        @if !site.warming.is_empty() { h3 { "From the start, as more is loaded" } }
        @for chart in &site.courses { (chart.draw()) }
        @if !site.warming.is_empty() { ul { @for w in &site.warming { li { (w) } } } }
        @if !site.crossings.is_empty() { h3 { "By the size of the pages" } }
        @for chart in &site.curves { (chart.draw()) }
        @if !site.crossings.is_empty() { ul { @for c in &site.crossings { li { (c) } } } }
    };
    Some(Section {
        key: "site-rounds".into(),
        title: "File system against object database".into(),
        body,
    })
}

fn rounds(t: &RoundTable) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(t.title) {
            table {
                caption { (t.title) }
                thead { tr { @for c in COLUMNS { th scope="col" class="number" { (term(c)) } } } }
                tbody { @for row in &t.rows { tr { @for cell in row { td class="number" { (cell) } } } } }
            }
        }
    }
}
