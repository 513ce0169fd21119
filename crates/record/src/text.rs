//! Text that came from a file or from a system, made safe to show.

use std::borrow::Cow;
use std::path::Path;

/// Replaces every character that a terminal, a browser or a reader's eye could be misled by: control characters (escape
/// sequences begin with one), marks that turn the direction of writing, and characters without a width. Tabs and line
/// ends become spaces.
///
/// Every sentence and every table that shows a string of a run goes through this once, whatever the output format.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|c| misleads(c) || matches!(c, '\t' | '\n' | '\r'))
    {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|c| match c {
        '\t' | '\n' | '\r' => ' ',
        c if misleads(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    Cow::Owned(shown.collect())
}

/// [`clean`], and at most `most` characters; what is cut off is marked with `…`.
pub fn clean_short(text: &str, most: usize) -> String {
    let cleaned = clean(text);
    match cleaned.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", &cleaned[..cut]),
        None => cleaned.into_owned(),
    }
}

/// A path as it is shown.
pub(crate) fn shown(path: &Path) -> String {
    clean(&path.display().to_string()).into_owned()
}

/// Whether a character can change how the text around it is shown.
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with a capital letter first, as a sentence begins.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// A number with its noun, in the plural where it is not one: `1 page`, `2 pages`, `0 switches`.
pub fn counted(number: impl Into<u128>, noun: &str) -> String {
    let number = number.into();
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {}", plural(noun))
    }
}

/// The plural of a regular English noun.
pub fn plural(noun: &str) -> String {
    let vowel_before_y = noun.ends_with("ay") || noun.ends_with("ey") || noun.ends_with("oy");
    match noun.strip_suffix('y') {
        Some(stem) if !vowel_before_y => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_lose_their_power() {
        assert_eq!(clean("plain µs – 中文"), "plain µs – 中文");
        assert_eq!(
            clean("a\u{1b}[31mb\u{9b}2Jc\u{7f}"),
            "a\u{fffd}[31mb\u{fffd}2Jc\u{fffd}"
        );
        assert_eq!(
            clean("two\nlines\tand a \u{202e}turn"),
            "two lines and a \u{fffd}turn"
        );
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(clean_short("ééééé", 3), "ééé…");
        assert_eq!(clean_short("ééé", 3), "ééé");
    }

    #[test]
    fn numbers_go_with_their_nouns() {
        let said = [
            counted(1_u32, "page"),
            counted(2_u64, "page"),
            counted(0_u8, "switch"),
            counted(3_u8, "query"),
            counted(7_u8, "day"),
        ];
        assert_eq!(
            said,
            ["1 page", "2 pages", "0 switches", "3 queries", "7 days"]
        );
    }
}
