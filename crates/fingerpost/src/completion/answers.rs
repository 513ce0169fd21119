//! What shells are answered: their scripts, and the words that may come next.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine::{self, CompletionCandidate};

use super::{paths, words};

/// A shell's script with the words that it is for in place of `NAME`, `COMPLETER`, `BIN` and `VAR`.
pub(super) fn filled(script: &str, var: &str, name: &str, bin: &str, completer: &str) -> String {
    script
        .replace("NAME", &name.replace('-', "_"))
        .replace("COMPLETER", completer)
        .replace("BIN", bin)
        .replace("VAR", var)
}

/// What the word at `index` may be, with a line of help each.
pub(super) fn offered(
    command: &mut Command,
    words: Vec<OsString>,
    index: usize,
    dir: Option<&Path>,
) -> io::Result<Vec<(String, String)>> {
    let found = engine::complete(command, words, index, dir)?;
    let with_help = found.iter().filter_map(|one| {
        let value = one.get_value().to_str()?;
        let help = one.get_help().map(ToString::to_string).unwrap_or_default();
        let line = help.lines().next().unwrap_or_default().to_owned();
        paths::is_offered(value).then(|| (value.to_owned(), line))
    });
    Ok(with_help.collect())
}

/// Answers a shell that gives the words as they were typed and quotes the answers itself: lines, help behind a tab.
pub(super) fn write_lines(
    command: &mut Command,
    words: Vec<OsString>,
    quotes: words::Quotes,
    dir: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let last = words.len().saturating_sub(1);
    let meant = |(at, word): (usize, &OsString)| {
        // fish takes the quotes of those before the cursor itself.
        let typed = at == last || quotes == words::Quotes::Posix;
        let word = word.to_str()?;
        if typed {
            words::meant(word, quotes)
        } else {
            Some(word.to_owned())
        }
        .map(OsString::from)
    };
    let Some(words) = words.iter().enumerate().map(meant).collect() else {
        return Ok(());
    };
    for (value, help) in offered(command, words, last, dir)? {
        match help.as_str() {
            "" => writeln!(buf, "{value}")?,
            help => writeln!(buf, "{value}\t{}", help.replace('\t', " "))?,
        }
    }
    Ok(())
}

/// Those that begin with the word, each with a line of help.
pub(super) fn beginning<T: AsRef<str>>(
    word: &OsStr,
    all: impl Iterator<Item = (T, String)>,
) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else {
        return Vec::new();
    };
    // A name may come from a file of somebody else: what is no file itself some shells quote in part only.
    let plain = |name: &str| !name.is_empty() && paths::is_plain(name);
    let fits = all.filter(|(name, _)| name.as_ref().starts_with(word) && plain(name.as_ref()));
    fits.map(|(name, help)| {
        CompletionCandidate::new(name.as_ref()).help((!help.is_empty()).then(|| help.into()))
    })
    .collect()
}
