//! Two runs compared.

use axum::http::StatusCode;
use fingerpost_compare::{Options, compare};
use fingerpost_record::{Run, lean};
use fingerpost_report::html;
use maud::html as markup;

use super::{Answer, Wrong, bad, body, content, run};
use crate::routes::Site;

/// Compares the runs that were ticked: the older one is the base, unless the address says `order=given`.
pub fn page(site: &Site, pairs: &[(String, String)]) -> Answer {
    let ticked: Vec<&str> = pairs.iter().filter(|(k, _)| k == "run").map(|(_, v)| v.as_str()).collect();
    let [first, second] = ticked[..] else {
        return Err(bad(format!("A comparison needs two runs, and {} are ticked. Go back and tick two.", ticked.len())));
    };
    let (first, second) = (first.to_owned(), if second == "previous" { previous(site, first)? } else { second.to_owned() });
    let (mut base, mut new) = (read(site, &first)?, read(site, &second)?);
    let given = pairs.iter().any(|(k, v)| k == "order" && v == "given");
    if !given && (&base.started, &base.id) > (&new.started, &new.id) {
        std::mem::swap(&mut base, &mut new);
    }
    let (base_id, new_id) = (base.id.clone(), new.id.clone());
    let comparison = compare(&[base], &[new], &Options::default());
    let content_of = html::of_comparison(&comparison, Some(site.define));
    let actions = markup! {
        p class="actions" {
            a href={ (site.base) "/compare?order=given&run=" (new_id) "&run=" (base_id) } { "The other way round" } " "
            a href={ (site.base) "/run/" (base_id) } { "Base run" } " "
            a href={ (site.base) "/run/" (new_id) } { "New run" }
        }
    };
    Ok(body(&content_of.title, "/", content(&content_of, actions)))
}

fn read(site: &Site, id: &str) -> Result<Run, Wrong> {
    lean::figures_from_path(&run::path(site, id)?).map_err(|e| Wrong { status: StatusCode::UNPROCESSABLE_ENTITY, sentence: e.to_string() })
}

/// The run of the same host before this one.
fn previous(site: &Site, id: &str) -> Result<String, Wrong> {
    let items = site.index.items().map_err(|e| Wrong { status: StatusCode::INTERNAL_SERVER_ERROR, sentence: e.to_string() })?;
    let heads: Vec<_> = items.iter().filter_map(|i| i.head.as_ref().ok()).collect();
    let at = heads.iter().position(|h| h.id == id);
    let before = at.and_then(|at| heads[at + 1..].iter().find(|h| h.hostname == heads[at].hostname));
    before
        .map(|h| h.id.clone())
        .ok_or_else(|| Wrong { status: StatusCode::NOT_FOUND, sentence: "There is no earlier run of this host to compare with.".into() })
}
