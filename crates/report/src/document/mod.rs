//! What is shown, as data: sections of sentences, facts, tables, charts and details. It is made once, and each output
//! format renders it by one file of this folder.
//!
//! Texts of a run are hostile: whatever makes a block cleans them (no control characters), so that a format escapes for
//! its own syntax only.

pub mod asciidoc;
mod blocks;
pub mod chart;
pub mod csv;
pub mod format;
pub(crate) mod grids;
pub mod html;
pub mod json;
pub mod markdown;
mod markup;
pub mod records;
pub mod table;
pub mod terminal;
mod text;

pub use blocks::{Block, Document, Section};
pub use chart::Chart;
pub use table::{Cell, Column, Group, Row, Table};
pub use text::{Fact, Text};

use crate::lab::derived::Derived;

/// Every figure of sections, in the order shown: what a format for programs has of them.
pub fn figures<'a>(sections: &'a [Section]) -> impl Iterator<Item = &'a Derived> {
    let of = |section: &'a Section| blocks::figures(&section.blocks);
    sections.iter().flat_map(of)
}
