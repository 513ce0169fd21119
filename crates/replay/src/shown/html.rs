//! The published tables with a column of this machine, and what the authors concluded, judged here.

use crate::conclusions::Answer;
use crate::{Concluded, Replay, Replayed};
use fingerpost_record::text::clean;
use maud::{Markup, html};

use super::{OWN, TITLE, below, lines_apart, notes_apart, own_figure, summary, unit_title};
use fingerpost_report::html::content::{Content, Section};
use fingerpost_report::html::parts::scrolling;
use fingerpost_report::html::term::{options_whole, term, words_whole};

/// The page's content: conclusions first, then the tables, and last the documents of which nothing could be judged
/// here.
pub fn content(replay: &Replay) -> Content {
    let lead = html! {
        p class="headline" { (summary(replay)) }
        p {
            "Five documents from 1996 to 2005 asked why one system is slower than another. Their tables, with a column \
             of this machine, and each of their conclusions, in our words."
        }
    };
    let (judged, open) = documents(replay);
    let tables = replay.tables.iter().map(|t| Section {
        key: t.name.into(),
        title: clean(&t.title).into_owned(),
        body: table(t),
    });
    let sections = judged.into_iter().chain(tables).chain(open).collect();
    Content {
        title: TITLE.into(),
        lead,
        sections,
    }
}

/// A section of conclusions for each document: those with a conclusion that was judged here, and the others.
fn documents(replay: &Replay) -> (Vec<Section>, Vec<Section>) {
    // Anchors of their own, for a table may be called like a document.
    const KEYS: [&str; 5] = [
        "conclusions-1",
        "conclusions-2",
        "conclusions-3",
        "conclusions-4",
        "conclusions-5",
    ];
    let (mut answered, mut unanswered) = (Vec::new(), Vec::new());
    for (of, key) in replay
        .conclusions
        .chunk_by(|a, b| a.document == b.document)
        .zip(KEYS)
    {
        let (open, judged): (Vec<_>, Vec<_>) = of
            .iter()
            .partition(|c| c.here.answer == Answer::NotMeasured);
        let body = html! {
            @if !judged.is_empty() { ul class="suspects" { @for c in &judged { (conclusion(c)) } } }
            @if !open.is_empty() {
                details open[judged.is_empty()] {
                    summary { (open.len()) " not measured here" }
                    ul class="suspects" { @for c in &open { (conclusion(c)) } }
                }
            }
        };
        let list = if judged.is_empty() {
            &mut unanswered
        } else {
            &mut answered
        };
        list.push(Section {
            key: key.into(),
            title: of[0].document.title().to_owned(),
            body,
        });
    }
    (answered, unanswered)
}

fn conclusion(c: &Concluded) -> Markup {
    // The classes of findings: what is contradicted here stands out, nothing else does.
    let class = match c.here.answer {
        Answer::True | Answer::NotResolved | Answer::NotMeasured => "ruled-out",
        Answer::False => "confirmed",
    };
    html! {
        li class=(class) {
            p { strong { (c.says) } " " span class="note" { (c.place) } }
            p { span class="status" { (c.here.answer.as_str()) " here" } ": " (with_code(&clean(&c.here.figure))) }
            p class="note" { "In the document: " (c.there.answer.as_str()) ", " (with_code(&clean(&c.there.figure))) }
        }
    }
}

/// Text in which commands stand between backticks, or at its end behind what introduces one.
fn with_code(text: &str) -> Markup {
    if let Some((before, command)) = text.split_once(MEASURED_BY) {
        let (command, rest) = command
            .split_once(", ")
            .map_or((command, None), |(command, rest)| (command, Some(rest)));
        return html! {
            (with_code(before))
            (MEASURED_BY)
            code { (words_whole(command)) }
            @if let Some(rest) = rest { ", " (with_code(rest)) }
        };
    }
    html! {
        @for (i, piece) in text.split('`').enumerate() {
            @if i % 2 == 1 { code { (words_whole(piece)) } } @else { (options_whole(piece)) }
        }
    }
}

/// What stands before the command that measures what is missing.
const MEASURED_BY: &str = "measured by: ";

fn table(t: &Replayed) -> Markup {
    let (shared, own) = lines_apart(t);
    let (_, said) = notes_apart(t);
    let notes = said.iter().any(|note| !note.is_empty());
    let rows = html! {
        // On a phone a line's cells stand below its name, each with its column's name above it: see the style sheet.
        table class="stacked" {
            thead { tr {
                th scope="col" { (term(&unit_title(t))) }
                @if let Some(about) = t.about { th scope="col" class="number" { (term(about)) } }
                th scope="col" class="number" { (OWN) }
                @for s in &t.systems { th scope="col" class="number" { (term(s)) } }
                @if notes { th scope="col" { (term("what stands for what")) } }
            } }
            tbody { @for ((line, what), note) in t.lines.iter().zip(&own).zip(&said) { tr {
                th scope="row" class="what" { (words_whole(what)) }
                @if let Some(about) = t.about {
                    td class="number wide" data-of=(about) { (line.about.as_deref().unwrap_or_default()) }
                }
                (own_cell(own_figure(line.here.as_ref())))
                @for (s, printed) in t.systems.iter().zip(&line.printed) {
                    td class="number" data-of=(s) { (printed.as_deref().unwrap_or("–")) }
                }
                @if notes { td class="note" { (note) } }
            } } }
        }
    };
    html! {
        @if !shared.is_empty() { p class="params" { "All lines: " (shared) } }
        (scrolling(&format!("{}, table", clean(&t.title)), rows))
        p class="note" { (with_code(&below(t))) }
    }
}

/// A figure of this machine. Its interval stands below it, smaller.
fn own_cell([value, interval]: [String; 2]) -> Markup {
    html! {
        td class="number" data-of=(OWN) {
            strong { (value) }
            @if !interval.is_empty() { br; span class="params piece-of-text" { (interval) } }
        }
    }
}
