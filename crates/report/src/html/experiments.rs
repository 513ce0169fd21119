//! What was changed to decide between causes, and what the requests said.

use fingerpost_record::Run;
use maud::html;

use super::content::Section;
use super::parts::{heads, scrolling};
use crate::explain::experiments::cells;
use crate::words::clean;

/// The experiments of a run; nothing where none was made.
pub fn section(run: &Run) -> Option<Section> {
    if run.experiments.is_empty() {
        return None;
    }
    let body = html! {
        p {
            "One thing was changed for short stretches, in turns with leaving it, and the requests of both were \
             counted."
        }
        (scrolling("Deciding experiments, table", html! {
            table class="stacked" {
                thead { tr { (heads(&[
                    ("changed", ""), ("asked", ""), ("without", "number"), ("with it", "number"),
                    ("times faster", "number"), ("requests", ""),
                ])) } }
                tbody {
                    @for e in &run.experiments {
                        @let [what, without, with, times, answer] = cells(e);
                        tr {
                            th scope="row" { (clean(&what)) }
                            td class="wide" data-of="asked" { (clean(format!("{} {}", e.workload, e.params).trim())) }
                            td class="number" data-of="without" { (without) }
                            td class="number" data-of="with it" { (with) }
                            td class="number" data-of="times faster" { (times) }
                            td data-of="requests" { (clean(&answer)) }
                        }
                    }
                }
            }
        }))
    };
    Some(Section {
        key: "experiments".into(),
        title: "Deciding experiments".into(),
        body,
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture;

    use super::*;

    #[test]
    fn the_section_is_there_where_there_are_experiments_and_lets_nothing_through() {
        assert!(section(&fixture::run()).is_none());
        let mut run = fixture::with_everything();
        run.experiments[0].what = "<script>".into();
        let html = section(&run).unwrap().body.into_string();
        assert!(
            html.contains("1.92 (1.85–1.99)")
                && html.contains("&lt;script&gt;")
                && !html.contains("<script>")
        );
    }
}
