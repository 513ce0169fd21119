//! Names that begin with the word at the cursor.

use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;
use fingerpost_record::text;

/// Those that begin with the word, each with a line of help.
pub fn beginning<T: AsRef<str>>(word: &OsStr, all: impl Iterator<Item = (T, String)>) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else { return Vec::new() };
    // A name may come from a file of somebody else: nothing of it may steer the terminal or the shell.
    let plain = |name: &str| !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c.is_control() || text::misleads(c));
    let fits = all.filter(|(name, _)| name.as_ref().starts_with(word) && plain(name.as_ref()));
    fits.map(|(name, help)| CompletionCandidate::new(name.as_ref()).help((!help.is_empty()).then(|| help.into()))).collect()
}
