//! Pieces that several sections have.

use maud::{Markup, html};

use super::term::term;
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

/// Heads of columns: each title with its meaning, and the class of what stands below it; none for words.
pub fn heads(columns: &[(&str, &str)]) -> Markup {
    html! { @for (title, class) in columns { th scope="col" class=[some(class)] { (term(title)) } } }
}

/// The head of a column of pictures: what their axis is, and the axis.
pub fn graphic_head(what: &str, axis: Markup) -> Markup {
    html! { th scope="col" class="graphic" { span class="axis-name" { (what) } (axis) } }
}

/// A table of texts that scrolls by itself: columns as in [`heads`], and rows, each named by its first cell.
pub fn table<const N: usize>(
    label: &str,
    class: &str,
    columns: [(&str, &str); N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Markup {
    let row = |cells: [String; N]| {
        html! { tr { @for (n, (cell, (_, class))) in cells.iter().zip(columns).enumerate() {
            @if n == 0 { th scope="row" class=[some(class)] { (cell) } } @else { td class=[some(class)] { (cell) } }
        } } }
    };
    let body = html! { tbody { @for cells in rows { (row(cells)) } } };
    scrolling(
        label,
        html! { table class=(class) { thead { tr { (heads(&columns)) } } (body) } },
    )
}

fn some(class: &str) -> Option<&str> {
    Some(class).filter(|class| !class.is_empty())
}

/// A doubt in one line, with what to do about it one click away; before it whose it is.
pub fn doubt(whose: &str, text: &str) -> Markup {
    let (what, remedy) = parts_of_doubt(text);
    let line = html! { @if !whose.is_empty() { strong { (whose) ": " } } (what) };
    html! { @if remedy.is_empty() { (line) } @else { details { summary { (line) } p { (remedy) } } } }
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
