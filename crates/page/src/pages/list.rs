//! The runs of the archive, searched and filtered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fingerpost_record::Profile;
use fingerpost_record::archive::Head;
use fingerpost_report::view::duration;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Answer, body, encoded, items, moments};
use crate::index::Item;
use crate::site::Site;

/// Runs of one page.
const PAGE: usize = 50;

/// What is looked for; empty fields are not.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Filter {
    q: String,
    host: String,
    kernel: String,
    lab: String,
    from: String,
    to: String,
    sort: Sort,
    page: usize,
}

/// By what the list is sorted. Runs that are equal in it stand with the latest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    /// The latest first.
    #[default]
    Started,
    Host,
    Kernel,
    Processor,
    Measured,
    /// The longest first.
    Took,
}

impl Sort {
    /// Its word in an address, as it is read there.
    fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Puts runs, which come with the latest first, into this order.
    fn apply(self, runs: &mut [&(&Head, &Arc<Item>)]) {
        match self {
            Sort::Started => {}
            Sort::Host => runs.sort_by_key(|r| r.0.hostname.to_lowercase()),
            Sort::Kernel => runs.sort_by_key(|r| r.0.kernel.clone()),
            Sort::Processor => runs.sort_by_key(|r| r.0.cpu_model.to_lowercase()),
            Sort::Measured => runs.sort_by_cached_key(|r| r.0.name().to_lowercase()),
            Sort::Took => runs.sort_by(|a, b| b.0.duration_s.total_cmp(&a.0.duration_s)),
        }
    }
}

impl Filter {
    /// Whether a run is looked for. Words are found anywhere, in any case.
    fn takes(&self, head: &Head, item: &Item) -> bool {
        let day = head.started.get(..10).unwrap_or_default();
        let label = head.label.as_deref().unwrap_or_default();
        (self.host.is_empty() || head.hostname == self.host)
            && (self.kernel.is_empty() || head.kernel == self.kernel)
            && (self.lab.is_empty() || item.tables.iter().any(|table| table.key == self.lab))
            && (self.from.is_empty() || day >= self.from.as_str())
            && (self.to.is_empty() || day <= self.to.as_str())
            && (self.q.trim().is_empty() || {
                let (
                    command,
                    Head {
                        id,
                        hostname,
                        kernel,
                        cpu_model,
                        ..
                    },
                ) = (head.command.join(" "), head);
                let text = format!("{id} {label} {hostname} {kernel} {cpu_model} {command}")
                    .to_lowercase();
                self.q
                    .to_lowercase()
                    .split_whitespace()
                    .all(|word| text.contains(word))
            })
    }

    fn query(&self, page: usize) -> String {
        let fields = [
            ("q", &self.q),
            ("host", &self.host),
            ("kernel", &self.kernel),
            ("lab", &self.lab),
            ("from", &self.from),
            ("to", &self.to),
        ];
        let mut parts: Vec<String> = fields
            .iter()
            .filter(|f| !f.1.is_empty())
            .map(|(name, v)| format!("{name}={}", encoded(v)))
            .collect();
        parts.extend((self.sort != Sort::Started).then(|| format!("sort={}", self.sort.word())));
        parts.push(format!("page={page}"));
        parts.join("&")
    }
}

/// The list.
pub fn page(site: &Site, filter: &Filter) -> Answer {
    let items = items(site)?;
    let readable: Vec<(&Head, &Arc<Item>)> = items
        .iter()
        .filter_map(|i| Some((i.head.as_ref().ok()?, i)))
        .collect();
    let mut found: Vec<&(&Head, &Arc<Item>)> = readable
        .iter()
        .filter(|(head, item)| filter.takes(head, item))
        .collect();
    filter.sort.apply(&mut found);
    let pages = found.len().div_ceil(PAGE).max(1);
    let page = filter.page.clamp(1, pages);
    let shown = &found[(page - 1) * PAGE..(page * PAGE).min(found.len())];
    let unreadable: Vec<&Arc<Item>> = items.iter().filter(|i| i.head.is_err()).collect();
    let main = html! {
        h1 { "Runs" }
        (form(filter, &readable))
        div id="runs" aria-live="polite" {
            @if readable.is_empty() {
                p {
                    "The archive is empty. "
                    a href={ (site.base) "/measure" } { "Measure this machine" }
                    ", or "
                    a href={ (site.base) "/import" } { "import a run" }
                    "."
                }
            } @else {
                p class="count" {
                    (found.len())
                    " of "
                    (readable.len())
                    " runs"
                    @if pages > 1 { ", page " (page) " of " (pages) }
                }
                (table(site, filter, shown))
                (turn(site, filter, page, pages))
            }
            @if !unreadable.is_empty() {
                details { summary { (unreadable.len()) " files that are no runs" }
                    ul {
                        @for item in unreadable.iter().take(100) {
                            li { code { (file_name(item)) } ": " (item.head.as_ref().err().map_or("", String::as_str)) }
                        }
                    }
                }
            }
        }
    };
    Ok(body("Runs", "/", main))
}

fn file_name(item: &Item) -> String {
    fingerpost_record::text::clean_short(
        &item.path.file_name().unwrap_or_default().to_string_lossy(),
        80,
    )
}

fn form(filter: &Filter, runs: &[(&Head, &Arc<Item>)]) -> Markup {
    let hosts: BTreeSet<&str> = runs.iter().map(|r| r.0.hostname.as_str()).collect();
    let kernels: BTreeSet<&str> = runs.iter().map(|r| r.0.kernel.as_str()).collect();
    let labs: BTreeMap<(usize, &str), &str> = runs
        .iter()
        .flat_map(|r| &r.1.tables)
        .map(|table| (table.order(), &*table.title))
        .collect();
    let plain = |set: BTreeSet<&'_ str>| {
        set.into_iter()
            .map(|v| (v.to_owned(), v.to_owned()))
            .collect::<Vec<_>>()
    };
    html! {
        form class="filter card" method="get" role="search" data-live="runs" {
            p {
                label for="q" { "Search" }
                input id="q" name="q" type="search" value=(filter.q)
                    title="Words of a run’s label, id, host, kernel, processor or command"
                    placeholder="label, id, command …" autocomplete="off";
            }
            (choose("host", "Host", &filter.host, plain(hosts)))
            (choose("kernel", "Kernel", &filter.kernel, plain(kernels)))
            @let labs = labs.iter().map(|((_, key), title)| ((*key).to_owned(), (*title).to_owned()));
            (choose("lab", "With rows of", &filter.lab, labs.collect()))
            p class="day" { label for="from" { "From" } input id="from" name="from" type="date" value=(filter.from); }
            p class="day" { label for="to" { "To" } input id="to" name="to" type="date" value=(filter.to); }
            @if filter.sort != Sort::Started { input type="hidden" name="sort" value=(filter.sort.word()); }
            p class="buttons" { button { "Filter" } }
        }
    }
}

fn choose(name: &str, label: &str, chosen: &str, values: Vec<(String, String)>) -> Markup {
    html! {
        p {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "any" }
                @for (value, text) in &values { option value=(value) selected[value == chosen] { (text) } }
            }
        }
    }
}

fn table(site: &Site, filter: &Filter, shown: &[&(&Head, &Arc<Item>)]) -> Markup {
    let column = |sort: Sort, text: &str, class: &str| {
        let by = Filter {
            sort,
            ..filter.clone()
        }
        .query(1);
        let order = if matches!(sort, Sort::Started | Sort::Took) {
            "descending"
        } else {
            "ascending"
        };
        html! {
            th scope="col" class=[(!class.is_empty()).then_some(class)]
                aria-sort=[(sort == filter.sort).then_some(order)] {
                a href={ (site.base) "/?" (by) } { (text) }
            }
        }
    };
    html! {
        form method="get" action={ (site.base) "/compare" } data-pick="2" {
            div class="scroll card" tabindex="0" role="region" aria-label="Runs, table" { table class="runs" {
                thead { tr {
                    th scope="col" { span class="unseen" { "Compare" } }
                    // What tells runs apart comes first: a phone has no room for all.
                    (column(Sort::Started, "Started (UTC)", ""))
                    (column(Sort::Measured, "Measured", ""))
                    (column(Sort::Host, "Host", ""))
                    (column(Sort::Kernel, "Kernel", "extra"))
                    (column(Sort::Processor, "Processor", "extra"))
                    (column(Sort::Took, "Took", "number extra"))
                } }
                @let started = moments(shown.iter().map(|r| r.0.started.as_str()));
                tbody { @for ((head, item), started) in shown.iter().zip(started) { tr {
                    td { input type="checkbox" name="run" value=(head.id) aria-label={ "Compare " (head.id) }; }
                    th scope="row" {
                        a href={ (site.base) "/run/" (head.id) } { (started) }
                        @if !head.complete { " " span class="tag doubt" { "partial" } }
                    }
                    td { (what(head, item)) }
                    td { (head.hostname) }
                    td class="extra" { (head.kernel) }
                    td class="extra" { (head.cpu_model) }
                    td class="number extra" { (duration(head.duration_s)) }
                } } }
            } }
            p class="buttons" {
                button { "Compare the two ticked runs" }
                span class="note" id="picked" aria-live="polite" {}
            }
        }
    }
}

/// What was measured: the tables, or their number where they are many.
fn what(head: &Head, item: &Item) -> Markup {
    let titles: Vec<&str> = item.tables.iter().map(|table| &*table.title).collect();
    let name = head.name();
    html! {
        @if !name.is_empty() { strong { (name) } " " }
        span class="tag" { (head.profile.as_str()) } " "
        @if titles.len() > 3 {
            span title=(titles.join(", ")) { (titles.len()) " groups" }
        } @else {
            (titles.join(", "))
        }
        @if head.profile == Profile::Imported { " (published)" }
    }
}

fn turn(site: &Site, filter: &Filter, page: usize, pages: usize) -> Markup {
    let link =
        |to: usize, text: &str| html! { a href={ (site.base) "/?" (filter.query(to)) } { (text) } };
    html! {
        @if pages > 1 {
            nav class="turn" aria-label="Pages of the list" {
                @if page > 1 { (link(page - 1, "Newer")) }
                " "
                @if page < pages { (link(page + 1, "Older")) }
            }
        }
    }
}
