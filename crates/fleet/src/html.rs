//! A sweep as a report: what is slow and why, the peers, and a picture of hosts × rows.

use fingerpost_record::text::clean;
use fingerpost_report::html::{Content, Section, scrolling};
use maud::{Markup, html};

use crate::heat::{NOTHING, Picture, STEPS};
use crate::judge::{Host, Slower, Standing, Verdicts};
use crate::{nodes, png, wire};

/// Hosts that are told one by one.
const MOST_TOLD: usize = 300;
/// What is told of one host.
const MOST_UNITS: usize = 4;
/// Sentences of evidence of one host.
const MOST_EVIDENCE: usize = 6;
/// The colours of the picture, one more than there are steps: faster, alike, slower by more and more; and nothing observed. They keep apart
/// for the colour-blind by their lightness (a sequence of oranges beside one blue).
const COLOURS: [[u8; 3]; STEPS.len() + 2] = [
    [0x1f, 0x6f, 0xb4],
    [0x9c, 0xc9, 0xe8],
    [0xf2, 0xf2, 0xee],
    [0xfd, 0xd4, 0x9e],
    [0xfc, 0x8d, 0x59],
    [0xd7, 0x30, 0x1f],
    [0x7a, 0x00, 0x00],
    [0x8a, 0x8f, 0x94],
];
/// What the colours mean.
const WORDS: [&str; STEPS.len() + 2] = [
    "faster by more than 20 %",
    "faster by 5 to 20 %",
    "within 5 %",
    "slower by 5 to 10 %",
    "slower by 10 to 25 %",
    "slower by 25 to 100 %",
    "more than twice as slow",
    "not observed",
];

/// The report's content. `link` makes the address of a host, where there is one.
pub fn content(verdicts: &Verdicts, link: Option<&dyn Fn(&str) -> String>) -> Content {
    let told = |host: &&Host| !matches!(host.standing, Standing::Ok | Standing::Left | Standing::Unresolved | Standing::Failed);
    let accused: Vec<&Host> = verdicts.hosts.iter().filter(told).collect();
    let mut sections = Vec::new();
    if !accused.is_empty() {
        sections.push(Section { key: "hosts", title: "Slow hosts".into(), body: table(&accused, link) });
    }
    sections.extend(without(verdicts));
    sections.extend(verdicts.picture.as_ref().and_then(picture));
    sections.push(families(verdicts));
    sections.push(Section { key: "peers", title: "Peers".into(), body: groups(verdicts) });
    let lead = html! {
        p class="headline" { span aria-hidden="true" { "☞ " } (clean(&verdicts.headline)) }
        p { "Each host is compared with the median of its peers: hosts of the same processor, microcode, memory, kernel and hypervisor. Slow is who was beyond them "
            "twice, the second time beside random hosts of its kind; suspected is who was once and was not measured again." }
    };
    Content { title: format!("Sweep {}", clean(&verdicts.id)), lead, sections }
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
    format!("{:+.1} % ({:+.1} to {:+.1})", (s.ratio - 1.0) * 100.0, (s.low - 1.0) * 100.0, (s.high - 1.0) * 100.0)
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
            thead { tr { th scope="col" { "Host" } th scope="col" { "Is" } th scope="col" { "Layer" } th scope="col" { "In what, beside its peers" } th scope="col" { "Measured again" } th scope="col" { "What says so" } } }
            tbody { @for host in hosts.iter().take(MOST_TOLD) { tr {
                th scope="row" { (name(&host.node, link)) }
                td { (words(host.standing)) }
                td { @if let Some(layer) = host.layer { (layer) @if let Some(cause) = &host.cause { br; code { (clean(cause)) } } } @else { "not known" } }
                td { ul { @for s in host.slower.iter().take(MOST_UNITS) { li { (clean(&s.what)) ": " (ratio(s)) } } } }
                td { @if let Some(s) = &host.again { (clean(&s.what)) ": " (ratio(s)) } }
                td { ul { @for sentence in host.evidence.iter().take(MOST_EVIDENCE) { li { (clean(sentence)) } } } }
            } } }
        }
    };
    let more = hosts.len().saturating_sub(MOST_TOLD);
    html! { (scrolling("Slow hosts, table", rows)) @if more > 0 { p class="note" { (more) " more are in " code { "fleet show --format json" } "." } } }
}

/// Hosts without a record, by their reason.
fn without(verdicts: &Verdicts) -> Option<Section> {
    let mut by_reason: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for host in verdicts.hosts.iter().filter(|host| matches!(host.standing, Standing::Failed | Standing::Left)) {
        let reason = host.reason.clone().unwrap_or_else(|| words(host.standing).to_owned());
        by_reason.entry(reason).or_default().push(host.node.clone());
    }
    let body = html! {
        ul { @for (reason, hosts) in by_reason.iter().take(MOST_TOLD) { li { (clean(&nodes::fold(hosts))) ": " (clean(reason)) } } }
    };
    (!by_reason.is_empty()).then(|| Section { key: "without", title: "Without a record".into(), body })
}

/// The picture, its legend, and which columns are what.
fn picture(p: &Picture) -> Option<Section> {
    let width = p.rows.len();
    let file = png::indexed(width, &p.cells, &COLOURS)?;
    let source = format!("data:image/png;base64,{}", wire::encode(&file));
    // A cell is as high as a line of text where the hosts are few, and a pixel where they are many.
    let height = (p.hosts.len() * (900 / p.hosts.len()).clamp(1, 22)).max(40);
    let names = |at: usize, next: Option<usize>| {
        let last = next.unwrap_or(width) - 1;
        (at + 1, last + 1, clean(&p.rows[at]).into_owned(), clean(&p.rows[last]).into_owned())
    };
    let slow: Vec<String> = p.accused.iter().map(|line| p.hosts[*line].clone()).collect();
    let alt = format!(
        "{} hosts by {width} rows; {}",
        p.hosts.len(),
        if slow.is_empty() { "no host stands out".to_owned() } else { format!("hosts that stand out: {}", nodes::fold(&slow)) }
    );
    let ranges = html! {
        table { thead { tr { th scope="col" { "Part of the system" } th scope="col" class="number" { "Columns" } th scope="col" { "From" } th scope="col" { "To" } } }
            tbody { @for (n, (at, family)) in p.families.iter().enumerate() {
                @let (from, to, first, last) = names(*at, p.families.get(n + 1).map(|next| next.0));
                tr { th scope="row" { (clean(family)) } td class="number" { (from) "–" (to) } td { (first) } td { (last) } }
            } } }
    };
    let body = html! {
        figure {
            figcaption { "A line a host, a column a row: how many times slower than the middle of the peers. Of each peer group those that stand out are the first lines." }
            div class="scroll" tabindex="0" role="region" aria-label="Hosts by rows" {
                img class="heat" src=(source) alt=(clean(&alt)) width="1100" height=(height);
            }
            ul class="legend" { @for (n, word) in WORDS.iter().enumerate() {
                @let [r, g, b] = COLOURS[n];
                @if n != usize::from(NOTHING) || p.cells.contains(&NOTHING) {
                    li { svg width="14" height="14" aria-hidden="true" focusable="false" { rect width="14" height="14" fill={ "rgb(" (r) "," (g) "," (b) ")" } {} } " " (word) }
                }
            } }
        }
        details { summary { "Which columns are what" } (scrolling("Columns of the picture, table", ranges)) }
    };
    Some(Section { key: "picture", title: "Hosts by rows".into(), body })
}

/// Hosts × families in per cent.
fn families(verdicts: &Verdicts) -> Section {
    let heat = &verdicts.heat;
    let cell = |ratio: &Option<f64>| ratio.map_or_else(|| "–".to_owned(), |r| format!("{:+.0}", ((r - 1.0) * 100.0).clamp(-99.0, 999.0)));
    let table = html! {
        table { thead { tr { th scope="col" { "Host" } @for family in &heat.families { th scope="col" class="number" { (clean(family)) } } } }
            tbody { @for (node, ratios) in &heat.hosts {
                tr { th scope="row" { (clean(node)) } @for ratio in ratios {
                    td class={ "number" @if ratio.is_some_and(|r| r > 1.05) { " failed" } } { (cell(ratio)) }
                } }
            } } }
    };
    let body = html! { p class="note" { "Per cent slower than the median of the peers, in the middle of each part's rows; with some hosts that do not stand out." } (scrolling("Hosts by parts of the system, table", table)) };
    Section { key: "parts", title: "By part of the system".into(), body }
}

fn groups(verdicts: &Verdicts) -> Markup {
    html! {
        @for group in &verdicts.groups {
            h3 { (group.hosts) " hosts" @if !group.resolved { ": too few to say that one is slow" } }
            p { (clean(&group.kind)) }
            @if !group.populations.is_empty() { ul { @for sentence in &group.populations { li { (clean(sentence)) } } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_do_no_harm_and_every_colour_has_its_word() {
        let evil = "<script>alert(1)</script>\u{1b}[1m";
        let host = Host {
            slower: vec![Slower { what: evil.into(), ratio: 1.2, low: 1.1, high: 1.3 }],
            evidence: vec![evil.into()],
            reason: Some(evil.into()),
            ..crate::standing::plain("n1", Standing::Slow)
        };
        let failed = Host { reason: Some(evil.into()), ..crate::standing::plain("n2", Standing::Failed) };
        let verdicts = Verdicts { headline: evil.into(), hosts: vec![host, failed], ..Verdicts::default() };
        let page = fingerpost_report::html::page(&content(&verdicts, None));
        assert!(!page.contains("<script>") && !page.contains('\u{1b}') && page.contains("n2") && page.contains("+20.0 %"), "{page}");
        let far = Slower { what: String::new(), ratio: 756.08, low: 337.3, high: 1695.0 };
        assert_eq!(ratio(&far), "756.1 times (337.3 to 1695.0)");
        assert_eq!(COLOURS.len(), WORDS.len());
        assert_eq!(usize::from(NOTHING), COLOURS.len() - 1);
    }
}
