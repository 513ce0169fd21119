//! The reference systems and their authors' tables: what they are, one of them, and its replay with this machine's
//! figures.

use fingerpost_compare::references;
use fingerpost_record::text::capitalised;
use fingerpost_record::{Run, lean, load, suggest};
use fingerpost_replay::{chosen, replay, shown, tables_of};
use fingerpost_report::html;
use fingerpost_report::html::parts::{heads, scrolling};
use maud::{Markup, html as markup};

use super::{Answer, Body, Wrong, body, content, items, path};
use crate::site::Site;

/// The page's entry in the menu.
const MENU: &str = "/references";
/// Runs of the archive that are looked through, the latest first, for rows of the tables.
const MOST_RUNS: usize = 50;

/// All systems, and all tables.
pub fn list(site: &Site) -> Body {
    let main = markup! {
        h1 { "Published figures" }
        p { "Five documents from 1996 to 2005 asked why one system is slower than another. These are their systems and \
            tables; a replay puts this "
            "machine's column beside a table and judges each of its author's conclusions here." }
        p class="actions" { a href={ (site.base) "/replay/all" } { "All tables, on your machine" } }
        section class="card" aria-labelledby="systems-title" {
            h2 id="systems-title" { "Systems" }
            (scrolling("Systems, table", systems(site)))
        }
        section class="card" aria-labelledby="tables-title" {
            h2 id="tables-title" { "Tables" }
            ul { @for name in references::table_names() {
                @if let Some(table) = references::table(name) {
                    li { a href={ (site.base) "/replay/" (name) } { (table.title) } }
                }
            } }
        }
    };
    body("Published figures", MENU, main)
}

fn systems(site: &Site) -> Markup {
    let runs = references::names()
        .into_iter()
        .filter_map(|name| references::load(&name));
    markup! {
        table {
            thead { tr {
                (heads(&[("System", ""), ("Host", ""), ("Processor", ""), ("Rows", "number")]))
            } }
            tbody { @for run in runs {
                tr {
                    th scope="row" { a href={ (site.base) "/reference/" (run.id) } { (run.id) } }
                    td { (run.host.hostname) }
                    td { (run.host.cpu.model) }
                    td class="number" { (run.measurements.len()) }
                }
            } }
        }
    }
}

/// One system.
///
/// # Errors
/// When there is none of this name.
pub fn system(site: &Site, name: &str) -> Answer {
    let run = references::load(name).ok_or_else(|| none(references::unknown(name)))?;
    let content_of = html::of_run(
        &run,
        fingerpost_labs::views(),
        html::Around {
            link: None,
            define: Some(site.options.define),
        },
    );
    let actions = markup! {
        p class="actions" {
            a href={ (site.base) "/replay/" (run.id) } { "Its tables, on your machine" } " "
            a href={ (site.base) "/references" } { "All published figures" }
        }
    };
    Ok(body(&content_of.title, MENU, content(&content_of, actions)))
}

/// The tables of a name beside the figures of this machine's latest runs that have some.
///
/// # Errors
/// When the name means no table, or the archive cannot be read.
pub fn replayed(site: &Site, name: &str) -> Answer {
    let tables = tables_of(name);
    if tables.is_empty() {
        let names = fingerpost_replay::names();
        let near = suggest::or_else(name, names.iter().map(String::as_str), || {
            "the tables are on the page Published figures".into()
        });
        return Err(none(format!(
            "there is no published table “{name}”; {near}"
        )));
    }
    let items = items(site)?;
    let paths = items
        .iter()
        .filter_map(|i| path(site, &i.head.as_ref().ok()?.id).ok());
    // A run that cannot be read is no reason to show no table.
    let own: Vec<Run> = chosen(
        &tables,
        paths.take(MOST_RUNS),
        |path| lean::figures_from_path(path).ok(),
        |path| load::from_path(path).ok(),
    );
    let content_of = shown::html::content(&replay(name, &tables, &own));
    let of_system = references::load(name).is_some();
    let actions = markup! {
        p class="actions" {
            @if of_system { a href={ (site.base) "/reference/" (name) } { "The system" } " " }
            a href={ (site.base) "/references" } { "All published figures" }
        }
    };
    Ok(body(&content_of.title, MENU, content(&content_of, actions)))
}

fn none(sentence: String) -> Wrong {
    // The sentence of the command line begins with a small letter.
    Wrong::none(capitalised(&sentence))
}
