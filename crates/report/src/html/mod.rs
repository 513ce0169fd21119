//! The report: one HTML file that needs nothing else, no script and no network.
//!
//! A page is a list of sections, each made by one file here and left out where the run has nothing for it. To add one, write
//! `fn section(view) -> Option<Section>` and name it in [`report`].

mod flops;
mod host;
mod launch;
mod memory;
mod probes;
mod site;
mod style;
mod zerofill;

use maud::{DOCTYPE, Markup, html};

use fingerpost_record::Run;

use crate::view::{Fact, View};

/// A part of the page with a title and an anchor.
pub struct Section {
    /// A word for the anchor.
    pub key: &'static str,
    /// The title.
    pub title: String,
    /// What is under it.
    pub body: Markup,
}

/// The report of one run.
pub fn report(run: &Run) -> String {
    let view = View::of(run);
    let mut sections = probes::sections(&view);
    sections.extend(zerofill::section(run));
    sections.extend(flops::section(fingerpost_compare::flops::Flops::of(&run.measurements)));
    sections.extend(memory::section(fingerpost_compare::memory::Memory::of(run)));
    sections.extend(launch::section(run));
    sections.extend(site::section(&view));
    sections.push(host::section(&view));
    sections.push(reproduce(&view));
    let lead = html! {
        (facts(&view.headline))
        (probes::summary(&view))
        (doubts(&view))
    };
    page(&format!("Run {}", view.id), lead, &sections)
}

/// A whole page: a title, what a person reads first, and sections with a list of links to them.
pub fn page(title: &str, lead: Markup, sections: &[Section]) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The page has no script; a hostile run must not bring one.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                meta name="referrer" content="no-referrer";
                title { (title) " – Fingerpost" }
                style { (maud::PreEscaped(style::SHEET)) }
            }
            body {
                header { h1 { (title) } (lead) }
                nav aria-label="Sections" { ul { @for s in sections { li { a href={ "#" (s.key) } { (s.title) } } } } }
                main { @for s in sections { section id=(s.key) aria-labelledby={ (s.key) "-title" } { h2 id={ (s.key) "-title" } { (s.title) } (s.body) } } }
                footer { p { "Made by Fingerpost from the run's record alone." } }
            }
        }
    };
    markup.into_string()
}

/// Names and texts as a list of terms.
pub fn facts(list: &[Fact]) -> Markup {
    html! { dl class="facts" { @for f in list { div { dt { (f.name) } dd { (f.text) } } } } }
}

/// What speaks against the figures. Published ones were not looked at, so nothing is said of them.
fn doubts(view: &View) -> Markup {
    html! {
        @if !view.doubts.is_empty() {
            div class="doubts" role="note" { h2 { "Doubts" } ul { @for d in &view.doubts { li { (d) } } } }
        } @else if view.command.is_some() {
            p class="good" { "Nothing that was looked at on the host speaks against these figures." }
        }
    }
}

fn reproduce(view: &View) -> Section {
    let body = html! {
        @if let Some(command) = &view.command {
            p { "The same probes in the same random order, on this host or another:" }
            pre { code { (command) } }
        }
        p { "Every sample is in the run's file, which is plain JSON:" }
        pre { code { "fingerpost show " (view.id) " --format json" } }
    };
    Section { key: "reproduce", title: "How to reproduce".into(), body }
}

#[cfg(test)]
mod tests;
