//! What the author of a published system watched besides what was measured.

use maud::html;

use super::content::Section;
use crate::view::View;

/// The section, where there is anything.
pub fn section(view: &View) -> Option<Section> {
    let body = html! {
        @for w in &view.watched {
            h3 { (w.title) }
            dl class="facts watched" { @for (name, figure) in &w.rows { div { dt { (name) } dd { (figure) } } } }
        }
    };
    (!view.watched.is_empty()).then(|| Section { key: "watched", title: "What the source watched".into(), body })
}
