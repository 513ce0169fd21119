//! The host's description.

use maud::html;

use super::{Section, facts};
use crate::view::View;

/// Everything known about the host, in full; nothing where all that a source tells of it stands in the heading.
pub fn section(view: &View) -> Option<Section> {
    (!view.host.is_empty()).then(|| Section { key: "host", title: "Host".into(), body: html! { (facts(&view.host)) } })
}
