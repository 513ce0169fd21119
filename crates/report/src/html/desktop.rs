//! How promptly the machine answers beside its loaded server.

use fingerpost_compare::desktop::{Desktop, analyse};
use fingerpost_record::Run;
use maud::{Markup, html};

use super::content::Section;
use super::parts::scrolling;
use super::term::term;
use crate::desktop::{COLUMNS, MEANING, cells, sentence, title};
use crate::grid::Align;

/// The section, where the run has the tasks' rows of both sides.
pub fn section(run: &Run) -> Option<Section> {
    let found = analyse(run);
    let body = html! {
        @for desktop in &found { (table(desktop)) }
        p class="skipped" { (MEANING) }
    };
    (!found.is_empty()).then(|| Section { key: "desktop".into(), title: "Beside a loaded server".into(), body })
}

fn table(desktop: &Desktop) -> Markup {
    let class = |align: Align| (align == Align::Right).then_some("number");
    let title = title(desktop);
    let rows = html! {
        table {
            caption { (title) }
            thead { tr { @for (name, align, _) in COLUMNS { th scope="col" class=[class(align)] { (term(name)) } } } }
            tbody { @for (doubtful, row) in cells(desktop) {
                tr class=[doubtful.then_some("untrusted")] {
                    @for (cell, (_, align, _)) in row.iter().zip(COLUMNS) { td class=[class(align)] { (cell) } }
                }
            } }
        }
    };
    html! {
        @if let Some(sentence) = sentence(desktop) { p { (sentence) } }
        (scrolling(&title, rows))
    }
}
