//! What a run looks like: one neutral [`view::View`], and the formats over it.
//!
//! Nothing here measures, and nothing here reads a file: every format is a function of the record. Strings of a run are
//! hostile until [`view`] has cleaned them (no control characters, so no terminal escape sequences); a format escapes
//! for its own syntax only.

pub mod answer;
pub mod compare;
mod compare_words;
pub mod document;
pub mod evidence;
pub mod explain;
pub mod figure;
pub mod format;
pub mod grid;
pub mod html;
mod key_figures;
pub mod lab;
pub mod run;
pub mod scaling;
mod steps;
pub mod style;
pub mod svg;
pub mod untrusted;
pub mod view;
pub mod watched;
pub mod wording;
pub mod words;
pub mod wrap;

pub use document::json;
pub use format::Format;
pub use style::Style;
pub use view::View;
