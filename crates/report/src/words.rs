//! A run's texts as a terminal and as Markdown show them, times and shares.

use fingerpost_record::{Blocker, Component, Unit};

use crate::wording::whom;

/// A time of so many seconds.
pub fn time(seconds: f64) -> String {
    Unit::Nanoseconds.format(seconds * 1e9)
}

/// A share, 0 to 1, in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with two decimals at most, and none that says nothing.
pub fn short(value: f64) -> String {
    format!("{value:.2}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// A number of bytes, without decimals where it is a whole number of its unit.
pub fn whole_bytes(bytes: u64) -> String {
    let scale = Unit::Bytes.scale_for(bytes as f64);
    let scaled = bytes as f64 / scale.divisor;
    if scaled.fract() == 0.0 {
        format!("{scaled:.0} {}", scale.symbol)
    } else {
        Unit::Bytes.format(bytes as f64)
    }
}

/// When something began, as a record has it, for a person.
pub fn moment(started: &str) -> String {
    started.replace('T', " ").replace('Z', " UTC")
}

/// What a part of a request's time is called.
pub fn part(component: &Component) -> String {
    clean(&component.name())
}

/// Who had what was waited for; empty where that is not known.
pub fn blocked_by(blocker: Option<&Blocker>) -> String {
    clean(&whom(blocker))
}

/// A run's text without what could mislead a reader.
pub fn clean(text: &str) -> String {
    fingerpost_record::text::clean(text).into_owned()
}

/// Text that Markdown shows as it is: no markup, no HTML, no cell border.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let within_word =
            before.is_alphanumeric() && rest.peek().is_some_and(|n| n.is_alphanumeric());
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '_' if within_word => safe.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => safe.extend(['\\', c]),
            // A bare address would become a link.
            ':' if rest.peek() == Some(&'/') => safe.push_str("&#58;"),
            _ => safe.push(c),
        }
        before = c;
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_run_stays_text() {
        assert_eq!(escape("a|b"), "a\\|b");
        assert_eq!(escape("<script>"), "&lt;script&gt;");
        assert_eq!(escape("![x](http://e)"), "\\!\\[x\\](http&#58;//e)");
        assert_eq!(
            escape("syscall.open_close _it_"),
            "syscall.open_close \\_it\\_"
        );
    }
}
