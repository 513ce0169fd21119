//! What a run looks like: one neutral [`view::View`], and the formats over it.
//!
//! Nothing here measures, and nothing here reads a file: every format is a function of the record. Strings of a run are
//! hostile until [`view`] has cleaned them (no control characters, so no terminal escape sequences); a format escapes
//! for its own syntax only.

pub mod answer;
pub mod compare;
pub mod compare_csv;
pub mod compare_markdown;
mod compare_words;
pub mod csv;
pub mod evidence;
pub mod explain;
pub mod figure;
pub mod format;
pub mod grid;
mod grid_markdown;
pub mod html;
pub mod json;
mod key_figures;
pub mod lab;
pub mod markdown;
pub mod scaling;
mod steps;
pub mod style;
pub mod svg;
pub mod table;
pub mod untrusted;
pub mod view;
pub mod watched;
pub mod wording;
pub mod words;
pub mod wrap;

pub use format::Format;
pub use style::Style;
pub use view::View;
