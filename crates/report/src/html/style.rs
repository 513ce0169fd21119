//! The style sheet, inlined into every page.

/// Light and dark by the reader's preference; one column on a phone; tables scroll by themselves. Series and layers
/// have the colours of Okabe and Ito, which people with any kind of colour vision tell apart; shapes and words repeat
/// what they say.
pub const SHEET: &str = include_str!("style.css");
