//! Words of a command line as they were typed, with quotes, and what they stand for.

/// Which signs quote in a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// bash and zsh: within `'` nothing does.
    Posix,
    /// fish: within `'` a backslash quotes itself and the quote.
    Fish,
}

/// What a word stands for whose quotes need not be closed yet. What a shell would put in place of something (`$`, `` ` ``)
/// stays as it is: nothing is run and no variable read to complete a word. Nothing where a backslash stands for another
/// character than that behind it.
pub fn meant(word: &str, quotes: Quotes) -> Option<String> {
    let (mut meant, mut open) = (String::with_capacity(word.len()), None);
    let mut rest = word.chars().peekable();
    while let Some(c) = rest.next() {
        match (open, c) {
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), c) if c == quote => open = None,
            // $'…' has escapes of its own.
            (None, '$') if rest.peek() == Some(&'\'') && quotes == Quotes::Posix => return None,
            (_, '\\') => match (open, rest.peek().copied()) {
                // The word ends within an escape.
                (_, None) => {}
                (Some('\''), _) if quotes == Quotes::Posix => meant.push('\\'),
                (None, Some(next)) if quotes == Quotes::Fish && next.is_ascii_alphanumeric() => {
                    return None;
                }
                (Some(quote), Some(next)) if !escaped_within(quote, next) => meant.push('\\'),
                (_, Some(next)) => {
                    rest.next();
                    meant.push(next);
                }
            },
            (_, c) => meant.push(c),
        }
    }
    Some(meant)
}

/// Whether a backslash before this character quotes it within these quotes.
fn escaped_within(quote: char, next: char) -> bool {
    match quote {
        '"' => matches!(next, '$' | '`' | '"' | '\\'),
        _ => matches!(next, '\'' | '\\'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_word_stands_for_a_name() {
        for (typed, name) in [
            ("plain", "plain"),
            (r"a\ b", "a b"),
            (r#""a b"#, "a b"),
            (r#""a b""#, "a b"),
            ("'a b", "a b"),
            (r"'it'\''s", "it's"),
            (r#""a\$b\c\"d"#, r#"a$b\c"d"#),
            (r#"x="a"'b'\ c"#, "x=ab c"),
            ("$HOME/a", "$HOME/a"),
            ("a\\", "a"),
        ] {
            assert_eq!(
                meant(typed, Quotes::Posix).as_deref(),
                Some(name),
                "{typed}"
            );
        }
        assert_eq!(meant(r"'a\'", Quotes::Posix).as_deref(), Some(r"a\"));
        assert_eq!(meant(r"$'a\n", Quotes::Posix), None);
        assert_eq!(
            meant(r"'it\'s \\ \x", Quotes::Fish).as_deref(),
            Some(r"it's \ \x")
        );
        assert_eq!(meant(r"a\ \$b", Quotes::Fish).as_deref(), Some("a $b"));
        assert_eq!(meant(r"a\n", Quotes::Fish), None);
    }
}
