//! The report: one HTML file that needs nothing else, no script and no network.
//!
//! A page is a list of sections, each made by one file here and left out where the run has nothing for it. To add one,
//! write `fn section(run) -> Option<Section>` and name it in [`of_run`]. Those of labs come from [`crate::lab`].

mod budget;
pub mod comparison;
pub mod content;
mod experiments;
mod forest;
pub mod page;
pub mod parts;
mod paths;
mod probes;
mod samples;
pub mod style;
pub mod term;
mod waterfall;

use fingerpost_compare::Comparison;
use fingerpost_record::{Measurement, Run};
use maud::{Markup, html};
use parts::doubt;

use crate::document;
use crate::lab::Labs;
use crate::scaling;
use crate::view::View;

pub use page::{body, page};

pub use content::{Around, Content, Define, Link, Section};
pub use parts::{facts, scrolling};
pub use probes::so_far;

/// The report of one run.
pub fn report(run: &Run, labs: Labs, define: Option<Define>) -> String {
    page(&of_run(run, labs, Around { link: None, define }))
}

/// A run's content.
pub fn of_run(run: &Run, labs: Labs, around: Around) -> Content {
    let mut view = View::of(run, labs);
    let mut sections = Vec::new();
    sections.extend(budget::findings(run));
    sections.extend(experiments::section(run));
    sections.extend(budget::section(run));
    sections.extend(paths::section(run));
    sections.extend(
        std::mem::take(&mut view.found)
            .into_iter()
            .flat_map(|(_, shown)| {
                let made = || shown.sections.iter().map(document::html::section).collect();
                shown.page.unwrap_or_else(made)
            }),
    );
    sections.extend(probes::sections(&view, run, around));
    sections.extend(watched(&view));
    sections.extend(host(&view));
    sections.push(reproduce(&view));
    let lead = html! {
        @for sentence in &view.answers {
            p class="headline" { span aria-hidden="true" { "☞ " } (parts::sentence(sentence)) }
        }
        (probes::tiles(&view))
        (facts(view.lead_facts()))
        (doubts(&view))
        (probes::summary(&view))
    };
    let what = if is_published(&view) {
        "Published figures"
    } else {
        "Run"
    };
    let title = if view.name.is_empty() {
        format!("{what} {}", view.id)
    } else {
        format!("{} ({})", view.name, view.id)
    };
    Content {
        title,
        lead,
        sections,
    }
}

/// The curves over numbers of clients of rows that are known so far.
pub fn scaling_of(rows: &[Measurement], labs: Labs) -> Markup {
    html! { @for s in scaling::html::sections(rows, labs, "95 % interval") { (s.body) } }
}

/// A comparison's content.
pub fn of_comparison(c: &Comparison, define: Option<Define>) -> Content {
    Content {
        title: comparison::title(c),
        lead: comparison::lead(c),
        sections: comparison::sections(c, define),
    }
}

/// What speaks against the figures. Published ones were not looked at, so nothing is said of them.
fn doubts(view: &View) -> Markup {
    html! {
        @if !view.doubts.is_empty() {
            div class="doubts" role="note" { h2 { "Doubts" } ul { @for d in &view.doubts { li { (doubt("", d)) } } } }
        } @else if view.command.is_some() {
            p class="good" { "Nothing was found on the host that makes these figures doubtful." }
        }
    }
}

/// What the author of a published system watched besides what was measured.
fn watched(view: &View) -> Option<Section> {
    let body = html! {
        @for w in &view.watched {
            h3 { (w.title) }
            dl class="facts watched" { @for (name, figure) in &w.rows { div { dt { (name) } dd { (figure) } } } }
        }
    };
    (!view.watched.is_empty()).then(|| Section {
        key: "watched".into(),
        title: "What the source watched".into(),
        body,
    })
}

/// Everything known about the host, in full; nothing where all that a source tells of it stands in the heading.
fn host(view: &View) -> Option<Section> {
    let all = || view.other_facts().chain(&view.host);
    all().next()?;
    Some(Section {
        key: "host".into(),
        title: "Host".into(),
        body: facts(all()),
    })
}

/// Whether these are figures that the binary carries: nothing here measured them, and no file holds them.
fn is_published(view: &View) -> bool {
    view.command.is_none() && fingerpost_compare::references::names().contains(&view.id)
}

fn reproduce(view: &View) -> Section {
    let body = html! {
        @if is_published(view) {
            p { "The figures as they were printed, in every format:" }
            pre tabindex="0" { code { "fingerpost show ref:" (view.id) } }
            p { "The same tables with a column of this machine, and what the author concluded judged here:" }
            pre tabindex="0" { code { "fingerpost replay ref:" (view.id) } }
        } @else {
            @if let Some(command) = &view.command {
                p { "The same probes in the same random order, on this host or another:" }
                pre tabindex="0" { code { (command) } }
            }
            p { "Every sample is in the run’s file, which is plain JSON:" }
            pre tabindex="0" { code { "fingerpost show " (view.id) " --format json" } }
        }
    };
    Section {
        key: "reproduce".into(),
        title: "How to reproduce".into(),
        body,
    }
}

#[cfg(test)]
mod tests;
