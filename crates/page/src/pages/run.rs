//! One run.

use fingerpost_record::{Run, guard, load};
use fingerpost_report::document::csv;
use fingerpost_report::html;
use fingerpost_report::run::Shown;
use fingerpost_report::view::Row;
use maud::html as markup;

use super::{Answer, Wrong, body, compare, content, encoded, kept, path};
use crate::site::Site;

fn read(site: &Site, id: &str) -> Result<Run, Wrong> {
    load::from_path(&path(site, id)?).map_err(Wrong::unreadable)
}

/// The page.
pub fn page(site: &Site, id: &str) -> Answer {
    let run = read(site, id)?;
    let link = |row: &Row| {
        format!(
            "{}/history?probe={}&params={}",
            site.base,
            encoded(&row.probe),
            encoded(&row.params)
        )
    };
    let content_of = html::of_run(
        &run,
        fingerpost_labs::views(),
        html::Around {
            link: Some(&link),
            define: Some(site.options.define),
        },
    );
    let actions = markup! {
        p class="actions" {
            a href={ (site.base) "/run/" (id) "/report" } { "Report as one file" } " "
            a href={ (site.base) "/run/" (id) "/record" } { "Record (JSON)" } " "
            a href={ (site.base) "/run/" (id) "/rows" } { "Rows (CSV)" } " "
            a href={ (site.base) "/compare?run=" (id) "&run=previous" } { "Compare with the run before" }
        }
        (compare::beside_published(site, &run))
        (kept::forms(site, &run))
    };
    Ok(body(&content_of.title, "/", content(&content_of, actions)))
}

/// The record as its file has it, but for characters that could act on a terminal: they are escaped, which says the
/// same.
///
/// # Errors
/// When there is no such run.
pub fn record(site: &Site, id: &str) -> Result<Vec<u8>, Wrong> {
    let bytes = load::bytes_of(&path(site, id)?).map_err(Wrong::unreadable)?;
    // Only what is JSON means the same when escaped.
    load::from_slice(&bytes, id).map_err(Wrong::unreadable)?;
    Ok(guard::json(&bytes))
}

/// The rows as comma-separated values.
///
/// # Errors
/// When there is no such run.
pub fn rows(site: &Site, id: &str) -> Result<Vec<u8>, Wrong> {
    let (run, labs) = (read(site, id)?, fingerpost_labs::views());
    let shown = Shown { run: &run, labs };
    Ok(guard::text(csv::render(&shown).as_bytes()))
}

/// The report as one file.
///
/// # Errors
/// When there is no such run.
pub fn report(site: &Site, id: &str) -> Result<Vec<u8>, Wrong> {
    Ok(guard::text(
        html::report(
            &read(site, id)?,
            fingerpost_labs::views(),
            Some(site.options.define),
        )
        .as_bytes(),
    ))
}
