//! Two runs compared.

use fingerpost_compare::{Options, compare, references};
use fingerpost_record::Table;
use fingerpost_record::archive::Head;
use fingerpost_record::{Profile, Run, lean};
use fingerpost_report::html;
use maud::{Markup, html as markup};

use super::{Answer, Wrong, bad, body, content, items, path};
use crate::site::Site;

/// Compares the runs that were ticked: the older one is the base, unless the address says `order=given`.
pub fn page(site: &Site, pairs: &[(String, String)]) -> Answer {
    let ticked: Vec<&str> = pairs
        .iter()
        .filter(|(k, _)| k == "run")
        .map(|(_, v)| v.as_str())
        .collect();
    let [first, second] = ticked[..] else {
        return Err(bad(format!(
            "A comparison needs two runs, and {} are ticked. Go back and tick two.",
            ticked.len()
        )));
    };
    let (first, second) = (
        first.to_owned(),
        if second == "previous" {
            previous(site, first)?
        } else {
            second.to_owned()
        },
    );
    let (mut base, mut new) = (read(site, &first)?, read(site, &second)?);
    let given = pairs.iter().any(|(k, v)| k == "order" && v == "given");
    if !given && (&base.started, &base.id) > (&new.started, &new.id) {
        std::mem::swap(&mut base, &mut new);
    }
    let published =
        |run: &Run| run.profile == Profile::Imported && references::load(&run.id).is_some();
    let named = |run: &Run| {
        if published(run) {
            format!("{PUBLISHED}{}", run.id)
        } else {
            run.id.clone()
        }
    };
    let (base_id, new_id) = (named(&base), named(&new));
    let comparison = compare(&[base], &[new], &Options::default());
    let content_of = html::of_comparison(&comparison, Some(site.options.define));
    let actions = markup! {
        p class="actions" {
            a href={ (site.base) "/compare?order=given&run=" (new_id) "&run=" (base_id) } { "The other way round" } " "
            a href=(address(site, &base_id)) { "Base run" } " "
            a href=(address(site, &new_id)) { "New run" }
        }
    };
    Ok(body(&content_of.title, "/", content(&content_of, actions)))
}

/// What the name of a published system begins with.
const PUBLISHED: &str = "ref:";

fn address(site: &Site, id: &str) -> String {
    match id.strip_prefix(PUBLISHED) {
        Some(name) => format!("{}/reference/{name}", site.base),
        None => format!("{}/run/{id}", site.base),
    }
}

/// A form that puts the run beside a published system that has rows in common with it; nothing where none has.
pub fn beside_published(site: &Site, run: &Run) -> Markup {
    let has = |probe: &String| run.measurements.iter().any(|m| m.probe == *probe);
    let names: Vec<&String> = site
        .published
        .iter()
        .filter(|(_, probes)| probes.iter().any(has))
        .map(|(name, _)| name)
        .collect();
    markup! {
        @if !names.is_empty() && run.profile != Profile::Imported {
            form class="beside" method="get" action={ (site.base) "/compare" } {
                input type="hidden" name="run" value=(run.id);
                label for="beside" { "Beside published figures" }
                select id="beside" name="run" { @for name in names { option value={ (PUBLISHED) (name) } { (name) } } }
                button { "Compare" }
            }
        }
    }
}

fn read(site: &Site, id: &str) -> Result<Run, Wrong> {
    if let Some(name) = id.strip_prefix(PUBLISHED) {
        return references::load(name).ok_or_else(|| Wrong::none(references::unknown(name)));
    }
    lean::figures_from_path(&path(site, id)?).map_err(Wrong::unreadable)
}

/// The run of the same host before this one that can be compared with it: it has groups of rows in common, all of them
/// if there is such a one.
fn previous(site: &Site, id: &str) -> Result<String, Wrong> {
    let items = items(site)?;
    let readable: Vec<(&Head, &[Table])> = items
        .iter()
        .filter_map(|i| Some((i.head.as_ref().ok()?, i.tables.as_slice())))
        .collect();
    let before = readable
        .iter()
        .position(|(h, _)| h.id == id)
        .and_then(|at| {
            let (own, tables) = readable[at];
            let earlier = || {
                readable[at + 1..]
                    .iter()
                    .filter(move |(h, _)| h.hostname == own.hostname)
            };
            let all = earlier().find(|(_, of)| *of == tables);
            all.or_else(|| earlier().find(|(_, of)| of.iter().any(|table| tables.contains(table))))
        });
    let none = "There is no earlier run of this host that has rows in common with this one.";
    before
        .map(|(h, _)| h.id.clone())
        .ok_or_else(|| Wrong::none(none))
}
