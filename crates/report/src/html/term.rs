//! Words with their definitions, shown on hover and on focus. The texts are the glossary's and the registry of causes':
//! there is no second one.

use fingerpost_diagnose::causes::cause;
use maud::{Markup, html};

use super::content::Define;

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// The word as it stands, with its definition where it has one.
pub fn term(word: &str) -> Markup {
    html! { @match definition(word) {
        Some(meaning) => abbr class="term" tabindex="0" title=(meaning) { (word) },
        None => (word),
    } }
}

/// A probe's name as it stands, with what the probe is where that is known. `focus` lets the keyboard come to it.
pub fn defined(name: &str, define: Option<Define>, focus: bool) -> Markup {
    html! { @match define.and_then(|define| define(name)) {
        Some(meaning) => abbr class="term" tabindex=[focus.then_some("0")] title=(meaning) { (breakable(name)) },
        None => (breakable(name)),
    } }
}

/// A name or parameters that may go on in the next line behind a full stop or an equals sign, where a phone is too
/// narrow for them.
pub fn breakable(text: &str) -> Markup {
    html! { @for piece in text.split_inclusive(['.', '=']) { (piece) @if piece.ends_with(['.', '=']) { wbr; } } }
}

/// A command, or parameters, of which a line ends between words alone: no hyphen of an option is left behind. A word
/// that is wider than the screen is broken as in [`breakable`].
pub fn words_whole(text: &str) -> Markup {
    html! {
        @for (i, word) in text.split(' ').enumerate() { @if i > 0 { " " } span class="word" { (breakable(word)) } }
    }
}

/// A title or a sentence, in which an option of a command stays whole.
pub fn options_whole(text: &str) -> Markup {
    let option = |word: &str| word.len() > 1 && word.starts_with('-');
    html! {
        @for (i, word) in text.split(' ').enumerate() {
            @if i > 0 { " " }
            @if option(word) { span class="word" { (word) } } @else { (word) }
        }
    }
}

/// What a word of the glossary or a cause means.
pub fn definition(word: &str) -> Option<String> {
    if let Some(cause) = cause(word) {
        return Some(format!("{}: {}", cause.words.label, cause.words.tells));
    }
    let wanted = word.to_lowercase();
    let found = rows().find(|(words, _)| words.split(", ").any(|w| w == wanted));
    found.map(|(_, meaning)| plain(meaning))
}

/// The glossary's rows: words, meaning.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let cells = |line: &'static str| {
        line.strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")
    };
    GLOSSARY
        .lines()
        .filter_map(cells)
        .filter(|(words, _)| *words != "word" && *words != "---")
}

/// Markdown's text alone: what a link and a piece of code say.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (said, after))) = rest
        .split_once('[')
        .and_then(|(b, link)| Some((b, link.split_once("](")?)))
    {
        let Some((_, after)) = after.split_once(')') else {
            break;
        };
        out.push_str(before);
        out.push_str(said);
        rest = after;
    }
    out.push_str(rest);
    out.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_between_the_words_of_a_command_and_not_within_an_option() {
        let command = words_whole("run x --set a=<b>").into_string();
        let expected = [
            r#"<span class="word">run</span> <span class="word">x</span> <span class="word">--set</span> "#,
            r#"<span class="word">a=<wbr>&lt;b&gt;</span>"#,
        ];
        assert_eq!(command, expected.concat());
        assert_eq!(
            options_whole("ab -c 100 - <x> read-only").into_string(),
            r#"ab <span class="word">-c</span> 100 - &lt;x&gt; read-only"#
        );
        assert_eq!(options_whole("").into_string(), "");
    }

    #[test]
    fn each_word_of_the_glossary_has_its_meaning_without_markdown() {
        let all: Vec<_> = rows().collect();
        assert!(all.len() > 30, "{}", all.len());
        for (words, _) in all {
            for word in words.split(", ") {
                let meaning = definition(word).unwrap_or_else(|| panic!("{word}"));
                assert!(
                    !meaning.is_empty() && !meaning.contains(['`', '[', ']', '|']),
                    "{word}: {meaning}"
                );
            }
        }
        assert_eq!(
            definition("Confirmed"),
            Some("the evidence shows that it is a cause: see What to trust".into())
        );
        assert!(definition("cpu.quota").is_some_and(|m| m.contains("quota")));
        assert_eq!(definition("word"), None);
        assert_eq!(definition("<script>"), None);
    }

    #[test]
    fn a_probe_has_the_meaning_that_it_is_given() {
        let define: Define = |name| (name == "a.b").then(|| "what <it> is".into());
        assert_eq!(
            defined("a.b", Some(define), true).into_string(),
            r#"<abbr class="term" tabindex="0" title="what &lt;it&gt; is">a.<wbr>b</abbr>"#
        );
        assert!(
            !defined("a.b", Some(define), false)
                .into_string()
                .contains("tabindex")
        );
        assert_eq!(
            defined("<x>", Some(define), true).into_string(),
            "&lt;x&gt;"
        );
        assert_eq!(defined("a.b", None, true).into_string(), "a.<wbr>b");
    }

    #[test]
    fn words_without_a_meaning_stay_text_and_meanings_are_escaped() {
        assert_eq!(term("<b>").into_string(), "&lt;b&gt;");
        let confirmed = term("confirmed").into_string();
        assert!(
            confirmed.starts_with("<abbr class=\"term\" tabindex=\"0\" title=\"the evidence")
                && confirmed.ends_with(">confirmed</abbr>"),
            "{confirmed}"
        );
        assert_eq!(plain("a [b](c) `d` [e"), "a b d [e");
    }
}
