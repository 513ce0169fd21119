//! How promptly the machine answers beside its loaded server.

use crate::desktop::analysis::Desktop;
use maud::{Markup, html};

use super::words::{COLUMNS, MEANING, cells, sentence, title};
use fingerpost_report::grid::Align;
use fingerpost_report::html::content::Section;
use fingerpost_report::html::parts::scrolling;
use fingerpost_report::html::term::term;

pub fn section(found: &[Desktop]) -> Section {
    let body = html! {
        @for desktop in found { (table(desktop)) }
        p class="skipped" { (MEANING) }
    };
    Section {
        key: "desktop".into(),
        title: "Beside a loaded server".into(),
        body,
    }
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
