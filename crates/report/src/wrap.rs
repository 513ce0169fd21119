//! Text in lines of at most a width, in columns of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The words of a text, of which none is to be parted; a number and the unit behind it are one.
pub fn words(text: &str) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(' ').chain([(text.len(), "")]) {
        let (word, rest) = (&text[from..at], text[at..].trim_start_matches(' '));
        let next = rest
            .split(' ')
            .next()
            .unwrap_or_default()
            .trim_end_matches([',', '.', ';', ':', ')']);
        let number = word.ends_with(|c: char| c.is_ascii_digit()) && !word.contains('=');
        if number && rest.len() + 1 + at == text.len() && UNITS.contains(&next) {
            continue;
        }
        if !word.trim().is_empty() {
            all.push(word.trim_start_matches(' '));
        }
        from = at + 1;
    }
    all
}

/// What is not parted from the number before it.
const UNITS: [&str; 13] = [
    "%", "ns", "µs", "ms", "s", "k/s", "M/s", "/s", "MiB", "GiB", "KiB", "kB", "MB",
];

/// A sentence in lines of at most `room` columns. A word that is longer stands whole in a line of its own: the terminal
/// folds it, and a path or an address can still be copied. A number keeps its unit.
pub fn sentence(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in words(text) {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.width() + 1 + word.width() > room {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Whether a line fits into a terminal of this width; where none is known, each does.
pub fn fits(line: &str, width: Option<usize>) -> bool {
    width.is_none_or(|width| line.width() <= width)
}

/// A text for a terminal of this width, its further lines indented; as it is where it fits, or where no width is known.
pub fn indented(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| text.width() > *width) else {
        return text.to_owned();
    };
    let own: String = text.chars().take_while(|c| *c == ' ').collect();
    let indent = indent.max(own.len());
    let lines = sentence(text, width.saturating_sub(indent).max(LEAST));
    own + &lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Sentences keep this much room on the narrowest terminal.
const LEAST: usize = 20;

/// The text of a cell in lines of at most this width, broken at spaces (the leading ones are an indent and are kept). A
/// word that is too long goes on in the next line, behind one of `.-_/=,:–` where there is one; nothing of it is lost.
pub fn cell(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return vec![text.to_owned()];
    }
    let width = width.max(1);
    let indent: String = text
        .chars()
        .take_while(|c| *c == ' ')
        .take(width - 1)
        .collect();
    let mut lines = vec![indent];
    let mut fresh = true;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let line = lines.last_mut().expect("there is always a line");
        if !fresh && line.width() + 1 + word.width() > width {
            lines.push(String::new());
        } else if !fresh {
            line.push(' ');
        }
        fresh = false;
        let line = lines.last_mut().expect("there is always a line");
        let (first, rest) = head(word, width - line.width());
        line.push_str(first);
        let mut rest = rest;
        while !rest.is_empty() {
            let (next, after) = head(rest, width);
            lines.push(next.to_owned());
            rest = after;
        }
    }
    lines
}

/// As much of a word as has room, and the rest.
fn head(word: &str, room: usize) -> (&str, &str) {
    if word.width() <= room {
        return (word, "");
    }
    let (mut used, mut end, mut joint) = (0, 0, 0);
    for (at, c) in word.char_indices() {
        used += c.width().unwrap_or(0);
        // At least one letter, so that there is an end to it.
        if used > room && at > 0 {
            break;
        }
        end = at + c.len_utf8();
        // Not at a number's own point.
        let within = c == '.'
            && is_digit(word[..at].chars().next_back())
            && is_digit(word[end..].chars().next());
        if ".-_/=,:–".contains(c) && !within {
            joint = end;
        }
    }
    word.split_at(if joint > 0 { joint } else { end })
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_break_between_words_and_never_within_one() {
        assert_eq!(
            sentence("the run is in /a/very/long/path now", 12),
            ["the run is", "in", "/a/very/long/path", "now"]
        );
        assert_eq!(sentence("", 5), [""]);
        assert_eq!(
            sentence("it took 45.94 ms of CPU", 14),
            ["it took", "45.94 ms of", "CPU"]
        );
        assert_eq!(
            sentence("of which (6 %), and 7 more  or 8", 13),
            ["of which", "(6 %), and 7", "more or 8"]
        );
        assert_eq!(sentence("n=1 s 5 %", 3), ["n=1", "s", "5 %"]);
        assert_eq!(
            indented("what is said goes on here and there", 4, Some(24)),
            "what is said goes on\n    here and there"
        );
        assert_eq!(
            indented("  an indent of its own is kept", 0, Some(22)),
            "  an indent of its own\n  is kept"
        );
        assert_eq!(
            indented("a  b", 0, Some(80)),
            "a  b",
            "what fits is as it was"
        );
        assert_eq!(indented("a  b", 0, None), "a  b");
    }

    #[test]
    fn words_of_a_cell_that_do_not_fit_go_on_in_the_next_line() {
        assert_eq!(cell("  a=1 bb=22 c=3", 9), ["  a=1", "bb=22 c=3"]);
        assert_eq!(cell("toolongaword x", 5), ["toolo", "ngawo", "rd x"]);
        assert_eq!(
            cell("process.exec_dynamic", 12),
            ["process.", "exec_dynamic"]
        );
        assert_eq!(cell("opteron-850-linux", 8), ["opteron-", "850-", "linux"]);
        assert_eq!(
            cell("0.0985–0.4118", 10),
            ["0.0985–", "0.4118"],
            "a number stays whole"
        );
        assert_eq!(cell("196.35–1407.3", 9), ["196.35–", "1407.3"]);
        assert_eq!(cell("", 0), [""]);
        assert_eq!(
            cell("ab", 0),
            ["a", "b"],
            "there is an end to it whatever the width"
        );
        assert!(cell("宽宽宽宽", 3).iter().all(|l| l.width() <= 3));
        assert!(cell("    indent", 3).iter().all(|l| l.width() <= 3));
    }
}
