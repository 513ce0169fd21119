//! Pieces that several sections have.

use maud::{Markup, html};

use crate::style::Tone;
use crate::view::{Fact, parts_of_doubt};
use crate::wrap;

/// Names and texts as a list of terms.
pub fn facts<'a>(list: impl IntoIterator<Item = &'a Fact>) -> Markup {
    html! { dl class="facts" { @for f in list { div { dt { (f.name) } dd { (f.text) } } } } }
}

/// A sentence in which no number is parted from its unit at the end of a line.
pub fn sentence(text: &str) -> Markup {
    html! { @for (n, piece) in wrap::words(text).into_iter().enumerate() {
        @if n > 0 { " " }
        @if piece.contains(' ') { span class="whole" { (piece) } } @else { (piece) }
    } }
}

/// A piece of a stacked bar as the key of its colour.
pub fn swatch(class: &str) -> Markup {
    html! {
        svg class="key" width="14" height="14" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
            rect class={ "piece " (class) } width="14" height="14" {}
        }
    }
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

/// Names and sentences as a list of terms.
pub fn terms(sentences: Vec<(String, String, Tone)>) -> Markup {
    html! { dl class="facts" { @for (name, text, _) in &sentences { div { dt { (name) } dd { (text) } } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit_in_a_sentence() {
        let text = sentence("A load takes 15.75 ns from L3, <b> 3 %.").into_string();
        assert_eq!(
            text,
            r#"A load takes <span class="whole">15.75 ns</span> from L3, &lt;b&gt; <span class="whole">3 %.</span>"#
        );
    }
}
