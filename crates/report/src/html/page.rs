//! A page that stands alone.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::content::Content;
use super::{style, term};

/// A whole page that stands alone.
pub fn page(content: &Content) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The page has no script; a hostile run must not bring one.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                meta name="referrer" content="no-referrer";
                title { (content.title) " – Fingerpost" }
                style { (PreEscaped(style::SHEET)) }
            }
            body { (body(content)) footer { p { "Made by Fingerpost from the records alone." } } }
        }
    };
    markup.into_string()
}

/// A content's header, list of sections and main part.
pub fn body(content: &Content) -> Markup {
    html! {
        header class="lead" {
            p class="mark" { span aria-hidden="true" { "☞ " } "Fingerpost" }
            h1 { (content.title) }
            (content.lead)
        }
        nav class="sections" aria-label="Sections" {
            ul { @for s in &content.sections { li { a href={ "#" (s.key) } { (s.title) } } } }
        }
        main {
            @for s in &content.sections {
                section id=(s.key) aria-labelledby={ (s.key) "-title" } {
                    h2 id={ (s.key) "-title" } { (term::options_whole(&s.title)) }
                    (s.body)
                }
            }
        }
    }
}
