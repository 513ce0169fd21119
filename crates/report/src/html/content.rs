//! What a page is made of, and what it is told beyond the record.

use std::borrow::Cow;

use maud::Markup;

use crate::view::Row;

/// A part of the page with a title and an anchor.
pub struct Section {
    /// A word for the anchor.
    pub key: Cow<'static, str>,
    /// The title.
    pub title: String,
    /// What is under it.
    pub body: Markup,
}

/// A page without its frame: what a person reads first, and the sections. The web page puts it in a frame of its own.
pub struct Content {
    /// The title.
    pub title: String,
    /// What a person reads first.
    pub lead: Markup,
    /// The rest.
    pub sections: Vec<Section>,
}

/// Where a row's name leads, where it leads anywhere.
pub type Link<'a> = Option<&'a dyn Fn(&Row) -> String>;
/// What a probe's name means, for who knows the probes.
pub type Define = fn(&str) -> Option<String>;

/// What a page knows beyond the record.
#[derive(Clone, Copy, Default)]
pub struct Around<'a> {
    /// Where rows lead.
    pub link: Link<'a>,
    /// What probes are.
    pub define: Option<Define>,
}
