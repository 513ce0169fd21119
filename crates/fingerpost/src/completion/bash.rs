//! bash: it cuts words at `=` and `:`, and replaces no more than what lies behind the last of them.
//!
//! `run database --set engine=m` reaches a completion function as the words `engine`, `=` and `m`, and what it answers
//! takes the place of `m`. The words are therefore put together again by the line that they come from, and the answers
//! lose what bash keeps.
//!
//! bash puts an answer into the line as it is, where it would be run, unless it is told that answers are names of files:
//! then it quotes them. It is told so where an answer has a sign that any shell could take for more than itself.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;

use super::paths;
use super::shell::Shell;
use super::words::{Quotes, meant};

/// Where the word at the cursor is among the words, and the line up to the cursor.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
const LINE: &str = "_CLAP_COMPLETE_LINE";

/// The first line of an answer: whether bash has to quote the others.
const QUOTED: &str = "quoted";
const PLAIN: &str = "plain";

/// The function that bash calls; `NAME`, `BIN`, `COMPLETER` and `VAR` stand for words that are put in. Answers are read
/// as lines into an array, so that none is split, matched with files or evaluated. A word that is complete is followed
/// by a space, but for one that goes on.
const SCRIPT: &str = r#"_NAME_complete() {
    local words=("${COMP_WORDS[@]}") answers=()
    compopt +o nospace +o filenames 2> /dev/null
    words[COMP_CWORD]="$2"
    mapfile -t answers < <( \
        _CLAP_COMPLETE_INDEX="$COMP_CWORD" \
        _CLAP_COMPLETE_LINE="${COMP_LINE:0:COMP_POINT}" \
        VAR="bash" \
        COMPLETER -- "${words[@]}" 2> /dev/null \
    )
    COMPREPLY=("${answers[@]:1}")
    if [[ "${answers[0]-}" == quoted ]]; then
        compopt -o filenames 2> /dev/null || COMPREPLY=()
    fi
    if [[ "${COMPREPLY-}" =~ [=/:.]$ ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
complete -o nospace -o bashdefault -o nosort -F _NAME_complete BIN 2> /dev/null ||
    complete -o nospace -o bashdefault -F _NAME_complete BIN
"#;

/// How it is asked and answered.
pub const BASH: Shell = Shell {
    name: "bash",
    script: SCRIPT,
    answer,
};

fn answer(
    command: &mut Command,
    args: Vec<OsString>,
    dir: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let index = env::var(INDEX)
        .ok()
        .and_then(|index| index.parse().ok())
        .unwrap_or_default();
    let joined = env::var(LINE)
        .ok()
        .and_then(|line| together(&args, index, &line));
    let (args, index, kept) = joined.unwrap_or((args, index, String::new()));
    let offered = super::answers::offered(command, args, index, dir)?;
    let rest: Vec<&str> = offered
        .iter()
        .filter_map(|(value, _)| value.strip_prefix(&kept))
        .collect();
    let plain = rest.iter().all(|rest| paths::is_plain(rest));
    writeln!(buf, "{}", if plain { PLAIN } else { QUOTED })?;
    rest.iter().try_for_each(|rest| writeln!(buf, "{rest}"))
}

/// What the words up to the cursor stand for, the place of the last of them, and its part that bash keeps. Words come as
/// they were typed; that at `index` is what bash replaces, without the quote that it begins with. Nothing where words
/// are not those of the line.
fn together(
    words: &[OsString],
    index: usize,
    line: &str,
) -> Option<(Vec<OsString>, usize, String)> {
    let current = words.get(index)?.to_str()?;
    let (mut whole, mut rest): (Vec<String>, &str) = (Vec::new(), line);
    for word in &words[..index] {
        let word = word.to_str()?;
        let at = rest.find(word)?;
        let (before, from) = rest.split_at(at);
        match whole.last_mut().filter(|_| before.is_empty()) {
            Some(last) => last.push_str(word),
            None if before.trim().is_empty() => whole.push(word.to_owned()),
            None => return None,
        }
        rest = &from[word.len()..];
    }
    let last = if rest.is_empty() || rest.starts_with(char::is_whitespace) {
        None
    } else {
        whole.pop()
    };
    let kept = match last {
        // What is left of the line is the word that bash replaces, or the sign before it, where nothing stands behind
        // that yet.
        Some(begun) => begun + rest.strip_suffix(current).unwrap_or(""),
        None if rest.is_empty() => whole.pop()?,
        None => String::new(),
    };
    whole.push(format!("{kept}{current}"));
    let place = whole.len() - 1;
    let whole: Option<Vec<OsString>> = whole
        .iter()
        .map(|word| meant(word, Quotes::Posix).map(OsString::from))
        .collect();
    Some((whole?, place, meant(&kept, Quotes::Posix)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word at the cursor as it is put together, with its place and what bash keeps.
    fn last(words: &[&str], index: usize, line: &str) -> Option<(String, usize, usize)> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let (whole, place, kept) = together(&words, index, line)?;
        Some((whole[place].to_str()?.to_owned(), place, kept.len()))
    }

    #[test]
    fn words_that_bash_cut_are_put_together() {
        for (words, index, line, whole, place, kept) in [
            (
                &["fp", "run", "x", "--set", "engine", "=", "m"][..],
                6,
                "fp run x --set engine=m",
                "engine=m",
                4,
                7,
            ),
            // With nothing behind the sign the word at the cursor is the sign, of which bash replaces nothing.
            (
                &["fp", "run", "x", "--set", "engine", ""],
                5,
                "fp run x --set engine=",
                "engine=",
                4,
                7,
            ),
            (
                &["fp", "run", "x", "--set", "eng"],
                4,
                "fp run x --set eng",
                "eng",
                4,
                0,
            ),
            (
                &["fp", "show", "ref", ":", "g5"],
                4,
                "fp show ref:g5",
                "ref:g5",
                2,
                4,
            ),
            (&["fp", "show", ""], 2, "fp show ", "", 2, 0),
            (
                &["fp", "run", "--set", "=", "engine", "=", "m"],
                6,
                "fp run --set=engine=m",
                "--set=engine=m",
                2,
                13,
            ),
            (
                &["fp", "run", "--set", "cc", "=", ""],
                5,
                "fp run --set cc=",
                "cc=",
                3,
                3,
            ),
            // In quotes bash cuts nothing.
            (
                &["fp", "run", "--set", "engine=m"],
                3,
                "fp run --set \"engine=m",
                "engine=m",
                3,
                0,
            ),
            (
                &["fp", "--set", "manifest", "=", r"a\ b"],
                4,
                r"fp --set manifest=a\ b",
                "manifest=a b",
                2,
                9,
            ),
            (
                &["fp", "--set", "x", "=", "a b"],
                4,
                "fp --set x='a b",
                "x=a b",
                2,
                2,
            ),
        ] {
            assert_eq!(
                last(words, index, line),
                Some((whole.to_owned(), place, kept)),
                "{line}"
            );
        }
    }

    #[test]
    fn words_that_are_not_the_lines_stay_as_they_are() {
        assert_eq!(last(&["fp", "show", "x"], 2, "sudo other show x"), None);
        assert_eq!(
            last(&["fp", "show"], 2, "fp show "),
            None,
            "no word at the cursor"
        );
    }
}
