//! The launch laboratory: applications by placements, what paging there was, and the answer.

use fingerpost_compare::launch::{self, Cell, Launch};
use fingerpost_record::Run;
use fingerpost_record::text::clean;
use maud::{Markup, html};

use super::Section;
use crate::launch as words;

/// The section; nothing where the run has no row of the laboratory.
pub fn section(run: &Run) -> Option<Section> {
    let launch = launch::analyse(run)?;
    let body = html! {
        p { strong { (clean(&launch.sentence)) } }
        (table(&launch))
        (paging(&launch))
    };
    Some(Section { key: "launch-table", title: "Launch times by placement of swap".into(), body })
}

fn table(launch: &Launch) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Launch times, table" {
            table {
                caption { "Seconds from start to ready, and the ratio to the first placement with its interval; above 1 is slower." }
                thead { tr {
                    th scope="col" { "Application" }
                    @for placement in &launch.placements { th scope="col" class="number" { (clean(placement)) } }
                } }
                tbody {
                    @for line in &launch.lines { tr { th scope="row" { (clean(&line.app)) } (cells(&line.cells)) } }
                    tr { th scope="row" { "sum" } (cells(&launch.sum)) }
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
                    Some(cell) => { (words::time(cell)) @if let Some(ratio) = words::ratio(cell) { br; span class="interval" { (ratio) } } },
                    None => { "–" },
                }
            }
        }
    }
}

fn paging(launch: &Launch) -> Markup {
    html! {
        @if !launch.paging.is_empty() {
            h3 { "Paging during a sequence" }
            @for paging in &launch.paging {
                h4 { (clean(&paging.placement)) }
                pre { @for line in words::block(paging) { (line) "\n" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_holds_table_and_answer_and_escapes_names() {
        let mut run = fingerpost_compare::references::load("launch-10.1").unwrap();
        for row in &mut run.measurements[..3] {
            row.params = row.params.clone().with("app", "<script>");
        }
        let body = section(&run).unwrap().body.into_string();
        assert!(body.contains("OmniWeb") && body.contains("A dedicated swap place helps here"));
        assert!(body.contains("&lt;script&gt;") && !body.contains("<script"));
        assert!(section(&Run::default()).is_none());
    }
}
