//! Pieces that several sections have.

use maud::{Markup, html};

use crate::view::{Fact, parts_of_doubt};

/// Names and texts as a list of terms.
pub fn facts<'a>(list: impl IntoIterator<Item = &'a Fact>) -> Markup {
    html! { dl class="facts" { @for f in list { div { dt { (f.name) } dd { (f.text) } } } } }
}

/// A table that scrolls by itself where the page is too narrow for it.
pub fn scrolling(label: &str, table: Markup) -> Markup {
    html! { div class="scroll" tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A doubt in one line, with what to do about it one click away; before it whose it is.
pub fn doubt(whose: &str, text: &str) -> Markup {
    let (what, remedy) = parts_of_doubt(text);
    let line = html! { @if !whose.is_empty() { strong { (whose) ": " } } (what) };
    html! { @if remedy.is_empty() { (line) } @else { details { summary { (line) } p { (remedy) } } } }
}
