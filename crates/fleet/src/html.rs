//! A sweep as a report: what is slow and why, the peers, and a picture of hosts × rows.

use base64::prelude::*;
use fingerpost_record::text::{clean, clean_short, counted};
use fingerpost_report::html::term::term;
use fingerpost_report::html::{Content, Section, scrolling};
use fingerpost_report::words::moment;
use maud::{Markup, html};

use crate::heat::{Heat, NOTHING, Picture, STEPS, letter};
use crate::judge::{Host, Slower, Standing, Verdicts};
use crate::{nodes, png};

/// Hosts that are told one by one.
const MOST_TOLD: usize = 300;
/// What is told of one host.
const MOST_UNITS: usize = 4;
/// Sentences of evidence of one host.
const MOST_EVIDENCE: usize = 6;
/// The colours of the picture and what they mean, one more than there are steps; and nothing observed. They keep apart
/// for the colour-blind by their lightness (a sequence of oranges beside one blue).
const COLOURS: [([u8; 3], &str); STEPS.len() + 2] = [
    ([0x1f, 0x6f, 0xb4], "faster by more than 20 %"),
    ([0x9c, 0xc9, 0xe8], "faster by 5 to 20 %"),
    ([0xf2, 0xf2, 0xee], "within 5 %"),
    ([0xfd, 0xd4, 0x9e], "slower by 5 to 10 %"),
    ([0xfc, 0x8d, 0x59], "slower by 10 to 25 %"),
    ([0xd7, 0x30, 0x1f], "slower by 25 to 100 %"),
    ([0x7a, 0x00, 0x00], "more than twice as slow"),
    ([0x8a, 0x8f, 0x94], "not observed"),
];

/// The report's content. `link` makes the address of a host, where there is one.
pub fn content(verdicts: &Verdicts, link: Option<&dyn Fn(&str) -> String>) -> Content {
    let told = |host: &&Host| {
        !matches!(
            host.standing,
            Standing::Ok | Standing::Left | Standing::Unresolved | Standing::Failed
        )
    };
    let accused: Vec<&Host> = verdicts.hosts.iter().filter(told).collect();
    let mut sections = Vec::new();
    if !accused.is_empty() {
        sections.push(Section {
            key: "hosts".into(),
            title: "Slow hosts".into(),
            body: table(&accused, link),
        });
    }
    sections.extend(without(verdicts));
    sections.extend(verdicts.picture.as_ref().and_then(picture));
    sections.push(families(verdicts));
    sections.push(Section {
        key: "peers".into(),
        title: "Peers".into(),
        body: groups(verdicts),
    });
    let lead = html! {
        p class="headline" { span aria-hidden="true" { "☞ " } (clean(&verdicts.headline)) }
        p { "Each host is compared with the median of its peers: hosts of the same processor, microcode, memory, \
            kernel and hypervisor. Slow is who was beyond them "
            "twice, the second time beside random hosts of its kind; suspected is who was once and was not measured \
             again." }
    };
    Content {
        title: format!(
            "Sweep of {}, {}",
            counted(verdicts.hosts.len() as u64, "host"),
            clean(&moment(&verdicts.started))
        ),
        lead,
        sections,
    }
}

/// What is said of a host, before its run: what it is called, in what it is slower, and what says so.
pub fn of_host(host: &Host) -> Markup {
    let layer = host
        .layer
        .map_or_else(String::new, |layer| format!(": layer {layer}"));
    html! {
        p class="headline" {
            span aria-hidden="true" { "☞ " }
            (clean(&host.node))
            " is "
            (words(host.standing))
            (layer)
            @if let Some(cause) = &host.cause { ", " (term(&clean(cause))) }
            "."
        }
        @if let Some(reason) = &host.reason { p { (clean(reason)) "." } }
        @if !host.slower.is_empty() {
            p { "Beside the median of its peers:" }
            ul { @for s in &host.slower { li { (clean(&s.what)) ": " (ratio(s)) } } }
        }
        @if let Some(s) = &host.again {
            p { "Measured again beside others of its kind: " (clean(&s.what)) ": " (ratio(s)) "." }
        }
        @if !host.evidence.is_empty() { ul { @for fact in &host.evidence { li { (clean(&fact.words())) } } } }
    }
}

fn name(node: &str, link: Option<&dyn Fn(&str) -> String>) -> Markup {
    html! { @match link { Some(link) => a href=(link(node)) { (clean(node)) }, None => (clean(node)) } }
}

/// From so many times on a ratio is told as such: per cent of a thousand times are read wrong.
const TIMES: f64 = 3.0;

fn ratio(s: &Slower) -> String {
    if s.ratio >= TIMES {
        return format!("{:.1} times ({:.1} to {:.1})", s.ratio, s.low, s.high);
    }
    format!(
        "{:+.1} % ({:+.1} to {:+.1})",
        (s.ratio - 1.0) * 100.0,
        (s.low - 1.0) * 100.0,
        (s.high - 1.0) * 100.0
    )
}

/// What a host is called, in words.
pub fn words(standing: Standing) -> &'static str {
    match standing {
        Standing::Slow => "slow, confirmed by measuring again",
        Standing::Suspected => "suspected: slow once, not measured again",
        Standing::Failed => "without a record",
        Standing::Left => "not measured yet",
        Standing::Unresolved => "too few peers to say",
        Standing::NotConfirmed => "slow once, and not when measured again",
        Standing::Ok => "among its peers",
    }
}

fn table(hosts: &[&Host], link: Option<&dyn Fn(&str) -> String>) -> Markup {
    let rows = html! {
        table class="hosts" {
            thead {
                tr {
                    @for title in ["Host", "Result", "Layer", "Slower in", "Measured again", "Evidence"] {
                        th scope="col" { (term(title)) }
                    }
                }
            }
            tbody { @for host in hosts.iter().take(MOST_TOLD) { tr {
                th scope="row" { (name(&host.node, link)) }
                td { (words(host.standing)) }
                td {
                    @if let Some(layer) = host.layer {
                        (layer)
                        @if let Some(cause) = &host.cause { br; (term(&clean(cause))) }
                    } @else {
                        "not known"
                    }
                }
                td { ul { @for s in host.slower.iter().take(MOST_UNITS) { li { (clean(&s.what)) ": " (ratio(s)) } } } }
                td { @if let Some(s) = &host.again { span class="again" { (clean(&s.what)) ": " (ratio(s)) } } }
                td { ul { @for fact in host.evidence.iter().take(MOST_EVIDENCE) { li { (clean(&fact.words())) } } } }
            } } }
        }
    };
    let more = hosts.len().saturating_sub(MOST_TOLD);
    html! {
        (scrolling("Slow hosts, table", rows))
        @if more > 0 { p class="note" { (more) " more are in " code { "fleet show --format json" } "." } }
    }
}

/// Hosts without a record, by their reason.
fn without(verdicts: &Verdicts) -> Option<Section> {
    let mut by_reason: std::collections::BTreeMap<String, Vec<String>> =
        std::collections::BTreeMap::new();
    for host in verdicts
        .hosts
        .iter()
        .filter(|host| matches!(host.standing, Standing::Failed | Standing::Left))
    {
        let reason = host
            .reason
            .clone()
            .unwrap_or_else(|| words(host.standing).to_owned());
        by_reason.entry(reason).or_default().push(host.node.clone());
    }
    let body = html! {
        ul {
            @for (reason, hosts) in by_reason.iter().take(MOST_TOLD) {
                li { (clean(&nodes::fold(hosts))) ": " (clean(reason)) }
            }
        }
    };
    (!by_reason.is_empty()).then(|| Section {
        key: "without".into(),
        title: "Without a record".into(),
        body,
    })
}

/// Room for the letters of the parts above the picture.
const ABOVE: usize = 18;
/// Lines that are less high than a letter have no names.
const LETTER: usize = 12;
/// A part has room for its letter where its columns are no less than these parts of all: on paper and a screen, and on
/// a phone.
const ROOM: (usize, usize) = (60, 16);
/// A letter's width.
const LETTERS: usize = 7;
/// The longest name beside the picture.
const LONGEST_LABEL: usize = 18;

/// The picture, its legend, and which columns are what.
fn picture(p: &Picture) -> Option<Section> {
    let width = p.rows.len();
    let file = png::indexed(width, &p.cells, &COLOURS.map(|(colour, _)| colour))?;
    let source = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&file));
    // A cell is as high as a line of text where the hosts are few, and a pixel where they are many.
    let line = (900 / p.hosts.len()).clamp(1, 22);
    let height = (p.hosts.len() * line).max(40);
    let slow: Vec<String> = p
        .accused
        .iter()
        .map(|line| p.hosts[*line].clone())
        .collect();
    let standing_out = if slow.is_empty() {
        "no host stands out".to_owned()
    } else {
        format!("hosts that stand out: {}", nodes::fold(&slow))
    };
    let alt = format!("{} hosts by {width} rows; {standing_out}", p.hosts.len());
    let short = nodes::short_names(&p.hosts.iter().map(String::as_str).collect::<Vec<_>>());
    let label = |at: &usize| (*at, clean_short(short[*at], LONGEST_LABEL));
    let named: Vec<(usize, String)> = p
        .accused
        .iter()
        .filter(|_| line >= LETTER)
        .map(label)
        .collect();
    let longest = named
        .iter()
        .map(|(_, name)| name.chars().count())
        .max()
        .unwrap_or(0);
    let share = |column: usize| format!("{:.3}%", column as f64 / width as f64 * 100.0);
    let body = html! {
        figure {
            figcaption {
                "A line a host, a column a row: how many times slower than the median of the peers. Of each peer group \
                 those that stand out are the first lines. Letters: the parts of the system, as below."
            }
            div class="heat" {
                @if !named.is_empty() {
                    svg class="names" width=(LETTERS * longest + LETTERS)
                        height=(ABOVE + height) aria-hidden="true" focusable="false"
                        xmlns="http://www.w3.org/2000/svg" {
                        @for (at, name) in &named {
                            text class="tick" x="0" y=(ABOVE + at * line + line / 2 + 4) { (clean(name)) }
                        }
                    }
                }
                svg width="100%" height=(ABOVE + height) role="img" xmlns="http://www.w3.org/2000/svg" {
                    title { "Hosts by rows" }
                    desc { (clean(&alt)) }
                    @for (n, (at, _)) in p.families.iter().enumerate() {
                        line class="rule" x1=(share(*at)) x2=(share(*at)) y1="2" y2=(ABOVE) {}
                        @let columns = p.families.get(n + 1).map_or(width, |next| next.0) - at;
                        @if columns * ROOM.0 >= width {
                            text class=(if columns * ROOM.1 < width { "tick between" } else { "tick" }) x=(share(*at))
                                dx="3" y="13" {
                                (letter(n))
                            }
                        }
                    }
                    image y=(ABOVE) width="100%" height=(height) preserveAspectRatio="none" href=(source) {}
                }
            }
            (colours(p))
        }
        details { summary { "Which columns are what" } (scrolling("Columns of the picture, table", columns(p))) }
    };
    Some(Section {
        key: "picture".into(),
        title: "Hosts by rows".into(),
        body,
    })
}

/// What each colour of the picture means.
fn colours(p: &Picture) -> Markup {
    html! {
        ul class="legend" { @for (n, ([r, g, b], word)) in COLOURS.iter().enumerate() {
            @if n != usize::from(NOTHING) || p.cells.contains(&NOTHING) {
                li {
                    svg width="14" height="14" aria-hidden="true" focusable="false" {
                        rect width="14" height="14" fill={ "rgb(" (r) "," (g) "," (b) ")" } {}
                    }
                    " "
                    (word)
                }
            }
        } }
    }
}

/// Which columns of the picture are what: a line for each part of the system, with its first and last row.
fn columns(p: &Picture) -> Markup {
    let names = |at: usize, next: Option<usize>| {
        let last = next.unwrap_or(p.rows.len()) - 1;
        (
            at + 1,
            last + 1,
            clean(&p.rows[at]).into_owned(),
            clean(&p.rows[last]).into_owned(),
        )
    };
    html! {
        table class="stacked" {
            thead { tr {
                th scope="col" { (term("Part of the system")) }
                th scope="col" class="number" { (term("Columns")) }
                th scope="col" { (term("From")) }
                th scope="col" { (term("To")) }
            } }
            tbody { @for (n, (at, family)) in p.families.iter().enumerate() {
                @let (from, to, first, last) = names(*at, p.families.get(n + 1).map(|next| next.0));
                tr {
                    th scope="row" { (letter(n)) " " (clean(family)) }
                    td class="number" data-of="columns" { (from) "–" (to) }
                    td class="wide" data-of="from" { (first) }
                    td class="wide" data-of="to" { (last) }
                }
            } }
        }
    }
}

/// Hosts × families in per cent. The columns are letters, as in the terminal and in the picture: the names of all have
/// no room side by side.
fn families(verdicts: &Verdicts) -> Section {
    let heat = &verdicts.heat;
    let short = nodes::short_names(
        &heat
            .hosts
            .iter()
            .map(|(node, _)| node.as_str())
            .collect::<Vec<_>>(),
    );
    let table = html! {
        table class="parts" {
            thead { tr { th scope="col" { (term("Host")) } @for (n, family) in heat.families.iter().enumerate() {
                th scope="col" class="number" { abbr class="term" tabindex="0" title=(clean(family)) { (letter(n)) } }
            } } }
            tbody { @for ((_, ratios), name) in heat.hosts.iter().zip(short) {
                tr { th scope="row" { (clean(name)) } @for ratio in ratios {
                    td class={ "number" @if ratio.is_some_and(|r| r > 1.05) { " failed" } } { (Heat::percent(*ratio)) }
                } }
            } }
        }
    };
    let body = html! {
        p class="note" {
            "Per cent slower than the median of the peers, in the middle of each part's rows (–: too few rows to say); \
             with some hosts that do not stand out."
        }
        ul class="legend" {
            @for (n, family) in heat.families.iter().enumerate() { li { strong { (letter(n)) } " " (clean(family)) } }
        }
        (scrolling("Hosts by parts of the system, table", table))
    };
    Section {
        key: "parts".into(),
        title: "By part of the system".into(),
        body,
    }
}

fn groups(verdicts: &Verdicts) -> Markup {
    html! {
        @for group in &verdicts.groups {
            h3 { (group.hosts) " hosts" @if !group.resolved { ": too few to say that one is slow" } }
            p { (clean(&group.kind)) }
            @if !group.populations.is_empty() {
                ul { @for sentence in &group.populations { li { (clean(sentence)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::Told;

    #[test]
    fn foreign_names_do_no_harm_and_every_colour_has_its_word() {
        let evil = "<script>alert(1)</script>\u{1b}[1m";
        let host = Host {
            slower: vec![Slower {
                what: evil.into(),
                ratio: 1.2,
                low: 1.1,
                high: 1.3,
            }],
            evidence: vec![Told::NotMeasured {
                row: evil.into(),
                reason: evil.into(),
            }],
            reason: Some(evil.into()),
            ..crate::standing::plain("n1", Standing::Slow)
        };
        let failed = Host {
            reason: Some(evil.into()),
            ..crate::standing::plain("n2", Standing::Failed)
        };
        let verdicts = Verdicts {
            headline: evil.into(),
            hosts: vec![host, failed],
            ..Verdicts::default()
        };
        let page = fingerpost_report::html::page(&content(&verdicts, None));
        assert!(
            !page.contains("<script>")
                && !page.contains('\u{1b}')
                && page.contains("n2")
                && page.contains("+20.0 %"),
            "{page}"
        );
        let far = Slower {
            what: String::new(),
            ratio: 756.08,
            low: 337.3,
            high: 1695.0,
        };
        assert_eq!(ratio(&far), "756.1 times (337.3 to 1695.0)");
        assert_eq!(usize::from(NOTHING), COLOURS.len() - 1);
    }
}
