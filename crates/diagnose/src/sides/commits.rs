//! What another way to commit leads to besides the wait for the disk: calls on files that go with it.

use fingerpost_record::Layer;
use fingerpost_record::cause::thresholds::{MOST_OF_COMMITS, NO_FLUSHES};
use fingerpost_record::place::Kind;

use super::clues::Clues;
use super::flushes::{counted_flushes, durability};
use super::sign::Sign::Fits;
use crate::places::name;

/// Calls that a commit makes on files besides its flushes: a journal is made and removed, checked for, cut and written.
const OF_COMMITS: [&[&str]; 4] = [
    &["openat", "open", "close", "unlink", "unlinkat", "rename"],
    &["newfstatat", "stat", "fstat", "fcntl"],
    &["ftruncate", "fallocate"],
    &["lseek", "pread64", "pwrite64", "pwritev"],
];

/// Why more calls belong to how the server commits: it flushes on the slower side alone, and most of what calls take
/// longer is in those on files.
pub(super) fn journals(clues: &Clues) -> Option<String> {
    let Fits(text) = durability(clues) else { return None };
    let flushed = counted_flushes(clues)?.pair;
    let grew = clues.parts(|layer, part| Kind::of(layer, part) == Kind::Kernel).more();
    let of_files = clues.parts(of_commits).more();
    (flushed.fast < NO_FLUSHES.value * flushed.slow && grew > 0.0 && of_files > MOST_OF_COMMITS.value * grew)
        .then(|| format!("{text}; most of what calls take longer is in those on files, which go with how it commits"))
}

/// A part of a budget in which files are prepared for a commit.
fn of_commits(_: Layer, part: &str) -> bool {
    part.strip_prefix(name::KERNEL).is_some_and(|call| OF_COMMITS.iter().any(|calls| calls.contains(&call)))
}

/// Whether a part of a budget is longer because of calls that go with how the server commits.
pub(super) fn with_journals(clues: &Clues, layer: Layer, part: &str) -> bool {
    of_commits(layer, part) && journals(clues).is_some()
}
