//! Raw samples, one click away: a strip of dots for each row of a group.

use std::collections::HashMap;

use fingerpost_record::text::{clean, counted};
use fingerpost_record::{Measurement, Run};
use maud::{Markup, html};

use crate::svg::strip;
use crate::view::{Group, Row};

/// A run's measurements by what their rows show.
pub struct Samples<'a>(HashMap<(String, String, u32), &'a Measurement>);

impl<'a> Samples<'a> {
    /// Of a run.
    pub fn of(run: &'a Run) -> Self {
        let shown = |text: &str| clean(text).trim().to_owned();
        Samples(
            run.measurements
                .iter()
                .map(|m| {
                    (
                        (shown(&m.probe), shown(&m.params.to_string()), m.version),
                        m,
                    )
                })
                .collect(),
        )
    }

    fn strip(&self, row: &Row) -> Option<strip::Strip> {
        let m = self
            .0
            .get(&(row.probe.clone(), row.params.clone(), row.version))?;
        strip::strip(&row.name(), row.unit, &m.processes)
    }

    /// The strips of a group, folded; nothing where there are no samples.
    pub fn details(&self, group: &Group) -> Markup {
        let strips: Vec<(String, strip::Strip)> = group
            .shown()
            .filter_map(|r| Some((r.name(), self.strip(r)?)))
            .collect();
        html! {
            @if !strips.is_empty() {
                details class="samples" {
                    summary { "Raw samples of " (group.table.title) }
                    p class="note" {
                        "A dot is one batch; each process has its own line. Batches that were interrupted or slowed, \
                         and processes that were excluded because the CPU did not keep its pace, are in the other \
                         colour. Left is the least, right the greatest; a few that lie far out stand at the end, where \
                         the second figure is theirs."
                    }
                    dl { @for (name, s) in &strips { div {
                        dt {
                            (name)
                            " "
                            span class="note" {
                                @if s.shown.0 < s.shown.1 { (s.shown.0) " of " }
                                (counted(s.shown.1 as u64, "sample"))
                            }
                        }
                        dd { (s.picture) }
                    } } }
                }
            }
        }
    }
}
