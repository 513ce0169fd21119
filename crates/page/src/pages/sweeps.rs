//! Sweeps of many hosts: those that the server was started with, one of them, and a host of it.

use fingerpost_fleet::judge;
use fingerpost_fleet::sweep::{Pass, Sweep};
use fingerpost_record::text::{clean, clean_short, counted};
use fingerpost_report::html;
use fingerpost_report::words::moment;
use maud::html as markup;

use super::{Answer, Wrong, body, content};
use crate::site::Site;

/// The page's entry in the menu.
const MENU: &str = "/sweeps";

fn none(what: &str) -> Wrong {
    Wrong::none(format!("There is no such {what}."))
}

/// The sweep of this number. Only those that the server was started with are reached: an address names no directory.
fn opened(site: &Site, number: &str) -> Result<Sweep, Wrong> {
    let dir = number
        .parse::<usize>()
        .ok()
        .and_then(|n| site.options.sweeps.get(n))
        .ok_or_else(|| none("sweep"))?;
    Sweep::open(dir).map_err(Wrong::unreadable)
}

/// Which nodes a sweep was asked for; the list may be long.
fn asked(nodes: &str) -> String {
    let number = fingerpost_fleet::nodes::parse(nodes).map_or(0, |names| names.len());
    format!(
        "{}, {}",
        counted(number as u64, "host"),
        clean_short(nodes, 120)
    )
}

/// All sweeps.
pub fn list(site: &Site) -> Answer {
    let main = markup! {
        h1 { "Sweeps" }
        p { "A sweep is one run on each of many hosts, by " code { "fingerpost fleet run" } "." }
        @if site.options.sweeps.is_empty() {
            p { "None is shown. " code { "fingerpost serve --sweep DIR" } " shows one; it may be given several times." }
        } @else {
            section class="card" aria-labelledby="sweeps-title" {
                h2 id="sweeps-title" { "Sweeps that are shown" }
                ul { @for (n, dir) in site.options.sweeps.iter().enumerate() { li {
                    @match Sweep::open(dir) {
                        Ok(sweep) => {
                            a href={ (site.base) "/sweep/" (n) } { (clean(&dir.display().to_string())) }
                            ": " (asked(&sweep.manifest.nodes)) ", " (clean(&moment(&sweep.manifest.started)))
                        },
                        Err(e) => { (clean(&e.to_string())) },
                    }
                } } }
            }
        }
    };
    Ok(body("Sweeps", MENU, main))
}

/// One sweep.
///
/// # Errors
/// When there is none of this number, or it cannot be read.
pub fn one(site: &Site, number: &str) -> Answer {
    let sweep = opened(site, number)?;
    let verdicts = judge::judge(&sweep, true).map_err(Wrong::unreadable)?;
    let link = |node: &str| format!("{}/sweep/{number}/host/{node}", site.base);
    let content_of = fingerpost_fleet::html::content(&verdicts, Some(&link));
    let actions = markup! { p class="actions" { a href={ (site.base) "/sweep/" (number) "/report" } { "Report as one file" } } };
    Ok(body(&content_of.title, MENU, content(&content_of, actions)))
}

/// The sweep's report.
///
/// # Errors
/// As of [`one`].
pub fn report(site: &Site, number: &str) -> Result<Vec<u8>, Wrong> {
    let verdicts = judge::judge(&opened(site, number)?, true).map_err(Wrong::unreadable)?;
    let page = html::page(&fingerpost_fleet::html::content(&verdicts, None));
    Ok(fingerpost_record::guard::text(page.as_bytes()))
}

/// A host's run in a sweep.
///
/// # Errors
/// When there is no such sweep or host, or the host has no record.
pub fn host(site: &Site, number: &str, node: &str) -> Answer {
    let sweep = opened(site, number)?;
    if !fingerpost_fleet::nodes::is_name(node) {
        return Err(none("host"));
    }
    let run = sweep.read(Pass::First, node).map_err(Wrong::unreadable)?;
    // What it is among its peers is read before its figures.
    let verdicts = judge::judge(&sweep, false).map_err(Wrong::unreadable)?;
    let of_host = verdicts
        .hosts
        .iter()
        .find(|host| host.node == node)
        .map(fingerpost_fleet::html::of_host);
    let mut content_of = html::of_run(
        &run,
        fingerpost_labs::views(),
        html::Around {
            link: None,
            define: Some(site.options.define),
        },
    );
    content_of.title = format!("{}: {}", clean(node), content_of.title);
    let actions = markup! {
        p class="actions" { a href={ (site.base) "/sweep/" (number) } { "To the sweep" } }
        @if let Some(of_host) = of_host { (of_host) }
    };
    Ok(body(&content_of.title, MENU, content(&content_of, actions)))
}
