//! The host's description.

use maud::html;

use super::{Section, facts};
use crate::view::View;

/// Everything known about the host, in full.
pub fn section(view: &View) -> Section {
    Section { key: "host", title: "Host".into(), body: html! { (facts(&view.host)) } }
}
