//! The host's description.

use super::content::Section;
use super::parts::facts;
use crate::view::View;

/// Everything known about the host, in full; nothing where all that a source tells of it stands in the heading.
pub fn section(view: &View) -> Option<Section> {
    let all = || view.other_facts().chain(&view.host);
    all().next()?;
    Some(Section { key: "host", title: "Host".into(), body: facts(all()) })
}
