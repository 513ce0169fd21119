//! Names of files. Who made a file chose its name, so that none is offered that would not reach the program as it is.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::CompletionCandidate;
use fingerpost_record::text;

/// Entries of a directory that are looked at, and those that are offered, at most.
const MOST_ENTRIES: usize = 100_000;
const MOST_OFFERED: usize = 1000;

/// Whether a word may be offered: a shell quotes what is special to it, but to show a control character or a mark of
/// direction would change the terminal, and answers are lines.
pub fn is_offered(word: &str) -> bool {
    !word.is_empty() && !word.chars().any(|c| c.is_control() || text::misleads(c))
}

/// Whether a word is the same in a command line as it is here, in any shell.
pub fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=,:+@%~".contains(c);
    word.chars().all(plain) && !word.starts_with(['~', '=', '%'])
}

/// Files and directories.
pub fn any(word: &OsStr) -> Vec<CompletionCandidate> {
    beginning(word, |_| true)
}

/// Files, and directories on the way to them.
pub fn files(word: &OsStr) -> Vec<CompletionCandidate> {
    beginning(word, Path::is_file)
}

/// Directories.
pub fn dirs(word: &OsStr) -> Vec<CompletionCandidate> {
    beginning(word, |_| false)
}

/// Those whose names begin with the word and that are wanted, and directories. `~` is left to the shell, which alone
/// knows whether it was quoted.
fn beginning(word: &OsStr, wanted: impl Fn(&Path) -> bool) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str().filter(|word| !word.starts_with('~')) else {
        return Vec::new();
    };
    let (dir, begun) = match word.rfind('/') {
        Some(at) => word.split_at(at + 1),
        None => ("", word),
    };
    let entries = std::fs::read_dir(if dir.is_empty() { "." } else { dir });
    let mut found: Vec<String> = entries
        .into_iter()
        .flatten()
        .take(MOST_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            // What is hidden is offered to whom asks for it.
            let hidden = name.starts_with('.') && !begun.starts_with('.');
            if hidden || !name.starts_with(begun) || !is_offered(&name) {
                return None;
            }
            let path = entry.path();
            let end = match path.is_dir() {
                true => "/",
                false if wanted(&path) => "",
                false => return None,
            };
            // Alone it would be an option, or another directory.
            let start = if dir.is_empty() && name.starts_with(['-', '~']) {
                "./"
            } else {
                dir
            };
            Some(format!("{start}{name}{end}"))
        })
        .take(MOST_OFFERED)
        .collect();
    found.sort();
    found.into_iter().map(CompletionCandidate::new).collect()
}
